"""Which volume a claim gets, and how the two are bound to each other: functions of objects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction

import msgspec

from stromboli.api import names
from stromboli.api.resources.quantity import exact
from stromboli.api.schemas.storage.volume_validation import CLASS_ANNOTATION
from stromboli.api.selectors import matches_labels
from stromboli.api.types.meta import LabelSelector
from stromboli.embedded.kinds import object_metadata
from stromboli.embedded.kinds.builtin.persistent_volume_claim import requested_size
from stromboli.embedded.kinds.builtin.storage_class import PROVISIONER
from stromboli.embedded.kinds.kind import Content

PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"


def annotations_of(content: Content) -> Content:
    return content["metadata"].get("annotations") or {}


def class_of(content: Content) -> str:
    """The storage class of a volume or a claim; empty for none."""
    return str(annotations_of(content).get(CLASS_ANNOTATION, content["spec"].get("storageClassName") or ""))


def capacity_of(volume: Content) -> Fraction:
    return exact((volume["spec"].get("capacity") or {}).get("storage", "0"))


def is_for(volume: Content, claim: Content) -> bool:
    """Whether a volume is bound to this claim, or set aside for it."""
    reference, meta = volume["spec"].get("claimRef") or {}, claim["metadata"]
    named = (reference.get("namespace"), reference.get("name")) == (meta["namespace"], meta["name"])
    return named and reference.get("uid") in (None, "", meta["uid"])


def is_ours(volume: Content) -> bool:
    """Whether our own provisioner made a volume."""
    return bool(annotations_of(volume).get(PROVISIONED_BY) == PROVISIONER)


def goes_with_claim(volume: Content) -> bool:
    """Whether a volume is deleted when its claim is gone."""
    return bool(volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete")


def mismatch(volume: Content, claim: Content) -> str:
    """Why a claim cannot be bound to the volume that it names; empty if it can."""
    if requested_size(claim) > capacity_of(volume):
        return "requested PV is too small"
    if class_of(volume) != class_of(claim):
        return "storageClassName does not match"
    if _mode(volume) != _mode(claim):
        return "incompatible volumeMode"
    if not _has_modes(volume, claim):
        return "incompatible accessMode"
    return ""


def _mode(content: Content) -> str:
    return str(content["spec"].get("volumeMode") or "Filesystem")


def _has_modes(volume: Content, claim: Content) -> bool:
    return set(claim["spec"].get("accessModes") or ()) <= set(volume["spec"].get("accessModes") or ())


def matches(claim: Content, volumes: Iterable[Content]) -> Iterator[Content]:
    """Those of some volumes that serve a claim."""
    selector = claim["spec"].get("selector")
    wanted = msgspec.convert(selector, LabelSelector) if selector is not None else None
    for volume in volumes:
        labels = volume["metadata"].get("labels") or {}
        leaving = volume["metadata"].get("deletionTimestamp")
        if not leaving and not mismatch(volume, claim) and (wanted is None or matches_labels(wanted, labels)):
            yield volume


def smallest_first(volumes: Iterable[Content]) -> list[Content]:
    return sorted(volumes, key=lambda volume: (capacity_of(volume), volume["metadata"]["name"]))


# -- changes, in place


def reference_to(claim: Content) -> Content:
    meta = claim["metadata"]
    return {
        "kind": "PersistentVolumeClaim",
        "apiVersion": "v1",
        **{field: meta[field] for field in ("namespace", "name", "uid", "resourceVersion")},
    }


def bind_volume(volume: Content, claim: Content) -> None:
    """Bind a volume to a claim; one that was set aside for it by name gets the uid alone."""
    spec = volume["spec"]
    if not spec.get("claimRef"):
        spec["claimRef"] = reference_to(claim)
        annotate(volume, names.BOUND_BY_CONTROLLER, "yes")
    elif not spec["claimRef"].get("uid"):
        spec["claimRef"] = {**spec["claimRef"], "uid": claim["metadata"]["uid"]}
    set_phase(volume, "Bound")


def bind_claim(claim: Content, volume: Content) -> None:
    spec, name = claim["spec"], volume["metadata"]["name"]
    if not spec.get("volumeName"):
        spec["volumeName"] = name
        annotate(claim, names.BOUND_BY_CONTROLLER, "yes")
    annotate(claim, names.BIND_COMPLETED, "yes")
    status = claim.setdefault("status", {})
    if status.get("phase") != "Bound":
        status["phase"] = "Bound"
        status["accessModes"] = volume["spec"].get("accessModes") or []
        status["capacity"] = volume["spec"].get("capacity") or {}


def set_capacity(content: Content, size: str) -> None:
    """Let a claim or its volume have grown to a size."""
    holder = content["spec"] if content["kind"] == "PersistentVolume" else content.setdefault("status", {})
    holder["capacity"] = {**(holder.get("capacity") or {}), "storage": size}


def unbind_volume(volume: Content) -> None:
    """Give a volume back whose claim is bound to another; one that a user set aside stays so."""
    if annotations_of(volume).pop(names.BOUND_BY_CONTROLLER, None) is not None:
        del volume["spec"]["claimRef"]
    else:
        volume["spec"]["claimRef"].pop("uid", None)
    set_phase(volume, "Available")


def set_phase(content: Content, phase: str, message: str = "") -> None:
    status = content.setdefault("status", {})
    if status.get("phase") != phase:
        status["phase"] = phase
        status.pop("message", None)
        if message:
            status["message"] = message
        if content["kind"] == "PersistentVolume":
            status["lastPhaseTransitionTime"] = object_metadata.now()


def annotate(content: Content, key: str, value: str) -> None:
    content["metadata"]["annotations"] = {**annotations_of(content), key: value}


def annotate_provisioner(claim: Content, provisioner: str) -> None:
    for key in (names.STORAGE_PROVISIONER, names.OLD_STORAGE_PROVISIONER):
        annotate(claim, key, provisioner)
