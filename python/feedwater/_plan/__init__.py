"""A transform, as the user wrote it, as the plan that nodes run."""
