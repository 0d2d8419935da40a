"""Quantities, resource lists and the arithmetic of pods: requests, quota charges, quality of service."""
