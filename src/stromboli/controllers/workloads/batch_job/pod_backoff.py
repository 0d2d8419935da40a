"""How long a job waits after failures until it makes pods again: 10 seconds, doubled each time, at most 10 minutes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from stromboli.api.types.controlled_pod import Pod
from stromboli.controllers.workloads.batch_job.pod_ends import (
    finished_at,
    index_failures,
    index_ignored_failures,
)

FIRST_DELAY, LONGEST_DELAY = 10.0, 600.0
"""Seconds."""


class PodBackoff(NamedTuple):
    """Failures of a job since a pod of it last succeeded."""

    failures: int = 0
    last_failure: float | None = None

    def after(self, succeeded: Sequence[Pod], failed: Sequence[Pod]) -> PodBackoff:
        """With the pods that ended since."""
        failures = sorted(map(finished_at, failed))
        if not succeeded:
            return PodBackoff(self.failures + len(failures), failures[-1]) if failures else self
        last_success = max(map(finished_at, succeeded))
        later = [failure for failure in failures if failure > last_success]
        return PodBackoff(len(later), later[-1] if later else None)

    def time_left(self, now: float) -> float:
        """Seconds until pods may be made."""
        if self.failures == 0 or self.last_failure is None:
            return 0.0
        return _time_left(self.failures, self.last_failure, now)


def index_time_left(last_failed: Pod | None, now: float) -> float:
    """Seconds until a pod of an index may be made, whose last pod failed."""
    if last_failed is None:
        return 0.0
    failures = index_failures(last_failed) + index_ignored_failures(last_failed) + 1
    return _time_left(failures, finished_at(last_failed), now)


def _time_left(failures: int, last_failure: float, now: float) -> float:
    delay = min(LONGEST_DELAY, FIRST_DELAY * 2.0 ** min(failures - 1, 10))
    return min(delay, max(0.0, last_failure + delay - now))
