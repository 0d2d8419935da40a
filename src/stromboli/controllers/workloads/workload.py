"""An owner of pods, of any of Kubernetes' kinds, with the fields that its pods are made from."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import field

from stromboli.api.errors import BadObject
from stromboli.api.types.meta import Count, Int64, Object, Record, Value

Manifest = dict[str, Any]

REPLICATED = ("Deployment", "ReplicaSet", "ReplicationController", "StatefulSet")
ORDERED_READY = "OrderedReady"
INDEXED = "Indexed"


class Ordinals(Value, frozen=True):
    """The number of the first pod of a StatefulSet."""

    start: Count = 0


class WorkloadSpec(Record):
    """The fields of all kinds together; each kind uses its own."""

    template: Manifest = field(default_factory=dict)
    replicas: Count | None = None
    selector: Any = None
    """Labels for a ReplicationController, a LabelSelector for the others."""
    pod_management_policy: str = ORDERED_READY
    service_name: str = ""
    ordinals: Ordinals = Ordinals()
    volume_claim_templates: tuple[Manifest, ...] = ()
    parallelism: Count | None = None
    completions: Count | None = None
    completion_mode: str = ""
    active_deadline_seconds: Int64 | None = None
    suspend: bool = False
    manual_selector: bool = False
    schedule: str = ""
    time_zone: str = ""
    job_template: Manifest = field(default_factory=dict)


class WorkloadStatus(Record):
    """Pods that exist, or are not needed any more, by the workload's own controller."""

    replicas: Count = 0
    active: Any = None
    """A number for a Job, references for a CronJob."""
    succeeded: Count = 0
    current_number_scheduled: Count = 0


class Workload(Object):
    """A Deployment, ReplicaSet, ReplicationController, StatefulSet, DaemonSet, Job or CronJob."""

    kind: str = ""
    api_version: str = ""
    spec: WorkloadSpec = field(default_factory=WorkloadSpec)
    status: WorkloadStatus = field(default_factory=WorkloadStatus)

    @property
    def subject(self) -> str:
        """`Deployment default/web`, as messages name it."""
        return f"{self.kind} {self.key}"


def desired_pods(workload: Workload) -> int:
    """How many pods a workload wants at a time; those of a DaemonSet depend on the nodes."""
    spec = workload.spec
    if workload.kind in REPLICATED:
        return 1 if spec.replicas is None else spec.replicas
    if workload.kind != "Job" or spec.suspend:
        return 0
    parallelism = 1 if spec.parallelism is None else spec.parallelism
    if spec.completions is None:
        return 0 if workload.status.succeeded else parallelism
    return min(parallelism, max(0, spec.completions - workload.status.succeeded))


def counted_pods(workload: Workload) -> int:
    """How many pods its status counts: they exist, whether they are shown or not."""
    status = workload.status
    if workload.kind == "Job":
        return status.active if isinstance(status.active, int) else 0
    return status.current_number_scheduled if workload.kind == "DaemonSet" else status.replicas


def manifest_size(workload: Workload) -> int:
    """About how many bytes one of its pods has."""
    return len(msgspec.json.encode(workload.spec.template))


def owner_reference(owner: Workload) -> Manifest:
    """The reference that makes a workload the controller of an object."""
    return {
        "apiVersion": owner.api_version,
        "kind": owner.kind,
        "name": owner.name,
        "uid": owner.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def template_part(template: Manifest, key: str, where: str) -> Manifest:
    """A field of a template that must be a mapping, or be missing."""
    if not isinstance(template, dict):
        raise BadObject(where, f"must be a mapping, got {type(template).__name__}")
    value = template.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise BadObject(f"{where}.{key}", f"must be a mapping, got {type(value).__name__}")
    return value
