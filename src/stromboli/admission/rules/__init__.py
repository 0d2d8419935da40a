"""Defaults and checks of every kind, as pure functions of objects."""
