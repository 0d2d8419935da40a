"""Objects of Kubernetes with just the fields that controllers read."""

from __future__ import annotations

from msgspec import field

from stromboli.api.types import controlled_pod, scheduling
from stromboli.api.types.meta import Int32, Int64, LabelSelector, Object, Record, ResourceList


class Pod(controlled_pod.Pod):
    """A pod of our schedulers and jobs: the only pods that Volcano's controllers keep."""


MIRROR = "kubernetes.io/config.mirror"
"""The annotation of pods that only show what a kubelet runs by itself."""


class PlacedPod(controlled_pod.Pod):
    """Any pod of the cluster, with its requests, its node and its phase alone."""

    is_mirror: bool = False

    def __post_init__(self) -> None:
        meta, spec = self.metadata, self.spec
        self.is_mirror = MIRROR in meta.annotations
        meta.labels, meta.annotations, meta.owner_references = {}, {}, ()
        self.spec = controlled_pod.PodSpec(containers=spec.containers, node_name=spec.node_name)
        self.status = controlled_pod.PodStatus(phase=self.status.phase)


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
