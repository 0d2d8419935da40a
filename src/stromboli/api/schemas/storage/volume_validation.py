"""PersistentVolumes and PersistentVolumeClaims."""

from __future__ import annotations

import copy
import posixpath
from collections.abc import Iterator
from typing import Any

from stromboli.api.name_rules import dns_subdomain_errors
from stromboli.api.resources.quantity import QuantityError, exact
from stromboli.api.schemas.devices.device_fields import driver_problems
from stromboli.api.schemas.pods.placement_validation import node_selector_problems
from stromboli.api.schemas.schema_problems import Problem, forbidden, invalid, required, unsupported

Content = dict[str, Any]

SOURCES = (
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "flocker",
    "nfs",
    "rbd",
    "quobyte",
    "cephfs",
    "iscsi",
    "cinder",
    "fc",
    "flexVolume",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "scaleIO",
    "local",
    "storageos",
    "csi",
)
"""The fields of a volume of which it has exactly one, in the order in which Kubernetes looks at them."""
CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
"""The class of a claim, as it was named before there was a field."""
_ONCE = "ReadWriteOncePod"


def volume_problems(volume: Content) -> Iterator[Problem]:
    spec = volume["spec"]
    yield from _mode_problems(spec.get("accessModes") or [], "spec.accessModes")
    yield from _capacity_problems(spec.get("capacity") or {})
    if (affinity := spec.get("nodeAffinity")) is not None:
        if (selector := affinity.get("required")) is None:
            yield required("spec.nodeAffinity.required", "must specify required node constraints")
        else:
            yield from node_selector_problems(selector, "spec.nodeAffinity.required")
    yield from _source_problems(spec)
    yield from _class_name_problems(spec, "storageClassName")
    attributes = spec.get("volumeAttributesClassName")
    if attributes == "":
        yield required("spec.volumeAttributesClassName", "an empty string is disallowed")
    elif attributes is not None:
        yield from _class_name_problems(spec, "volumeAttributesClassName")
    if attributes is not None and "csi" not in spec:
        yield required("spec.csi", "has to be specified when using volumeAttributesClassName")


def _mode_problems(modes: list[str], path: str, detail: str = "") -> Iterator[Problem]:
    if not modes:
        yield required(path, detail)
    if _ONCE in modes and set(modes) != {_ONCE}:
        yield forbidden(path, f"may not use {_ONCE} with other access modes")


def _capacity_problems(capacity: Content) -> Iterator[Problem]:
    path = "spec.capacity"
    if not capacity:
        yield required(path)
    if set(capacity) != {"storage"}:
        yield unsupported(path, capacity, ("storage",))
    for name, amount in capacity.items():
        yield from _amount_problems(amount, f"{path}[{name}]")


def _amount_problems(amount: str, path: str) -> Iterator[Problem]:
    if exact(amount) <= 0:
        yield invalid(path, amount, "must be greater than zero")


def _source_problems(spec: Content) -> Iterator[Problem]:
    chosen = [source for source in SOURCES if spec.get(source) is not None]
    if not chosen:
        yield required("spec", "must specify a volume type")
        return
    for source in chosen[1:]:
        yield forbidden(f"spec.{source}", "may not specify more than 1 volume type")
    source, content = chosen[0], spec[chosen[0]]
    recycled = spec.get("persistentVolumeReclaimPolicy") == "Recycle"
    if recycled and source == "hostPath" and posixpath.normpath(content["path"]) == "/":
        detail = "may not be 'recycle' for a hostPath mount of '/'"
        yield forbidden("spec.persistentVolumeReclaimPolicy", detail)
    if source in ("hostPath", "local"):
        yield from _path_problems(content["path"], f"spec.{source}.path")
    if source == "local" and spec.get("nodeAffinity") is None:
        yield required("spec.nodeAffinity", "Local volume requires node affinity")
    if source == "csi":
        yield from driver_problems(content["driver"], "spec.csi.driver")
        if not content["volumeHandle"]:
            yield required("spec.csi.volumeHandle")


def _path_problems(path: str, field: str) -> Iterator[Problem]:
    if not path:
        yield required(field)
    if ".." in path.split("/"):
        yield invalid(field, path, "must not contain '..'")


def _class_name_problems(spec: Content, field: str) -> Iterator[Problem]:
    for error in dns_subdomain_errors(spec[field]) if spec.get(field) else ():
        yield invalid(f"spec.{field}", spec[field], error)


