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
    """Pods of a job by state."""

    total: int = 0
    minimum: int = 0
    """How many must start together."""
    waiting: int = 0
    running: int = 0
    """Pods on a node, started or not."""
    leaving: int = 0
    succeeded: int = 0
    failed: int = 0


class PodRequest(Struct):
    """The request of each of some equal pods."""

    pods: int
    requests: Resources
    role: str = ""
    node_selector: dict[str, str] = {}


class GateState(Struct):
    """A gate: passed, holding the job, or unknown until the gates before it are passed."""

    gate: str
    state: Literal["passed", "holds", "unknown"]
    text: str


class NodeGroupRoom(Struct):
    """Capacity for the waiting pods on nodes of one type or size."""

    name: str
    nodes: int
    usable: int
    """Nodes that only other pods keep the job from."""
    fits: int
    """How many of the waiting pods fit there now, each kind of pod by itself."""
    free: Resources
    """What is free on all usable nodes together."""
    largest_free: Resources
    """The most that is free on one usable node."""
    lacks: Resources = {}
    """By how much that is less than the request of a pod."""
    example: str = ""


class HyperNodeRoom(Struct):
    """Capacity for the pods of a gang in a HyperNode."""

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
    """When it ends at the latest by its time limit; None without a limit, or if the limit is exceeded."""
    over_limit: bool = False
    not_evicted: str = ""
    """Why the policy does not evict it."""


class ObjectChange(Struct, omit_defaults=True):
    """A change to objects of one kind: one merge patch for all, a new object, or deletion."""

    operation: Literal["patch", "create", "delete"]
    kind: str
    names: list[str]
    namespace: str = ""
    patch: dict[str, Any] = {}
    """For `patch` and `create`; lists replace those of the object."""


class Remedy(Struct):
    """What would let a job start, as a trial on the loaded objects showed."""

    kind: str
    text: str
    changes: list[ObjectChange] = []
    actions: list[str] = []
    """The actions of the policy in the trial, if the remedy changes them."""
    cycles: int = 1
    """After how many cycles the job starts."""
    evicts: list[str] = []
    """Pods that are evicted for the job."""


class StartForecast(Struct):
    """When a job will probably start, if jobs run until their limits and no jobs are submitted."""

    text: str
    start: str | None = None
    start_s: float | None = None
    """Seconds from now."""
    nodes: list[str] = []
    after: list[str] = []
    """The jobs that end on these nodes before."""
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
    """The texts of plugins of the leader about the subject, by plugin."""


class JobExplanation(SubjectBase, kw_only=True, tag="job", tag_field="subject"):
    """Why a job waits, or where it runs."""

    pod_group: str
    native: bool = False
    """Whether it is a PodGroup of Kubernetes itself."""
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
    """Whether the policy evicts for the job, in a sentence."""
    remedies: list[Remedy] = []
    in_vain: list[str] = []
    """Remedies that were tried and did not help."""
    untried: int = 0
    """How many remedies were not tried."""
    forecast: StartForecast | None = None
    promise: Promise | None = None
    """The promised start; only from the leader."""
    places: list[PodPlace] = []
    since: str | None = None
    until: str | None = None
    pod: str = ""
    """The pod that was asked about, if any."""
    pod_text: str = ""
    """Why that pod waits, or where it runs."""

    @property
    def starts(self) -> list[StartForecast]:
        """The start that the leader promised, and the forecast, as far as known."""
        starts = [] if self.promise is None else [promised_start(self.promise)]
        return starts if self.forecast is None else [*starts, self.forecast]


class WaitingJob(Struct):
    """A job that waits in a queue, or that fits on a node."""

    job: str
    pods: int
    requests: Resources
    reason: str = ""


class HoldingJob(Struct):
    """A job that holds resources."""

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
    """What it uses above its deserved share."""


class QueueExplanation(SubjectBase, kw_only=True, tag="queue", tag_field="subject"):
    """The shares of a queue, its jobs, and the queues that borrow."""

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
    """Other queues that use more than they deserve, with the amounts."""


class NodeShare(Struct):
    """One resource of a node."""

    resource: str
    allocatable: str
    used: str
    free: str
    coming_free: str = ""
    """What terminating pods hold."""
    promised: str = ""


class NodeExplanation(SubjectBase, kw_only=True, tag="node", tag_field="subject"):
    """The resources of a node, its jobs, and the waiting jobs that fit."""

    state: str
    takes_nobody: list[str] = []
    """Why new pods are not placed on it."""
    taints: list[str] = []
    hyper_nodes: list[str] = []
    shares: list[NodeShare] = []
    running: list[HoldingJob] = []
    running_total: int = 0
    could_fit: list[WaitingJob] = []
    """Waiting jobs with pods that fit on it now."""


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
    """A promise of the leader as a forecast."""
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
