"""StorageClasses, and what storage drivers tell of themselves: CSIDrivers, CSINodes, capacities, attachments."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from stromboli.api.name_rules import dns_subdomain_errors, label_value_errors, qualified_name_errors
from stromboli.api.resources.quantity import exact
from stromboli.api.schemas.devices.device_fields import driver_problems
from stromboli.api.schemas.schema_problems import (
    Problem,
    duplicate,
    forbidden,
    invalid,
    required,
    too_long,
    unsupported,
)

Content = dict[str, Any]

_MAX_PARAMETERS = 512
_MAX_PARAMETER_BYTES = 256 * 1024
_MAX_ERROR_MESSAGE = 1024
_MAX_NODE_ID = 192
_LEAST_TOKEN_SECONDS, _MOST_TOKEN_SECONDS = 600, 2**32
_LEAST_UPDATE_PERIOD = 10
_FS_GROUP_POLICIES = ("File", "None", "ReadWriteOnceWithFSType")
_LIFECYCLE_MODES = ("Persistent", "Ephemeral")


# -- storage classes


def storage_class_problems(storage_class: Content) -> Iterator[Problem]:
    provisioner = storage_class["provisioner"]
    if not provisioner:
        yield required("provisioner")
    else:
        for error in qualified_name_errors(provisioner.lower()):
            yield invalid("provisioner", provisioner, error)
    yield from _parameter_problems(storage_class.get("parameters") or {})
    if storage_class.get("reclaimPolicy") == "Recycle":
        yield unsupported("reclaimPolicy", "Recycle", ("Delete", "Retain"))
    seen: list[Content] = []
    for index, term in enumerate(storage_class.get("allowedTopologies") or ()):
        path = f"allowedTopologies[{index}].matchLabelExpressions"
        values = {entry["key"]: set(entry["values"]) for entry in term.get("matchLabelExpressions") or ()}
        yield from _topology_problems(term.get("matchLabelExpressions") or [], path)
        if values in seen:
            yield duplicate(path, "")
        seen.append(values)


def _parameter_problems(parameters: Content) -> Iterator[Problem]:
    if len(parameters) > _MAX_PARAMETERS:
        yield too_long("parameters", _MAX_PARAMETERS)
        return
    if "" in parameters:
        yield invalid("parameters", "", "field can not be empty.")
    if sum(len(key) + len(value) for key, value in parameters.items()) > _MAX_PARAMETER_BYTES:
        yield too_long("parameters", _MAX_PARAMETER_BYTES)


def _topology_problems(expressions: list[Content], path: str) -> Iterator[Problem]:
    keys: set[str] = set()
    for index, expression in enumerate(expressions):
        entry, key, values = f"{path}[{index}]", expression["key"], expression["values"]
        if not values:
            yield required(f"{entry}.values")
        for position, value in enumerate(values):
            if value in values[:position]:
                yield duplicate(f"{entry}.values[{position}]", value)
            for error in label_value_errors(value):
                yield invalid(f"{entry}.values[{position}]", value, error)
        for error in qualified_name_errors(key):
            yield invalid(f"{entry}.key", key, error)
        if key in keys:
            yield duplicate(f"{entry}.key", key)
        keys.add(key)


def storage_class_update_problems(old: Content, new: Content) -> Iterator[Problem]:
    yield from _fixed(old, new, ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"))


def _fixed(old: Content, new: Content, fields: tuple[str, ...], prefix: str = "") -> Iterator[Problem]:
    for field in fields:
        if (old.get(field) or None) != (new.get(field) or None):
            yield invalid(f"{prefix}{field}", new.get(field), "field is immutable")


# -- drivers and nodes


def set_driver_defaults(driver: Content) -> None:
    spec = driver.get("spec")
    if isinstance(spec, dict):
        for field, value in _DRIVER_DEFAULTS.items():
            spec.setdefault(field, value)
        if not spec.get("volumeLifecycleModes"):
            spec["volumeLifecycleModes"] = ["Persistent"]


_DRIVER_DEFAULTS = {
    "attachRequired": True,
    "podInfoOnMount": False,
    "storageCapacity": False,
    "fsGroupPolicy": "ReadWriteOnceWithFSType",
    "requiresRepublish": False,
    "seLinuxMount": False,
}


def csi_driver_problems(driver: Content) -> Iterator[Problem]:
    spec = driver["spec"]
    if (policy := spec.get("fsGroupPolicy")) is not None and policy not in _FS_GROUP_POLICIES:
        yield unsupported("spec.fsGroupPolicy", policy, _FS_GROUP_POLICIES)
    requests = spec.get("tokenRequests") or []
    yield from _token_problems(requests)
    for mode in spec.get("volumeLifecycleModes") or ():
        if mode not in _LIFECYCLE_MODES:
            yield unsupported("spec.volumeLifecycleModes", mode, _LIFECYCLE_MODES)
    period, path = spec.get("nodeAllocatableUpdatePeriodSeconds"), "spec.nodeAllocatableUpdatePeriodSeconds"
    if period is not None and period < _LEAST_UPDATE_PERIOD:
        yield invalid(path, period, f"must be greater than or equal to {_LEAST_UPDATE_PERIOD} seconds")
    if spec.get("serviceAccountTokenInSecrets") is not None and not requests:
        path, value = "spec.serviceAccountTokenInSecrets", spec["serviceAccountTokenInSecrets"]
        detail = "serviceAccountTokenInSecrets is set but no tokenRequests are specified"
        yield invalid(path, value, detail)


def _token_problems(requests: list[Content]) -> Iterator[Problem]:
    audiences: set[str] = set()
    for index, request in enumerate(requests):
        path, audience = f"spec.tokenRequests[{index}]", request.get("audience") or ""
        if audience in audiences:
            yield duplicate(f"{path}.audience", audience)
            continue
        audiences.add(audience)
        seconds, path = request.get("expirationSeconds"), f"{path}.expirationSeconds"
        if seconds is not None and seconds < _LEAST_TOKEN_SECONDS:
            yield invalid(path, seconds, "may not specify a duration less than 10 minutes")
        if seconds is not None and seconds > _MOST_TOKEN_SECONDS:
            yield invalid(path, seconds, "may not specify a duration larger than 2^32 seconds")


def csi_driver_update_problems(old: Content, new: Content) -> Iterator[Problem]:
    before, after = old.get("spec") or {}, new.get("spec") or {}
    if before.get("attachRequired") != after.get("attachRequired"):
        yield invalid("spec.attachedRequired", after.get("attachRequired"), "field is immutable")
    yield from _fixed(before, after, ("volumeLifecycleModes",), "spec.")


def csi_node_problems(node: Content) -> Iterator[Problem]:
    names: set[str] = set()
    for index, driver in enumerate(node["spec"].get("drivers") or ()):
        path = f"spec.drivers[{index}]"
        yield from driver_problems(driver["name"], f"{path}.name")
        if not driver["nodeID"]:
            yield required(f"{path}.nodeID")
        elif len(driver["nodeID"]) > _MAX_NODE_ID:
            yield invalid(f"{path}.nodeID", driver["nodeID"], f"must be {_MAX_NODE_ID} characters or less")
        count = (driver.get("allocatable") or {}).get("count") or 0
        if count < 0:
            yield invalid(f"{path}.allocatable.count", count, "must be greater than or equal to 0")
        if driver["name"] in names:
            yield duplicate(f"{path}.name", driver["name"])
        names.add(driver["name"])
        yield from _topology_key_problems(driver.get("topologyKeys") or [], path)


def _topology_key_problems(keys: list[str], path: str) -> Iterator[Problem]:
    for index, key in enumerate(keys):
        if not key:
            yield required(path)
        if key in keys[:index]:
            yield duplicate(path, key)
        for error in qualified_name_errors(key):
            yield invalid(path, key, error)


def csi_node_update_problems(old: Content, new: Content) -> Iterator[Problem]:
    """A driver keeps what it told of the node, but for how many volumes it can attach."""
    listed, changed = ((content.get("spec") or {}).get("drivers") or () for content in (old, new))
    before = {driver["name"]: _without_count(driver) for driver in listed}
    for driver in map(_without_count, changed):
        if before.get(driver["name"], driver) != driver:
            yield invalid("spec.drivers", driver, "field is immutable")


def _without_count(driver: Content) -> Content:
    return {key: value for key, value in driver.items() if key != "allocatable"}


# -- capacities and attachments


def capacity_problems(capacity: Content) -> Iterator[Problem]:
    for error in dns_subdomain_errors(capacity["storageClassName"]):
        yield invalid("storageClassName", capacity["storageClassName"], error)
    amount = capacity.get("capacity")
    if amount is not None and exact(amount) < 0:
        yield invalid("capacity", amount, "must be greater than or equal to 0")


def capacity_update_problems(old: Content, new: Content) -> Iterator[Problem]:
    yield from _fixed(old, new, ("nodeTopology", "storageClassName"))


def attachment_problems(attachment: Content) -> Iterator[Problem]:
    spec, status = attachment["spec"], attachment.get("status") or {}
    yield from driver_problems(spec["attacher"], "spec.attacher")
    source, path = spec["source"], "spec.source"
    name, inline = source.get("persistentVolumeName"), source.get("inlineVolumeSpec")
    detail = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
    if name is None and inline is None:
        yield required(path, detail)
    elif name is not None and inline is not None:
        yield forbidden(path, detail)
    elif name == "":
        yield required(f"{path}.persistentVolumeName", "must specify non empty persistentVolumeName")
    for field, text in (("nodeName", spec["nodeName"]), ("source.persistentVolumeName", name)):
        for error in dns_subdomain_errors(text) if text is not None else ():
            yield invalid(f"spec.{field}", text, error)
    metadata = status.get("attachmentMetadata") or {}
    if sum(len(key) + len(value) for key, value in metadata.items()) > _MAX_PARAMETER_BYTES:
        yield too_long("status.attachmentMetadata", _MAX_PARAMETER_BYTES)
    for field in ("attachError", "detachError"):
        if len((status.get(field) or {}).get("message") or "") > _MAX_ERROR_MESSAGE:
            yield too_long(f"status.{field}.message", _MAX_PARAMETER_BYTES)


def attachment_update_problems(old: Content, new: Content) -> Iterator[Problem]:
    yield from _fixed(old, new, ("spec",))
