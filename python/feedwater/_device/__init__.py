"""Batches on a GPU: memory that the driver may read, and copies that overlap the step."""
