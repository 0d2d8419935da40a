"""Limits of queues on device classes."""

from __future__ import annotations

import pytest

from stromboli.engine.decisions import QueueStatus
from stromboli.testing import World
from tests.device_manifests import allocated, claim, device_class, request, reserved, resource_slice, uses
from tests.manifests import group, pod

PLACE = "enqueue, allocate"
FLAT = "gang, predicates, capacity"
TREE = """
actions: "enqueue, allocate"
tiers:
- plugins:
  - name: gang
  - name: predicates
  - name: capacity
    enableHierarchy: true
"""


def queue(name: str, parent: str = "root", **capability: object) -> dict[str, object]:
    limits = {"cpu": "100", "memory": "100Gi", **capability}
    spec = {"weight": 1, "parent": parent, "capability": limits}
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": spec,
    }


def world(*queues: dict[str, object]) -> World:
    made = World(nodes="a cpu=32 memory=64Gi").add(device_class(), resource_slice("a", 8), *queues)
    for name in "cdefg":
        made.add(claim(name))
    return made


def test_a_queue_gets_no_more_devices_than_its_capability_says_and_why() -> None:
    made = world(queue("q", **{"deviceclass/gpu": "2"}))
    for name in "cde":
        made.job(name, cpu=1, queue="q", spec=uses(name))
    result = made.run(PLACE, FLAT)
    assert sorted(result.binds) == ["default/c-0", "default/d-0"]
    explained = result.pending["default/e"]
    assert "its capability is deviceclass/gpu 2, deviceclass/gpu 2 is in use" in explained.message
    assert 'the capability of queue "q" has too little deviceclass/gpu left' in explained.sentence
    assert "raise that capability" in explained.sentence


def test_a_gang_that_asks_for_more_devices_than_its_queue_may_have_can_never_start() -> None:
    made = world(queue("q", **{"deviceclass/gpu": "4"})).add(group("j", 5, queue="q"))
    made.add(*(pod(name, "j", spec=uses(name)) for name in "cdefg"))
    explained = made.run(PLACE, FLAT).pending["default/j"]
    told = (
        "it requests deviceclass/gpu 5 and the capability is deviceclass/gpu 4, so it can never "
        "start: request less or raise that capability"
    )
    assert explained.sentence.endswith(told)
    assert explained.hint == told


def test_a_count_of_zero_and_another_class_limit_nothing() -> None:
    made = world(queue("q", **{"deviceclass/gpu": "0", "deviceclass/nic": "1"}))
    for name in "cde":
        made.job(name, cpu=1, queue="q", spec=uses(name))
    assert len(made.run(PLACE, FLAT).binds) == 3


def test_a_claim_that_the_queue_uses_already_costs_nothing() -> None:
    made = world(queue("q", **{"deviceclass/gpu": "1"})).job("j", pods=3, cpu=1, queue="q", spec=uses("c"))
    assert len(made.run(PLACE, FLAT).binds) == 3


def test_devices_that_were_given_back_count_no_longer() -> None:
    made = world(queue("q", **{"deviceclass/gpu": "1"}))
    made.job("c", cpu=1, queue="q", spec=uses("c")).job("d", cpu=1, queue="q", spec=uses("d"))
    assert made.run(PLACE, FLAT).binds == {"default/c-0": "a"}
    made.finish("c-0")
    assert made.step().binds == {"default/d-0": "a"}


def test_the_limit_of_a_queue_above_holds_for_all_below_it() -> None:
    limit = {"deviceclass/gpu": "3"}
    made = world(queue("top", **limit), queue("left", "top", **limit), queue("right", "top", **limit))
    for name, below in zip("cdefg", ("left", "right", "left", "right", "left"), strict=True):
        made.job(name, cpu=1, queue=below, spec=uses(name))
    assert len(made.run(policy=TREE).binds) == 3
    assert made.step().binds == {}


SHARED_GPU = {"name": "g0", "capacity": {"memory": {"value": "80Gi"}}, "allowMultipleAllocations": True}


def memory_world(limit: dict[str, object], **asked: str) -> World:
    """A node with a GPU of 80 Gi that pods of the queue `q` share, each by a claim on so much of its memory."""
    made = World(nodes="a cpu=32 memory=64Gi").add(device_class(), queue("q", **limit))
    made.add(resource_slice("a", [SHARED_GPU]))
    for name, memory in asked.items():
        made.add(claim(name, 1, request(capacity={"requests": {"memory": memory}})))
        made.job(name, cpu=1, queue="q", spec=uses(name))
    return made


def test_a_queue_gets_no_more_device_memory_than_its_capability_says() -> None:
    made = memory_world({"memory.deviceclass/gpu": "50Gi"}, c="20Gi", d="40Gi", e="20Gi")
    result = made.run(PLACE, FLAT)
    assert sorted(result.binds) == ["default/c-0", "default/e-0"]
    explained = result.pending["default/d"].sentence
    assert 'the capability of queue "q" has too little memory.deviceclass/gpu left' in explained


