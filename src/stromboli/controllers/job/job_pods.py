"""The pods of a job (spec 06 2.9): the task's template with the labels and annotations of its job."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from stromboli.api import names
from stromboli.api.errors import BadObject
from stromboli.api.types.volcano_job import Job, Manifest, TaskSpec
from stromboli.controllers.inherited_metadata import inherited_annotations, inherited_labels
from stromboli.controllers.owner_references import controller_reference

_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True, slots=True)
class Member:
    """The index-th pod of a task."""

    job: Job
    task: TaskSpec
    index: int

    @property
    def name(self) -> str:
        return f"{self.job.name}-{self.task.name}-{self.index}"

    @property
    def partition(self) -> str:
        """Which partition of its task it belongs to; empty if the task has none."""
        policy = self.task.partition_policy
        if policy is None:
            return ""
        return str(self.index // policy.partition_size if policy.partition_size > 0 else 0)


def with_default_names(job: Job) -> Job:
    """The job with the names that admission would have set, for jobs created without it."""
    if job.spec.queue and all(task.name for task in job.spec.tasks):
        return job
    tasks = tuple(
        task if task.name else msgspec.structs.replace(task, name=f"default{at}")
        for at, task in enumerate(job.spec.tasks)
    )
    queue = job.spec.queue or names.DEFAULT_QUEUE
    return msgspec.structs.replace(job, spec=msgspec.structs.replace(job.spec, tasks=tasks, queue=queue))


def group_name(job: Job) -> str:
    return f"{job.name}-{job.metadata.uid}"


def stable_suffix(*seed: str) -> str:
    """Twelve characters derived from a seed, so that a name is the same whenever it is generated."""
    number = int.from_bytes(hashlib.sha256("\0".join(seed).encode()).digest()[:12])
    return "".join(_DIGITS[number // 36**place % 36] for place in range(12))


def pod_of(member: Member, forwarding: bool = False, lost_at: datetime | None = None) -> Manifest:
    """The manifest of a pod, before plugins add to it."""
    job, task = member.job, member.task
    template = msgspec.to_builtins(task.template)  # a copy, much quicker than deepcopy
    where = f"spec.tasks[{task.name}].template"
    spec = mapping(template, "spec", where)
    if not isinstance(spec.get("containers"), list):
        raise BadObject(f"{where}.spec.containers", "must be a list of containers")
    given = mapping(template, "metadata", where)
    if not spec.get("schedulerName"):
        spec["schedulerName"] = job.spec.scheduler_name or names.SCHEDULER_NAME
    if not spec.get("priorityClassName") and job.spec.priority_class_name:
        spec["priorityClassName"] = job.spec.priority_class_name
    _mount(job, spec)
    annotations = mapping(given, "annotations", where) | _annotations(member)
    labels = mapping(given, "labels", where) | _labels(member)
    if forwarding:
        annotations[names.JOB_FORWARDING] = labels[names.JOB_FORWARDING] = "true"
    if lost_at is not None:
        annotations[names.LOST_AT] = lost_at.isoformat()
    metadata = {**metadata_of(job, member.name), "labels": labels, "annotations": annotations}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def set_gate(pod: Manifest, job: Job, holds: bool) -> None:
    """Hold a pod at a gate until the jobs that its job waits for have ended, or let it through.

    A pod that is held is annotated with whom it waits for.
    """
    spec, gate = pod["spec"], {"name": names.AFTER}
    gates = spec.get("schedulingGates") or []
    others = [each for each in gates if each != gate]
    if holds:
        spec["schedulingGates"] = [*others, gate]
        pod["metadata"]["annotations"][names.AFTER] = job.metadata.annotations.get(names.AFTER, "")
    elif gate in gates:
        spec["schedulingGates"] = others


def metadata_of(job: Job, name: str) -> Manifest:
    """The metadata of an object that the job owns."""
    return {"name": name, "namespace": job.namespace, "ownerReferences": [controller_reference(job)]}


def mapping(parent: Manifest, key: str, where: str) -> Manifest:
    """A field of a template that must be a mapping, or be missing."""
    value = parent.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise BadObject(f"{where}.{key}", f"must be a mapping, got {type(value).__name__}")
    return value


def containers(spec: Manifest, init: bool = False) -> list[Manifest]:
    """The containers of a pod spec, and its init containers if `init`."""
    keys = ("initContainers", "containers") if init else ("containers",)
    return [container for key in keys for container in spec.get(key) or () if isinstance(container, dict)]


def estimated_size(manifest: Manifest) -> int:
    """The number of entries in the lists of a pod's containers, which is what makes a pod large."""
    spec = manifest["spec"]
    lists = [value for container in containers(spec, init=True) for value in container.values()]
    return sum(len(value) for value in (*lists, *spec.values()) if isinstance(value, list | dict)) + 10


def extend(manifest: Manifest, key: str, *items: Any) -> None:
    """Append to a list that may be missing."""
    manifest[key] = [*(manifest.get(key) or ()), *items]


def _annotations(member: Member) -> dict[str, str]:
    job, task, index = member.job, member.task, member.index
    annotations = {
        names.TASK_INDEX: str(index),
        names.TASK_SPEC: task.name or "default",
        names.GROUP_NAME: group_name(job),
        names.JOB_NAME: job.name,
        names.JOB_QUEUE_NAME: job.spec.queue,
        names.JOB_VERSION: str(job.status.version),
        names.TEMPLATE_UID: f"{job.name}-{task.name}",
        names.JOB_RETRY_COUNT: str(job.status.retry_count),
    }
    if task.topology_policy:
        annotations[names.NUMA_TOPOLOGY_POLICY] = task.topology_policy
    return annotations | inherited_annotations(job.metadata.annotations)


def _labels(member: Member) -> dict[str, str]:
    job, task, index = member.job, member.task, member.index
    labels = {
        names.TASK_INDEX: str(index),
        names.JOB_NAME: job.name,
        names.TASK_SPEC: task.name or "default",
        names.JOB_NAMESPACE: job.namespace,
        names.JOB_QUEUE_NAME: job.spec.queue,
    }
    labels |= inherited_labels(job.metadata.labels)
    if task.partition_policy is not None:
        labels[names.PARTITION_ID] = member.partition
    return labels


def _mount(job: Job, spec: Manifest) -> None:
    """Mount every volume of the job in every container; of a claim that is listed twice, the first entry counts."""
    seen: set[str] = set()
    for volume in job.spec.volumes:
        claim = volume.volume_claim_name
        if not claim or claim in seen:
            continue
        seen.add(claim)
        name = f"{job.name}-{stable_suffix(job.metadata.uid, claim)}"
        extend(spec, "volumes", {"name": name, "persistentVolumeClaim": {"claimName": claim}})
        for container in containers(spec):
            extend(container, "volumeMounts", {"name": name, "mountPath": volume.mount_path})
