"""Changes to objects: written as merge patches, applied to a loaded cluster for a while, and undone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from copy import copy
from typing import TYPE_CHECKING, Any

import msgspec

from stromboli.api import names
from stromboli.api.decoding import decode
from stromboli.api.errors import BadObject
from stromboli.api.patches import merged
from stromboli.api.resources.resource_lists import amounts, resource_list
from stromboli.api.types.meta import Object, ObjectMeta
from stromboli.api.types.pod import Pod, PodSpec
from stromboli.model.amounts import Amounts, shift
from stromboli.model.intake.object_intake import Intake
from stromboli.model.intake.sub_jobs import sub_job_of
from stromboli.model.job import VOLCANO_GROUP, Job, JobId
from stromboli.model.task import Task
from stromboli.simulator.explain.explanation_document import ObjectChange

if TYPE_CHECKING:
    from stromboli.model.cluster import Cluster
    from stromboli.model.queue import Queue
    from stromboli.model.shape import Shape


# -- written as patches


def queue_patch(queue: Queue, spec: dict[str, object]) -> ObjectChange:
    return ObjectChange("patch", "Queue", [queue.name], patch={"spec": spec})


def pods_patch(tasks: Sequence[Task], patch: dict[str, Any]) -> ObjectChange:
    return ObjectChange("patch", "Pod", [task.name for task in tasks], tasks[0].namespace, patch)


def group_patch(job: Job, patch: dict[str, Any]) -> ObjectChange:
    return ObjectChange("patch", "PodGroup", [job.name], job.namespace, patch)


def fewer_at_once(cluster: Cluster, job: Job, minimum: int) -> ObjectChange:
    """A smaller minMember, and minResources, if the job has any, of what so many of its pods request."""
    spec: dict[str, Any] = {"minMember": minimum}
    if job.min_resources:
        least: Amounts = {}
        for task in sorted(job.tasks.values(), key=lambda task: task.order)[:minimum]:
            shift(least, task.request)
        now = {dim: min(amount, least.get(dim, 0)) for dim, amount in job.min_resources.items()}
        spec["minResources"] = _resources(cluster, now)
    return group_patch(job, {"spec": spec})


def group_with_less(
    cluster: Cluster, job: Job, asked: Mapping[int, int], most: Mapping[int, int]
) -> list[ObjectChange]:
    """Its minResources, if it has any, lowered as the requests of its pods are."""
    if job.native is not None or not job.min_resources:
        return []
    lower = {
        dim: int(job.min_resources[dim] * most[dim] / asked[dim]) for dim in most if dim in job.min_resources
    }
    return [group_patch(job, {"spec": {"minResources": _resources(cluster, lower)}})] if lower else []


def _resources(cluster: Cluster, amounts: Mapping[int, float]) -> dict[str, str]:
    """Amounts as a resource list, limits on pods included."""
    named = cluster.dims.named({dim: int(amount) for dim, amount in amounts.items()})
    texts = resource_list(named)
    return {name: texts[name] for name in named}


def less_restricted(job: Job, tiers: Sequence[int]) -> Iterator[tuple[str, ObjectChange]]:
    """Higher tiers one after the other, then a soft topology, for the job itself."""
    topology = job.group.spec.network_topology if job.group is not None and job.native is None else None
    if topology is None or topology.mode != "hard":
        return
    now: dict[str, Any] = msgspec.to_builtins(topology)
    allowed = topology.highest_tier_allowed
    if allowed is not None:
        for tier in [tier for tier in tiers[:-1] if tier > allowed][:2]:
            patch = {"spec": {"networkTopology": {**now, "highestTierAllowed": tier}}}
            yield f"tier {tier} is allowed instead of {allowed}", group_patch(job, patch)
    yield (
        "its topology is soft (networkTopology.mode: soft)",
        group_patch(job, {"spec": {"networkTopology": {"mode": "soft"}}}),
    )


def containers_with_less(
    cluster: Cluster, shape: Shape, most: Mapping[int, int]
) -> list[dict[str, Any]] | None:
    """The containers of a pod with lower requests, so that it requests no more than this; None if one is not enough.

    Of each resource, the request of the container that requests the most is lowered.
    """
    spec = as_plain(shape.spec)
    containers: list[dict[str, Any]] = spec.get("containers") or []
    for dim, limit in most.items():
        name, beyond = cluster.dims.names[dim], int(shape.request.get(dim, 0)) - limit
        if beyond <= 0:
            continue
        requests = [_requests(container) for container in containers]
        largest = max(range(len(containers)), key=lambda place: requests[place].get(name, 0), default=None)
        if largest is None or requests[largest].get(name, 0) < beyond:
            return None
        left = requests[largest][name] - beyond
        resources = containers[largest]["resources"]
        resources["requests"] = {**resources["requests"], name: resource_list({name: left})[name]}
    return containers


def _requests(container: Mapping[str, Any]) -> dict[str, int]:
    try:
        return amounts((container.get("resources") or {}).get("requests") or {}, "requests")
    except BadObject:
        return {}


# -- applied to a loaded cluster


@contextmanager
def applied(intake: Intake, changes: Sequence[ObjectChange]) -> Iterator[None]:
    """Within this context the cluster has these changes."""
    with ExitStack() as undone:
        for change in changes:
            undone.callback(_apply(intake, change))
        yield
    intake.cluster.settle()


def as_manifest(object: Object) -> dict[str, Any]:
    """An object as JSON has it, with the fields that a scheduler reads."""
    manifest: dict[str, Any] = msgspec.to_builtins(object)
    return manifest


def _apply(intake: Intake, change: ObjectChange) -> Callable[[], None]:
    """Apply a change; return the function that undoes it."""
    if change.kind == "Pod":
        return _apply_to_pods(intake, change)
    if change.operation == "create":
        created = _decoded(change.kind, change.patch)
        intake.put(created)
        return lambda: intake.drop(created)
    before = [_object(intake, change.kind, change.namespace, name) for name in change.names]
    for object in before:
        intake.put(_decoded(change.kind, merged(as_manifest(object), change.patch)))

    def back() -> None:
        for object in before:
            intake.put(object)

    return back


def _object(intake: Intake, kind: str, namespace: str, name: str) -> Object:
    cluster = intake.cluster
    object: Object | None
    if kind == "PodGroup":
        object = cluster.jobs[JobId(VOLCANO_GROUP, namespace, name)].group
    elif kind == "Queue":
        object = cluster.queues[name].object
    else:
        object = cluster.nodes[name].object
    assert object is not None
    return object


def _decoded(kind: str, manifest: Mapping[str, Any]) -> Object:
    object = decode({**manifest, "kind": kind})
    assert object is not None
    return object


# -- pods


def _apply_to_pods(intake: Intake, change: ObjectChange) -> Callable[[], None]:
    """Remove tasks, or replace them by changed ones: the model keeps no Pod objects, but all that it reads of them."""
    cluster, wanted = intake.cluster, set(change.names)
    before = [
        task for task in cluster.tasks.values() if task.namespace == change.namespace and task.name in wanted
    ]
    after = [] if change.operation == "delete" else [_changed(intake, task, change.patch) for task in before]
    exchange_tasks(intake, before, after)
    return lambda: exchange_tasks(intake, after, before)


def exchange_tasks(intake: Intake, leaving: Sequence[Task], coming: Sequence[Task]) -> None:
    """Remove some tasks from the model and add others."""
    for task in leaving:
        intake.cluster.leave(task)
    for task in coming:
        if task.job is not None:
            task.sub_job = sub_job_of(task.job, task.label_set.labels)
        intake.cluster.enter(task)


def _changed(intake: Intake, task: Task, patch: Mapping[str, Any]) -> Task:
    """A copy of a task whose pod has the patched spec."""
    spec = msgspec.convert(merged(as_plain(task.shape.spec), patch.get("spec", {})), PodSpec)
    changed, shape = copy(task), intake.shape_of(Pod(ObjectMeta(""), spec=spec))
    if shape.demands != task.shape.demands:
        own = tuple(demand for demand in task.demands if demand not in task.shape.demands)
        changed.demands = (*own, *shape.demands)
    changed.shape = shape
    if spec.priority is not None:
        changed.pod_priority, changed.priority_class = spec.priority, spec.priority_class_name
        if names.TASK_PRIORITY not in task.annotations:
            changed.priority = spec.priority
    if "schedulingGates" in patch.get("spec", {}):
        changed.gates = tuple(gate.name for gate in spec.scheduling_gates)
    return changed


def as_plain(spec: PodSpec) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(spec)
    return plain
