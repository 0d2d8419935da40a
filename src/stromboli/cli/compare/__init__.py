"""`stromboli compare`: runs side by side, with their differences tested over seeds."""

from stromboli.cli.compare.compare_command import compare

__all__ = ["compare"]
