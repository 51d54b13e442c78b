"""The last hop: from a slot's bytes to the batch that the training loop gets."""
