"""The statuses of a task and the weight of each (spec 01 2.3, 5.1), as tables."""

from enum import IntEnum
from typing import NamedTuple


class Status(IntEnum):
    """The status of a task. Allocated, Pipelined and Binding last only until a watch event confirms the decision."""

    PENDING = 0
    """Has no node yet."""
    ALLOCATED = 1
    """Holds resources of a node in this cycle; bound only if its statement is committed."""
    PIPELINED = 2
    """Is promised resources of a node that releasing tasks still hold."""
    BINDING = 3
    """The bind was decided; the API server does not show it yet."""
    BOUND = 4
    """Its pod has a node and does not run yet."""
    RUNNING = 5
    """Its pod runs."""
    RELEASING = 6
    """Its pod is being deleted, or was evicted in this cycle. It holds its resources until it has left."""
    SUCCEEDED = 7
    """Its pod has succeeded; holds nothing."""
    FAILED = 8
    """Its pod has failed; holds nothing."""
    UNKNOWN = 9
    """The state of its pod is not known; it holds its resources."""

    @property
    def title(self) -> str:
        """Its name in messages to users."""
        return self.name.capitalize()


class Weight(NamedTuple):
    """How often a task's request counts in each column of its node (idle is allocatable - used)."""

    used: int = 0
    releasing: int = 0
    pipelined: int = 0

    @property
    def staying(self) -> bool:
        """Whether it holds resources and is not leaving."""
        return self.used > self.releasing


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
