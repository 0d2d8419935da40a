"""What is to happen in virtual time, in order."""

from __future__ import annotations

from enum import IntEnum
from heapq import heappop, heappush
from math import inf
from typing import Any, NamedTuple


class EventKind(IntEnum):
    """What happens; of what happens at the same moment, the first of these comes first."""

    POD_ENDS = 0
    NODE_REPAIRED = 1
    NODE_FAILS = 2
    JOB_SUBMITTED = 3


class ScheduledEvent(NamedTuple):
    """Something that happens at a moment; a number keeps equal ones in the order in which they were scheduled."""

    time: float
    kind: EventKind
    number: int
    subject: Any
    """The uid of a pod, the name of a node, or the place of a job in its workload."""


class EventQueue:
    """Events by time. Failures of nodes alone do not keep a simulation going: there is no end of them."""

    def __init__(self) -> None:
        self._heap: list[ScheduledEvent] = []
        self._number = 0
        self._lasting = 0

    def schedule(self, time: float, kind: EventKind, subject: Any) -> None:
        """Let something happen at a moment; never, if that is infinite."""
        if time < inf:
            self._number += 1
            self._lasting += kind is not EventKind.NODE_FAILS
            heappush(self._heap, ScheduledEvent(time, kind, self._number, subject))

    @property
    def next_time(self) -> float:
        """When the next event happens; infinite if none is left but failures of nodes."""
        return self._heap[0].time if self._lasting else inf

    def pop(self) -> ScheduledEvent:
        """The next event."""
        event = heappop(self._heap)
        self._lasting -= event.kind is not EventKind.NODE_FAILS
        return event
