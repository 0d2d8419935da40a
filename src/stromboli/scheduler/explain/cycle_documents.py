"""What the leader reports about its last cycles: plain data, as JSON."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

DecisionKind = Literal["let-in", "gate-removed", "bound", "evicted", "moved"]
"""`let-in`: a job was admitted to its queue. `moved`: a pod was evicted to start again on another node."""
CycleKind = Literal["decided", "idle", "lost"]


class CycleDecision(Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """A decision about a pod, or about a job that was admitted."""

    kind: DecisionKind
    namespace: str
    name: str
    """Of the pod; of the PodGroup if a job was admitted."""
    job: str = ""
    """The PodGroup, as `namespace/name`."""
    queue: str = ""
    node: str = ""
    """To which the pod is bound, or from which it is evicted."""
    action: str = ""
    """The action that decided it."""
    beneficiary: str = ""
    """Of an eviction: the job for which capacity is freed, as `namespace/name`."""
    chosen_by: str = ""
    """Of an eviction: the plugins that chose the pod."""
    destination: str = ""
    """Of a pod that is moved: the node on which it starts again."""


class LostCause(Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """Why a cycle came to nothing."""

    message: str
    plugin: str = ""
    """The plugin that raised; empty if it was none."""
    point: str = ""
    """The extension point that was asked."""


class CycleEntry(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A cycle that decided something, or a run of cycles that decided nothing or were lost for the same cause."""

    number: int
    """Of the cycle, or of the first of the run; counted from 1 since this leader started."""
    time: float
    """When the first of them started, in seconds since 1970."""
    kind: CycleKind = "decided"
    last_number: int = 0
    """Of the last cycle of the run."""
    last_time: float = 0.0
    """When that cycle started."""
    cycles: int = 1
    seconds: float = 0.0
    """What all of them took together."""
    parts: dict[str, float] = {}
    """Seconds of each part: `open`, the actions by their names, `close`."""
    let_in: int = 0
    """Jobs that were admitted to their queues."""
    bound: int = 0
    """Pods."""
    evicted: int = 0
    """Pods, those that are moved included."""
    moved: int = 0
    released: int = 0
    """Pods that were let out of the scheduling gate of their queue."""
    pipelined: int = 0
    """Pods held for a node that was still being freed when the last of the cycles ended."""
    refused: int = 0
    """Jobs that the last of the cycles tried, and that have pods for which it found no node."""
    waiting: int = 0
    """Jobs that wait to be admitted to their queues, after the last of the cycles."""
    pending: int = 0
    """Jobs with pods that wait for nodes, after the last of the cycles."""
    decisions: list[CycleDecision] = []
    """The first of them."""
    left_out: int = 0
    """Decisions that are not among them."""
    lost: LostCause | None = None


class CycleList(Struct, frozen=True, rename="camel", omit_defaults=True):
    """The last cycles of the leader, the newest last."""

    leader: str = ""
    """The identity of the leader, as its Lease has it."""
    since: float = 0.0
    """When the leader started, in seconds since 1970; each leader counts cycles from 1. 0 before the first cycle."""
    oldest: int = 0
    """The number of the first cycle that is remembered; 0 if there is none."""
    newest: int = 0
    """The number of the last cycle."""
    cycles: list[CycleEntry] = []
