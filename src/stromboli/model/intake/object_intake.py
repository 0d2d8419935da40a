"""From API objects to the model, for the scheduler, the plan and the simulator alike (spec 01 2-6, 05 3).

`put` adds or replaces an object, `drop` removes it. Objects may arrive in any order: what another object names first
(a job's queue, a pod's node, a task's PodGroup) is an empty entry until its own object arrives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from msgspec.structs import replace

from stromboli.api import names
from stromboli.api.errors import BadObject, error_text
from stromboli.api.pods import is_placed_elsewhere
from stromboli.api.resources.resource_lists import amounts
from stromboli.api.types.kinds import describe
from stromboli.api.types.meta import Object, ResourceList
from stromboli.api.types.native_group import NativePodGroup
from stromboli.api.types.node import Node as NodeObject
from stromboli.api.types.pod import Container, Pod, PodStatus, Resources
from stromboli.api.types.scheduling import HyperNode, Namespace, PodGroup, PriorityClass
from stromboli.api.types.scheduling import Queue as QueueObject
from stromboli.model.amounts import Amounts
from stromboli.model.cluster import Cluster, enter_together
from stromboli.model.dimensions import TooManyResources
from stromboli.model.intake.assumed_tasks import grants_of, makes_progress, observe, progress
from stromboli.model.intake.model_facts import (
    JobFacts,
    ModelFacts,
    TaskFacts,
    facts_about,
    facts_of,
    forget_group,
    id_of,
    without,
)
from stromboli.model.intake.native_groups import KIND, Native, as_volcano
from stromboli.model.intake.node_and_queue_intake import (
    drop_node,
    drop_queue,
    forget_if_gone,
    node_named,
    put_node,
    put_queue,
    queue_named,
)
from stromboli.model.intake.pod_fields import (
    MetadataReader,
    PodMetadata,
    describe_pod,
    status_of,
    waiting_time,
)
from stromboli.model.intake.sub_jobs import sub_job_of
from stromboli.model.interning import Interning
from stromboli.model.job import Job, JobId
from stromboli.model.ledgers import Ledger
from stromboli.model.lookup_objects import LookupObjects
from stromboli.model.queue import Queue
from stromboli.model.requirements.group_demands import group_demands
from stromboli.model.shape import HUGE, Shape
from stromboli.model.status import ON_NODE, Status
from stromboli.model.task import PROGRESS, Condition, Task
from stromboli.model.time_limits import annotated_limit

MAX_ON_A_NODE = 2**62


class _Uncountable(BadObject):
    """A pod with amounts that cannot be added to those of its node."""


class IntakeFailed(Exception):
    """An object that could not be added or removed for a reason that is not in the object; the model is as before."""

    def __init__(self, obj: Object, cause: Exception):
        super().__init__(f"{describe(obj)}: {error_text(cause)}")
        self.cause = cause


class Intake:
    """Applies API objects to a cluster."""

    def __init__(
        self,
        cluster: Cluster | None = None,
        schedulers: Iterable[str] = (names.SCHEDULER_NAME,),
        default_queue: str = names.DEFAULT_QUEUE,
    ):
        cluster = cluster or Cluster(LookupObjects())
        self._schedulers = frozenset(schedulers)
        self._default_queue = default_queue
        self._interning = Interning(cluster.dims)
        self._metadata = MetadataReader(self._interning)
        self._use(cluster)

    def _use(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._arrivals: list[Task] = []
        """New replicas of one job that are added to the cluster together; already known by their uids."""
        self._detached: list[Task] = []
        """Tasks that were last removed from the cluster to be added again."""
        self._puts: dict[type[Object], Callable[[Any], None]] = {
            Pod: self._put_pod,
            NodeObject: partial(put_node, self.cluster),
            PodGroup: self._put_group,
            NativePodGroup: self._put_native_group,
            QueueObject: partial(put_queue, self.cluster),
        }
        self._drops: dict[type[Object], Callable[[Any], None]] = {
            Pod: self._drop_pod,
            NodeObject: partial(drop_node, self.cluster),
            PodGroup: self._drop_group,
            NativePodGroup: self._drop_group,
            QueueObject: partial(drop_queue, self.cluster),
        }

    def put(self, obj: Object) -> None:
        """Add an object or replace the one of its name; a bad one raises `BadObject` and changes nothing.

        Only a pod that names too many or too large resources still counts with its other resources. Any other error
        raises `IntakeFailed`: `cluster` is a new one then, built as the old one was before.
        """
        before = facts_about(self.cluster, obj)
        try:
            error = self._put(obj)
            self._enter_arrivals()
        except Exception as failure:
            self._rebuild(before)
            raise IntakeFailed(obj, failure) from failure
        if error is not None:
            raise error

    def put_all(self, objects: Iterable[Object]) -> list[BadObject | None]:
        """Add or replace objects one after the other; return the error of each, or none.

        Consecutive new replicas are added together, at half the cost. Any other error than
        `BadObject` is raised, and leaves the model unusable.
        """
        errors = [self._put(obj) for obj in objects]
        self._enter_arrivals()
        return errors

    def _put(self, obj: Object) -> BadObject | None:
        kind = type(obj)
        if kind is not Pod:
            self._enter_arrivals()
        try:
            self._puts.get(kind, self._put_lookup_object)(obj)
        except BadObject as error:
            return error.of(describe(obj))
        except TooManyResources as error:
            return BadObject("resources", str(error), describe(obj))
        return None

    def shape_of(self, pod: Pod) -> Shape:
        """The shape that tasks of such a pod have; the pod itself is not added."""
        shape = self._interning.shape(pod)
        self.cluster.columns.widen()
        return shape

    def drop(self, obj: Object) -> None:
        """Remove an object; even after `IntakeFailed`, the new `cluster` is built without it."""
        before = facts_about(self.cluster, obj)
        try:
            self._drops.get(type(obj), self._drop_lookup_object)(obj)
        except Exception as failure:
            self._rebuild(without(before, obj))
            raise IntakeFailed(obj, failure) from failure

    # -- rebuilding the model

    def rebuild(self) -> None:
        """Build a new cluster from the objects of this one; everything else of it may be inconsistent."""
        self._rebuild(ModelFacts(reservations=self.cluster.reservations.all()))

    def _rebuild(self, part: ModelFacts) -> None:
        """Build a new cluster and restore this part."""
        old, facts = self.cluster, facts_of(self.cluster)
        facts.tasks |= {task.uid: TaskFacts.of(task) for task in self._detached}
        facts.replace(part)
        self._use(old.emptied())
        cluster = self.cluster
        for obj in facts.objects.values():
            if obj is not None:
                self._put(obj)
        for name, reported in facts.reported.items():
            if name in cluster.queues:
                cluster.queues[name].reported = reported
        for id, known_job in facts.jobs.items():
            if known_job is not None:
                known_job.restore(self._job(id))
        for known_task in facts.tasks.values():
            if known_task is not None:
                self._enter_again(known_task)
        for id, job in list(cluster.jobs.items()):
            self._place_again(job, facts.jobs.get(id))
        cluster.unsettled = {cluster.jobs[job.id]: None for job in old.unsettled if job.id in cluster.jobs}
        cluster.reservations.take_over(facts.reservations, old.reservations, partial(node_named, cluster))

    def _enter_again(self, known: TaskFacts) -> None:
        task = known.task
        job = task.job = self._job(known.job) if known.job is not None else None
        task.sub_job = sub_job_of(job, task.label_set.labels) if job is not None else None
        task.node = node_named(self.cluster, known.node) if known.node else None
        task.status, task.grants = known.status, known.grants
        for name, value in zip(PROGRESS, known.fields, strict=True):
            setattr(task, name, value)
        self.cluster.enter(task)
        if job is not None and job.native is not None:
            job.native.count(task, 1)

    def _place_again(self, job: Job, known: JobFacts | None) -> None:
        """Let a job with all its tasks have its priority and its queue."""
        if job.native is not None:
            self._update_from_pods(job)
        elif job.group is not None:
            job.priority = self._job_priority(job)
            self._join(job, queue_named(self.cluster, job.group.spec.queue or self._default_queue))
        for id, nominated in (known.nominations if known is not None else {}).items():
            if id in job.sub_jobs:
                job.sub_jobs[id].nominated_hyper_node = nominated
        self._drop_if_empty(job)

    # -- lookup objects

    def _put_lookup_object(self, obj: Object) -> None:
        for ledger in self._reading(obj):
            ledger.put(obj)
        self.cluster.objects.put(obj)
        self._lookup_objects_changed(obj)

    def _drop_lookup_object(self, obj: Object) -> None:
        for ledger in self._reading(obj):
            ledger.drop(obj)
        self.cluster.objects.drop(obj)
        self._lookup_objects_changed(obj)

    def _lookup_objects_changed(self, obj: Object) -> None:
        for ledger in self._reading(obj):
            ledger.changed(obj)
        if isinstance(obj, Namespace):
            self.cluster.pod_counts.recount_namespace(obj.name)  # affinity terms select it by its labels
        elif isinstance(obj, HyperNode):
            self.cluster.hyper_nodes.membership.note_object(obj.name)
        elif isinstance(obj, PriorityClass):
            self._reprioritise()

    def _reading(self, obj: Object) -> Iterator[Ledger]:
        """The ledgers that read objects of this kind."""
        return (ledger for ledger in self.cluster.ledgers if type(obj) in ledger.kinds)

    def _reprioritise(self) -> None:
        for job in self.cluster.jobs.values():
            priority = self._job_priority(job)
            if priority != job.priority:
                job.priority = priority
                self.cluster.mark_dirty(job)

    def _job_priority(self, job: Job) -> int:
        """The priority of a job by its group; a job without one has none."""
        classes, native = self.cluster.objects.priority_classes, job.native
        if job.group is None:
            return 0
        if native is not None and native.priority is not None:
            return native.priority
        priority_class = classes.get(job.group.spec.priority_class_name)
        if priority_class is None and native is not None:
            return native.pod_priority
        if priority_class is None:
            defaults = [known for known in classes.values() if known.global_default]
            priority_class = min(defaults, key=lambda known: known.value) if defaults else None
        return priority_class.value if priority_class else 0

    # -- jobs

    def _job(self, id: JobId) -> Job:
        job = self.cluster.jobs.get(id)
        if job is None:
            job = self.cluster.jobs[id] = Job(id, Native() if id.kind == KIND else None)
        return job

    def _job_of(self, group: PodGroup | NativePodGroup) -> Job:
        """The job of a group, without the state of a deleted group of the same name."""
        job = self.cluster.jobs.get(id_of(group))
        if job is not None and job.group is not None and job.group.metadata.uid != group.metadata.uid:
            self._drop_group(group)
        return self._job(id_of(group))

    def _put_group(self, group: PodGroup) -> None:
        spec, status = group.spec, group.status
        min_resources = None
        if spec.min_resources is not None:
            min_resources = self.cluster.dims.rows(amounts(spec.min_resources, "spec.minResources"))
            self.cluster.columns.widen()
        job = self._job_of(group)
        phase = _phase(job, group)
        regroup = job.group is None or job.policies != spec.sub_group_policy or job.minimum != spec.min_member
        tasks = self._detach_tasks(job) if regroup else []
        _describe_job(job, group)
        job.role_minimums = {role: minimum for role, minimum in spec.min_task_member.items() if minimum > 0}
        job.min_resources = dict(min_resources) if min_resources is not None else None
        job.reservable = self._reservable(job)
        job.phase = phase
        job.written = (status.phase, status.running, status.succeeded, status.failed)
        job.priority = self._job_priority(job)
        self._attach_tasks(job, tasks)
        self._join(job, queue_named(self.cluster, spec.queue or self._default_queue))

    def _put_native_group(self, group: NativePodGroup) -> None:
        job = self._job_of(group)
        assert job.native is not None
        tasks = self._detach_tasks(job) if job.group is None or job.minimum != group.minimum else []
        job.native.update(group)
        _describe_job(job, as_volcano(group))
        job.phase = job.phase or names.GROUP_INQUEUE  # enqueue does not have to admit it
        self._attach_tasks(job, tasks)
        self._update_from_pods(job)

    def _update_from_pods(self, job: Job) -> None:
        """Update priority and queue of a native group, which its pods may decide."""
        if job.native is not None and job.group is not None:
            job.priority = self._job_priority(job)
            name = job.group.spec.queue or job.native.queue or self._default_queue
            self._join(job, queue_named(self.cluster, name))

    def _reservable(self, job: Job) -> Amounts:
        """# quirk: spec 04 12: no ephemeral storage is reserved for a waiting job."""
        storage = self.cluster.dims.index.get(names.EPHEMERAL_STORAGE)
        return {dim: amount for dim, amount in (job.min_resources or {}).items() if dim != storage}

    def _drop_group(self, group: PodGroup | NativePodGroup) -> None:
        job = self.cluster.jobs.get(id_of(group))
        if job is not None:
            tasks = self._detach_tasks(job)
            if job.native is not None:
                job.native.reset()
            forget_group(job)
            job.priority = 0
            self._attach_tasks(job, tasks)
            self._join(job, None)
            self._drop_if_empty(job)

    def _join(self, job: Job, queue: Queue | None) -> None:
        """Move a job to a queue; its old queue is removed if it has neither object nor jobs any more."""
        before = job.queue
        self.cluster.join(job, queue)
        if before is not None and before.object is None and not before.jobs:
            del self.cluster.queues[before.name]

    def _detach_tasks(self, job: Job) -> list[Task]:
        """Detach a job's tasks and sub-jobs, so that its minimum or policies may change."""
        tasks = self._detached = list(job.tasks.values())
        for task in tasks:
            self.cluster.leave(task)
        return tasks

    def _attach_tasks(self, job: Job, tasks: list[Task]) -> None:
        for task in tasks:
            task.sub_job = sub_job_of(job, task.label_set.labels)
            self.cluster.enter(task)
        self._detached = []

    def _drop_if_empty(self, job: Job) -> None:
        if job.group is None and not job.tasks:
            self.cluster.jobs.pop(job.id, None)
            self.cluster.unsettled.pop(job, None)

    # -- pods

    def _put_pod(self, pod: Pod) -> None:
        try:
            self._put_counted_pod(pod)
        except (TooManyResources, _Uncountable):
            if pod.spec.node_name or status_of(pod) is not Status.PENDING:
                self._put_counted_pod(self._countable_part(pod))
            raise

    def _countable_part(self, pod: Pod) -> Pod:
        """The pod without the requests that have no column, or that are too large for a sum."""

        def countable(requests: ResourceList) -> ResourceList:
            counted = amounts(requests, "").items()
            small = {name for name, amount in counted if name in self.cluster.dims.index and amount <= HUGE}
            return {name: quantity for name, quantity in requests.items() if name in small}

        def reduced(containers: Iterable[Container]) -> tuple[Container, ...]:
            return tuple(
                replace(each, resources=Resources(countable(each.resources.requests))) for each in containers
            )

        spec, status = pod.spec, pod.status
        pod_level = Resources(countable(spec.resources.requests)) if spec.resources is not None else None
        spec = replace(
            spec,
            containers=reduced(spec.containers),
            init_containers=reduced(spec.init_containers),
            overhead=countable(spec.overhead),
            resources=pod_level,
        )
        return replace(
            pod, spec=spec, status=PodStatus(status.phase, status.conditions, start_time=status.start_time)
        )

    def _put_counted_pod(self, pod: Pod) -> None:
        cluster, meta = self.cluster, pod.metadata
        uid = meta.uid or pod.key
        old = cluster.tasks.get(uid)
        if old is not None:
            self._enter_arrivals()
            if (old.name, old.namespace) != (meta.name, meta.namespace):
                raise BadObject("metadata.uid", f"pod {old.key} has the same")
        ours = pod.spec.scheduler_name in self._schedulers and not is_placed_elsewhere(pod)
        if not ours and not pod.spec.node_name:
            if old is not None:
                self._leave(old)
            return
        observation = observe(old, pod, status_of(pod))
        if observation is None:
            return
        on_node = bool(observation.node) and ON_NODE[observation.status]
        shape = self._interning.shape(pod)
        if shape.huge and on_node:
            self._enter_arrivals()
            self._check_load(observation.node, uid, shape)
        cluster.columns.widen()
        metadata = self._metadata.read(meta)
        label_set, created = metadata.label_set, meta.created
        task = Task(uid, label_set.namespace, meta.name, shape, label_set, created)
        task.ours = ours
        describe_pod(task, pod, metadata)
        task.status, task.assumed = observation.status, observation.assumed
        id = _job_id(pod, ours, metadata)
        if old is not None:
            same_job = id == (old.job.id if old.job is not None else None)
            if same_job and makes_progress(cluster, old, task, observation.node):
                progress(cluster, old, task)
                return
            self._leave(old)
        if id is not None:
            task.job = self._job(id)
            task.sub_job = sub_job_of(task.job, task.label_set.labels)
        if on_node:
            task.node = node_named(self.cluster, observation.node)
            assumed = old.grants if old is not None and old.node is task.node else ()
            task.grants = grants_of(cluster, task, assumed)
        self._arrive(task)

    def _arrive(self, task: Task) -> None:
        job = task.job
        if self._arrivals and not enter_together(self._arrivals[-1], task):
            self._enter_arrivals()
        self._arrivals.append(task)
        self.cluster.tasks[task.uid] = task
        if job is not None and job.native is not None:
            self._enter_arrivals()
            job.native.count(task, 1)
            self._update_from_pods(job)

    def _enter_arrivals(self) -> None:
        if self._arrivals:
            arrivals, self._arrivals = self._arrivals, []
            self.cluster.enter_all(arrivals)

    def _check_load(self, node_name: str, uid: str, shape: Shape) -> None:
        """Refuse a pod with which the sum of its node would overflow; real amounts never do."""
        node = self.cluster.nodes.get(node_name)
        for dim, amount in shape.request.items():
            if amount > HUGE and node is not None:
                held = sum(int(task.request.get(dim, 0)) for task in node.tasks if task.uid != uid)
                if held + amount > MAX_ON_A_NODE:
                    name = self.cluster.dims.names[dim]
                    raise _Uncountable("spec", f"node {node.name} would hold more {name} than can be counted")

    def _drop_pod(self, pod: Pod) -> None:
        old = self.cluster.tasks.get(pod.metadata.uid or pod.key)
        if old is not None:
            self._leave(old)

    def _leave(self, task: Task) -> None:
        node, job = task.node, task.job
        self.cluster.leave(task)
        forget_if_gone(self.cluster, node)
        if job is not None:
            if job.native is not None:
                job.native.count(task, -1)
                self._update_from_pods(job)
            self._drop_if_empty(job)


