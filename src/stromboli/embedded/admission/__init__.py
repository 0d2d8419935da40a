"""Admission: what completes, limits or refuses a write that is valid by itself."""
