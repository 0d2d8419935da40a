"""The status of a ResourceClaim: the devices that it was given, and who may use them."""

from __future__ import annotations

import ipaddress
import uuid
from collections.abc import Iterator

from stromboli.api.schemas.devices.claim_validation import (
    reference_check,
    request_list_problems,
    request_names,
)
from stromboli.api.schemas.devices.device_fields import (
    Content,
    binding_problems,
    configuration_problems,
    document_problems,
    driver_problems,
    label_problems,
    list_problems,
    pool_problems,
)
from stromboli.api.schemas.pods.placement_validation import node_selector_problems
from stromboli.api.schemas.schema_problems import Problem, forbidden, invalid, required, too_long, too_many

_MAX_RESERVED_FOR = 256
_MAX_RESULTS = 32
_MAX_DEVICE_CONDITIONS = 8
_MAX_ADDRESSES = 16
_MAX_INTERFACE, _MAX_HARDWARE_ADDRESS = 256, 128

DeviceId = tuple[str, str, str, str]


def status_problems(old: Content, new: Content) -> Iterator[Problem]:
    """What is wrong with a new status of a claim."""
    before, after = old.get("status") or {}, new.get("status") or {}
    if before == after:
        return
    reserved, path = after.get("reservedFor") or [], "status.reservedFor"
    yield from list_problems(
        reserved, _MAX_RESERVED_FOR, _consumer_problems, path, key=lambda consumer: consumer["uid"]
    )
    allocation = after.get("allocation")
    yield from _device_problems(after.get("devices") or [], device_ids(allocation))
    if reserved and allocation is None:
        yield forbidden(path, "may not be specified when `allocated` is not set")
    elif new["metadata"].get("deletionTimestamp") and not _is_subset(reserved, before.get("reservedFor")):
        detail = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
        yield forbidden(path, detail)
    yield from _allocation_problems(
        before.get("allocation"), allocation, request_names(new.get("spec") or {})
    )


def _is_subset(reserved: list[Content], before: list[Content] | None) -> bool:
    return all(consumer in (before or ()) for consumer in reserved)


def _consumer_problems(consumer: Content, path: str) -> Iterator[Problem]:
    for field in ("resource", "name", "uid"):
        if not consumer[field]:
            yield required(f"{path}.{field}")


def _allocation_problems(
    before: Content | None, allocation: Content | None, names: dict[str, set[str]]
) -> Iterator[Problem]:
    path = "status.allocation"
    if before is not None and allocation is not None:
        if before != allocation:
            yield invalid(path, allocation, "field is immutable")
        return
    if allocation is None:
        return
    is_request = reference_check(names)

    def result_problems(result: Content, path: str) -> Iterator[Problem]:
        yield from is_request(result["request"], f"{path}.request")
        yield from _id_problems(result, path)
        yield from binding_problems(result, path)

    def config_problems(configuration: Content, path: str) -> Iterator[Problem]:
        yield from request_list_problems(configuration.get("requests"), names, path)
        yield from configuration_problems(configuration, path)

    devices = allocation.get("devices") or {}
    results, config = devices.get("results") or [], devices.get("config") or []
    yield from list_problems(results, _MAX_RESULTS, result_problems, f"{path}.devices.results")
    yield from list_problems(config, 2 * _MAX_RESULTS, config_problems, f"{path}.devices.config")
    if (selector := allocation.get("nodeSelector")) is not None:
        yield from node_selector_problems(selector, f"{path}.nodeSelector")


def _id_problems(device: Content, path: str) -> Iterator[Problem]:
    yield from driver_problems(device["driver"], f"{path}.driver")
    yield from pool_problems(device["pool"], f"{path}.pool")
    yield from label_problems(device["device"], f"{path}.device")
    if (share := device.get("shareID")) is not None and not _is_uid(share):
        detail = (
            "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase"
            " hexadecimal characters"
        )
        yield invalid(f"{path}.shareID", share, detail)


def _is_uid(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text
    except ValueError:
        return False


def device_ids(allocation: Content | None) -> set[DeviceId]:
    """The devices, and shares of devices, of an allocation."""
    results = ((allocation or {}).get("devices") or {}).get("results") or ()
    return {_device_id(result) for result in results}


def _device_id(device: Content) -> DeviceId:
    return device["driver"], device["pool"], device["device"], device.get("shareID") or ""


def _device_problems(devices: list[Content], allocated: set[DeviceId]) -> Iterator[Problem]:
    """Of what drivers tell of devices."""

    def check(device: Content, path: str) -> Iterator[Problem]:
        yield from _id_problems(device, path)
        if _device_id(device) not in allocated:
            shown = "/".join(part for part in _device_id(device) if part)
            yield invalid(path, shown, "must be an allocated device in the claim")
        conditions = device.get("conditions") or []
        if len(conditions) > _MAX_DEVICE_CONDITIONS:
            yield too_many(f"{path}.conditions", len(conditions), _MAX_DEVICE_CONDITIONS)
        if device.get("data"):
            yield from document_problems(device["data"], f"{path}.data")
        yield from _network_problems(device.get("networkData") or {}, f"{path}.networkData")

    yield from list_problems(devices, len(devices), check, "status.devices", key=_device_id)


def _network_problems(network: Content, path: str) -> Iterator[Problem]:
    for field, limit in (("interfaceName", _MAX_INTERFACE), ("hardwareAddress", _MAX_HARDWARE_ADDRESS)):
        if len(network.get(field) or "") > limit:
            yield too_long(f"{path}.{field}", limit)
    addresses = network.get("ips") or []
    yield from list_problems(
        addresses, _MAX_ADDRESSES, _address_problems, f"{path}.ips", key=lambda text: text
    )


def _address_problems(text: str, path: str) -> Iterator[Problem]:
    try:
        if "/" not in text:
            raise ValueError
        ipaddress.ip_interface(text)
    except ValueError:
        detail = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)"
        yield invalid(path, text, detail)


def drop_status_of_lost_devices(old: Content, new: Content) -> None:
    """Remove, in place, what drivers told of devices that are no longer allocated."""
    status, before = new.get("status") or {}, old.get("status") or {}
    lost = device_ids(before.get("allocation")) - device_ids(status.get("allocation"))
    if lost and status.get("devices"):
        status["devices"] = [device for device in status["devices"] if _device_id(device) not in lost]
        if not status["devices"]:
            del status["devices"]