def volume_update_problems(old: Content, new: Content) -> Iterator[Problem]:
    before, after = old.get("spec") or {}, new.get("spec") or {}
    if any(_source(before, source) != _source(after, source, before) for source in SOURCES):
        path = "spec.persistentvolumesource"
        yield forbidden(path, f"{path} is immutable after creation")
    if before.get("volumeMode") != after.get("volumeMode"):
        yield invalid("volumeMode", after.get("volumeMode"), "field is immutable")
    if before.get("nodeAffinity") not in (None, after.get("nodeAffinity")):
        detail = "field is immutable, except for updating from beta label to GA"
        yield invalid("nodeAffinity", after.get("nodeAffinity"), detail)
    attributes = "volumeAttributesClassName"
    if before.get(attributes) is not None and after.get(attributes) is None:
        yield forbidden(f"spec.{attributes}", "update from non-nil value to nil is forbidden")


def _source(spec: Content, source: str, before: Content | None = None) -> Any:
    """A source of a volume; the secret for expanding it may be added later."""
    content = spec.get(source)
    expand = "controllerExpandSecretRef"
    if (
        source == "csi"
        and before
        and content
        and expand in content
        and expand not in (before.get("csi") or {})
    ):
        return {key: value for key, value in content.items() if key != expand}
    return content


# -- claims


def claim_problems(claim: Content) -> Iterator[Problem]:
    yield from claim_spec_problems(claim["spec"], "spec")


def claim_spec_problems(spec: Content, path: str) -> Iterator[Problem]:
    yield from _mode_problems(
        spec.get("accessModes") or [], f"{path}.accessModes", "at least 1 access mode is required"
    )
    amount = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if amount is None:
        yield required(f"{path}.resources[storage]")
    else:
        yield from _amount_problems(amount, f"{path}.resources[storage]")
    for field in ("storageClassName", "volumeAttributesClassName"):
        for error in dns_subdomain_errors(spec[field]) if spec.get(field) else ():
            yield invalid(f"{path}.{field}", spec[field], error)
    if (source := spec.get("dataSourceRef")) is not None:
        yield from _data_source_problems(source, f"{path}.dataSourceRef")


def _data_source_problems(source: Content, path: str) -> Iterator[Problem]:
    for field in ("name", "kind"):
        if not source.get(field):
            yield required(f"{path}.{field}")
    if not source.get("apiGroup") and source.get("kind") != "PersistentVolumeClaim":
        detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
        yield invalid(path, source.get("kind"), detail)


def claim_update_problems(old: Content, new: Content) -> Iterator[Problem]:
    """A claim's spec changes in few ways: it gets its volume or its class, and a bound claim grows."""
    before, after = copy.deepcopy(old.get("spec") or {}), copy.deepcopy(new.get("spec") or {})
    classes = [(content["metadata"].get("annotations") or {}).get(CLASS_ANNOTATION) for content in (old, new)]
    chosen = after.get("storageClassName")
    if chosen is not None and before.get("storageClassName") is None and classes[0] in (None, chosen):
        before["storageClassName"] = chosen
    if classes[0] != classes[1] and not (classes[0] == chosen and classes[1] is None):
        detail = f"field is immutable: {CLASS_ANNOTATION}"
        yield invalid(f"metadata.annotations[{CLASS_ANNOTATION}]", classes[1], detail)
    if not before.get("volumeName"):
        before.pop("volumeName", None)
        if after.get("volumeName"):
            before["volumeName"] = after["volumeName"]
        else:
            after.pop("volumeName", None)
    size, grown = _pop_size(before), _pop_size(after)
    bound = (new.get("status") or {}).get("phase") == "Bound"
    if bound:
        for spec in (before, after):
            spec.pop("volumeAttributesClassName", None)
    if before != after or (not bound and size != grown):
        detail = (
            "spec is immutable after creation except resources.requests and volumeAttributesClassName"
            " for bound claims"
        )
        yield forbidden("spec", detail)
    capacity = ((old.get("status") or {}).get("capacity") or {}).get("storage", "0")
    if grown < size and grown <= exact(capacity):
        path = "spec.resources.requests.storage"
        yield forbidden(path, "field can not be less than status.capacity")
    if before.get("volumeMode") != after.get("volumeMode"):
        yield invalid("volumeMode", after.get("volumeMode"), "field is immutable")


def _pop_size(spec: Content) -> Any:
    """The amount of storage, taken out of the spec; equal amounts may be written in several ways."""
    requests = (spec.get("resources") or {}).get("requests") or {}
    try:
        return exact(requests.pop("storage", "0"))
    except QuantityError:
        return exact("0")
