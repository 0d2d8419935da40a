"""Rows of volumes, claims and storage classes."""

from __future__ import annotations

from stromboli.embedded.tables.age_text import age
from stromboli.embedded.tables.table_printer import UNSET, Cells, Content, name_of, nested_map, printer

DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
OLD_CLASS = "volume.beta.kubernetes.io/storage-class"
_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def _modes(modes: list[str] | None) -> str:
    given = set(modes or ())
    return ",".join(short for mode, short in _MODES.items() if mode in given)


def _class(thing: Content) -> str:
    old = nested_map(thing, "metadata", "annotations").get(OLD_CLASS)
    return old or nested_map(thing, "spec").get("storageClassName") or ""


def _state(thing: Content) -> str:
    return (
        "Terminating"
        if nested_map(thing, "metadata").get("deletionTimestamp")
        else nested_map(thing, "status").get("phase", "")
    )


def _volume(thing: Content, now: float) -> Cells:
    spec, status, claim = (
        nested_map(thing, "spec"),
        nested_map(thing, "status"),
        nested_map(thing, "spec", "claimRef"),
    )
    return [
        name_of(thing),
        nested_map(spec, "capacity").get("storage") or "",
        _modes(spec.get("accessModes")),
        spec.get("persistentVolumeReclaimPolicy") or "Retain",
        _state(thing),
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else "",
        _class(thing),
        spec.get("volumeAttributesClassName") or UNSET,
        status.get("reason") or "",
        age(thing, now),
        spec.get("volumeMode") or UNSET,
    ]


def _claim(thing: Content, now: float) -> Cells:
    spec, status = nested_map(thing, "spec"), nested_map(thing, "status")
    bound = bool(spec.get("volumeName"))
    return [
        name_of(thing),
        _state(thing),
        spec.get("volumeName") or "",
        nested_map(status, "capacity").get("storage", "") if bound else "",
        _modes(status.get("accessModes")) if bound else "",
        _class(thing),
        spec.get("volumeAttributesClassName") or UNSET,
        age(thing, now),
        spec.get("volumeMode") or UNSET,
    ]


def _storage_class(thing: Content, now: float) -> Cells:
    marked = nested_map(thing, "metadata", "annotations").get(DEFAULT_CLASS) == "true"
    return [
        f"{name_of(thing)} (default)" if marked else name_of(thing),
        thing.get("provisioner") or "",
        thing.get("reclaimPolicy") or "Delete",
        thing.get("volumeBindingMode") or UNSET,
        bool(thing.get("allowVolumeExpansion")),
        age(thing, now),
    ]


VOLUMES = printer(
    "Name | Capacity | Access Modes | Reclaim Policy | Status | Claim | StorageClass | VolumeAttributesClass"
    " | Reason | Age | VolumeMode+",
    _volume,
)
CLAIMS = printer(
    "Name | Status | Volume | Capacity | Access Modes | StorageClass | VolumeAttributesClass | Age | VolumeMode+",
    _claim,
)
STORAGE_CLASSES = printer(
    "Name | Provisioner | ReclaimPolicy | VolumeBindingMode | AllowVolumeExpansion | Age", _storage_class
)
