"""Kubernetes and Volcano objects as structs with only the fields that are read."""
