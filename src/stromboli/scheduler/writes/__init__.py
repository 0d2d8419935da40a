"""Decisions on their way to the API server: in order per object, retried, never twice."""
