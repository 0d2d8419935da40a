"""Pods beyond their schema: defaults that depend on other fields, and what Kubernetes would refuse."""
