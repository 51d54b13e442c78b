"""How long the training loop waits for batches, and how long its GPU idles."""
