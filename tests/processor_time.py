"""How long work takes, where a busy machine and a collection of garbage do not count."""

from __future__ import annotations

import time
from collections.abc import Callable

TIMES = 3
"""Of these runs, at least one is not held up."""


def least_seconds(work: Callable[[], object]) -> float:
    """The processor time of the quickest of some runs."""
    taken = []
    for _ in range(TIMES):
        begin = time.process_time()
        work()
        taken.append(time.process_time() - begin)
    return min(taken)
