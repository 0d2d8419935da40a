"""A batch scheduler for Kubernetes in Python, with Volcano's objects and configuration."""

__version__ = "0.1.0.dev0"
