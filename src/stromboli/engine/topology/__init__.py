"""Gangs in the network's shape: which domains a gang may use, and the search over them."""
