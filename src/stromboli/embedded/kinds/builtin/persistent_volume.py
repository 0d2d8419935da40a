"""PersistentVolumes."""

from __future__ import annotations

from stromboli.api.schemas.storage.volume_validation import volume_problems, volume_update_problems
from stromboli.embedded.kinds.kind import CLUSTER, STATUS, Content, Kind, builtin
from stromboli.embedded.kinds.object_metadata import add_finalizer
from stromboli.embedded.kinds.strategy import StoredObjects, Strategy
from stromboli.embedded.kinds.volume_cells import access_modes, class_of, state_of
from stromboli.embedded.tables.age_text import age
from stromboli.embedded.tables.table_printer import UNSET, Cells, name_of, nested_map, printer

VOLUMES = "persistentvolumes"
VOLUME_FINALIZER = "kubernetes.io/pv-protection"
"""Keeps a volume while a claim is bound to it."""


def _row(volume: Content, now: float) -> Cells:
    spec, claim = nested_map(volume, "spec"), nested_map(volume, "spec", "claimRef")
    return [
        name_of(volume),
        nested_map(spec, "capacity").get("storage") or "",
        access_modes(spec.get("accessModes")),
        spec.get("persistentVolumeReclaimPolicy") or "Retain",
        state_of(volume),
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else "",
        class_of(volume),
        spec.get("volumeAttributesClassName") or UNSET,
        nested_map(volume, "status").get("reason") or "",
        age(volume, now),
        spec.get("volumeMode") or UNSET,
    ]


_PRINTER = printer(
    "Name | Capacity | Access Modes | Reclaim Policy | Status | Claim | StorageClass | VolumeAttributesClass"
    " | Reason | Age | VolumeMode+",
    _row,
)


def _initialise(content: Content) -> None:
    content["status"] = {"phase": "Pending"}


def _admit(store: StoredObjects, kind: Kind, namespace: str, content: Content) -> None:
    """The StorageObjectInUseProtection admission plugin."""
    add_finalizer(content, VOLUME_FINALIZER)


KIND = builtin(
    "",
    "persistentvolumes",
    "PersistentVolume",
    "pv",
    STATUS,
    strategy=Strategy(
        printer=_PRINTER,
        problems=volume_problems,
        update_problems=volume_update_problems,
        initialise=_initialise,
        admit=_admit,
    ),
    **CLUSTER,
)
