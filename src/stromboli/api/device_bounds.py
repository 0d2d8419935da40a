"""How large device classes, slices and claims may be; an API server takes none that are larger.

A claim that is allocated counts, however large it is: its devices are in use.
"""

from collections.abc import Iterable, Iterator

import msgspec

from stromboli.api.errors import BadObject
from stromboli.api.object_bounds import Size, exceeding
from stromboli.api.types.devices import (
    Device,
    DeviceAttribute,
    DeviceClass,
    DeviceConfiguration,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimTemplate,
    ResourceSlice,
)

MAX_DEVICES = 128
"""Devices of a slice."""
MAX_ATTRIBUTES = 128
"""Attributes and capacities of a device, values of a list included."""
MAX_VALUE = 256
"""Characters of the value of an attribute, or of a name of a device, an attribute, a taint or a counter."""
MAX_COUNTERS = 256
"""Shared counters of a slice, or counters that a device takes from."""
MAX_REQUESTS = 32
"""Requests, constraints or configurations of a claim; selectors of a request or a class."""
MAX_ALTERNATIVES = 8
"""Alternatives of a request."""
MAX_TOLERATIONS = 16
"""Tolerations of a request, or taints of a device."""
MAX_PARAMETERS = 10 * 1024
"""Bytes of the parameters of a configuration."""


def check_device_object(obj: DeviceClass | ResourceClaim | ResourceClaimTemplate | ResourceSlice) -> None:
    """Raise BadObject if there is too much of something."""
    match obj:
        case ResourceSlice():
            _check_slice(obj)
        case DeviceClass():
            _check("spec", [Size("selectors", len(obj.spec.selectors), MAX_REQUESTS, "combine them with &&")])
            _check_configs(obj.spec.config)
        case ResourceClaim():
            if obj.status.allocation is None:
                _check_claim(obj.spec)
        case ResourceClaimTemplate():
            _check_claim(obj.spec.spec)


def _check(field: str, sizes: Iterable[Size]) -> None:
    for size in exceeding(sizes):
        raise BadObject(field, f"{size}: {size.remedy}")


# -- slices


def _check_slice(slice: ResourceSlice) -> None:
    spec = slice.spec
    counters = sum(len(each.counters) for each in spec.shared_counters)
    sizes = [
        Size("devices", len(spec.devices), MAX_DEVICES, "publish them in several slices"),
        Size("shared counters", counters, MAX_COUNTERS, "use several pools"),
        Size("counter sets", len(spec.shared_counters), MAX_COUNTERS, "use several pools"),
    ]
    _check("spec", sizes)
    for place, device in enumerate(spec.devices):
        _check_device(f"spec.devices[{place}]", device)


def _check_device(field: str, device: Device) -> None:
    values = len(device.capacity) + sum(map(_values, device.attributes.values()))
    counters = sum(len(each.counters) + 1 for each in device.consumes_counters)
    conditions = len(device.binding_conditions) + len(device.binding_failure_conditions)
    sizes = [
        Size("attributes and capacities", values, MAX_ATTRIBUTES, "publish fewer"),
        Size("counters that it takes from", counters, MAX_COUNTERS, "use fewer counters"),
        Size("taints", len(device.taints), MAX_TOLERATIONS, "use fewer taints"),
        Size("binding conditions", conditions, MAX_TOLERATIONS, "use fewer conditions"),
    ]
    _check(field, sizes)
    for text in _texts(device):
        if len(text) > MAX_VALUE:
            raise BadObject(
                field, f"{text[:32]!r}... has {len(text)} characters, at most {MAX_VALUE} are allowed"
            )


def _values(attribute: DeviceAttribute) -> int:
    lists = (attribute.int_values, attribute.bool_values, attribute.string_values, attribute.version_values)
    return 1 + sum(len(values) for values in lists if values is not None)


def _texts(device: Device) -> Iterator[str]:
    yield device.name
    for name, attribute in device.attributes.items():
        yield name
        yield attribute.string_value or ""
        yield attribute.version_value or ""
        yield from attribute.string_values or ()
        yield from attribute.version_values or ()
    yield from device.capacity
    for taint in device.taints:
        yield from (taint.key, taint.value)
    for consumption in device.consumes_counters:
        yield from (consumption.counter_set, *consumption.counters)
    yield from (*device.binding_conditions, *device.binding_failure_conditions)


# -- claims


def _check_claim(spec: ResourceClaimSpec) -> None:
    devices = spec.devices
    sizes = [
        Size("requests", len(devices.requests), MAX_REQUESTS, "use several claims"),
        Size("constraints", len(devices.constraints), MAX_REQUESTS, "use several claims"),
    ]
    _check("spec.devices", sizes)
    _check_configs(devices.config)
    for place, request in enumerate(devices.requests):
        _check_request(f"spec.devices.requests[{place}]", request)


def _check_request(field: str, request: DeviceRequest) -> None:
    options = request.first_available
    _check(field, [Size("alternatives", len(options), MAX_ALTERNATIVES, "name fewer")])
    asked: tuple[ExactDeviceRequest | None, ...] = (request.exactly, *options)
    for option in asked:
        if option is None:
            continue
        capacities = len(option.capacity.requests) if option.capacity is not None else 0
        sizes = [
            Size("selectors", len(option.selectors), MAX_REQUESTS, "combine them with &&"),
            Size("tolerations", len(option.tolerations), MAX_TOLERATIONS, "tolerate a key with Exists"),
            Size("capacities", capacities, MAX_ATTRIBUTES, "ask for fewer"),
        ]
        _check(field, sizes)


def _check_configs(configs: Iterable[DeviceConfiguration]) -> None:
    listed = list(configs)
    _check("spec", [Size("configurations", len(listed), MAX_REQUESTS, "use fewer")])
    for config in listed:
        if config.opaque is None:
            continue
        size = len(msgspec.json.encode(config.opaque.parameters))
        if size > MAX_PARAMETERS:
            raise BadObject(
                "spec",
                f"parameters of {size} bytes for {config.opaque.driver}, at most {MAX_PARAMETERS} are allowed",
            )
