"""Kubernetes objects and Volcano's CRDs as typed data, with the fields that we read.

Also exact quantities and the arithmetic of pods, selectors, well-known names, and reading objects from files. Nothing
here knows the model or talks to a network.
"""
