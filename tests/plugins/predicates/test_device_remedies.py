"""A pod without devices gets the request that fails, on how many nodes, and the remedy."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.plugins.predicates import device_remedies
from stromboli.testing import World
from tests.manifests import group, node, pod

Manifest = dict[str, Any]


def gpu_class(expression: str = "true") -> Manifest:
    selectors = [{"cel": {"expression": expression}}]
    return {"kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {"selectors": selectors}}


def gpus(node: str, count: int, model: str = "a") -> Manifest:
    devices = [{"name": f"g{i}", "attributes": {"model": {"string": model}}} for i in range(count)]
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "d", "nodeName": node, "pool": pool, "devices": devices}
    return {"kind": "ResourceSlice", "metadata": {"name": node}, "spec": spec}


def claiming(name: str, count: int = 1, expression: str = "true") -> list[Manifest]:
    """A pod of group `j`, and its claim."""
    exactly = {"deviceClassName": "gpu", "count": count, "selectors": [{"cel": {"expression": expression}}]}
    spec = {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}
    claim = {"kind": "ResourceClaim", "metadata": {"name": name, "namespace": "default"}, "spec": spec}
    return [claim, pod(name, "j", spec={"resourceClaims": [{"name": "c", "resourceClaimName": name}]})]


def hint(world: World) -> str:
    return world.run(actions="allocate", plugins="gang | predicates").pending["default/j"].hint


def test_what_a_request_lacks_is_reported_by_nodes() -> None:
    world = World().add(node("n1"), node("n2"), gpus("n1", 1), gpus("n2", 2, "b"), gpu_class(), group("j", 1))
    world.add(*claiming("p", 2, 'device.attributes["d"].model == "a"'))
    text = hint(world)
    assert "on 1 node request r: 2 devices of class gpu, only 1 can be had" in text
    assert "on 1 node request r: 2 devices of class gpu: 2 not selected by" in text
    assert text.endswith("the most on one node is 1: request fewer, or add nodes with more")


def test_no_node_of_any_group_is_left_out() -> None:
    world = World().add(gpu_class(), group("j", 1), *claiming("p", 9))
    for number in range(5):
        world.add(node(f"n{number}"), gpus(f"n{number}", number + 1))
    assert "; on 2 nodes something else is missing: " in hint(world)


def sentence(world: World) -> str:
    return world.run(actions="allocate", plugins="gang | predicates").pending["default/j"].sentence


@pytest.mark.parametrize(
    ("count", "expression", "told"),
    [
        (
            9,
            "true",
            "no node has 9 devices of class gpu for request r, even with none in use; the most on one "
            "node is 8: request fewer, or add nodes with more",
        ),
        (
            1,
            'device.attributes["d"].model == "z"',
            'no node has a device that matches selector \'device.attributes["d"].model == "z"\' of '
            "request r: change the selector, or add nodes with such devices",
        ),
    ],
)
def test_no_remedy_is_to_wait_for_devices_that_no_node_has(count: int, expression: str, told: str) -> None:
    world = World().add(node("n1"), node("n2"), gpus("n1", 8), gpu_class(), group("j", 1))
    text = sentence(world.add(*claiming("p", count, expression)))
    assert text.endswith(f"cannot allocate all claims; {told}")


def test_no_remedy_is_to_wait_for_more_devices_than_all_nodes_have() -> None:
    world = World().add(node("n1"), node("n2"), gpus("n1", 1), gpus("n2", 1), gpu_class(), group("j", 3))
    text = sentence(world.add(*claiming("p0"), *claiming("p1"), *claiming("p2")))
    assert "nodes have devices for 2 of the 3 pods that must start together, even with none in use" in text
    assert "wait until" not in text


def test_devices_that_others_have_are_waited_for() -> None:
    world = World().add(node("n1"), gpus("n1", 1), gpu_class(), group("k", 1), group("j", 1))
    held, waiting = claiming("held"), claiming("p")
    held[1] = pod("held", "k", spec={"resourceClaims": [{"name": "c", "resourceClaimName": "held"}]})
    text = sentence(world.add(*held, *waiting))
    assert text.endswith(
        "; wait until devices of class gpu are free, request others, or add nodes that have them"
    )


def test_a_mistake_in_a_selector_is_reported_alone() -> None:
    world = World().add(node("n1"), node("n2"), gpus("n1", 1), gpu_class(), group("j", 1))
    text = sentence(world.add(*claiming("p", 1, 'device.attributes["d"].modell == "a"')))
    assert text.endswith(
        "no such key: modell; fix the selector of the claim or of its class: kubectl get "
        "resourceslices -o yaml shows the attributes of devices, and has() tests whether a device "
        "has one"
    )


def test_the_number_of_pods_of_a_gang_with_devices_is_reported() -> None:
    world = World().add(node("n1"), gpus("n1", 2), gpu_class(), group("j", 3))
    world.add(*claiming("p0"), *claiming("p1"), *claiming("p2"))
    assert hint(world).startswith(
        "devices are available for 2 of 3 pods: nodes have devices for 2 of the 3 pods"
    )


@pytest.mark.parametrize(
    ("objects", "remedy"),
    [
        ([gpus("n1", 1)], "create the DeviceClass, or request an existing one: kubectl get deviceclasses"),
        (
            [gpus("n1", 1), gpu_class("device.nothing +")],
            "fix the selector of the claim or of its class",
        ),
    ],
)
def test_what_is_missing_or_wrong_has_a_way_out(objects: list[Manifest], remedy: str) -> None:
    assert hint(World().add(node("n1"), group("j", 1), *objects, *claiming("p"))) == remedy


def test_what_no_node_has_is_reported_until_a_node_has_it() -> None:
    """Only the ResourceSlice of the node changes, and other pods hold its devices."""
    world = World().add(node("n1"), gpus("n1", 1), gpu_class(), group("j", 1), *claiming("p", 2))
    assert "the most on one node is 1" in sentence(world)
    holder = [{**claiming(f"h{number}")[0]} for number in range(2)]
    for number, claim in enumerate(holder):
        device = {"request": "r", "driver": "d", "pool": "n1", "device": f"g{number}"}
        claim["status"] = {"allocation": {"devices": {"results": [device]}}}
        world.add(claim)
    world.add(gpus("n1", 2))
    assert "even with none in use" not in sentence(world)


def test_what_was_found_is_not_found_again_for_claims_that_ask_for_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World().add(node("n1"), gpus("n1", 1), gpu_class(), group("j", 1), *claiming("p", 2))
    searches = []
    sought = device_remedies._sought_on_nodes
    monkeypatch.setattr(
        device_remedies, "_sought_on_nodes", lambda *asked: searches.append(1) or sought(*asked)
    )
    told = sentence(world)
    world.add(*claiming("q", 2))
    assert (sentence(world), len(searches)) == (told, 1)
    other = World().add(node("n1"), gpus("n1", 3), gpu_class(), group("j", 1), *claiming("p", 4))
    assert "the most on one node is 3" in sentence(other)
