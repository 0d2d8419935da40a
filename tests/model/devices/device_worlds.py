"""Small worlds of devices: slices, classes and claims in a few words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from stromboli.api.types.devices import (
    AllocatedDevice,
    AllocatedDevices,
    AllocationResult,
    DeviceClass,
    ResourceClaim,
    ResourceSlice,
)
from stromboli.model.devices.allocator import Allocation, Allocator, DeviceShortage, DevicesInUse
from stromboli.model.devices.pools.pool_index import PoolIndex
from stromboli.model.node_columns import Node

DRIVER = "gpu.example.com"


def device(name: str, **fields: Any) -> dict[str, Any]:
    """A device; `cores=4` and the like are attributes, everything in camel case is as in the API."""
    known = {key: fields.pop(key) for key in list(fields) if key in _FIELDS}
    return {"name": name, "attributes": {key: typed(value) for key, value in fields.items()}, **known}


_FIELDS = (
    *("attributes", "capacity", "consumesCounters", "nodeName", "nodeSelector", "allNodes", "taints"),
    *("bindsToNode", "bindingConditions", "bindingFailureConditions", "allowMultipleAllocations"),
)


def typed(value: bool | int | str) -> dict[str, Any]:
    kind = "bool" if isinstance(value, bool) else "int" if isinstance(value, int) else "string"
    return {kind: value}


def make_slice(name: str, devices: Iterable[Any] = (), **spec: Any) -> ResourceSlice:
    """A slice of a pool of its own, for the node `a` unless it says otherwise; a device may be given by its name."""
    listed = [device(each) if isinstance(each, str) else each for each in devices]
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1, **spec.pop("pool", {})}
    if not spec.keys() & {"nodeName", "allNodes", "nodeSelector", "perDeviceNodeSelection"}:
        spec["nodeName"] = "a"
    content = {"driver": DRIVER, "pool": pool, "devices": listed, **spec}
    return msgspec.convert({"metadata": {"name": name}, "spec": content}, ResourceSlice)


def make_class(name: str = "gpu", *selectors: str, **spec: Any) -> DeviceClass:
    listed = [{"cel": {"expression": text}} for text in selectors]
    return msgspec.convert({"metadata": {"name": name}, "spec": {"selectors": listed, **spec}}, DeviceClass)


def request(name: str = "r", *selectors: str, device_class: str = "gpu", **fields: Any) -> dict[str, Any]:
    return {"name": name, "exactly": exactly(*selectors, device_class=device_class, **fields)}


def exactly(*selectors: str, device_class: str = "gpu", **fields: Any) -> dict[str, Any]:
    return {
        "deviceClassName": device_class,
        "selectors": [{"cel": {"expression": text}} for text in selectors],
        **fields,
    }


def make_claim(*requests: Mapping[str, Any], name: str = "c", **devices: Any) -> ResourceClaim:
    content = {"devices": {"requests": list(requests), **devices}}
    return msgspec.convert({"metadata": {"name": name, "uid": name}, "spec": content}, ResourceClaim)


def held(*names: str, pool: str = "s", driver: str = DRIVER) -> DevicesInUse:
    """Devices that somebody has."""
    in_use = DevicesInUse()
    results = tuple(AllocatedDevice("r", driver, pool, name) for name in names)
    in_use.add(AllocationResult(AllocatedDevices(results)))
    return in_use


class DeviceWorld:
    """Slices and classes."""

    def __init__(self, *slices: ResourceSlice, classes: Iterable[DeviceClass] = ()) -> None:
        self.pools = PoolIndex()
        self.classes = {each.name: each for each in classes or [make_class()]}
        self.allocator = Allocator(self.classes, self.pools)
        for each in slices:
            self.pools.put(each)

    def allocate(
        self,
        *claims: ResourceClaim,
        node: str = "a",
        labels: Mapping[str, str] | None = None,
        in_use: DevicesInUse | None = None,
    ) -> Allocation | DeviceShortage:
        place = Node(node, labels=dict(labels or {}))
        search = self.allocator.prepare([claim.spec for claim in claims])
        uids = [claim.metadata.uid or claim.key for claim in claims]
        return search.allocate(place, in_use or DevicesInUse(), uids)

    def devices(self, *claims: ResourceClaim, **where: Any) -> list[list[str]] | str:
        """`request=device` by claim, or what is short."""
        answer = self.allocate(*claims, **where)
        if isinstance(answer, DeviceShortage):
            return ("error: " if answer.is_error else "") + answer.message
        return [
            [f"{each.request}={each.device}" for each in result.devices.results] for result in answer.results
        ]
