"""Following a job on a cluster: its phase, why it waits, what its pods print, and how it ended."""
