"""Objects that plugins look up, kept as they are; no move changes them."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, get_args, get_type_hints

from stromboli.api.types.config_map import ConfigMap
from stromboli.api.types.devices import DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice
from stromboli.api.types.meta import Object
from stromboli.api.types.node import CSINode
from stromboli.api.types.node_shard import NodeShard
from stromboli.api.types.numa_topology import Numatopology
from stromboli.api.types.scheduling import (
    HyperNode,
    Namespace,
    PodDisruptionBudget,
    PriorityClass,
    ResourceQuota,
)
from stromboli.api.types.storage import (
    CSIDriver,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from stromboli.api.types.workloads import ReplicaSet, ReplicationController, Service, StatefulSet
from stromboli.model.feed import Feed

_NO_TABLES = ("controllers", "feed")


@dataclass(slots=True)
class LookupObjects:
    """The objects of these kinds as the API server has them; never change them."""

    namespaces: dict[str, Namespace] = field(default_factory=dict)
    """Namespaces by name."""
    priority_classes: dict[str, PriorityClass] = field(default_factory=dict)
    """PriorityClasses by name."""
    quotas: dict[str, ResourceQuota] = field(default_factory=dict)
    """ResourceQuotas by `namespace/name`."""
    budgets: dict[str, PodDisruptionBudget] = field(default_factory=dict)
    """PodDisruptionBudgets by `namespace/name`."""
    hyper_nodes: dict[str, HyperNode] = field(default_factory=dict)
    """HyperNodes by name."""
    node_shards: dict[str, NodeShard] = field(default_factory=dict)
    """NodeShards by name."""
    numa_topologies: dict[str, Numatopology] = field(default_factory=dict)
    """Numatopologies by the name of their node."""
    volumes: dict[str, PersistentVolume] = field(default_factory=dict)
    """PersistentVolumes by name."""
    claims: dict[str, PersistentVolumeClaim] = field(default_factory=dict)
    """PersistentVolumeClaims by `namespace/name`."""
    storage_classes: dict[str, StorageClass] = field(default_factory=dict)
    """StorageClasses by name."""
    storage_nodes: dict[str, CSINode] = field(default_factory=dict)
    """CSINodes by name: how many volumes a node can attach."""
    device_classes: dict[str, DeviceClass] = field(default_factory=dict)
    """DeviceClasses by name."""
    resource_slices: dict[str, ResourceSlice] = field(default_factory=dict)
    """ResourceSlices by name."""
    resource_claims: dict[str, ResourceClaim] = field(default_factory=dict)
    """ResourceClaims by `namespace/name`."""
    resource_claim_templates: dict[str, ResourceClaimTemplate] = field(default_factory=dict)
    """ResourceClaimTemplates by `namespace/name`."""
    drivers: dict[str, CSIDriver] = field(default_factory=dict)
    """CSIDrivers by name."""
    storage_capacities: dict[str, CSIStorageCapacity] = field(default_factory=dict)
    """CSIStorageCapacities by `namespace/name`."""
    attachments: dict[str, VolumeAttachment] = field(default_factory=dict)
    """VolumeAttachments by name."""
    config_maps: dict[str, ConfigMap] = field(default_factory=dict)
    """ConfigMaps by `namespace/name`: on a cluster the one that configures shared cards."""
    services: dict[str, Service] = field(default_factory=dict)
    """Services by `namespace/name`."""
    controllers: dict[tuple[str, str], ReplicaSet | StatefulSet | ReplicationController] = field(
        default_factory=dict
    )
    """ReplicaSets, StatefulSets and ReplicationControllers by kind and `namespace/name`."""
    feed: Feed = field(default_factory=Feed)
    """Where changes are noted; that of the cluster, once they belong to one."""

    @property
    def version(self) -> int:
        """Increases with every change to any of them."""
        return self.feed.objects.generation

    def __iter__(self) -> Iterator[Object]:
        for table in (*TABLES.values(), "controllers"):
            yield from getattr(self, table).values()

    def put(self, obj: Object) -> None:
        self.feed.note_object(type(obj).__name__, obj.key)
        table, key = self._entry(obj)
        table[key] = obj

    def get(self, obj: Object) -> Object | None:
        """The object of its kind and name, if there is one."""
        table, key = self._entry(obj)
        known: Object | None = table.get(key)
        return known

    def drop(self, obj: Object) -> None:
        self.feed.note_object(type(obj).__name__, obj.key)
        table, key = self._entry(obj)
        table.pop(key, None)

    def _entry(self, obj: Object) -> tuple[dict[Any, Any], Any]:
        """The table and the key of an object."""
        if isinstance(obj, ReplicaSet | StatefulSet | ReplicationController):
            return self.controllers, (type(obj).__name__, obj.key)
        return getattr(self, TABLES[type(obj)]), obj.key


TABLES: dict[type[Object], str] = {
    get_args(hint)[1]: name for name, hint in get_type_hints(LookupObjects).items() if name not in _NO_TABLES
}
"""The field for the objects of each kind, by the types of the fields."""
