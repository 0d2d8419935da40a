"""Rows of volumes, claims, storage classes and storage drivers."""

from __future__ import annotations

from stromboli.embedded.tables.age_text import age
from stromboli.embedded.tables.cluster_rows import CREATED_AT
from stromboli.embedded.tables.table_printer import NONE, UNSET, Cells, Content, name_of, nested_map, printer

DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
OLD_CLASS = "volume.beta.kubernetes.io/storage-class"
_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def _modes(modes: list[str] | None) -> str:
    present = set(modes or ())
    return ",".join(short for mode, short in _MODES.items() if mode in present)


def _class(content: Content) -> str:
    old = nested_map(content, "metadata", "annotations").get(OLD_CLASS)
    return old or nested_map(content, "spec").get("storageClassName") or ""


def _state(content: Content) -> str:
    if nested_map(content, "metadata").get("deletionTimestamp"):
        return "Terminating"
    return str(nested_map(content, "status").get("phase", ""))


def _volume(volume: Content, now: float) -> Cells:
    spec, claim = nested_map(volume, "spec"), nested_map(volume, "spec", "claimRef")
    return [
        name_of(volume),
        nested_map(spec, "capacity").get("storage") or "",
        _modes(spec.get("accessModes")),
        spec.get("persistentVolumeReclaimPolicy") or "Retain",
        _state(volume),
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else "",
        _class(volume),
        spec.get("volumeAttributesClassName") or UNSET,
        nested_map(volume, "status").get("reason") or "",
        age(volume, now),
        spec.get("volumeMode") or UNSET,
    ]


def _claim(claim: Content, now: float) -> Cells:
    spec, status = nested_map(claim, "spec"), nested_map(claim, "status")
    bound = bool(spec.get("volumeName"))
    return [
        name_of(claim),
        _state(claim),
        spec.get("volumeName") or "",
        nested_map(status, "capacity").get("storage", "") if bound else "",
        _modes(status.get("accessModes")) if bound else "",
        _class(claim),
        spec.get("volumeAttributesClassName") or UNSET,
        age(claim, now),
        spec.get("volumeMode") or UNSET,
    ]


def _storage_class(storage_class: Content, now: float) -> Cells:
    marked = nested_map(storage_class, "metadata", "annotations").get(DEFAULT_CLASS) == "true"
    return [
        f"{name_of(storage_class)} (default)" if marked else name_of(storage_class),
        storage_class.get("provisioner") or "",
        storage_class.get("reclaimPolicy") or "Delete",
        storage_class.get("volumeBindingMode") or UNSET,
        bool(storage_class.get("allowVolumeExpansion")),
        age(storage_class, now),
    ]


def _driver(driver: Content, now: float) -> Cells:
    spec = nested_map(driver, "spec")
    requests = spec.get("tokenRequests")
    audiences = [str(request.get("audience", "")) for request in requests or ()]
    return [
        name_of(driver),
        spec.get("attachRequired") is not False,
        bool(spec.get("podInfoOnMount")),
        bool(spec.get("storageCapacity")),
        UNSET if requests is None else ",".join(audiences),
        bool(spec.get("requiresRepublish")),
        ",".join(spec.get("volumeLifecycleModes") or ()) or NONE,
        age(driver, now),
    ]


def _attachment(attachment: Content, now: float) -> Cells:
    spec = nested_map(attachment, "spec")
    return [
        name_of(attachment),
        spec.get("attacher") or "",
        nested_map(spec, "source").get("persistentVolumeName") or "",
        spec.get("nodeName") or "",
        bool(nested_map(attachment, "status").get("attached")),
        age(attachment, now),
    ]


PRINTERS = {
    "persistentvolumes": printer(
        "Name | Capacity | Access Modes | Reclaim Policy | Status | Claim | StorageClass | VolumeAttributesClass"
        " | Reason | Age | VolumeMode+",
        _volume,
    ),
    "persistentvolumeclaims": printer(
        "Name | Status | Volume | Capacity | Access Modes | StorageClass | VolumeAttributesClass | Age"
        " | VolumeMode+",
        _claim,
    ),
    "storageclasses.storage.k8s.io": printer(
        "Name | Provisioner | ReclaimPolicy | VolumeBindingMode | AllowVolumeExpansion | Age", _storage_class
    ),
    "csidrivers.storage.k8s.io": printer(
        "Name | AttachRequired | PodInfoOnMount | StorageCapacity | TokenRequests | RequiresRepublish | Modes | Age",
        _driver,
    ),
    "csistoragecapacities.storage.k8s.io": CREATED_AT,
    "volumeattachments.storage.k8s.io": printer("Name | Attacher | PV | Node | Attached | Age", _attachment),
}
