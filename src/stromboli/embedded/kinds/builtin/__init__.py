"""A module for each built-in kind: its `KIND`, and a strategy with what is particular to it."""
