"""Objects of Kubernetes with just the fields that controllers read."""

from __future__ import annotations

from msgspec import field

from stromboli.api.types.meta import Int32, LabelSelector, Object, Record, ResourceList
from stromboli.api.types.pod import PodResources, SchedulingGroup
from stromboli.api.types.volcano_job import JobPod, JobPodStatus


class PodSpec(PodResources):
    scheduler_name: str = ""
    node_name: str = ""
    priority_class_name: str = ""
    scheduling_group: SchedulingGroup | None = None


class PodStatus(JobPodStatus):
    pod_ip: str = field(default="", name="podIP")


class Pod(JobPod):
    """A pod as all controllers read it, so that pods are watched once."""

    spec: PodSpec = field(default_factory=PodSpec)
    status: PodStatus = field(default_factory=PodStatus)


class WorkloadSpec(Record):
    replicas: Int32 = 1
    selector: LabelSelector | None = None


class WorkloadStatus(Record):
    update_revision: str = ""


class ReplicaSet(Object):
    spec: WorkloadSpec = field(default_factory=WorkloadSpec)


class StatefulSet(Object):
    spec: WorkloadSpec = field(default_factory=WorkloadSpec)
    status: WorkloadStatus = field(default_factory=WorkloadStatus)


class NodeStatus(Record):
    capacity: ResourceList = field(default_factory=dict)


class Node(Object):
    """A node: its labels, and how large it is."""

    status: NodeStatus = field(default_factory=NodeStatus)


class ConfigMap(Object):
    """The configuration of a controller."""

    data: dict[str, str] = field(default_factory=dict)
