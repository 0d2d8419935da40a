"""The statuses of a task and the weight of each (spec 01 2.3, 5.1), as tables."""

from enum import IntEnum
from typing import NamedTuple


class Status(IntEnum):
    """The status of a task. Allocated, Pipelined and Binding last only until a watch event confirms the decision."""

    PENDING = 0
    ALLOCATED = 1
    PIPELINED = 2
    BINDING = 3
    BOUND = 4
    RUNNING = 5
    RELEASING = 6
    SUCCEEDED = 7
    FAILED = 8
    UNKNOWN = 9

    @property
    def title(self) -> str:
        """Its name in messages to users."""
        return self.name.capitalize()


class Weight(NamedTuple):
    """How often a task's request counts in each column of its node (idle is allocatable - used)."""

    used: int = 0
    releasing: int = 0
    pipelined: int = 0


def _flags(*members: Status) -> tuple[bool, ...]:
    return tuple(status in members for status in Status)


S = Status
ALLOCATED_CLASS = _flags(S.ALLOCATED, S.BINDING, S.BOUND, S.RUNNING)
READY_CLASS = _flags(S.ALLOCATED, S.BINDING, S.BOUND, S.RUNNING, S.SUCCEEDED)
VALID_CLASS = _flags(S.PENDING, S.PIPELINED, S.ALLOCATED, S.BINDING, S.BOUND, S.RUNNING, S.SUCCEEDED)
SCHEDULED_CLASS = _flags(S.RUNNING, S.BOUND, S.FAILED, S.SUCCEEDED)
ON_NODE = _flags(S.ALLOCATED, S.PIPELINED, S.BINDING, S.BOUND, S.RUNNING, S.RELEASING, S.UNKNOWN)

NOTHING = Weight()
HOLDING = Weight(used=1)
WEIGHT: tuple[Weight, ...] = tuple(
    {S.RELEASING: Weight(used=1, releasing=1), S.PIPELINED: Weight(pipelined=1)}.get(
        status, HOLDING if ON_NODE[status] else NOTHING
    )
    for status in Status
)
