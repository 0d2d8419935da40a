"""The kinds of `resource.k8s.io`: what is read of them, and that an allocation is written as it was read."""

from typing import Any

import msgspec
import pytest

from stromboli.api.decoding import decode
from stromboli.api.types.devices import AllocationResult, DeviceClass, ResourceClaim, ResourceSlice

ALLOCATION = {
    "devices": {
        "results": [
            {
                "request": "gpu/large",
                "driver": "gpu.example.com",
                "pool": "node-a",
                "device": "gpu-0",
                "adminAccess": True,
                "tolerations": [{"operator": "Exists", "tolerationSeconds": 30}],
                "bindingConditions": ["ready"],
                "bindingFailureConditions": ["broken"],
                "shareID": "a",
                "consumedCapacity": {"memory": "1Gi"},
            }
        ],
        "config": [
            {
                "source": "FromClass",
                "requests": ["gpu"],
                "opaque": {"driver": "gpu.example.com", "parameters": {"kind": "P", "list": [1, None, 2.5]}},
            }
        ],
    },
    "nodeSelector": {
        "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}]
    },
    "allocationTimestamp": "2026-08-01T00:00:00Z",
}


def of_kind(kind: str, **fields: Any) -> Any:
    return decode({"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": {"name": "x"}, **fields})


def test_an_allocation_is_written_as_it_was_read() -> None:
    allocation = msgspec.json.decode(msgspec.json.encode(ALLOCATION), type=AllocationResult)
    assert msgspec.json.decode(msgspec.json.encode(allocation)) == ALLOCATION


def test_a_slice_shows_its_devices() -> None:
    device = {"name": "d", "attributes": {"cores": {"int": 0}}, "capacity": {"memory": {"value": "1Gi"}}}
    slice = of_kind("ResourceSlice", spec={"driver": "x", "pool": {"name": "p"}, "devices": [device]})
    assert isinstance(slice, ResourceSlice)
    assert slice.spec.devices[0].attributes["cores"].int_value == 0
    assert slice.spec.devices[0].capacity["memory"].value == "1Gi"


@pytest.mark.parametrize(("stated", "devices"), [({}, 1), ({"count": 3}, 3)])
def test_a_request_without_a_count_is_for_one_device(stated: dict[str, int], devices: int) -> None:
    claim = of_kind("ResourceClaim", spec={"devices": {"requests": [{"name": "r", "exactly": stated}]}})
    assert isinstance(claim, ResourceClaim)
    (request,) = claim.spec.devices.requests
    assert request.exactly is not None
    assert request.exactly.devices == devices


def test_a_class_may_stand_for_an_extended_resource() -> None:
    assert isinstance(of_kind("DeviceClass", spec={"extendedResourceName": "example.com/gpu"}), DeviceClass)
