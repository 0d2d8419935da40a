"""This machine, on which real nodes run: its size as a node, its GPUs, and which pod has which of them."""
