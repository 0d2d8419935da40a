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
    """The node to which the pod is bound, or from which it is evicted."""
    action: str = ""
    """The action that decided it."""
    beneficiary: str = ""
    """The job for which a pod is evicted, as `namespace/name`."""
    chosen_by: str = ""
    """The plugins that chose an evicted pod."""
    destination: str = ""
    """The node on which a moved pod starts again."""


class LostCause(Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """Why a cycle was lost."""

    message: str
    plugin: str = ""
    """The plugin that raised; empty if none did."""
    point: str = ""
    """The extension point that was asked."""


class CycleEntry(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A cycle that decided something, or a run of cycles that decided nothing or were lost for the same cause."""

    number: int
    """The number of the cycle, or of the first one of the run; each leader counts from 1."""
    time: float
    """When the first cycle started, in seconds since 1970."""
    kind: CycleKind = "decided"
    last_number: int = 0
    """The number of the last cycle of the run."""
    last_time: float = 0.0
    """When that cycle started."""
    cycles: int = 1
    seconds: float = 0.0
    """The duration of all cycles of the run together."""
    parts: dict[str, float] = {}
    """Seconds per part: `open`, each action by name, `close`."""
    let_in: int = 0
    """Jobs that were admitted to their queues."""
    bound: int = 0
    """Pods."""
    evicted: int = 0
    """Pods, including those that are moved."""
    moved: int = 0
    released: int = 0
    """Pods of which the scheduling gate of their queue was removed."""
    pipelined: int = 0
    """Pods assigned to a node that was still being freed when the last cycle ended."""
    refused: int = 0
    """Jobs with pods for which the last cycle looked for a node and found none."""
    waiting: int = 0
    """Jobs that wait for admission to their queues after the last cycle."""
    pending: int = 0
    """Jobs with pods that wait for nodes after the last cycle."""
    decisions: list[CycleDecision] = []
    """The first decisions."""
    left_out: int = 0
    """How many decisions are not listed."""
    lost: LostCause | None = None


class CycleList(Struct, frozen=True, rename="camel", omit_defaults=True):
    """The last cycles of the leader, the newest last."""

    leader: str = ""
    """The identity of the leader, as its Lease has it."""
    since: float = 0.0
    """When the first cycle of this leader started, in seconds since 1970; 0 before it."""
    oldest: int = 0
    """The number of the oldest cycle that is kept; 0 if there is none."""
    newest: int = 0
    """The number of the last cycle."""
    cycles: list[CycleEntry] = []
