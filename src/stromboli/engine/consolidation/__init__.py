"""Moves of running pods for a gang that does not fit; each moved pod gets another node in the same cycle."""
