"""The agent's process, the socket to it, the memory shared with it, the wants sent to it."""
