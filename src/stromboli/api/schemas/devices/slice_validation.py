"""ResourceSlices: the devices that a driver offers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from math import ceil

from stromboli.api.name_rules import dns_subdomain_errors
from stromboli.api.resources.quantity import exact
from stromboli.api.schemas.devices.device_fields import (
    Check,
    Content,
    attribute_problems,
    binding_problems,
    driver_problems,
    label_problems,
    list_problems,
    map_problems,
    pool_problems,
    taint_problems,
)
from stromboli.api.schemas.pods.placement_validation import node_selector_problems
from stromboli.api.schemas.schema_problems import Problem, forbidden, invalid, required, too_long

_MAX_DEVICES = 128
_MAX_DEVICES_WITH_FEATURES = 64
"""Of a slice with taints, counters or lists of values, which take more memory."""
_MAX_COUNTER_SETS = 8
_MAX_COUNTERS = 32
_MAX_CONSUMPTIONS = 2
_MAX_ATTRIBUTES = 32
_MAX_ATTRIBUTE_VALUES = 48
_MAX_VALUE = 64
_MAX_TAINTS = 16
_MAX_VALID_VALUES = 10
_LISTS = ("bools", "ints", "strings", "versions")
_VALUES = ("bool", "int", "string", "version", *_LISTS)
_NUMBER = r"(0|[1-9]\d*)"
_PRERELEASE = r"(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)"
_BUILD = "[0-9a-zA-Z-]+"
_VERSION = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(-{_PRERELEASE}(\.{_PRERELEASE})*)?(\+{_BUILD}(\.{_BUILD})*)?", re.ASCII
)
_NODES = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")
_SELECTS = "`perDeviceNodeSelection` is set to true in the ResourceSlice spec"


def slice_problems(resource_slice: Content) -> Iterator[Problem]:
    spec = resource_slice["spec"]
    yield from driver_problems(spec["driver"], "spec.driver")
    pool, path = spec["pool"], "spec.pool"
    yield from pool_problems(pool["name"], f"{path}.name")
    if pool["resourceSliceCount"] <= 0:
        yield invalid(f"{path}.resourceSliceCount", pool["resourceSliceCount"], "must be greater than zero")
    if pool["generation"] < 0:
        yield invalid(f"{path}.generation", pool["generation"], "must be greater than or equal to zero")
    yield from _slice_node_problems(spec)
    if "sharedCounters" in spec and "devices" in spec:
        yield invalid("spec", "", "only one of `sharedCounters` or `devices` is allowed")
    devices = spec.get("devices") or []
    limit = _MAX_DEVICES_WITH_FEATURES if any(map(_has_features, devices)) else _MAX_DEVICES
    check = _device_check(bool(spec.get("perDeviceNodeSelection")))
    yield from list_problems(devices, limit, check, "spec.devices", key=lambda device: device["name"])
    counters = spec.get("sharedCounters") or []
    path = "spec.sharedCounters"
    yield from list_problems(
        counters, _MAX_COUNTER_SETS, _counters("name"), path, key=lambda entry: entry["name"]
    )


def slice_update_problems(old: Content, new: Content) -> Iterator[Problem]:
    before, after = ({"pool": {}, **(content.get("spec") or {})} for content in (old, new))
    for path, was, is_now in (
        ("spec.pool.name", before["pool"].get("name"), after["pool"].get("name")),
        ("spec.driver", before.get("driver"), after.get("driver")),
        ("spec.nodeName", before.get("nodeName"), after.get("nodeName")),
    ):
        if was != is_now:
            yield invalid(path, is_now, "field is immutable")


def _has_features(device: Content) -> bool:
    return bool(
        device.get("taints")
        or device.get("consumesCounters")
        or any(field in value for value in (device.get("attributes") or {}).values() for field in _LISTS)
    )


def _slice_node_problems(spec: Content) -> Iterator[Problem]:
    """A slice says in exactly one way which nodes can use its devices."""
    chosen = [f"`{field}`" for field in _NODES if spec.get(field)]
    name = spec.get("nodeName")
    if name == "":
        yield invalid("spec.nodeName", "", "must be either unset or set to a non-empty string")
    elif name is not None:
        yield from _node_name_problems(name, "spec.nodeName")
    if (selector := spec.get("nodeSelector")) is not None:
        yield from node_selector_problems(selector, "spec.nodeSelector")
        if len(terms := selector["nodeSelectorTerms"]) != 1:
            detail = "must have exactly one node selector term"
            yield invalid("spec.nodeSelector.nodeSelectorTerms", terms, detail)
    for field in ("allNodes", "perDeviceNodeSelection"):
        if spec.get(field) is False:
            yield invalid(f"spec.{field}", False, "must be either unset or set to true")
    detail = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
    if not chosen:
        yield required("spec", detail)
    elif len(chosen) > 1:
        yield invalid("spec", f"{{{', '.join(chosen)}}}", f"{detail}, but multiple fields are set")


def _node_name_problems(name: str, path: str) -> Iterator[Problem]:
    for error in dns_subdomain_errors(name):
        yield invalid(path, name, error)


def _device_check(selects_nodes: bool) -> Check:
    def check(device: Content, path: str) -> Iterator[Problem]:
        yield from label_problems(device["name"], f"{path}.name")
        attributes, capacity = device.get("attributes") or {}, device.get("capacity") or {}
        if (count := len(attributes) + len(capacity)) > _MAX_ATTRIBUTES:
            detail = f"the total number of attributes and capacities must not exceed {_MAX_ATTRIBUTES}"
            yield invalid(path, count, detail)
        if (count := sum(map(_count_values, attributes.values()))) > _MAX_ATTRIBUTE_VALUES:
            yield invalid(
                path, count, f"the total number of attribute values must not exceed {_MAX_ATTRIBUTE_VALUES}"
            )
        attribute, attributes_path = attribute_problems, f"{path}.attributes"
        yield from map_problems(attributes, None, attribute, _attribute_problems, attributes_path)
        shared = bool(device.get("allowMultipleAllocations"))
        yield from map_problems(capacity, None, attribute, _capacity_check(shared), f"{path}.capacity")
        yield from list_problems(device.get("taints") or [], _MAX_TAINTS, taint_problems, f"{path}.taints")
        yield from list_problems(
            device.get("consumesCounters") or [],
            _MAX_CONSUMPTIONS,
            _counters("counterSet"),
            f"{path}.consumesCounters",
            key=lambda entry: entry["counterSet"],
        )
        yield from _device_node_problems(device, selects_nodes, path)
        yield from binding_problems(device, path)

    return check


def _device_node_problems(device: Content, selects_nodes: bool, path: str) -> Iterator[Problem]:
    fields = _NODES[:3]
    if not selects_nodes:
        if any(field in device for field in fields):
            yield invalid(
                path, None, f"`nodeName`, `nodeSelector` and `allNodes` can only be set if {_SELECTS}"
            )
        return
    if device.get("nodeName") == "":
        yield invalid(f"{path}.nodeName", "", "must not be empty")
    if device.get("allNodes") is False:
        yield invalid(f"{path}.allNodes", False, "must be either unset or set to true")
    if (selector := device.get("nodeSelector")) is not None:
        yield from node_selector_problems(selector, f"{path}.nodeSelector")
    chosen = [f"`{field}`" for field in fields if device.get(field)]
    detail = f"exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when {_SELECTS}"
    if not chosen:
        yield required(path, detail)
    elif len(chosen) > 1:
        yield invalid(path, f"{{{', '.join(chosen)}}}", detail)


def _counters(name_field: str) -> Check:
    """A check of counters of a pool, or of what a device takes from them."""

    def check(entry: Content, path: str) -> Iterator[Problem]:
        if not entry[name_field]:
            yield required(f"{path}.{name_field}")
        else:
            yield from label_problems(entry[name_field], f"{path}.{name_field}")
        if not entry["counters"]:
            yield required(f"{path}.counters")
        else:
            path = f"{path}.counters"
            yield from map_problems(entry["counters"], _MAX_COUNTERS, label_problems, _no_problems, path)

    return check


def _no_problems(_: object, __: str) -> Iterator[Problem]:
    return iter(())


def _count_values(attribute: Content) -> int:
    return sum(len(attribute.get(field) or ()) for field in _LISTS) or 1


def _attribute_problems(attribute: Content, path: str) -> Iterator[Problem]:
    for field in ("strings", "versions"):
        for index, text in enumerate(attribute.get(field) or ()):
            yield from _text_problems(text, field == "versions", f"{path}.{field}[{index}]")
    for field in ("string", "version"):
        if (text := attribute.get(field)) is not None:
            yield from _text_problems(text, field == "version", f"{path}.{field}")
    for field in _LISTS:
        if attribute.get(field) == []:
            yield invalid(f"{path}.{field}", [], "must not be empty if specified")
    if sum(field in attribute for field in _VALUES) != 1:
        yield invalid(path, attribute or "", "exactly one value must be specified")


def _text_problems(text: str, is_version: bool, path: str) -> Iterator[Problem]:
    if is_version and not _VERSION.fullmatch(text):
        yield invalid(path, text, "must be a string compatible with semver.org spec 2.0.0")
    if len(text.encode(errors="replace")) > _MAX_VALUE:
        yield too_long(path, _MAX_VALUE)


def _capacity_check(shared: bool) -> Check:
    def check(capacity: Content, path: str) -> Iterator[Problem]:
        policy, path = capacity.get("requestPolicy"), f"{path}.requestPolicy"
        if policy is None:
            return
        if not shared:
            yield forbidden(path, "allowMultipleAllocations must be true")
            return
        values, bounds = policy.get("validValues") or [], policy.get("validRange")
        if values and bounds is not None:
            yield forbidden(
                path,
                'exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time',
            )
        elif (values or bounds is not None) and policy.get("default") is None:
            field = "validValues" if values else "validRange"
            yield required(f"{path}.default", f"required when {field} is defined")
        elif values:
            yield from _valid_value_problems(values, policy["default"], capacity["value"], path)
        elif bounds is not None:
            yield from _range_problems(bounds, policy["default"], capacity["value"], f"{path}.validRange")

    return check


def _valid_value_problems(values: list[str], default: str, most: str, path: str) -> Iterator[Problem]:
    path = f"{path}.validValues"
    amounts = [exact(value) for value in values]
    for index in range(1, len(amounts)):
        if amounts[index - 1] > amounts[index]:
            yield invalid(f"{path}[{index}]", values[index], "values must be sorted in ascending order")

    def check(value: str, path: str) -> Iterator[Problem]:
        if exact(value) > exact(most):
            yield invalid(path, value, f"option is larger than capacity value: {most}")

    yield from list_problems(
        values, _MAX_VALID_VALUES, check, path, key=lambda value: str(ceil(exact(value)))
    )
    if exact(default) not in amounts:
        yield invalid(path, default, "default value is not valid according to the requestPolicy")


def _range_problems(bounds: Content, default: str, most: str, path: str) -> Iterator[Problem]:
    least, largest, step = bounds["min"], bounds.get("max"), bounds.get("step")
    if exact(least) > exact(most):
        yield invalid(f"{path}.min", least, f"min is larger than capacity value: {most}")
    if exact(default) < exact(least):
        yield invalid(f"{path}.min", default, f"default is less than min: {least}")
    if largest is not None:
        if exact(least) > exact(largest):
            yield invalid(f"{path}.max", least, f"min is larger than max: {largest}")
        if exact(largest) > exact(most):
            yield invalid(f"{path}.max", largest, f"max is larger than capacity value: {most}")
        if exact(default) > exact(largest):
            yield invalid(f"{path}.max", default, f"default is more than max: {largest}")
    if step is not None:
        yield from _step_problems(exact(step), step, exact(least), least, (default, largest, most), path)


def _step_problems(
    step: Fraction,
    shown: str,
    least: Fraction,
    least_shown: str,
    values: tuple[str, str | None, str],
    path: str,
) -> Iterator[Problem]:
    *stepped, most = values
    if least + step > exact(str(most)):
        yield invalid(f"{path}.step", shown, f"one step {least + step} is larger than capacity value: {most}")
    for value in stepped:
        if value is not None and (step <= 0 or (exact(value) - least) % step):
            detail = f"value is not a multiple of a given step ({shown}) from ({least_shown})"
            yield invalid(f"{path}.step", value, detail)
