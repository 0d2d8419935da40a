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
NAMED_ALIKE: dict[type[Object], str] = {native_group.NativePodGroup: scheduling.PodGroup.__name__}
"""Kinds that share their name with one of Volcano's, with that name."""
KINDS: dict[str, tuple[str, type[Object]]] = {
    kind.__name__: (group, kind)
    for group, kinds in GROUPS.items()
    for kind in kinds
    if kind not in NAMED_ALIKE
}
ALIKE: dict[tuple[str, str], type[Object]] = {
    (group, NAMED_ALIKE[kind]): kind
    for group, kinds in GROUPS.items()
    for kind in kinds
    if kind in NAMED_ALIKE
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
    group, found = KINDS.get(kind, ("", None))
    asked = api_version.rpartition("/")[0]
    if found is None or (api_version and asked != group):
        return ALIKE.get((asked, kind))
    return found


def title_of(kind: type[Object]) -> str:
    """The kind as an API server calls it."""
    return NAMED_ALIKE.get(kind, kind.__name__)


def describe(thing: Object) -> str:
    """`Pod default/web`, as messages name an object."""
    return f"{type(thing).__name__} {thing.key}"
