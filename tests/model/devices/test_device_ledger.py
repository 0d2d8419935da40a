"""The ledger of devices: in use, in flight, coming free."""

from __future__ import annotations

from typing import Any

from stromboli.api.types.devices import AllocatedDevice, AllocatedDevices, AllocationResult, ConsumerReference
from stromboli.model.devices.claim_use import ClaimGrant, ExtendedResourceGrant
from stromboli.model.devices.device_ledger import DeviceLedger
from stromboli.model.devices.devices_in_use import DevicesInUse
from stromboli.model.ledgers import Grant
from stromboli.model.status import Status
from stromboli.testing import World
from tests.device_manifests import DRIVER, allocated, claim, device_class, reserved, resource_slice, uses


def held(in_use: DevicesInUse) -> list[str]:
    return sorted(device for use in in_use._pools.values() for device in use.whole)


def allocation(device: str) -> AllocationResult:
    return AllocationResult(AllocatedDevices((AllocatedDevice("r", DRIVER, "a", device),)))


def world(*pods: str) -> World:
    made = World(nodes="a cpu=8").add(device_class(), resource_slice("a", 4), claim("c"))
    for pod in pods:
        made.job(pod, cpu=1, spec=uses("c"))
    return made


def ledger(made: World) -> DeviceLedger:
    return made.cluster.devices


def give(made: World, pod: str, status: Status, *grants: Grant) -> None:
    made.cluster.move(made.task(f"{pod}-0"), status, made.cluster.nodes["a"], grants)


def of(pod: str, device: str = "g0") -> ClaimGrant:
    return ClaimGrant(
        "default",
        "c",
        "",
        ConsumerReference("", "pods", f"{pod}-0", f"Pod/default/{pod}-0"),
        allocation(device),
    )


def test_what_is_in_flight_counts_until_the_claim_shows_it_and_then_not_twice() -> None:
    made = world("j")
    give(made, "j", Status.BINDING, of("j"))
    assert held(ledger(made).in_use) == ["g0"]
    made.add(allocated(claim("c"), "a", "g1", reserved_for=(reserved("j-0"),)))
    assert held(ledger(made).in_use) == ["g1"]
    give(made, "j", Status.PENDING)
    made.cluster.move(made.task("j-0"), Status.PENDING, None)
    assert held(ledger(made).in_use) == ["g1"]
    made.add(claim("c"))
    assert held(ledger(made).in_use) == []


def test_a_shared_claim_comes_free_when_all_its_consumers_leave() -> None:
    made = world("j", "k").add(
        allocated(claim("c"), "a", "g0", reserved_for=(reserved("j-0"), reserved("k-0")))
    )
    for pod in ("j", "k"):
        give(made, pod, Status.RUNNING)
    give(made, "j", Status.RELEASING)
    assert (held(ledger(made).staying), ledger(made).leaving) == (["g0"], 0)
    give(made, "k", Status.RELEASING)
    assert (held(ledger(made).in_use), held(ledger(made).staying), ledger(made).leaving) == (["g0"], [], 1)


def test_what_is_promised_is_neither_free_now_nor_later() -> None:
    made = world("j")
    give(made, "j", Status.PIPELINED, of("j"))
    assert (held(ledger(made).in_use), held(ledger(made).staying)) == (["g0"], ["g0"])
    assert ledger(made).claims["default/c"].is_promised


def test_a_claim_for_extended_resources_counts_once_when_it_is_created() -> None:
    made = world("j")
    consumer = ConsumerReference("", "pods", "j-0", "Pod/default/j-0")
    give(made, "j", Status.BINDING, ExtendedResourceGrant("default", consumer, (), (), allocation("g2")))
    assert held(ledger(made).in_use) == ["g2"]
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "j-0", "uid": "Pod/default/j-0", "controller": True}
    meta: dict[str, Any] = {
        "annotations": {"resource.kubernetes.io/extended-resource-claim": "true"},
        "ownerReferences": [owner],
    }
    made.add(claim("x", **meta))
    assert held(ledger(made).in_use) == ["g2"]
    made.add(allocated(claim("x", **meta), "a", "g2", reserved_for=(reserved("j-0"),)))
    assert [use.whole for use in ledger(made).in_use._pools.values()] == [{"g2": 1}]
