"""The kinds that the scheduler reads, by name."""

from stromboli.api.types import native_group, node, node_shard, pod, scheduling, storage, workloads
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
    ),
    "apps": (workloads.ReplicaSet, workloads.StatefulSet),
    "policy": (scheduling.PodDisruptionBudget,),
    "scheduling.k8s.io": (scheduling.PriorityClass, native_group.NativePodGroup),
    "scheduling.volcano.sh": (scheduling.PodGroup, scheduling.Queue),
    "shard.volcano.sh": (node_shard.NodeShard,),
    "storage.k8s.io": (storage.StorageClass, node.CSINode),
    "topology.volcano.sh": (scheduling.HyperNode,),
}
SHARED_NAMES: dict[type[Object], str] = {native_group.NativePodGroup: scheduling.PodGroup.__name__}
"""Kinds whose name Volcano has, too; their class has another name."""
KINDS: dict[str, tuple[str, type[Object]]] = {
    kind.__name__: (group, kind)
    for group, kinds in GROUPS.items()
    for kind in kinds
    if kind not in SHARED_NAMES
}
BY_SHARED_NAME: dict[tuple[str, str], type[Object]] = {
    (group, SHARED_NAMES[kind]): kind
    for group, kinds in GROUPS.items()
    for kind in kinds
    if kind in SHARED_NAMES
}
CLUSTER_SCOPED: frozenset[type[Object]] = frozenset(
    {
        node.Node,
        node.CSINode,
        scheduling.HyperNode,
        scheduling.Namespace,
        scheduling.PriorityClass,
        scheduling.Queue,
        node_shard.NodeShard,
        storage.PersistentVolume,
        storage.StorageClass,
    }
)


def kind_of(api_version: str, kind: str) -> type[Object] | None:
    """The class of a kind, None for one that is not read; without apiVersion the kind's name decides."""
    group, known = KINDS.get(kind, ("", None))
    stated = api_version.rpartition("/")[0]
    if known is None or (api_version and stated != group):
        return BY_SHARED_NAME.get((stated, kind))
    return known


def kind_name(kind: type[Object]) -> str:
    """The kind as an API server calls it."""
    return SHARED_NAMES.get(kind, kind.__name__)


def describe(obj: Object) -> str:
    """`Pod default/web`, as messages name an object."""
    return f"{type(obj).__name__} {obj.key}"
