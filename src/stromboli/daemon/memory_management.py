"""Python's garbage collector in a process that loads much and keeps it."""

from __future__ import annotations

import gc

THRESHOLDS = (20_000, 20, 50)
"""With Python's own 700 it takes a tenth of our time under load."""


def collect_rarely() -> None:
    """To be called before anything large is loaded. What is there already, code above all, is never looked at again."""
    gc.set_threshold(*THRESHOLDS)
    gc.freeze()
