"""Sweeps: a grid of simulations, each a command of its own, on all cores or on a cluster, with resume."""
