"""Orders for the writer: a decision, what its request needs to know, how its tries went; and how two merge."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from msgspec import Struct
from msgspec.structs import replace

from stromboli.api.types.meta import Condition
from stromboli.engine.decisions import (
    Bind,
    Decision,
    Event,
    Evict,
    GateRemoval,
    NativeGroupCondition,
    PodCondition,
    PodGroupStatus,
    QueueAnnotation,
    QueueStatus,
    ShardStatus,
)
from stromboli.kube.request import Request

URGENT, SOON, LATER = range(3)
_URGENCY = {
    Bind: URGENT,
    Evict: URGENT,
    GateRemoval: SOON,
    ShardStatus: SOON,
    PodCondition: SOON,
    PodGroupStatus: SOON,
    NativeGroupCondition: SOON,
}


class WriteFailure(Struct, frozen=True):
    """A bind or an eviction that failed, and why."""

    decision: Bind | Evict
    why: str
    gone: bool = False
    """Whether the pod no longer exists, or is bound elsewhere: no condition or event is written."""


@dataclass(slots=True)
class WriteOrder:
    """A decision to be written."""

    decision: Decision
    uid: str = ""
    conditions: tuple[Condition, ...] = ()
    """Those that a PodGroup has now."""
    api_version: str = ""
    generation: int = 0
    """Of a native group."""
    resources: tuple[str, ...] = ()
    """Those in a queue's status now."""
    created: float = 0.0
    """When a pod that is bound was created."""
    since: float | None = None
    """When it was first tried."""
    tries: int = 0
    doubtful: bool = False
    """Whether a response was lost, so that it may have been carried out."""
    marked: bool = False
    """Whether an evicted pod has its conditions."""
    request: Request | None = None
    """An event's, made once."""

    @property
    def key(self) -> Hashable:
        """Orders of one key are executed one after the other."""
        match self.decision:
            case Bind() | Evict() | PodCondition() | GateRemoval() as decision:
                return ("Pod", decision.namespace, decision.name)
            case PodGroupStatus() as decision:
                return ("PodGroup", decision.namespace, decision.name)
            case NativeGroupCondition() as decision:
                return ("NativePodGroup", decision.namespace, decision.name)
            case QueueStatus() | QueueAnnotation() as decision:
                return ("Queue", decision.name)
            case ShardStatus() as decision:
                return ("NodeShard", decision.name)
            case Event() as decision:
                return ("Event", decision.kind, decision.namespace, decision.name)
        raise TypeError(f"no way to write {self.decision!r}")

    @property
    def urgency(self) -> int:
        return _URGENCY.get(type(self.decision), LATER)


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
            conditions = {entry.type: entry for entry in (*first.conditions, *second.conditions)}
            later.decision = replace(second, conditions=tuple(conditions.values()))
            return later
        case (ShardStatus(), ShardStatus()) | (GateRemoval(), GateRemoval()):
            return later
        case NativeGroupCondition(), NativeGroupCondition() if earlier.uid == later.uid:
            return later
        case QueueStatus(), QueueStatus():
            later.resources = tuple({*earlier.resources, *later.resources})
            return later
    return None
