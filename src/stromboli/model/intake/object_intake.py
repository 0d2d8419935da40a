"""How objects become the model: used by the mirror, the plan and the simulator alike (spec 01 2-6, 05 3).

`put` adds or replaces an object, `drop` takes it away. Objects may come in any order: what is named before it is known
(a job's queue, a pod's node, a task's PodGroup) stands as an empty entry until its object arrives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from stromboli.api import names
from stromboli.api.errors import BadObject
from stromboli.api.resources.resource_lists import amounts
from stromboli.api.types.kinds import describe
from stromboli.api.types.meta import Object
from stromboli.api.types.native_group import NativePodGroup
from stromboli.api.types.node import Node as NodeObject
from stromboli.api.types.pod import Pod
from stromboli.api.types.scheduling import Namespace, PodGroup, PriorityClass
from stromboli.api.types.scheduling import Queue as QueueObject
from stromboli.model.amounts import Amounts
from stromboli.model.cluster import Cluster
from stromboli.model.dimensions import TooManyResources
from stromboli.model.intake.assumed_tasks import observe
from stromboli.model.intake.native_groups import KIND, Native, as_volcano
from stromboli.model.intake.node_and_queue_intake import (
    drop_node,
    drop_queue,
    node_named,
    put_node,
    put_queue,
    queue_named,
)
from stromboli.model.intake.pod_fields import describe_pod, seconds, status_of, waiting_time
from stromboli.model.intake.sub_jobs import sub_job_of
from stromboli.model.interning import Interning
from stromboli.model.job import Job, JobId
from stromboli.model.lookup_objects import Objects
from stromboli.model.queue import Queue
from stromboli.model.shape import Shape
from stromboli.model.status import ON_NODE
from stromboli.model.task import Condition, Task

MOST_ON_A_NODE = 2**62
HUGE = 2**46
"""An amount of which a node would have to hold tens of thousands before its sum could not be counted."""


class Intake:
    """Keeps a cluster in step with the objects it is told of."""

    def __init__(
        self,
        cluster: Cluster | None = None,
        schedulers: Iterable[str] = (names.SCHEDULER_NAME,),
        default_queue: str = names.DEFAULT_QUEUE,
    ):
        self.cluster = cluster or Cluster(Objects())
        self._schedulers = frozenset(schedulers)
        self._default_queue = default_queue
        self._interning = Interning(self.cluster.dims)
        self._puts: dict[type[Object], Callable[[Any], None]] = {
            Pod: self._put_pod,
            NodeObject: partial(put_node, self.cluster),
            PodGroup: self._put_group,
            NativePodGroup: self._put_native_group,
            QueueObject: partial(put_queue, self.cluster),
            PriorityClass: self._put_priority_class,
        }
        self._drops: dict[type[Object], Callable[[Any], None]] = {
            Pod: self._drop_pod,
            NodeObject: partial(drop_node, self.cluster),
            PodGroup: self._drop_group,
            NativePodGroup: self._drop_group,
            QueueObject: partial(drop_queue, self.cluster),
            PriorityClass: self._drop_priority_class,
        }

    def put(self, thing: Object) -> None:
        """Take an object in, in place of what had its name; a bad one raises `BadObject` and changes nothing."""
        try:
            self._puts.get(type(thing), self._shelve)(thing)
        except BadObject as error:
            raise error.of(describe(thing)) from None
        except TooManyResources as error:
            raise BadObject("resources", str(error), describe(thing)) from None

    def drop(self, thing: Object) -> None:
        """An object is gone."""
        self._drops.get(type(thing), self._unshelve)(thing)

    # -- plain objects

    def _shelve(self, thing: Object) -> None:
        self.cluster.objects.put(thing)
        self._look_again(thing)

    def _unshelve(self, thing: Object) -> None:
        self.cluster.objects.drop(thing)
        self._look_again(thing)

    def _look_again(self, thing: Object) -> None:
        self.cluster.dirty.objects = True
        if isinstance(thing, Namespace):
            self.cluster.tallies.recount()  # affinity terms select namespaces by their labels

    def _put_priority_class(self, thing: PriorityClass) -> None:
        self._shelve(thing)
        self._reprioritise()

    def _drop_priority_class(self, thing: PriorityClass) -> None:
        self._unshelve(thing)
        self._reprioritise()

    def _reprioritise(self) -> None:
        for job in self.cluster.jobs.values():
            priority = self._job_priority(job)
            if priority != job.priority:
                job.priority = priority
                self.cluster.note(job)

    def _job_priority(self, job: Job) -> int:
        classes, native = self.cluster.objects.priority_classes, job.native
        if native is not None and native.priority is not None:
            return native.priority
        wanted = classes.get(job.group.spec.priority_class_name) if job.group else None
        if wanted is None and native is not None:
            return native.pod_priority
        if wanted is None:
            defaults = [one for one in classes.values() if one.global_default]
            wanted = min(defaults, key=lambda one: one.value) if defaults else None
        return wanted.value if wanted else 0

    # -- jobs

    def _job(self, id: JobId) -> Job:
        job = self.cluster.jobs.get(id)
        if job is None:
            job = self.cluster.jobs[id] = Job(id, Native() if id.kind == KIND else None)
        return job

    def _put_group(self, thing: PodGroup) -> None:
        spec, status = thing.spec, thing.status
        least = None
        if spec.min_resources is not None:
            least = self.cluster.dims.rows(amounts(spec.min_resources, "spec.minResources"))
            self.cluster.columns.widen()
        job = self._job(_id_of(thing))
        regroup = job.group is None or job.policies != spec.sub_group_policy or job.minimum != spec.min_member
        tasks = self._take_out(job) if regroup else []
        job.group = thing
        job.created = seconds(thing.metadata.creation_timestamp)
        job.minimum = spec.min_member
        job.role_minimums = {role: least for role, least in spec.min_task_member.items() if least > 0}
        job.min_resources = dict(least) if least is not None else None
        job.reservable = self._reservable(job)
        job.phase = status.phase
        job.written = (status.phase, status.running, status.succeeded, status.failed)
        job.conditions = {
            one.type: Condition(one.status, one.reason, one.message) for one in status.conditions
        }
        job.waiting_time = waiting_time(thing.metadata.annotations)
        job.priority = self._job_priority(job)
        self._put_in(job, tasks)
        self._join(job, queue_named(self.cluster, spec.queue or self._default_queue))

    def _put_native_group(self, thing: NativePodGroup) -> None:
        job = self._job(_id_of(thing))
        assert job.native is not None
        tasks = self._take_out(job) if job.group is None or job.minimum != thing.minimum else []
        job.native.learn(thing)
        job.group = as_volcano(thing)
        job.created = seconds(thing.metadata.creation_timestamp)
        job.minimum = thing.minimum
        job.phase = job.phase or names.GROUP_INQUEUE  # nobody has to let it in
        job.conditions = {
            one.type: Condition(one.status, one.reason, one.message) for one in job.group.status.conditions
        }
        job.waiting_time = waiting_time(thing.metadata.annotations)
        self._put_in(job, tasks)
        self._heed_pods(job)

    def _heed_pods(self, job: Job) -> None:
        """Priority and queue of a native group, which may be for its pods to say."""
        if job.native is not None and job.group is not None:
            job.priority = self._job_priority(job)
            name = job.group.spec.queue or job.native.queue or self._default_queue
            self._join(job, queue_named(self.cluster, name))

    def _reservable(self, job: Job) -> Amounts:
        """# quirk: spec 04 12: no ephemeral storage is held for a job that waits."""
        storage = self.cluster.dims.index.get(names.EPHEMERAL_STORAGE)
        return {dim: amount for dim, amount in (job.min_resources or {}).items() if dim != storage}

    def _drop_group(self, thing: PodGroup | NativePodGroup) -> None:
        job = self.cluster.jobs.get(_id_of(thing))
        if job is not None:
            tasks = self._take_out(job)
            job.group = None
            if job.native is not None:
                job.native.forget()
            job.minimum = 0
            job.phase, job.written, job.conditions, job.reported = "", None, {}, {}
            self._put_in(job, tasks)
            self._join(job, None)
            self._forget(job)

    def _join(self, job: Job, queue: Queue | None) -> None:
        """A queue that has neither object nor jobs any more is forgotten."""
        before = job.queue
        self.cluster.join(job, queue)
        if before is not None and before.object is None and not before.jobs:
            del self.cluster.queues[before.name]

    def _take_out(self, job: Job) -> list[Task]:
        """A job without its tasks and sub-jobs, so that its terms may change."""
        tasks = list(job.tasks.values())
        for task in tasks:
            self.cluster.leave(task)
        return tasks

    def _put_in(self, job: Job, tasks: list[Task]) -> None:
        for task in tasks:
            task.group = sub_job_of(job, task.label_set.labels)
            self.cluster.enter(task)

    def _forget(self, job: Job) -> None:
        if job.group is None and not job.tasks:
            self.cluster.jobs.pop(job.id, None)
            self.cluster.unsettled.pop(job, None)

    # -- pods

    def _put_pod(self, pod: Pod) -> None:
        cluster = self.cluster
        uid = pod.metadata.uid or pod.key
        old = cluster.tasks.get(uid)
        if old is not None and (old.name, old.namespace) != (pod.name, pod.namespace):
            raise BadObject("metadata.uid", f"pod {old.key} has the same")
        ours = pod.spec.scheduler_name in self._schedulers
        if not ours and not pod.spec.node_name:
            if old is not None:
                self._leave(old)
            return
        observation = observe(old, pod, status_of(pod))
        if observation is None:
            return
        shape = self._interning.shape(pod)
        self._check_load(pod, shape)
        cluster.columns.widen()
        task = Task(
            uid,
            pod.namespace,
            pod.name,
            shape,
            self._interning.label_set(pod.namespace, pod.metadata.labels),
            seconds(pod.metadata.creation_timestamp),
        )
        task.annotations = self._interning.notes(pod.metadata.annotations)
        task.ours = ours
        describe_pod(task, pod)
        task.status, task.assumed = observation.status, observation.assumed
        if old is not None:
            self._leave(old)
        id = _job_id(pod, ours)
        if id is not None:
            task.job = self._job(id)
            task.group = sub_job_of(task.job, task.label_set.labels)
        if observation.node and ON_NODE[task.status]:
            task.node = node_named(self.cluster, observation.node)
        cluster.enter(task)
        if task.job is not None and task.job.native is not None:
            task.job.native.count(task, 1)
            self._heed_pods(task.job)

    def _check_load(self, pod: Pod, shape: Shape) -> None:
        """Refuse a pod with which its node would hold more than can be counted; amounts that people use never do."""
        node = self.cluster.nodes.get(pod.spec.node_name)
        for dim, amount in shape.request.items():
            if amount > HUGE and node is not None:
                held = sum(int(task.request.get(dim, 0)) for task in node.tasks)
                if held + amount > MOST_ON_A_NODE:
                    name = self.cluster.dims.names[dim]
                    raise BadObject("spec", f"node {node.name} would hold more {name} than can be counted")

    def _drop_pod(self, pod: Pod) -> None:
        old = self.cluster.tasks.get(pod.metadata.uid or pod.key)
        if old is not None:
            self._leave(old)

    def _leave(self, task: Task) -> None:
        node, job = task.node, task.job
        self.cluster.leave(task)
        if node is not None and node.object is None and not node.tasks:
            self.cluster.nodes.pop(node.name, None)
        if job is not None:
            if job.native is not None:
                job.native.count(task, -1)
                self._heed_pods(job)
            self._forget(job)


def _id_of(group: PodGroup | NativePodGroup) -> JobId:
    return JobId(type(group).__name__, group.namespace, group.name)


def _job_id(pod: Pod, ours: bool) -> JobId | None:
    """Which job a pod belongs to. A native group is whoever's its pods ask for: only those that ask for us are ours."""
    native = pod.spec.scheduling_group
    if native is not None and native.pod_group_name:
        return JobId(KIND, pod.namespace, native.pod_group_name) if ours else None
    group = pod.metadata.annotations.get(names.GROUP_NAME, "")
    return JobId(PodGroup.__name__, pod.namespace, group) if group else None
