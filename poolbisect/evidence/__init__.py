"""Statistics without I/O; each is explained in docs/statistics.md."""
