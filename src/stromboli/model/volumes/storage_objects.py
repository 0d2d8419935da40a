"""The kinds of objects that determine where pods can have volumes, and their validation."""

from __future__ import annotations

from stromboli.api.resources.resource_lists import check_amounts
from stromboli.api.types.meta import Object
from stromboli.api.types.node import CSINode
from stromboli.api.types.storage import (
    CSIDriver,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)

STORAGE_KINDS = (
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    CSINode,
    CSIDriver,
    CSIStorageCapacity,
    VolumeAttachment,
)


def check_storage(obj: Object) -> None:
    """Refuse an object of storage with invalid or negative amounts; raises `BadObject`."""
    match obj:
        case PersistentVolume():
            check_amounts(obj.spec.capacity, "spec.capacity")
        case PersistentVolumeClaim():
            check_amounts(obj.spec.resources.requests, "spec.resources.requests")
        case CSIStorageCapacity():
            stated = {"capacity": obj.capacity, "maximumVolumeSize": obj.maximum_volume_size}
            check_amounts({field: amount for field, amount in stated.items() if amount is not None}, "")
        case _:
            pass
