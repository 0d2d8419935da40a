"""The PodGroup of a job (spec 06 2.10): how many pods must start together, and the resources they need."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from stromboli.api import names
from stromboli.api.errors import BadObject
from stromboli.api.resources.quota_charges import (
    Charges,
    add_charges,
    as_resource_list,
    pod_charges,
    same_amounts,
)
from stromboli.api.types.pod import PodSpec
from stromboli.api.types.scheduling import NetworkTopology, PodGroup, PodGroupSpec
from stromboli.api.types.volcano_job import Job, Manifest, PartitionPolicy, TaskSpec
from stromboli.controllers.job.job_phases import minimum_of
from stromboli.controllers.job.job_pods import group_name, mapping, metadata_of
from stromboli.controllers.job.succeeded_pods import indexes_in

Priorities = Mapping[str, int]
"""The values of priority classes."""


def without_lost_pods(job: Job, lost: Sequence[int]) -> Job:
    """Return the job with fewer replicas: other pods must not wait for those that succeeded and were deleted.

    `lost`: the indexes of those pods, as bits, by position of the task. The minimum of the job stays at least 1 if it
    was.
    """
    if not any(lost):
        return job
    tasks = tuple(
        _without_indexes(task, indexes) if indexes else task
        for task, indexes in zip(job.spec.tasks, lost, strict=True)
    )
    least = min(1, job.spec.min_available)
    minimum = max(least, job.spec.min_available - sum(map(int.bit_count, lost)))
    spec = msgspec.structs.replace(job.spec, tasks=tasks, min_available=minimum)
    return msgspec.structs.replace(job, spec=spec)


def _without_indexes(task: TaskSpec, indexes: int) -> TaskSpec:
    pods = indexes.bit_count()
    return msgspec.structs.replace(
        task,
        replicas=task.replicas - pods,
        min_available=max(0, _min_member(task) - pods),
        partition_policy=_partitions_left(task.partition_policy, indexes),
    )


def _partitions_left(policy: PartitionPolicy | None, indexes: int) -> PartitionPolicy | None:
    """The policy without these pods: all partitions share one size, so the smallest that still has pods counts."""
    if policy is None or policy.partition_size <= 0:
        return policy
    size = policy.partition_size
    lost = Counter(index // size for index in indexes_in(indexes)).values()
    return msgspec.structs.replace(
        policy,
        partition_size=size - max((pods for pods in lost if pods < size), default=0),
        min_partitions=max(0, policy.min_partitions - sum(pods == size for pods in lost)),
    )


def group_of(job: Job, priorities: Priorities) -> Manifest:
    """The manifest of a job's PodGroup."""
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {
            **metadata_of(job, group_name(job)),
            "annotations": dict(job.metadata.annotations),
            "labels": dict(job.metadata.labels),
        },
        "spec": _spec(job, priorities),
    }


def group_changes(job: Job, group: PodGroup, priorities: Priorities) -> Manifest:
    """The patch of an existing group's spec; its queue and topology stay as they are."""
    wanted = _spec(job, priorities)
    now = group.spec
    changes: Manifest = {}
    if now.priority_class_name != wanted.get("priorityClassName", ""):
        changes["priorityClassName"] = wanted.get("priorityClassName", "")
    if now.min_member != wanted["minMember"]:
        changes["minMember"] = wanted["minMember"]
    if not same_amounts(now.min_resources or {}, wanted["minResources"]) or now.min_resources is None:
        gone = dict.fromkeys((now.min_resources or {}).keys() - wanted["minResources"].keys())
        changes["minResources"] = {**gone, **wanted["minResources"]}
    members = {
        task: minimum
        for task, minimum in wanted["minTaskMember"].items()
        if now.min_task_member.get(task) != minimum
    }
    if members:
        changes["minTaskMember"] = members
    if now.sub_group_policy != msgspec.convert(wanted, PodGroupSpec).sub_group_policy:
        changes["subGroupPolicy"] = wanted["subGroupPolicy"]
    return changes