def test_a_queue_that_limits_a_class_gives_none_of_the_capacities_that_it_leaves_out() -> None:
    """As in Volcano: the limit of a dimension that the capability does not name is zero."""
    made = memory_world({"deviceclass/gpu": "4"}, c="20Gi")
    assert made.run(PLACE, FLAT).binds == {}


def test_the_device_memory_of_queues_above_is_limited_too() -> None:
    limit = {"memory.deviceclass/gpu": "30Gi"}
    made = memory_world(limit).add(queue("top", **limit), queue("left", "top", **limit))
    for name in "cd":
        made.add(claim(name, 1, request(capacity={"requests": {"memory": "20Gi"}})))
        made.job(name, cpu=1, queue="left", spec=uses(name))
    assert len(made.run(policy=TREE).binds) == 1


def test_capacities_of_devices_do_not_count_when_switched_off() -> None:
    policy = """
actions: "enqueue, allocate"
tiers:
- plugins:
  - name: gang
  - name: predicates
  - name: capacity
    arguments:
      capacity.DRAConsumableCapacityEnable: false
"""
    made = memory_world({"memory.deviceclass/gpu": "50Gi"}, c="20Gi", d="40Gi", e="20Gi")
    assert len(made.run(policy=policy).binds) == 3


def test_a_job_whose_minimum_exceeds_the_devices_of_its_queue_is_not_admitted() -> None:
    made = world(queue("q", **{"deviceclass/gpu": "1"})).add(claim("two", 2))
    made.job("j", cpu=1, queue="q", min_resources={"cpu": 1}, spec=uses("two"))
    result = made.run(PLACE, FLAT)
    assert result.phases["default/j"] == "Pending"
    assert "insufficient deviceclass/gpu" in result.pending["default/j"].message


def test_the_status_of_a_queue_and_of_those_above_lists_devices() -> None:
    made = world(queue("q")).add(allocated(claim("c", 2), "a", "g0", "g1", reserved_for=(reserved("j-0"),)))
    made.job("j", pods=2, cpu=1, queue="q", running_on=["a", "a"], spec=uses("c"))
    decisions = made.run(PLACE, FLAT).decisions
    statuses = {each.name: each.allocated for each in decisions if isinstance(each, QueueStatus)}
    assert statuses["q"]["deviceclass/gpu"] == "2"
    assert statuses["root"]["deviceclass/gpu"] == "2"
    assert "deviceclass/gpu" not in statuses.get("default", {})


BY_CLASS = "deviceclass.resource.kubernetes.io/gpu"
BY_NAME = "example.com/gpu"


def extended_world(*queues: dict[str, object]) -> World:
    made = World(nodes="a cpu=32 memory=64Gi")
    return made.add(device_class(extendedResourceName=BY_NAME), resource_slice("a", 8), *queues)


@pytest.mark.parametrize("resource", [BY_CLASS, BY_NAME])
def test_extended_resources_that_devices_serve_count_against_the_limit_too(resource: str) -> None:
    made = extended_world(queue("q", **{"deviceclass/gpu": "4"}))
    made.job("large", cpu=1, queue="q", resources={resource: 5})
    for name in ("one", "two", "three"):
        made.job(name, cpu=1, queue="q", resources={resource: 2})
    result = made.run(PLACE, FLAT)
    assert sorted(result.binds) == ["default/one-0", "default/two-0"]
    assert "its capability is deviceclass/gpu 4, deviceclass/gpu 4 is in use" in (
        result.pending["default/three"].message
    )
    assert made.step().binds == {}  # the claims that were made for them count, and only once
    made.finish("one-0")
    assert made.step().binds == {"default/three-0": "a"}


def test_claims_and_extended_resources_count_against_the_same_limit() -> None:
    made = extended_world(queue("q", **{"deviceclass/gpu": "3"})).add(claim("c", 2))
    made.job("claims", cpu=1, queue="q", spec=uses("c"))
    made.job("asks", pods=2, minimum=1, cpu=1, queue="q", resources={BY_NAME: 1})
    assert len(made.run(PLACE, FLAT).binds) == 2


def test_extended_resources_count_in_queues_above() -> None:
    limit = {"deviceclass/gpu": "3"}
    made = extended_world(
        queue("top", **limit), queue("left", "top", **limit), queue("right", "top", **limit)
    )
    for name, below in zip("cdefg", ("left", "right", "left", "right", "left"), strict=True):
        made.job(name, cpu=1, queue=below, resources={BY_NAME: 1})
    assert len(made.run(policy=TREE).binds) == 3
    assert made.step().binds == {}


def test_a_job_whose_extended_resources_exceed_the_devices_of_its_queue_is_not_admitted() -> None:
    made = extended_world(queue("q", **{"deviceclass/gpu": "3"}))
    made.job("j", pods=2, cpu=1, queue="q", min_resources={"cpu": 1}, resources={BY_NAME: 2})
    result = made.run(PLACE, FLAT)
    assert result.phases["default/j"] == "Pending"
    assert "insufficient deviceclass/gpu" in result.pending["default/j"].message
