"""Objects that plugins look things up in, kept as they are: no move touches them."""

from dataclasses import dataclass, field

from stromboli.api.types.meta import Object
from stromboli.api.types.node import CSINode
from stromboli.api.types.node_shard import NodeShard
from stromboli.api.types.scheduling import (
    HyperNode,
    Namespace,
    PodDisruptionBudget,
    PriorityClass,
    ResourceQuota,
)
from stromboli.api.types.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from stromboli.api.types.workloads import ReplicaSet, ReplicationController, Service, StatefulSet


@dataclass(slots=True)
class Objects:
    """By `namespace/name`, or by name alone where there is no namespace."""

    namespaces: dict[str, Namespace] = field(default_factory=dict)
    priority_classes: dict[str, PriorityClass] = field(default_factory=dict)
    quotas: dict[str, ResourceQuota] = field(default_factory=dict)
    budgets: dict[str, PodDisruptionBudget] = field(default_factory=dict)
    hyper_nodes: dict[str, HyperNode] = field(default_factory=dict)
    node_shards: dict[str, NodeShard] = field(default_factory=dict)
    volumes: dict[str, PersistentVolume] = field(default_factory=dict)
    claims: dict[str, PersistentVolumeClaim] = field(default_factory=dict)
    storage_classes: dict[str, StorageClass] = field(default_factory=dict)
    storage_nodes: dict[str, CSINode] = field(default_factory=dict)
    services: dict[str, Service] = field(default_factory=dict)
    controllers: dict[tuple[str, str], ReplicaSet | StatefulSet | ReplicationController] = field(
        default_factory=dict
    )
    """By kind and `namespace/name`."""
    version: int = 0
    """Grows with every change to any of them."""

    def put(self, thing: Object) -> None:
        self.version += 1
        if isinstance(thing, ReplicaSet | StatefulSet | ReplicationController):
            self.controllers[type(thing).__name__, thing.key] = thing
        else:
            self._shelf(thing)[thing.key] = thing

    def drop(self, thing: Object) -> None:
        self.version += 1
        if isinstance(thing, ReplicaSet | StatefulSet | ReplicationController):
            self.controllers.pop((type(thing).__name__, thing.key), None)
        else:
            self._shelf(thing).pop(thing.key, None)

    def _shelf(self, thing: Object) -> dict[str, Object]:
        shelf: dict[str, Object] = getattr(self, SHELVES[type(thing)])
        return shelf


SHELVES: dict[type[Object], str] = {
    Namespace: "namespaces",
    PriorityClass: "priority_classes",
    ResourceQuota: "quotas",
    PodDisruptionBudget: "budgets",
    HyperNode: "hyper_nodes",
    NodeShard: "node_shards",
    PersistentVolume: "volumes",
    PersistentVolumeClaim: "claims",
    StorageClass: "storage_classes",
    CSINode: "storage_nodes",
    Service: "services",
}
