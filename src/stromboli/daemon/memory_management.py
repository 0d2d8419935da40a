"""Python's garbage collector in a process that loads much and keeps it."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

THRESHOLDS = (20_000, 20, 50)
"""With Python's own 700 it takes a tenth of our time under load."""


def collect_rarely() -> None:
    """To be called before anything large is loaded. What is there already, code above all, is never looked at again."""
    gc.set_threshold(*THRESHOLDS)
    gc.freeze()


@contextmanager
def collecting_rarely() -> Iterator[None]:
    """For a command that keeps nearly all that it makes until it is done."""
    before = gc.get_threshold()
    gc.set_threshold(*THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*before)
