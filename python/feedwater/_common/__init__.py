"""What every room may use: names of files, numbers, ranks, torch's modes, states of random numbers."""