def _spec(job: Job, priorities: Priorities) -> Manifest:
    spec: Manifest = {
        "minMember": job.spec.min_available,
        "minTaskMember": {task.name: _min_member(task) for task in job.spec.tasks},
        "queue": job.spec.queue or names.DEFAULT_QUEUE,
        "minResources": as_resource_list(minimum_charges(job, priorities)),
        "subGroupPolicy": [_sub_group(task) for task in job.spec.tasks if task.partition_policy is not None],
    }
    if job.spec.priority_class_name:
        spec["priorityClassName"] = job.spec.priority_class_name
    if job.spec.network_topology is not None:
        spec["networkTopology"] = _topology(job.spec.network_topology)
    return spec


def _min_member(task: TaskSpec) -> int:
    if task.min_available is not None:
        return task.min_available
    policy = task.partition_policy
    if policy is not None and policy.min_partitions and policy.partition_size:
        return policy.min_partitions * policy.partition_size
    return task.replicas


def _sub_group(task: TaskSpec) -> Manifest:
    policy = task.partition_policy
    assert policy is not None
    group: dict[str, Any] = {
        "name": task.name,
        "subGroupSize": max(policy.partition_size, 1),
        "minSubGroups": policy.min_partitions,
        "labelSelector": {"matchLabels": {names.TASK_SPEC: task.name}},
        "matchLabelKeys": [names.PARTITION_ID],
    }
    if policy.network_topology is not None:
        group["networkTopology"] = msgspec.to_builtins(policy.network_topology) | {
            "mode": policy.network_topology.mode
        }
    return group


def _topology(topology: NetworkTopology) -> Manifest:
    """The tier by number if it is given, else by name."""
    manifest: Manifest = {"mode": topology.mode}
    if topology.highest_tier_allowed is not None:
        manifest["highestTierAllowed"] = topology.highest_tier_allowed
    elif topology.highest_tier_name:
        manifest["highestTierName"] = topology.highest_tier_name
    return manifest


def minimum_charges(job: Job, priorities: Priorities) -> Charges:
    """The resources of the pods that must start together, those of the tasks of highest priority first."""
    total: Charges = {}
    for task, pods in minimum_pods(job, priorities):
        if pods:
            add_charges(total, pod_charges(_pod_spec(task)), pods)
    return total


def minimum_pods(job: Job, priorities: Priorities) -> list[tuple[TaskSpec, int]]:
    """How many pods of each task count towards `minAvailable`."""
    tasks = sorted(job.spec.tasks, key=lambda task: -_priority(task, priorities))
    minimum = job.spec.min_available
    if minimum < sum(minimum_of(task.min_available, task.replicas) for task in tasks):
        return _taken(tasks, [task.replicas for task in tasks], minimum)
    first = _taken(tasks, [task.min_available or 0 for task in tasks], minimum)
    left = minimum - sum(pods for _, pods in first)
    rest = _taken(tasks, [max(0, task.replicas - (task.min_available or 0)) for task in tasks], left)
    return [(task, pods + more) for (task, pods), (_, more) in zip(first, rest, strict=True)]


def _taken(tasks: list[TaskSpec], offered: list[int], wanted: int) -> list[tuple[TaskSpec, int]]:
    """As many as each task offers, in their order, until there are enough."""
    shares = []
    for task, offer in zip(tasks, offered, strict=True):
        taken = min(offer, wanted)
        wanted -= taken
        shares.append((task, taken))
    return shares


def _priority(task: TaskSpec, priorities: Priorities) -> int:
    spec = mapping(task.template, "spec", f"spec.tasks[{task.name}].template")
    name = spec.get("priorityClassName")
    return priorities.get(name, 0) if isinstance(name, str) else 0


def _pod_spec(task: TaskSpec) -> PodSpec:
    where = f"spec.tasks[{task.name}].template"
    try:
        return msgspec.convert(mapping(task.template, "spec", where), PodSpec)
    except msgspec.ValidationError as error:
        raise BadObject(f"{where}.spec", str(error)) from None
