"""Extended resources that devices serve."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.engine.decisions import Bind, ReleaseClaim
from stromboli.model.devices.allocator import ClaimSearch
from stromboli.model.devices.claim_use import ExtendedResourceGrant
from stromboli.model.devices.device_ledger import DeviceLedger
from stromboli.model.node_columns import Node
from stromboli.testing import World
from tests.device_manifests import DRIVER, allocated, claim, device_class, reserved, resource_slice, uses

PLACE, PLUGINS = "enqueue, allocate", "gang, predicates, capacity"
GPU = "example.com/gpu"


def world(**devices: int) -> World:
    nodes = "; ".join(f"{name} cpu=8 memory=8Gi" for name in (*devices, "bare"))
    made = World(nodes=nodes).add(device_class(extendedResourceName=GPU))
    return made.add(*(resource_slice(node, count) for node, count in devices.items()))


def grant(result: Any, pod: str) -> ExtendedResourceGrant:
    bind = next(each for each in result.decisions if isinstance(each, Bind) and each.name == pod)
    (found,) = [each for each in bind.grants if isinstance(each, ExtendedResourceGrant)]
    return found


def test_a_pod_that_asks_for_an_extended_resource_gets_devices_by_a_claim_of_its_own() -> None:
    made = world(a=1, b=2).job("j", cpu=1, resources={GPU: 2})
    result = made.run(PLACE, PLUGINS)
    assert result.binds == {"default/j-0": "b"}
    given = grant(result, "j-0")
    (asked,) = given.requests
    assert (asked.name, asked.exactly and asked.exactly.count) == ("container-0-request-1", 2)
    assert [(each.resource_name, each.request_name) for each in given.mappings] == [(GPU, asked.name)]
    assert [each.device for each in given.allocation.devices.results] == ["g0", "g1"]
    made.rehearsal.sync()
    (made_claim,) = made.cluster.objects.resource_claims.values()
    assert made_claim.metadata.annotations == {"resource.kubernetes.io/extended-resource-claim": "true"}
    assert made_claim.status.reserved_for[0].name == "j-0"


def test_every_class_has_a_resource_by_its_name() -> None:
    made = world(a=1).job("j", cpu=1, resources={"deviceclass.resource.kubernetes.io/gpu": 1})
    assert made.run(PLACE, PLUGINS).binds == {"default/j-0": "a"}


def test_no_device_serves_both_a_claim_and_an_extended_resource() -> None:
    made = world(a=2).add(claim("c")).job("c", cpu=1, spec=uses("c"))
    made.job("j", cpu=1, resources={GPU: 1}).job("k", cpu=1, resources={GPU: 1})
    result = made.run(PLACE, PLUGINS)
    assert len(result.binds) == 2
    assert made.step(2).binds == {}
    made.finish(sorted(result.binds)[0].partition("/")[2])
    assert len(made.step().binds) == 1


def test_a_node_that_lists_the_resource_serves_it_as_before() -> None:
    sizes = {"cpu": "8", "memory": "8Gi", "pods": "110", GPU: "2"}
    listing = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "a"},
        "status": {"allocatable": sizes},
    }
    made = World(nodes="b cpu=8 memory=8Gi").add(listing, device_class(extendedResourceName=GPU))
    result = made.job("j", pods=2, cpu=1, resources={GPU: 1}).run(PLACE, PLUGINS)
    assert set(result.binds.values()) == {"a"}
    assert not any(each.grants for each in result.decisions if isinstance(each, Bind))


def test_a_claim_left_by_an_attempt_that_failed_is_deleted_before_the_next() -> None:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "j-0", "uid": "Pod/default/j-0", "controller": True}
    meta = {
        "annotations": {"resource.kubernetes.io/extended-resource-claim": "true"},
        "ownerReferences": [owner],
    }
    left = allocated(claim("j-0-extended-resources-x", 1, **meta), "a", "g0", reserved_for=(reserved("j-0"),))
    made = world(a=1).add(left).job("j", cpu=1, resources={GPU: 1})
    result = made.run(PLACE, PLUGINS)
    assert [each.delete for each in result.decisions if isinstance(each, ReleaseClaim)] == [True]
    assert "cannot schedule extended resource claim" in result.why("j-0")
    assert made.step().binds == {"default/j-0": "a"}


def test_a_change_of_a_slice_costs_a_look_at_its_node_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    made = world(a=1, b=1, c=1).job("j", cpu=1, resources={GPU: 2})
    assert made.run(PLACE, PLUGINS).binds == {}
    counted: list[str] = []
    count = DeviceLedger.most_served

    def most_served(ledger: DeviceLedger, node: Node, search: ClaimSearch) -> int:
        counted.append(node.name)
        return count(ledger, node, search)

    monkeypatch.setattr(DeviceLedger, "most_served", most_served)
    assert made.step().binds == {}
    assert counted == []
    assert made.add(resource_slice("b", 2)).step().binds == {"default/j-0": "b"}
    assert counted == ["b"]


def test_init_containers_use_again_what_later_containers_are_given() -> None:
    def container(name: str, count: int) -> dict[str, Any]:
        return {"name": name, "resources": {"requests": {GPU: str(count)}, "limits": {GPU: str(count)}}}

    spec = {
        "initContainers": [container("small", 1), container("large", 3)],
        "containers": [container("main", 2)],
    }
    result = world(a=3).job("j", spec=spec).run("enqueue, allocate, backfill", PLUGINS)
    given = grant(result, "j-0")
    counts = {each.name: each.exactly.count for each in given.requests if each.exactly}
    assert counts == {"container-1-request-0": 1, "container-2-request-0": 2}
    mapped = [(each.container_name, each.request_name) for each in given.mappings]
    assert mapped == [
        ("main", "container-2-request-0"),
        ("small", "container-2-request-0"),
        ("large", "container-2-request-0"),
        ("large", "container-1-request-0"),
    ]
    assert len(given.allocation.devices.results) == 3
    assert {each.driver for each in given.allocation.devices.results} == {DRIVER}
