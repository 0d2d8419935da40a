"""What users' objects are completed with and refused for: one file per kind, and the webhook server.

The same functions serve three ways: the webhook server, the embedded API server, and `stromboli lint` without either.
"""
