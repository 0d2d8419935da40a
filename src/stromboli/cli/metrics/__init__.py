"""`stromboli metrics`: what a scheduler's metrics say, in words."""
