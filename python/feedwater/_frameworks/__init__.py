"""What frameworks ask of a loop, that a Loader tells them while it runs."""
