"""Devices for claims: which ones are chosen, in which order, and what is said where there are none (spec 04 2.12)."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.api.types.devices import AllocationResult
from stromboli.model.devices.allocator import Allocation, DeviceShortage, DevicesInUse, Lack
from stromboli.model.node_columns import Node
from tests.model.devices.device_worlds import (
    DRIVER,
    DeviceWorld,
    device,
    exactly,
    held,
    make_claim,
    make_class,
    make_slice,
    request,
)

MODEL = f'device.attributes["{DRIVER}"].model'
SHARED: dict[str, Any] = {"allowMultipleAllocations": True, "capacity": {"memory": {"value": "8Gi"}}}
TAINT = {"key": "broken", "effect": "NoExecute"}


def allocated(answer: Allocation | DeviceShortage) -> AllocationResult:
    assert isinstance(answer, Allocation), answer
    return answer.results[0]


def short(answer: Allocation | DeviceShortage) -> DeviceShortage:
    assert isinstance(answer, DeviceShortage), answer
    return answer


def test_devices_are_taken_in_order() -> None:
    world = DeviceWorld(make_slice("s", ["d1", "d0", "d2"]))
    assert world.devices(make_claim(request(count=2)), make_claim(request())) == [["r=d1", "r=d0"], ["r=d2"]]


def test_a_device_in_use_is_left_out() -> None:
    world = DeviceWorld(make_slice("s", ["d0", "d1"]))
    assert world.devices(make_claim(request()), in_use=held("d0")) == [["r=d1"]]


def test_a_device_that_was_given_to_several_is_in_use_when_it_can_be_shared_no_longer() -> None:
    world = DeviceWorld(make_slice("s", [device("d", **SHARED)]))
    claim = make_claim(request(capacity={"requests": {"memory": "2Gi"}}))
    in_use = DevicesInUse()
    in_use.add(allocated(world.allocate(claim)))
    assert world.devices(claim, in_use=in_use) == [["r=d"]]
    world.pools.put(make_slice("s", ["d"]))
    assert world.devices(make_claim(request()), in_use=in_use) == "request r: 1 device of class gpu: 1 in use"


def test_a_claim_cannot_consume_less_than_nothing_of_a_device_that_others_share() -> None:
    world = DeviceWorld(make_slice("s", [device("d", **SHARED)]))
    answer = short(world.allocate(make_claim(request(capacity={"requests": {"memory": "-8Gi"}}))))
    assert answer.is_error
    assert answer.message == "request r: capacity memory: -8Gi is less than nothing"


def test_who_administers_a_device_shares_it_with_its_user() -> None:
    world = DeviceWorld(make_slice("s", ["d0", "d1"]))
    claim = make_claim(request(adminAccess=True, allocationMode="All"))
    assert world.devices(claim, in_use=held("d0", "d1")) == [["r=d0", "r=d1"]]
    in_use = DevicesInUse()
    in_use.add(allocated(world.allocate(claim)))
    assert world.devices(make_claim(request()), in_use=in_use) == [["r=d0"]]


def test_a_selector_chooses() -> None:
    world = DeviceWorld(make_slice("s", [device("d0", model="a"), device("d1", model="b")]))
    assert world.devices(make_claim(request("r", f'{MODEL} == "b"'))) == [["r=d1"]]


def test_a_changed_class_counts_at_once() -> None:
    world = DeviceWorld(make_slice("s", ["d0"]), classes=[make_class("gpu", "false")])
    search = world.allocator.prepare([make_claim(request()).spec])
    assert isinstance(search.answer(Node("a"), DevicesInUse()), DeviceShortage)
    world.classes["gpu"] = make_class()
    assert not isinstance(search.answer(Node("a"), DevicesInUse()), DeviceShortage)


@pytest.mark.parametrize(
    ("claim", "message"),
    [
        (make_claim(request(count=9)), "request r: 9 devices of class gpu, only 1 can be had: "),
        (make_claim(request("r", "false")), "2 not selected by 'false'"),
        (make_claim(request(capacity={"requests": {"memory": "9Gi"}})), "2 with too little capacity memory"),
        (
            make_claim(request(count=2), constraints=[{"matchAttribute": f"{DRIVER}/model"}]),
            "1 that matchAttribute gpu.example.com/model excludes",
        ),
    ],
)
def test_a_shortage_says_what_is_short(claim: Any, message: str) -> None:
    world = DeviceWorld(make_slice("s", ["d0", device("d1", taints=[TAINT])]))
    answer = short(world.allocate(claim))
    assert message in answer.message
    assert (answer.is_error, answer.request, answer.device_class) == (False, "r", "gpu")


def test_a_shortage_counts_the_devices_by_reason() -> None:
    world = DeviceWorld(make_slice("s", ["d0", "d1", device("d2", taints=[TAINT])]))
    answer = short(world.allocate(make_claim(request()), in_use=held("d0", "d1")))
    assert [(each.lack, each.detail, each.devices) for each in answer.rejections] == [
        (Lack.IN_USE, "", 2),
        (Lack.TAINT, "broken=:NoExecute", 1),
    ]


@pytest.mark.parametrize(
    ("claim", "message"),
    [
        (make_claim(request(device_class="none")), "request r: device class none does not exist"),
        (make_claim({"name": "r"}), "request r: unknown request type"),
        (make_claim(request("r", f"{MODEL} == 1")), "CEL runtime error: no such key: model"),
        (make_claim(request("r", "1 +")), "CEL compile error: Syntax error"),
        (make_claim(request(count=33)), "number of requested devices 33 exceeds the claim limit of 32"),
        (make_claim(request(), constraints=[{}]), "constraint #0: empty constraint"),
        (make_claim(request(allocationMode="Some")), "unsupported count mode Some"),
        (make_claim(request(capacity={"requests": {"memory": "much"}})), 'bad quantity "much"'),
    ],
)
def test_a_claim_that_is_at_fault_is_an_error(claim: Any, message: str) -> None:
    answer = short(DeviceWorld(make_slice("s", ["d0"])).allocate(claim))
    assert message in answer.message
    assert answer.is_error


def test_alternatives_are_tried_in_order() -> None:
    options = [{"name": "many", **exactly(count=3)}, {"name": "few", **exactly(count=1)}]
    claim = make_claim({"name": "r", "firstAvailable": options}, request("x"))
    assert DeviceWorld(make_slice("s", ["d0", "d1"])).devices(claim) == [["r/few=d0", "x=d1"]]
    assert DeviceWorld(make_slice("s", ["d0", "d1", "d2", "d3"])).devices(claim) == [
        ["r/many=d0", "r/many=d1", "r/many=d2", "x=d3"]
    ]


def test_an_alternative_that_needs_more_devices_than_a_claim_may_have_is_passed_over() -> None:
    world = DeviceWorld(make_slice("s", [f"d{place}" for place in range(40)]))
    options = [{"name": "many", **exactly(count=20)}, {"name": "few", **exactly(count=1)}]
    claim = make_claim(request("x", count=20), {"name": "r", "firstAvailable": options})
    answer = allocated(world.allocate(claim))
    assert [each.request for each in answer.devices.results[20:]] == ["r/few"]


def test_all_devices_wait_for_pools_that_are_incomplete() -> None:
    slices = [make_slice("s", ["d0"]), make_slice("t", ["d0"], pool={"resourceSliceCount": 2})]
    answer = short(DeviceWorld(*slices).allocate(make_claim(request(allocationMode="All"))))
    assert answer.message == (
        "request r: asks for all devices, but resource pool gpu.example.com/t is being updated"
    )


def test_versions_and_numbers_are_different_values_of_an_attribute() -> None:
    devices = [device("d0", attributes={"x": {"version": "1.0.0"}}), device("d1", x="1.0.0")]
    claim = make_claim(request(count=2), constraints=[{"matchAttribute": f"{DRIVER}/x"}])
    assert isinstance(DeviceWorld(make_slice("s", devices)).allocate(claim), DeviceShortage)


def test_lists_match_if_they_have_a_value_in_common() -> None:
    def world(*lists: list[int]) -> DeviceWorld:
        devices = [device(f"d{at}", attributes={"x": {"ints": each}}) for at, each in enumerate(lists)]
        return DeviceWorld(make_slice("s", devices))

    match = make_claim(request(count=2), constraints=[{"matchAttribute": f"{DRIVER}/x"}])
    assert world([1, 2], [3], [2, 3]).devices(match) == [["r=d0", "r=d2"]]
    distinct = make_claim(request(count=2), constraints=[{"distinctAttribute": f"{DRIVER}/x"}])
    assert world([1, 2], [2, 3], [3]).devices(distinct) == [["r=d0", "r=d2"]]


def test_distinct_attributes_differ_pair_by_pair() -> None:
    devices = [device(f"d{at}", model=model) for at, model in enumerate("aba")]
    claim = make_claim(request(count=3), constraints=[{"distinctAttribute": f"{DRIVER}/model"}])
    assert isinstance(DeviceWorld(make_slice("s", devices)).allocate(claim), DeviceShortage)


# -- shared devices


def test_shares_have_ids_of_their_own_that_stay_the_same() -> None:
    world = DeviceWorld(make_slice("s", [device("d", **SHARED)]))
    asked = request(capacity={"requests": {"memory": "3Gi"}})
    claims = [make_claim(asked, name=name) for name in ("one", "two")]
    answer = world.allocate(*claims)
    assert isinstance(answer, Allocation)
    ids = [result.devices.results[0].share_id for result in answer.results]
    assert len(set(ids)) == 2
    assert answer == world.allocate(*claims)
    assert answer.results[0].devices.results[0].consumed_capacity == {"memory": "3Gi"}


def test_shares_that_are_in_use_leave_the_rest() -> None:
    world = DeviceWorld(make_slice("s", [device("d", **SHARED)]))
    claim = make_claim(request(capacity={"requests": {"memory": "3Gi"}}))
    in_use = DevicesInUse()
    for taken in ("one", "two"):
        claim.metadata.uid = taken
        in_use.add(allocated(world.allocate(claim, in_use=in_use)))
    assert isinstance(world.allocate(claim, in_use=in_use), DeviceShortage)
    in_use.remove(allocated(world.allocate(claim)))
    assert isinstance(world.allocate(claim, in_use=in_use), Allocation)


# -- results


def test_configuration_of_the_class_comes_before_that_of_the_claim() -> None:
    opaque = {"driver": DRIVER, "parameters": {"mode": 1}}
    options = [{"name": "big", **exactly(count=9)}, {"name": "small", **exactly()}]
    claim = make_claim(
        request("x"),
        {"name": "r", "firstAvailable": options},
        config=[
            {"opaque": opaque},
            {"requests": ["r/small"], "opaque": opaque},
            {"requests": ["r/big"], "opaque": opaque},
        ],
    )
    world = DeviceWorld(make_slice("s", ["d0", "d1"]), classes=[make_class(config=[{"opaque": opaque}])])
    configs = allocated(world.allocate(claim)).devices.config
    assert [(each.source, each.requests) for each in configs] == [
        ("FromClass", ("x", "r/small")),
        ("FromClaim", ()),
        ("FromClaim", ("r/small",)),
    ]


def test_an_allocation_names_the_nodes_that_can_use_it() -> None:
    zone = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["z"]}]}]}
    selected = make_slice("s", ["d"], nodeSelector=zone)
    everywhere = make_slice("t", [device("e", bindsToNode=True)], allNodes=True)
    claim = make_claim(request("r", "!device.allowMultipleAllocations"))
    here = {"node": "a", "labels": {"zone": "z"}}
    result = allocated(DeviceWorld(selected).allocate(claim, **here))
    assert result.node_selector is not None
    assert [each.key for each in result.node_selector.node_selector_terms[0].match_expressions] == ["zone"]
    bound = allocated(DeviceWorld(everywhere).allocate(claim, **here))
    assert bound.node_selector is not None
    assert bound.node_selector.node_selector_terms[0].match_fields[0].values == ("a",)
    assert isinstance(DeviceWorld(selected).allocate(claim), DeviceShortage)
