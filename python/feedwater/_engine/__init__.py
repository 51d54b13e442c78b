"""The run behind a Loader, from its first use on: the opened plan, the order of samples, and the next batch."""
