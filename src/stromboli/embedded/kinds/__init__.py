"""Kinds: which there are, their schemas, and what the server sets and checks when their objects are written.

`kind_registry` knows built-in kinds and those of CustomResourceDefinitions; `status_errors` are the Status objects with
which requests are refused. Nothing is stored here.
"""
