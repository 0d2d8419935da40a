"""Orders for the writer: a decision, what its request needs to know, how its tries went; and how two merge."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass

from msgspec import Struct
from msgspec.structs import replace

from stromboli.api import names
from stromboli.api.types.meta import Condition
from stromboli.api.types.scheduling import PodGroup
from stromboli.engine.decisions import (
    Bind,
    Decision,
    Event,
    Evict,
    GateRemoval,
    GroupCondition,
    NativeGroupCondition,
    PodCondition,
    PodGroupStatus,
    QueueAnnotation,
    QueueStatus,
    ReleaseClaim,
    ShardStatus,
)
from stromboli.kube.request import Request
from stromboli.scheduler.writes.prebind.gang_binds import GangMember

FAILED_BIND = "failed bind"
"""The topic of events that tell of a bind that failed, which stays true when the pod is bound later."""
URGENT, SOON, LATER = range(3)
_KIND_AND_URGENCY: dict[type[Decision], tuple[str, int]] = {
    Bind: ("Pod", URGENT),
    Evict: ("Pod", URGENT),
    GateRemoval: ("Pod", SOON),
    PodCondition: ("Pod", SOON),
    PodGroupStatus: ("PodGroup", SOON),
    NativeGroupCondition: ("NativePodGroup", SOON),
    ShardStatus: ("NodeShard", SOON),
    ReleaseClaim: ("ResourceClaim", SOON),
    QueueStatus: ("Queue", LATER),
    QueueAnnotation: ("Queue", LATER),
    Event: ("Event", LATER),
}
"""Of the object that is written, and of the write."""


class WriteFailure(Struct, frozen=True):
    """A bind or an eviction that failed, and why."""

    decision: Bind | Evict
    why: str
    gone: bool = False
    """Whether the pod no longer exists, or is bound elsewhere: no condition or event is written."""
    unprepared: str = ""
    """The pod of the same gang for which something could not be written before the binds; empty if a bind failed."""


@dataclass(slots=True)
class WriteOrder:
    """A decision to be written."""

    decision: Decision
    uid: str = ""
    conditions: tuple[Condition, ...] = ()
    """Those that a native group has now."""
    newest_group: Callable[[], PodGroup | None] = lambda: None
    """The PodGroup as it was last seen, asked when its status is sent."""
    api_version: str = ""
    generation: int = 0
    """Of a native group."""
    shown: frozenset[str] = frozenset()
    """The resources that the status of a queue shows now."""
    created: float = 0.0
    """When a pod that is bound was created."""
    job: Hashable = None
    """Identifies the job of a bind; None if that is gone."""
    awaited: bool = False
    """Whether a controller waits for this status of a PodGroup before it makes pods."""
    overtaken: bool = False
    """Whether an event is no longer true: it is not written if it has not been yet."""
    since: float | None = None
    """When it was first tried."""
    tries: int = 0
    doubtful: bool = False
    """Whether a response was lost, so that it may have been carried out."""
    marked: bool = False
    """Whether an evicted pod has its conditions."""
    request: Request | None = None
    """An event's, made once."""
    member: GangMember | None = None
    """Of a bind that goes together with others."""

    @property
    def key(self) -> Hashable:
        """Orders of one key are executed one after the other."""
        decision = self.decision
        kind, _ = _KIND_AND_URGENCY[type(decision)]
        subject = decision.kind if isinstance(decision, Event) else ""
        return kind, subject, getattr(decision, "namespace", ""), getattr(decision, "name", "")

    @property
    def urgency(self) -> int:
        return _KIND_AND_URGENCY[type(self.decision)][1]


def merge(earlier: WriteOrder, later: WriteOrder) -> WriteOrder | None:
    """One order in place of two that wait, if possible: of two statuses the later, with the conditions of both."""
    match earlier.decision, later.decision:
        case PodCondition() as first, PodCondition() as second if first.uid == second.uid:
            nominated = second.nominated_node or first.nominated_node
            later.decision = replace(second, nominated_node=nominated)
            return later
        case PodCondition() as condition, Bind() as bind if condition.uid == bind.uid:
            return later
        case PodGroupStatus() as first, PodGroupStatus() as second if earlier.uid == later.uid:
            later.decision = replace(second, conditions=_conditions(first, second))
            later.awaited |= earlier.awaited
            return later
        case (
            (ShardStatus(), ShardStatus()) | (GateRemoval(), GateRemoval()) | (ReleaseClaim(), ReleaseClaim())
        ):
            return later
        case NativeGroupCondition(), NativeGroupCondition() if earlier.uid == later.uid:
            return later
        case QueueStatus(), QueueStatus():
            later.shown |= earlier.shown
            return later
    return None


def _conditions(first: PodGroupStatus, second: PodGroupStatus) -> tuple[GroupCondition, ...]:
    """Those of both; a job that was scheduled before it was told that it cannot be is not told so any more."""
    conditions = {entry.type: entry for entry in first.conditions}
    if any(entry.type == names.CONDITION_SCHEDULED for entry in second.conditions):
        conditions.pop(names.CONDITION_UNSCHEDULABLE, None)
    return tuple({**conditions, **{entry.type: entry for entry in second.conditions}}.values())
