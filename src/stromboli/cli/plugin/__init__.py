"""`stromboli plugin`: a plugin or an action to begin with, and its test."""
