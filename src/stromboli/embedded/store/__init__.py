"""Versions of objects in memory and in SQLite, selectors over them, and watches that follow their changes."""
