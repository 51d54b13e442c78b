"""The function of python=, run on samples in worker processes."""
