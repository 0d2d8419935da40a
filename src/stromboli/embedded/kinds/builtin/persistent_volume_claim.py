"""PersistentVolumeClaims, and the storage class that a new one gets."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from stromboli.api import names
from stromboli.api.resources.quantity import exact
from stromboli.api.resources.quota_charges import Charges
from stromboli.api.schemas.schema_problems import Problem
from stromboli.api.schemas.storage.volume_validation import (
    CLASS_ANNOTATION,
    claim_problems,
    claim_update_problems,
)
from stromboli.embedded.kinds.builtin.storage_class import STORAGE_CLASSES
from stromboli.embedded.kinds.kind import STATUS, Content, Kind, builtin
from stromboli.embedded.kinds.object_metadata import add_finalizer
from stromboli.embedded.kinds.status_errors import forbidden
from stromboli.embedded.kinds.strategy import StoredObjects, Strategy
from stromboli.embedded.kinds.volume_cells import access_modes, class_of, state_of
from stromboli.embedded.tables.age_text import age
from stromboli.embedded.tables.table_printer import UNSET, Cells, name_of, nested_map, printer

CLAIMS = "persistentvolumeclaims"
CLAIM_FINALIZER = "kubernetes.io/pvc-protection"
"""Keeps a claim while a pod on a node uses it."""


def _row(claim: Content, now: float) -> Cells:
    spec, status = nested_map(claim, "spec"), nested_map(claim, "status")
    bound = bool(spec.get("volumeName"))
    return [
        name_of(claim),
        state_of(claim),
        spec.get("volumeName") or "",
        nested_map(status, "capacity").get("storage", "") if bound else "",
        access_modes(status.get("accessModes")) if bound else "",
        class_of(claim),
        spec.get("volumeAttributesClassName") or UNSET,
        age(claim, now),
        spec.get("volumeMode") or UNSET,
    ]


class PersistentVolumeClaimStrategy(Strategy):
    counted_by_name = charged_by_content = True
    printer = printer(
        "Name | Status | Volume | Capacity | Access Modes | StorageClass | VolumeAttributesClass | Age | VolumeMode+",
        _row,
    )

    def problems(self, content: Content) -> Iterable[Problem]:
        return claim_problems(content)

    def update_problems(self, old: Content, new: Content) -> Iterable[Problem]:
        return claim_update_problems(old, new)

    def initialise(self, content: Content) -> None:
        content["status"] = {"phase": "Pending"}

    def admit(self, store: StoredObjects, kind: Kind, namespace: str, content: Content) -> None:
        """The DefaultStorageClass and StorageObjectInUseProtection admission plugins."""
        add_finalizer(content, CLAIM_FINALIZER)
        if not has_class(content) and (name := default_class(store)):
            content["spec"]["storageClassName"] = name

    def check_update(self, store: StoredObjects, kind: Kind, content: Content, old: Content) -> None:
        """The PersistentVolumeClaimResize admission plugin: claims grow if their class allows it."""
        if requested_size(content) <= requested_size(old):
            return
        annotated = (old["metadata"].get("annotations") or {}).get(CLASS_ANNOTATION)
        name = annotated or (old.get("spec") or {}).get("storageClassName") or ""
        record = store.get(STORAGE_CLASSES, "", name)
        if record is None or record.field("allowVolumeExpansion") != "true":
            why = (
                "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must"
                " support resize"
            )
            raise forbidden(kind, str(old["metadata"]["name"]), why)

    def charges(self, content: Content) -> Charges:
        return {"requests.storage": requested_size(content)}


def requested_size(claim: Content) -> Fraction:
    requests = ((claim.get("spec") or {}).get("resources") or {}).get("requests") or {}
    return exact(requests.get("storage", "0"))


def has_class(claim: Content) -> bool:
    """Whether a claim says which class it wants; an empty one says that it wants none."""
    annotated = CLASS_ANNOTATION in (claim["metadata"].get("annotations") or {})
    return annotated or (claim.get("spec") or {}).get("storageClassName") is not None


def default_class(store: StoredObjects) -> str:
    """The newest class that is marked as default, by name if several are as new; empty if there is none."""
    defaults = []
    for record in store.list(STORAGE_CLASSES):
        meta = record.object()["metadata"]
        annotations = meta.get("annotations") or {}
        if "true" in (
            annotations.get(names.DEFAULT_STORAGE_CLASS),
            annotations.get(names.OLD_DEFAULT_STORAGE_CLASS),
        ):
            defaults.append((meta.get("creationTimestamp", ""), record.key.name))
    newest = max((created for created, _ in defaults), default="")
    return min((name for created, name in defaults if created == newest), default="")


KIND = builtin(
    "",
    "persistentvolumeclaims",
    "PersistentVolumeClaim",
    "pvc",
    STATUS,
    strategy=PersistentVolumeClaimStrategy(),
)
