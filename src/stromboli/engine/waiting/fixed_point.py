"""A cycle that changed nothing, on a cluster to which nothing happened since, would change nothing again.

A cycle is a function of the cluster, of the time and of what plugins ask outside. So after a cycle that neither moved a
task nor admitted a job, the next one need not run if no object changed, the moments that plugins and actions wait for
have not come, and no plugin read the time itself, a service, or a node function that reads `clock` or `external`.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, NamedTuple

from stromboli.engine.decisions import (
    Event,
    GroupCondition,
    NativeGroupCondition,
    PodCondition,
    PodGroupStatus,
    QueueStatus,
)

if TYPE_CHECKING:
    from stromboli.engine.session import Session
    from stromboli.model.cluster import Cluster

REPORTS = (PodCondition, PodGroupStatus, GroupCondition, NativeGroupCondition, QueueStatus, Event)
"""Decisions that only report: no rule reads what they write."""


class LastCycle(NamedTuple):
    """A cycle that changed nothing: when it was, the generation that it left, and how long its answers hold."""

    time: float
    generation: int
    until: float


class FixedPoint:
    """The last cycle, if the next could be the same."""

    def __init__(self) -> None:
        self._last: LastCycle | None = None

    def reset(self) -> None:
        """What the last cycle came to no longer counts."""
        self._last = None

    def note(self, session: Session, changed: bool) -> None:
        """A cycle has come to its end; `changed` if it decided more than reports."""
        self._last = None
        cluster, reads = session.cluster, session.reads
        if changed or reads.any or session.failures or session.reports.failed:
            return
        if all(isinstance(decision, REPORTS) for decision in session.journal.decisions):
            until = min(reads.until, cluster.reservations.next_moment)
            self._last = LastCycle(reads.time, cluster.feed.generation, until)

    def holds(self, cluster: Cluster, now: float) -> bool:
        """Whether a cycle at this moment would come to what the last one came to."""
        last = self._last
        if last is None or not last.time <= now < last.until:
            return False
        return last.generation == cluster.feed.generation and not cluster.dirty.everything


class UnrepeatableReads:
    """Records reads whose answers may change; without any, the same cluster leads to the same decisions."""

    def __init__(self, now: float):
        self.time = now
        """The time of the cycle; to read it here is not recorded."""
        self.any = False
        """Whether something was read that may change at any time."""
        self.until = inf
        """The earliest moment at which an answer changes."""

    def now(self) -> float:
        """The time itself: answers may change with every second."""
        self.any = True
        return self.time

    def has_come(self, moment: float) -> bool:
        """Whether a moment has come; until it has, this answer stays the same."""
        if self.time >= moment:
            return True
        self.until = min(self.until, moment)
        return False
