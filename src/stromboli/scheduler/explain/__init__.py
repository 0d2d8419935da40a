"""What the leader tells of a job on request: why it waits, what plugins remember of it, and what happened to it."""
