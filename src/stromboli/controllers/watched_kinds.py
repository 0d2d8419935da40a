"""Objects of Kubernetes with just the fields that controllers read."""

from __future__ import annotations

from msgspec import field

from stromboli.api.types import scheduling
from stromboli.api.types.meta import Int32, Int64, LabelSelector, Object, Record, ResourceList
from stromboli.api.types.pod import ContainerResources, PodResources, SchedulingGroup
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


MIRROR = "kubernetes.io/config.mirror"
"""An annotation of pods that only show what a kubelet runs by itself."""


class PlacedPodSpec(Record):
    node_name: str = ""
    containers: tuple[ContainerResources, ...] = ()


class PlacedPodStatus(Record):
    phase: str = ""


class PlacedPod(Object):
    """Any pod of the cluster, as little of it as tells how much of its node it requests."""

    spec: PlacedPodSpec = field(default_factory=PlacedPodSpec)
    status: PlacedPodStatus = field(default_factory=PlacedPodStatus)
    is_mirror: bool = False

    def __post_init__(self) -> None:
        """Keep no labels and annotations, since these are the pods of everybody."""
        meta = self.metadata
        self.is_mirror = MIRROR in meta.annotations
        meta.labels, meta.annotations, meta.owner_references = {}, {}, ()


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


class HyperNodeStatus(Record):
    node_count: Int64 | None = None
    """None until it was counted."""


class HyperNode(scheduling.HyperNode):
    """A HyperNode with its status, which schedulers do not read."""

    status: HyperNodeStatus = field(default_factory=HyperNodeStatus)
