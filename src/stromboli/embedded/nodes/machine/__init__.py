"""This machine, on which real nodes run: its size, its GPUs, and the limits that its kernel enforces (cgroups)."""
