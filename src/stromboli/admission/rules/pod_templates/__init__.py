"""Kubernetes' own rules for pod templates, as far as they need no API server."""
