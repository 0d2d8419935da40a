"""What a cluster used and what waited, over the time for which it has been watched."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from stromboli.api import names
from stromboli.cli.live.cluster_content import ClusterContent

RECENT_STEP, RECENT_SPAN = 10.0, 3600.0
LONG_STEP, LONG_SPAN = 120.0, 24 * 3600.0
"""Seconds between two samples, and for how long they are kept."""


class UsageSample(NamedTuple):
    """A moment of a cluster."""

    time: float
    used: dict[str, float]
    """The part of each resource that pods have, 1.0 for all of it."""
    running_jobs: int
    waiting_jobs: int
    running_pods: int
    waiting_pods: int
    pod_starts: int
    """Since the cluster has been watched."""
    evictions: int
    """Since then."""


class UsageHistory:
    """Samples of the last hour, and fewer of the last day."""

    def __init__(self) -> None:
        self._recent: deque[UsageSample] = deque(maxlen=int(RECENT_SPAN / RECENT_STEP))
        self._long: deque[UsageSample] = deque(maxlen=int(LONG_SPAN / LONG_STEP))

    def add(self, content: ClusterContent, now: float) -> None:
        """Take a sample if one is due."""
        if self._recent and now - self._recent[-1].time < RECENT_STEP:
            return
        sample = _sample(content, now)
        self._recent.append(sample)
        if not self._long or now - self._long[-1].time >= LONG_STEP:
            self._long.append(sample)

    def samples(self, span: float) -> list[UsageSample]:
        """Those of the last so many seconds, the oldest first."""
        kept = self._recent if span <= RECENT_SPAN else self._long
        samples = list(kept)
        if samples and span > RECENT_SPAN and self._recent and self._recent[-1] is not samples[-1]:
            samples.append(self._recent[-1])
        latest = samples[-1].time if samples else 0.0
        return [sample for sample in samples if sample.time > latest - span]


def _sample(content: ClusterContent, now: float) -> UsageSample:
    summary, records = content.summary(), content.records
    used = {
        resource: summary["used"].get(resource, 0.0) / total
        for resource, total in summary["total"].items()
        if total
    }
    return UsageSample(
        now,
        {name: used[name] for name in (names.CPU, names.MEMORY, *sorted(used)) if name in used},
        summary["jobs"]["running"],
        summary["jobs"]["waiting"],
        summary["pods"]["running"],
        summary["pods"]["waiting"],
        records.pod_starts,
        records.evictions,
    )
