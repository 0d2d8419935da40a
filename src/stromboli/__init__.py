"""A batch scheduler for Kubernetes: Volcano's objects, configuration and decisions, in Python."""

__version__ = "0.1.0.dev0"
