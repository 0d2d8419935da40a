"""The explanation of a job, a pod, a queue or a node as plain data; docs/explain.md describes the keys.

Keys may be added, never changed. Amounts are quantities as Kubernetes writes them, times are RFC 3339 in UTC.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import Struct, field

from stromboli.engine.explanation.diagnosis import Diagnosis
from stromboli.engine.explanation.event_history import History
from stromboli.engine.explanation.quantities import time_text
from stromboli.engine.plugin import Promise

SCHEMA = 1
Resources = dict[str, str]
"""Quantities by resource."""
State = Literal["waits", "starts", "runs", "partly-runs", "leaving", "ended", "empty"]


class PodCounts(Struct):
    """Pods of a job by what they do."""

    total: int = 0
    minimum: int = 0
    """How many must start together."""
    waiting: int = 0
    running: int = 0
    """On a node, started or about to."""
    leaving: int = 0
    succeeded: int = 0
    failed: int = 0


class PodRequest(Struct):
    """What equal pods ask for each."""

    pods: int
    requests: Resources
    role: str = ""
    node_selector: dict[str, str] = {}


class GateState(Struct):
    """A gate that a job has to pass: passed, holding it, or not known before those above it are passed."""

    gate: str
    state: Literal["passed", "holds", "unknown"]
    text: str


class NodeGroupRoom(Struct):
    """Room for the waiting pods on nodes of one type or size."""

    name: str
    nodes: int
    usable: int
    """Nodes that nothing but other pods keeps it from."""
    fits: int
    """How many of the waiting pods have room there now, each kind of pod by itself."""
    free: Resources
    """On all usable nodes together."""
    largest_free: Resources
    """The most that any usable node has."""
    lacks: Resources = {}
    """By how much that is less than a pod asks for."""
    example: str = ""


class HyperNodeRoom(Struct):
    """Room for the pods of a gang in a HyperNode."""

    name: str
    tier: int | None
    nodes: int
    fits: int
    needed: int
    lacks: Resources = {}
    holders: list[str] = []
    title: str = ""
    """The name as users read it: the value of a label instead of a generated name."""


class ResourceHolder(Struct):
    """A job that holds what is short."""

    job: str
    queue: str
    pods: int
    nodes: int
    holds: Resources
    priority: int = 0
    until: str | None = None
    """When it has ended at the latest by its time limit; none without one, or if it is over it."""
    over_limit: bool = False
    not_evicted: str = ""
    """Why the policy does not evict it."""


class ObjectChange(Struct, omit_defaults=True):
    """A change to objects of one kind: the same merge patch for each, a new object, or their deletion."""

    operation: Literal["patch", "create", "delete"]
    kind: str
    names: list[str]
    namespace: str = ""
    patch: dict[str, Any] = {}
    """Of `patch` and `create`; lists in it replace what is there."""


class Remedy(Struct):
    """What would let a job start: tried on the loaded objects, not guessed."""

    kind: str
    text: str
    changes: list[ObjectChange] = []
    actions: list[str] = []
    """The actions of the policy with which it was tried, if they are part of it."""
    cycles: int = 1
    """After how many cycles it starts."""
    evicts: list[str] = []
    """Pods that are evicted on the way."""


class StartForecast(Struct):
    """When it will probably start, if jobs run until their limits and nothing is submitted."""

    text: str
    start: str | None = None
    start_s: float | None = None
    """Seconds from now."""
    nodes: list[str] = []
    after: list[str] = []
    """The jobs that end on these nodes until then."""
    not_before: str | None = None


class PodPlace(Struct):
    """Pods of a job on a node."""

    node: str
    pods: int
    since: str | None = None


class SubjectBase(Struct, kw_only=True):
    kind: str
    name: str
    namespace: str = ""
    summary: str = ""
    """The answer in a sentence."""
    notes: list[str] = []
    history: History = field(default_factory=History)
    remembered: dict[str, dict[str, str]] = {}
    """What plugins of the leader remember of it, by plugin."""


class JobExplanation(SubjectBase, kw_only=True, tag="job", tag_field="subject"):
    """Why a job waits, or where it runs."""

    pod_group: str
    native: bool = False
    """Whether that is a PodGroup of Kubernetes itself."""
    queue: str
    state: State
    priority: int = 0
    phase: str = ""
    pods: PodCounts
    requests: list[PodRequest] = []
    gates: list[GateState] = []
    wait: Diagnosis | None = None
    """Measured."""
    room: list[NodeGroupRoom] = []
    hyper_nodes: list[HyperNodeRoom] = []
    holders: list[ResourceHolder] = []
    evicting: str = ""
    """Whether the policy evicts for it, in a sentence."""
    remedies: list[Remedy] = []
    in_vain: list[str] = []
    """What was tried and would not let it start."""
    untried: int = 0
    """What could have been tried too, had there been time."""
    forecast: StartForecast | None = None
    promise: Promise | None = None
    """From the leader alone."""
    places: list[PodPlace] = []
    since: str | None = None
    until: str | None = None
    pod: str = ""
    """The pod that was asked about, if one was."""
    pod_text: str = ""
    """Of that pod: why it waits, or where it runs."""

    @property
    def starts(self) -> list[StartForecast]:
        """The start that the leader promised, and the forecast, as far as they are known."""
        starts = [] if self.promise is None else [promised_start(self.promise)]
        return starts if self.forecast is None else [*starts, self.forecast]


class WaitingJob(Struct):
    """A job that waits in a queue, or for a node."""

    job: str
    pods: int
    requests: Resources
    reason: str = ""


class HoldingJob(Struct):
    """A job that holds room."""

    job: str
    pods: int
    holds: Resources
    queue: str = ""
    until: str | None = None


class QueueShare(Struct):
    """One resource of a queue."""

    resource: str
    used: str
    deserved: str = ""
    guarantee: str = ""
    capability: str = ""
    waiting: str = ""
    borrowed: str = ""
    """What it uses beyond what it deserves."""


class QueueExplanation(SubjectBase, kw_only=True, tag="queue", tag_field="subject"):
    """What a queue has, who is in it and who borrows."""

    state: str
    parent: str = ""
    weight: int = 1
    reclaimable: bool = True
    shares: list[QueueShare] = []
    waiting: list[WaitingJob] = []
    waiting_total: int = 0
    running: list[HoldingJob] = []
    running_total: int = 0
    borrowers: list[str] = []
    """Other queues that use more than they deserve, each with what."""


class NodeShare(Struct):
    """One resource of a node."""

    resource: str
    allocatable: str
    used: str
    free: str
    coming_free: str = ""
    """Of pods that are leaving."""
    promised: str = ""


class NodeExplanation(SubjectBase, kw_only=True, tag="node", tag_field="subject"):
    """What a node offers, who is on it and who could come."""

    state: str
    takes_nobody: list[str] = []
    """Why new pods do not come to it."""
    taints: list[str] = []
    hyper_nodes: list[str] = []
    shares: list[NodeShare] = []
    running: list[HoldingJob] = []
    running_total: int = 0
    could_fit: list[WaitingJob] = []
    """Waiting jobs of which single pods have room on it now."""


Subject = JobExplanation | QueueExplanation | NodeExplanation


class Explanation(Struct, kw_only=True):
    """The answer to `stromboli explain`."""

    schema: int = SCHEMA
    cluster: str = ""
    now: str = ""
    policy: str = ""
    source: str = "objects"
    """`objects`: computed from API objects; `leader`: asked of the scheduler."""
    subjects: list[Subject] = []
    warnings: list[str] = []


def as_builtins(explanation: Explanation) -> dict[str, Any]:
    """Plain data, for JSON and YAML."""
    document: dict[str, Any] = msgspec.to_builtins(explanation)
    for subject, plain in zip(explanation.subjects, document["subjects"], strict=True):
        if isinstance(subject, JobExplanation) and subject.wait is not None:
            plain["wait"] = _wait_document(subject.wait)
        if isinstance(subject, JobExplanation) and subject.promise is not None:
            plain["promise"] = _promise_document(subject.promise)
    return document


def promised_start(promise: Promise) -> StartForecast:
    """A promise of the leader in words."""
    start = time_text(promise.start)
    text = f"The leader reserved a start by {start}."
    if promise.overdue:
        text = "The leader reserved the capacity of jobs over their time limits for it; they may end at any time."
    return StartForecast(text, None if promise.overdue else start, None, [*promise.nodes], [*promise.after])


def _promise_document(promise: Promise) -> dict[str, Any]:
    start = promised_start(promise)
    keys = ("text", "start", "nodes", "after")
    return {**{key: getattr(start, key) for key in keys}, "overdue": promise.overdue}


def _wait_document(wait: Diagnosis) -> dict[str, Any]:
    return {
        "gate": wait.gate,
        "reason": wait.reason,
        "message": wait.message,
        "hint": wait.remedy,
        "shortages": [
            {"resource": short.resource, **dict(zip(_AMOUNTS, short.texts, strict=True))}
            for short in wait.shortages
        ],
        "node_reasons": wait.counts,
    }


_AMOUNTS = ("asked", "available", "missing")
