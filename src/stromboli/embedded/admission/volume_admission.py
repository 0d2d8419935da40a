"""Defaults of new volumes and claims: the storage class, and finalizers that keep what is in use."""

from __future__ import annotations

from fractions import Fraction

from stromboli.api import names
from stromboli.api.resources.quantity import exact
from stromboli.api.schemas.storage.volume_validation import CLASS_ANNOTATION
from stromboli.embedded.kinds.kind import Content, Kind
from stromboli.embedded.kinds.object_metadata import add_finalizer
from stromboli.embedded.kinds.status_errors import forbidden
from stromboli.embedded.store.object_store import Store

VOLUMES, CLAIMS = "persistentvolumes", "persistentvolumeclaims"
STORAGE_CLASSES = "storageclasses.storage.k8s.io"
PROVISIONER = "stromboli.sh/folder"
"""Makes volumes that are folders below the data folder."""
VOLUME_FINALIZER = "kubernetes.io/pv-protection"
"""Keeps a volume while a claim is bound to it."""
CLAIM_FINALIZER = "kubernetes.io/pvc-protection"
"""Keeps a claim while a pod on a node uses it."""
DEFAULT_CLASS = names.DEFAULT_STORAGE_CLASS


def set_claim_defaults(store: Store, _: Kind, __: str, claim: Content) -> None:
    """The DefaultStorageClass and StorageObjectInUseProtection admission plugins."""
    add_finalizer(claim, CLAIM_FINALIZER)
    if not has_class(claim) and (name := default_class(store)):
        claim["spec"]["storageClassName"] = name


def check_growth(store: Store, kind: Kind, claim: Content, old: Content) -> None:
    """The PersistentVolumeClaimResize admission plugin: claims grow if their class allows it."""
    if requested_size(claim) <= requested_size(old):
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


def requested_size(claim: Content) -> Fraction:
    requests = ((claim.get("spec") or {}).get("resources") or {}).get("requests") or {}
    return exact(requests.get("storage", "0"))


def set_volume_defaults(_: Store, __: Kind, ___: str, volume: Content) -> None:
    """The StorageObjectInUseProtection admission plugin."""
    add_finalizer(volume, VOLUME_FINALIZER)


def has_class(claim: Content) -> bool:
    """Whether a claim says which class it wants; an empty one says that it wants none."""
    annotated = CLASS_ANNOTATION in (claim["metadata"].get("annotations") or {})
    return annotated or (claim.get("spec") or {}).get("storageClassName") is not None


def default_class(store: Store) -> str:
    """The newest class that is marked as default, by name if several are as new; empty if there is none."""
    defaults = []
    for record in store.list(STORAGE_CLASSES):
        meta = record.object()["metadata"]
        annotations = meta.get("annotations") or {}
        if "true" in (annotations.get(DEFAULT_CLASS), annotations.get(names.OLD_DEFAULT_STORAGE_CLASS)):
            defaults.append((meta.get("creationTimestamp", ""), record.key.name))
    newest = max((created for created, _ in defaults), default="")
    return min((name for created, name in defaults if created == newest), default="")
