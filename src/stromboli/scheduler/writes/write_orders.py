"""A decision on its way out: what is known of its object, how it fares, and what two of a kind become."""

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


class Failure(Struct, frozen=True):
    """A bind or an eviction that did not come to pass, and why."""

    decision: Bind | Evict
    why: str
    gone: bool = False
    """Whether the pod no longer exists: there is nothing to tell it."""


@dataclass(slots=True)
class Order:
    """A decision, with what else there is to know of its object."""

    decision: Decision
    uid: str = ""
    conditions: tuple[Condition, ...] = ()
    """Those that stand on a PodGroup."""
    api_version: str = ""
    generation: int = 0
    """Of a native group."""
    resources: tuple[str, ...] = ()
    """Those that a queue's status names."""
    created: float = 0.0
    """When a pod that is bound was created."""
    since: float | None = None
    """When it was first tried."""
    tries: int = 0
    doubtful: bool = False
    """Whether an answer was lost, so that it may have been carried out."""
    marked: bool = False
    """Whether an evicted pod has its conditions."""
    request: Request | None = None
    """An event's, made once."""

    @property
    def lane(self) -> Hashable:
        """Orders of one lane are carried out one after the other."""
        match self.decision:
            case Bind() | Evict() | PodCondition() | GateRemoval() as one:
                return ("Pod", one.namespace, one.name)
            case PodGroupStatus() as one:
                return ("PodGroup", one.namespace, one.name)
            case NativeGroupCondition() as one:
                return ("NativePodGroup", one.namespace, one.name)
            case QueueStatus() | QueueAnnotation() as one:
                return ("Queue", one.name)
            case ShardStatus() as one:
                return ("NodeShard", one.name)
            case Event() as one:
                return ("Event", one.kind, one.namespace, one.name)
        raise TypeError(f"nobody knows how to carry out {self.decision!r}")

    @property
    def urgency(self) -> int:
        return _URGENCY.get(type(self.decision), LATER)


def merged(earlier: Order, later: Order) -> Order | None:
    """Of two statuses in a row the later one counts, with the conditions of both."""
    match earlier.decision, later.decision:
        case PodCondition() as one, PodCondition() as other if one.uid == other.uid:
            nominated = other.nominated_node or one.nominated_node
            later.decision = replace(other, nominated_node=nominated)
            return later
        case PodCondition() as one, Bind() as bind if one.uid == bind.uid:
            return later
        case PodGroupStatus() as one, PodGroupStatus() as other if earlier.uid == later.uid:
            conditions = {said.type: said for said in (*one.conditions, *other.conditions)}
            later.decision = replace(other, conditions=tuple(conditions.values()))
            return later
        case (ShardStatus(), ShardStatus()) | (GateRemoval(), GateRemoval()):
            return later
        case NativeGroupCondition(), NativeGroupCondition() if earlier.uid == later.uid:
            return later
        case QueueStatus(), QueueStatus():
            later.resources = tuple({*earlier.resources, *later.resources})
            return later
    return None
