"""Why a job waits: the gate that it has not passed, what is short, and the remedy, as one value.

A gate makes a steady diagnosis, without numbers that change from cycle to cycle: conditions and events are rendered
from it, so nothing is written while a job waits for the same reason. `measured` returns the same diagnosis with
current numbers, computed on request: `stromboli plan`, `explain`, the dashboard and the leader render that one.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Literal, NamedTuple

from msgspec import UNSET, Struct, UnsetType, field
from msgspec.structs import replace

from stromboli.api.resources.resource_lists import resource_list
from stromboli.api.wait_messages import wait_clause, wait_sentence
from stromboli.engine.explanation.closest_domain import SHOWN_HOLDERS, ClosestDomain
from stromboli.model.remedy import Remedy
from stromboli.model.status import Status

if TYPE_CHECKING:
    from stromboli.model.cluster import Cluster
    from stromboli.model.dimensions import Dimensions
    from stromboli.model.job import Job
    from stromboli.model.remedy import Why
    from stromboli.model.task import Task

Gate = Literal[
    "cycle",
    "pod-group",
    "queue",
    "requirements",
    "pipeline",
    "backfill",
    "validity",
    "scheduling-gates",
    "enqueue",
    "topology",
    "nodes",
    "policy",
    "queue-limits",
    "gang",
]
"""The gates that a job passes before it starts."""
WAITING = (Status.PENDING, Status.ALLOCATED, Status.PIPELINED)
"""Statuses of waiting tasks; an allocation that is not bound when a cycle ends is undone."""
MORE = "run `stromboli plan` for details"
"""The remedy if none is known."""
FirstWaiting = Callable[["Job"], "Task | None"]
"""`first_waiting`, computed once for each job and cycle."""


class Shortage(NamedTuple):
    """A resource of which a job requests more than is available."""

    resource: str
    asked: int
    available: int

    @property
    def missing(self) -> int:
        return self.asked - self.available

    @property
    def texts(self) -> tuple[str, str, str]:
        """The requested, available and missing quantities."""
        name, amounts = self.resource, (self.asked, self.available, max(self.missing, 0))
        asked, available, missing = (resource_list({name: amount})[name] for amount in amounts)
        return asked, available, missing


class Holder(NamedTuple):
    """A queue that holds some of what is short."""

    queue: str
    resource: str
    amount: int


class Diagnosis(Struct, frozen=True):
    """Why a job waits."""

    gate: Gate
    """The gate that holds it, such as `nodes` or `queue-limits`."""
    reason: str
    """A few words, the same for all jobs that wait for the same reason."""
    message: str
    """What holds the job and what is short."""
    remedy: str = field(name="hint", default="")
    """What would help."""
    counts: dict[str, int] = {}
    """Nodes per reason, if nodes were searched."""
    shortages: tuple[Shortage, ...] = ()
    holders: tuple[Holder, ...] = ()
    pods: int = 0
    """How many pods of the job wait, once measured."""
    queue: str = ""
    summary: str = ""
    """The message of the steady diagnosis, once measured."""
    sentence: str = ""
    """The steady message with the remedy, as in conditions and events, once measured."""
    closest: ClosestDomain | None = None
    """The domain with capacity for most pods of a gang that must stay in one domain.

    `for_reader` adds it to the message.
    """
    code: str = ""
    """One word for programs, of the gate or of the plugin that refuses; empty if that has none."""
    measure: Callable[[], Diagnosis] | UnsetType = UNSET
    """Makes the same diagnosis with current numbers, if it has any."""

    @property
    def hint(self) -> str:
        """The older name of `remedy`."""
        return self.remedy

    def measured(self) -> Diagnosis:
        """The same diagnosis with current numbers."""
        return self if isinstance(self.measure, UnsetType) else self.measure()

    def for_reader(self, namespace: str) -> Diagnosis:
        """With the closest domain in the message, for a reader of this namespace; empty: of all namespaces."""
        if self.closest is None:
            return self
        closest = self.closest.for_reader(namespace)
        return replace(self, message=f"{self.message}; closest: {closest.text}", closest=closest)

    def sentence_about(self, job: Job) -> str:
        """`Job train waits: MESSAGE; REMEDY`."""
        owner = job.owner
        subject = f"{owner.kind} {owner.name}" if owner else f"PodGroup {job.name}"
        if job.group is None:
            subject = "This pod"
        elif job.ready_count - job.counts[Status.ALLOCATED] >= job.minimum > 0:
            subject = f"The rest of {subject}"
        return wait_sentence(subject, self._message_about(job), self.remedy or MORE)

    def clause_about(self, job: Job) -> str:
        """`MESSAGE; REMEDY`, the same for all jobs that wait for the same reason."""
        return wait_clause(self._message_about(job), self.remedy or MORE)

    def _message_about(self, job: Job) -> str:
        short = below_minimum_text(job)
        return f"{short}: {self.message}" if short else self.message


def refusal_diagnosis(gate: Gate, why: Why, task: Task | None = None) -> Diagnosis:
    """The diagnosis by a refusal, of the job or of this task: its summary or, measured, its message."""
    steady = Diagnosis(gate, why.title, why.summary, why.remedy.steady_text(task), code=why.code)

    def measure() -> Diagnosis:
        message = f"{task.name}: {why.message}" if task is not None else why.message
        return replace(steady, message=message, remedy=why.remedy.current_text(task))

    return replace(steady, measure=measure)


# -- what is short, and which queues hold it


def shortage(dims: Dimensions, dim: int, asked: float, available: float) -> Shortage:
    return Shortage(dims.names[dim], int(asked), max(int(available), 0))


def largest_holders(cluster: Cluster, dims: Iterable[int]) -> tuple[Holder, ...]:
    """The queues that hold the most of each resource."""
    holders: list[Holder] = []
    for dim in dims:
        name = cluster.dims.names[dim]
        held = [Holder(queue.name, name, int(queue.held.get(dim, 0))) for queue in cluster.queues.values()]
        largest = heapq.nlargest(SHOWN_HOLDERS, held, key=lambda holder: holder.amount)
        holders += [holder for holder in largest if holder.amount > 0]
    return tuple(holders)


# -- whether and how a job waits


def below_minimum_text(job: Job) -> str:
    """`it runs below its minimum (1 of 2 pods)` for a started job that lost pods; otherwise empty."""
    ready = job.ready_count - job.counts[Status.ALLOCATED]
    if not job.has_started or (ready >= job.minimum and not job.below_minimum):
        return ""
    missing = f"too few pods of a {'subgroup' if job.roles_ready else 'task'}"
    if ready < job.minimum:
        missing = f"{ready} of {job.minimum} pods"
    return f"it runs below its minimum ({missing})"


def waits(job: Job) -> bool:
    """Whether pods of a job are not placed, or it has none and no controller is about to create any."""
    if job.tasks or job.group is None or job.minimum <= 0:
        return waiting_count(job) > 0
    return job.owner is None or job.waits_for_queue


def waiting_count(job: Job) -> int:
    counts = job.counts
    return counts[Status.PENDING] + counts[Status.ALLOCATED] + counts[Status.PIPELINED]


def first_waiting(job: Job) -> Task | None:
    """The first waiting task, in an order that does not depend on attempts."""
    if len(job.tasks) == 1:
        return next((task for task in job.tasks.values() if task.status in WAITING), None)
    tasks = (task for status in WAITING for task in job.by_status[status])
    return min(tasks, key=lambda task: task.order, default=None)


def missing_pods_remedy(job: Job, missing: int) -> Remedy:
    """The remedy for a gang with too few pods; the minimum of a native group cannot be changed."""
    field = "spec.minMember" if job.native is None else "schedulingPolicy.gang.minCount in a new PodGroup"
    pods = f"{missing} more pod{'s' if missing > 1 else ''}"
    return Remedy(f"create the missing pods or lower {field}", f"create {pods} or lower {field}")
