"""What a model is built from: objects, status and node of tasks, decisions about jobs. All else is derived.

So a model in which a change failed half-way can be rebuilt as it was before that change.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from stromboli.api.types.meta import Object
from stromboli.api.types.native_group import NativePodGroup
from stromboli.api.types.node import Node as NodeObject
from stromboli.api.types.pod import Pod
from stromboli.api.types.scheduling import PodGroup
from stromboli.api.types.scheduling import Queue as QueueObject
from stromboli.model.intake.native_groups import Native
from stromboli.model.job import Job, JobId
from stromboli.model.task import PROGRESS

if TYPE_CHECKING:
    from stromboli.model.cluster import Cluster
    from stromboli.model.ledgers import Grant
    from stromboli.model.reservations import Reservation
    from stromboli.model.status import Status
    from stromboli.model.task import Task

JOB_FIELDS = (
    "group",
    "created",
    "minimum",
    "phase",
    "conditions",
    "moved_at",
    "written",
    "reported",
    "role_minimums",
    "min_resources",
    "reservable",
    "waiting_time",
    "time_limit",
    "group_demands",
)
"""Fields of a job that do not follow from its tasks and its queue."""
_task_fields = attrgetter(*PROGRESS)
_job_fields = attrgetter(*JOB_FIELDS)

ObjectKey = tuple[type[Object], str]


class TaskFacts(NamedTuple):
    """A task with its status and node."""

    task: Task
    job: JobId | None
    node: str
    status: Status
    grants: tuple[Grant, ...]
    fields: tuple[Any, ...]
    """Those that change as its pod makes progress."""

    @classmethod
    def of(cls, task: Task) -> TaskFacts:
        job, node = task.job, task.node
        return cls(
            task,
            job.id if job is not None else None,
            node.name if node is not None else "",
            task.status,
            task.grants,
            _task_fields(task),
        )


class JobFacts(NamedTuple):
    """A job without its tasks."""

    native: Native | None
    fields: tuple[Any, ...]
    """Its `JOB_FIELDS`."""
    nominations: dict[str, str]
    """The HyperNodes in which pods were evicted for its sub-jobs, by their ids."""

    @classmethod
    def of(cls, job: Job) -> JobFacts:
        native = job.native.without_pods() if job.native is not None else None
        nominations = {
            id: sub_job.nominated_hyper_node
            for id, sub_job in job.sub_jobs.items()
            if sub_job.nominated_hyper_node
        }
        return cls(native, _job_fields(job), nominations)

    def restore(self, job: Job) -> None:
        """Restore a new job, except its sub-jobs, which are created with tasks."""
        job.native = self.native
        for name, value in zip(JOB_FIELDS, self.fields, strict=True):
            setattr(job, name, value)


def forget_group(job: Job) -> None:
    """Give a job the fields that it has without a PodGroup."""
    blank = Job(job.id)
    for name in JOB_FIELDS:
        setattr(job, name, getattr(blank, name))


@dataclass(slots=True)
class ModelFacts:
    """A whole model, or the part of it that one object may change; None stands for what does not exist."""

    objects: dict[ObjectKey, Object | None] = field(default_factory=dict)
    """Nodes, queues and lookup objects."""
    reported: dict[str, dict[str, str] | None] = field(default_factory=dict)
    """What the status of queues shows, by the name of the queue."""
    jobs: dict[JobId, JobFacts | None] = field(default_factory=dict)
    tasks: dict[str, TaskFacts | None] = field(default_factory=dict)
    reservations: tuple[Reservation, ...] = ()

    def replace(self, part: ModelFacts) -> None:
        """Restore a part."""
        self.objects |= part.objects
        self.reported |= part.reported
        self.jobs |= part.jobs
        self.tasks |= part.tasks
        self.reservations = part.reservations


def facts_of(cluster: Cluster) -> ModelFacts:
    """All facts of a model; everything else of it may be inconsistent."""
    queues = [queue for queue in cluster.queues.values() if queue.object is not None]
    known = [
        *cluster.objects,
        *(queue.object for queue in queues),
        *(node.object for node in cluster.nodes.values()),
    ]
    return ModelFacts(
        {_key(obj): obj for obj in known if obj is not None},
        {queue.name: queue.reported for queue in queues},
        {id: JobFacts.of(job) for id, job in cluster.jobs.items()},
        {uid: TaskFacts.of(task) for uid, task in cluster.tasks.items()},
        cluster.reservations.all(),
    )


def facts_about(cluster: Cluster, obj: Object) -> ModelFacts:
    """The facts that may change when an object is put or dropped, as they are now."""
    reservations = cluster.reservations.all()
    if isinstance(obj, Pod):
        uid = obj.metadata.uid or obj.key
        task = cluster.tasks.get(uid)
        known_task = TaskFacts.of(task) if task is not None else None
        return ModelFacts(tasks={uid: known_task}, reservations=reservations)
    if isinstance(obj, PodGroup | NativePodGroup):
        job = cluster.jobs.get(id_of(obj))
        known_job = JobFacts.of(job) if job is not None else None
        return ModelFacts(jobs={id_of(obj): known_job}, reservations=reservations)
    if isinstance(obj, NodeObject):
        node = cluster.nodes.get(obj.name)
        return ModelFacts({_key(obj): node.object if node is not None else None}, reservations=reservations)
    if isinstance(obj, QueueObject):
        queue = cluster.queues.get(obj.name)
        known, reported = (queue.object, queue.reported) if queue is not None else (None, None)
        return ModelFacts({_key(obj): known}, {obj.name: reported}, reservations=reservations)
    return ModelFacts({_key(obj): cluster.objects.get(obj)}, reservations=reservations)


def without(facts: ModelFacts, obj: Object) -> ModelFacts:
    """The facts about an object that is deleted."""
    if isinstance(obj, Pod):
        facts.tasks[obj.metadata.uid or obj.key] = None
    elif isinstance(obj, PodGroup | NativePodGroup):
        facts.jobs[id_of(obj)] = None
    else:
        facts.objects[_key(obj)] = None
    return facts


def id_of(group: PodGroup | NativePodGroup) -> JobId:
    """The id of the job of a group."""
    return JobId(type(group).__name__, group.namespace, group.name)


def _key(obj: Object) -> ObjectKey:
    return type(obj), obj.key
