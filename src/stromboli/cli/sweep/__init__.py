"""`stromboli sweep`: a grid of simulations on all cores of this machine, or as a Job on a cluster."""

from stromboli.cli.sweep.sweep_command import sweep

__all__ = ["sweep"]
