"""Slices found by the labels of nodes."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.model.devices.pools import pool_index
from stromboli.model.devices.pools.node_pools import is_relevant
from stromboli.model.devices.pools.pool_devices import ContentTable, PoolId, PoolSlice
from stromboli.model.devices.pools.pool_index import PoolIndex, ReachIndex
from stromboli.model.node_columns import Node
from tests.model.devices.device_worlds import DRIVER, device, make_slice


def term(key: str, operator: str, *values: str, part: str = "matchExpressions") -> dict[str, Any]:
    return {part: [{"key": key, "operator": operator, "values": list(values)}]}


def selector(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"nodeSelectorTerms": list(terms)}


RACK = term("rack", "In", "r1", "r2")
SELECTORS = [
    selector(RACK),
    selector(RACK, term("zone", "In", "z")),
    selector(RACK, term("zone", "NotIn", "z")),
    selector({**RACK, "matchFields": term("metadata.name", "In", "a", part="matchFields")["matchFields"]}),
    selector(term("metadata.name", "In", "b", part="matchFields")),
    selector(term("metadata.name", "NotIn", "b", part="matchFields")),
    selector(term("rack", "Exists")),
    selector(term("rack", "In")),
    selector({}),
    selector(),
]
SPECS: list[dict[str, Any]] = [
    {"allNodes": True},
    {},
    *({"nodeSelector": each} for each in SELECTORS),
]
NODES = [
    Node(name, labels=labels)
    for name in "ab"
    for labels in ({}, {"rack": "r1"}, {"rack": "r9", "zone": "z"}, {"zone": "z"})
]


def parsed(name: str, devices: list[Any], **spec: Any) -> PoolSlice:
    return PoolSlice(make_slice(name, devices, **spec), ContentTable())


def slices() -> list[PoolSlice]:
    whole = [
        parsed(f"s{place}", ["d"], **({"nodeSelector": None} | spec)) for place, spec in enumerate(SPECS)
    ]
    places = [*SPECS, {"nodeName": "b"}]
    chosen = [
        parsed(f"c{place}", [device("d", **spec), device("e", nodeName="a")], perDeviceNodeSelection=True)
        for place, spec in enumerate(places)
    ]
    return [*whole, *chosen, parsed("none", [], perDeviceNodeSelection=True)]


def test_a_node_finds_all_slices_that_it_sees() -> None:
    index, all_slices = ReachIndex(), slices()
    for each in all_slices:
        index.add(each)
    for node in NODES:
        seen = {each.name for each in all_slices if is_relevant(each, node)}
        assert seen <= {each.name for each in index.slices_for(node)}
    for each in all_slices:
        index.remove(each)
    assert not index._labelled
    assert not index._everywhere


def racks(count: int) -> tuple[PoolIndex, list[Node]]:
    pools = PoolIndex()
    for rack in range(count):
        chosen = selector(term("rack", "In", f"r{rack}"))
        pools.put(make_slice(f"rack-{rack}", ["d"], nodeSelector=chosen))
    return pools, [Node(f"n{rack}", labels={"rack": f"r{rack}"}) for rack in range(count)]


def test_a_node_is_held_against_slices_for_its_labels_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[str] = []
    monkeypatch.setattr(
        pool_index, "is_relevant", lambda slice, node: held.append(slice.name) or is_relevant(slice, node)
    )
    pools, nodes = racks(20)
    assert [[pool.id.pool for pool in pools.pools_of(node)] for node in nodes] == [
        [f"rack-{rack}"] for rack in range(20)
    ]
    assert len(held) == 20


def test_devices_that_changed_hands_concern_the_nodes_that_see_them() -> None:
    pools, nodes = racks(3)
    for node in nodes:
        pools.pools_of(node)
    assert pools.nodes_seeing(PoolId(DRIVER, "rack-1")) == {"n1"}
