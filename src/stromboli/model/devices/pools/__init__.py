"""Pools of devices: slices by pool and node, and what a node sees of them."""
