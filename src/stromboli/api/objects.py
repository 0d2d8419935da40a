"""The kinds that the scheduler reads, by name."""

from stromboli.api import node, pod, scheduling, sharding, storage, workloads
from stromboli.api.meta import Object

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
    "scheduling.k8s.io": (scheduling.PriorityClass,),
    "scheduling.volcano.sh": (scheduling.PodGroup, scheduling.Queue),
    "shard.volcano.sh": (sharding.NodeShard,),
    "storage.k8s.io": (storage.StorageClass, node.CSINode),
    "topology.volcano.sh": (scheduling.HyperNode,),
}
KINDS: dict[str, tuple[str, type[Object]]] = {
    kind.__name__: (group, kind) for group, kinds in GROUPS.items() for kind in kinds
}
CLUSTER_SCOPED: frozenset[type[Object]] = frozenset(
    {
        node.Node,
        node.CSINode,
        scheduling.HyperNode,
        scheduling.Namespace,
        scheduling.PriorityClass,
        scheduling.Queue,
        sharding.NodeShard,
        storage.PersistentVolume,
        storage.StorageClass,
    }
)


def kind_of(api_version: str, kind: str) -> type[Object] | None:
    """The class of a kind, None for one that is not read; without apiVersion the kind's name decides."""
    group, found = KINDS.get(kind, ("", None))
    if found is None or (api_version and api_version.rpartition("/")[0] != group):
        return None
    return found


def describe(thing: Object) -> str:
    """`Pod default/web`, as messages name an object."""
    return f"{type(thing).__name__} {thing.key}"