def _describe_job(job: Job, group: PodGroup) -> None:
    """Copy the common fields of both kinds of PodGroups to their job."""
    job.group = group
    job.created = group.metadata.created
    job.minimum = group.spec.min_member
    job.conditions = {
        condition.type: Condition(condition.status, condition.reason, condition.message)
        for condition in group.status.conditions
    }
    job.moved_at = max([job.moved_at, *_times_moved(group)])  # the last decision may not be written yet
    job.waiting_time = waiting_time(group.metadata.annotations)
    job.time_limit = annotated_limit(group.metadata.annotations)
    job.group_demands = group_demands(group)


def _phase(job: Job, group: PodGroup) -> str:
    """The phase that a group shows, except that an admitted job stays admitted until its group shows it."""
    before, shown, outside = job.group, group.status.phase, ("", names.GROUP_PENDING)
    if before is None or job.phase != names.GROUP_INQUEUE:
        return shown
    return job.phase if shown in outside and before.status.phase in outside else shown


def _times_moved(group: PodGroup) -> list[float]:
    return [
        condition.last_transition_time.timestamp()
        for condition in group.status.conditions
        if condition.type == names.CONDITION_MOVED and condition.last_transition_time is not None
    ]


def _job_id(pod: Pod, ours: bool, metadata: PodMetadata) -> JobId | None:
    """The job of a pod. A native group belongs to the scheduler that its pods name, so other pods do not join it."""
    native = pod.spec.scheduling_group
    if native is not None and native.pod_group_name:
        return JobId(KIND, pod.namespace, native.pod_group_name) if ours else None
    return metadata.job_id
