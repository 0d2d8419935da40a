"""The kinds that the scheduler reads, by name."""

from stromboli.api.types import (
    config_map,
    devices,
    native_group,
    node,
    node_shard,
    numa_topology,
    pod,
    scheduling,
    storage,
    workloads,
)
from stromboli.api.types.meta import Object

GROUPS: dict[str, tuple[type[Object], ...]] = {
    "": (
        pod.Pod,
        node.Node,
        scheduling.Namespace,
        scheduling.ResourceQuota,
        storage.PersistentVolume,
        storage.PersistentVolumeClaim,
        workloads.Service,
        workloads.ReplicationController,
        config_map.ConfigMap,
    ),
    "apps": (workloads.ReplicaSet, workloads.StatefulSet),
    "nodeinfo.volcano.sh": (numa_topology.Numatopology,),
    "policy": (scheduling.PodDisruptionBudget,),
    "resource.k8s.io": (
        devices.DeviceClass,
        devices.ResourceClaim,
        devices.ResourceClaimTemplate,
        devices.ResourceSlice,
    ),
    "scheduling.k8s.io": (scheduling.PriorityClass, native_group.NativePodGroup),
    "scheduling.volcano.sh": (scheduling.PodGroup, scheduling.Queue),
    "shard.volcano.sh": (node_shard.NodeShard,),
    "storage.k8s.io": (
        storage.StorageClass,
        node.CSINode,
        storage.CSIDriver,
        storage.CSIStorageCapacity,
        storage.VolumeAttachment,
    ),
    "topology.volcano.sh": (scheduling.HyperNode,),
}
CLUSTER_SCOPED: frozenset[type[Object]] = frozenset(
    {
        devices.DeviceClass,
        devices.ResourceSlice,
        node.Node,
        node.CSINode,
        scheduling.HyperNode,
        scheduling.Namespace,
        scheduling.PriorityClass,
        scheduling.Queue,
        node_shard.NodeShard,
        numa_topology.Numatopology,
        storage.CSIDriver,
        storage.PersistentVolume,
        storage.StorageClass,
        storage.VolumeAttachment,
    }
)

WORKLOADS: frozenset[tuple[str, str]] = frozenset(
    {
        ("", "ReplicationController"),
        *(("apps", kind) for kind in ("DaemonSet", "Deployment", "ReplicaSet", "StatefulSet")),
        *(("batch", kind) for kind in ("CronJob", "Job")),
        *(("batch.volcano.sh", kind) for kind in ("CronJob", "Job")),
        *(("flow.volcano.sh", kind) for kind in ("JobFlow", "JobTemplate")),
        ("bus.volcano.sh", "Command"),
    }
)
"""What controllers make pods of, or heed when they do, by group and kind; a scheduler reads few of them."""


def kind_name(kind: type[Object]) -> str:
    """The kind as an API server calls it; one class has another name, as Volcano has a kind of that name too."""
    return "PodGroup" if kind is native_group.NativePodGroup else kind.__name__


_BY_GROUP = {(group, kind_name(kind)): kind for group, kinds in GROUPS.items() for kind in kinds}
GROUP_OF = {name: group for group, name in _BY_GROUP} | {"PodGroup": "scheduling.volcano.sh"}
"""The API group of each kind by its name, for objects that state no apiVersion."""


def kind_of(api_version: str, kind: str) -> type[Object] | None:
    """The class of a kind, None for one that is not read; without apiVersion the kind's name decides."""
    group = api_version.rpartition("/")[0] if api_version else GROUP_OF.get(kind, "")
    return _BY_GROUP.get((group, kind))


def describe(obj: Object) -> str:
    """`Pod default/web`, as messages name an object."""
    return f"{type(obj).__name__} {obj.key}"
