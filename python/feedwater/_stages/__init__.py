"""The stage table: where the steps of a training loop spend their time."""
