"""Which pools a node sees: generations, completeness, validity, and what a change of a slice touches."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from stromboli.api.decoding import decode
from stromboli.api.errors import BadObject
from stromboli.api.object_checks import check_object
from stromboli.api.types.devices import ResourceSlice
from stromboli.model.devices.pools.pool_index import PoolIndex
from stromboli.model.intake.object_intake import Intake
from stromboli.model.node_columns import Node
from tests.model.devices.device_worlds import DRIVER, device, make_claim, make_slice, request

ZONE = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["z"]}]}]}
COUNTERS = [{"name": "card", "counters": {"slices": {"value": "2"}}}]


def index_of(*slices: ResourceSlice) -> PoolIndex:
    index = PoolIndex()
    for slice in slices:
        index.put(slice)
    return index


def seen(index: PoolIndex, name: str = "a", **labels: str) -> dict[str, Any]:
    """What a node sees: devices by pool, or why there are none."""
    return {
        pool.id.pool: pool.invalid
        or ("incomplete" if pool.is_incomplete else [device.name for device in pool.devices])
        for pool in index.pools_of(Node(name, labels=labels))
    }


def test_a_node_sees_its_own_pools_and_those_that_select_it() -> None:
    index = index_of(
        make_slice("own", ["d"]),
        make_slice("other", ["d"], nodeName="b"),
        make_slice("everywhere", ["d"], allNodes=True),
        make_slice("zone", ["d"], nodeSelector=ZONE),
        make_slice(
            "choosing", [device("d", nodeName="a"), device("e", allNodes=True)], perDeviceNodeSelection=True
        ),
    )
    assert sorted(seen(index)) == ["choosing", "everywhere", "own"]
    assert sorted(seen(index, "b", zone="z")) == ["choosing", "everywhere", "other", "zone"]


def test_the_newest_generation_counts_once_it_is_complete() -> None:
    old, new = (
        make_slice(f"s{generation}", [f"d{generation}"], pool={"name": "p", "generation": generation})
        for generation in (1, 2)
    )
    index = index_of(old)
    assert seen(index) == {"p": ["d1"]}
    index.put(new)
    assert seen(index) == {"p": ["d2"]}
    index.drop("s2")
    assert seen(index) == {"p": ["d1"]}
    index.put(make_slice("s2", ["d2"], pool={"name": "p", "generation": 2, "resourceSliceCount": 2}))
    assert seen(index) == {"p": "incomplete"}


def test_a_pool_is_complete_with_slices_that_the_node_does_not_see() -> None:
    parts = [
        make_slice(f"s-{node}", [f"d-{node}"], nodeName=node, pool={"name": "p", "resourceSliceCount": 2})
        for node in "ab"
    ]
    assert seen(index_of(*parts)) == {"p": ["d-a"]}
    assert seen(index_of(parts[0])) == {"p": "incomplete"}


@pytest.mark.parametrize(
    ("slices", "problem"),
    [
        ([make_slice("s", ["d", "d"])], "duplicate device name d"),
        (
            [make_slice("s", [device("d", consumesCounters=[{"counterSet": "none", "counters": {}}])])],
            "counter set none not found",
        ),
        (
            [
                make_slice(
                    "s",
                    [
                        device(
                            "d", consumesCounters=[{"counterSet": "card", "counters": {"x": {"value": "1"}}}]
                        )
                    ],
                    pool={"resourceSliceCount": 2},
                ),
                make_slice("t", pool={"name": "s", "resourceSliceCount": 2}, sharedCounters=COUNTERS),
            ],
            "counter x not found in counter set card",
        ),
        ([make_slice("s", sharedCounters=[*COUNTERS, *COUNTERS])], "duplicate counter set name card"),
    ],
)
def test_an_invalid_pool_says_why(slices: list[ResourceSlice], problem: str) -> None:
    assert seen(index_of(*slices)) == {"s": problem}


def test_pools_with_counters_that_cannot_be_used_are_seen_by_all() -> None:
    """As in Kubernetes, where counters are relevant for every node."""
    broken = make_slice("s", pool={"resourceSliceCount": 2}, sharedCounters=COUNTERS, nodeName="b")
    assert seen(index_of(broken)) == {"s": "incomplete"}
    assert seen(index_of(make_slice("s", sharedCounters=COUNTERS, nodeName="b"))) == {}


def test_pools_with_binding_conditions_come_last() -> None:
    index = index_of(make_slice("a", [device("d", bindingConditions=["ready"])]), make_slice("b", ["d"]))
    assert list(seen(index)) == ["b", "a"]


def test_what_a_node_sees_is_kept_until_something_that_it_sees_changes() -> None:
    index = index_of(make_slice("own", ["d"]), make_slice("other", ["d"], nodeName="b"))
    node = Node("a")
    before = index.pools_of(node)
    index.put(make_slice("other", ["e"], nodeName="b"))
    assert index.pools_of(node) is before
    index.put(make_slice("everywhere", ["f"], allNodes=True))
    assert index.pools_of(node) is not before


def test_after_any_changes_nodes_see_what_they_would_see_from_the_start() -> None:
    random = Random(1)
    index, kept = PoolIndex(), {}
    for _ in range(150):
        name = f"s{random.randint(0, 5)}"
        if random.random() < 0.3:
            index.drop(name)
            kept.pop(name, None)
        else:
            kept[name] = _random_slice(random, name)
            index.put(kept[name])
        fresh = index_of(*kept.values())
        for node in "ab":
            assert seen(index, node, zone="z") == seen(fresh, node, zone="z")


def _random_slice(random: Random, name: str) -> ResourceSlice:
    where: dict[str, Any] = random.choice(
        [{"nodeName": "a"}, {"nodeName": "b"}, {"allNodes": True}, {"nodeSelector": ZONE}]
    )
    pool = {
        "name": random.choice("pq"),
        "generation": random.randint(1, 2),
        "resourceSliceCount": random.randint(1, 2),
    }
    if random.random() < 0.2:
        return make_slice(name, pool=pool, sharedCounters=COUNTERS, **where)
    consumes = [{"counterSet": "card", "counters": {"slices": {"value": "1"}}}]
    fields = {"consumesCounters": consumes} if random.random() < 0.3 else {}
    return make_slice(name, [device(f"d{random.randint(0, 3)}", **fields)], pool=pool, **where)


# -- hostile objects


def slice_with(**spec: Any) -> Any:
    return decode(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": "s"},
            "spec": {
                "driver": DRIVER,
                "nodeName": "a",
                "pool": {"name": "s", "resourceSliceCount": 1},
                **spec,
            },
        }
    )


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        (
            {"devices": [{"name": f"d{at}"} for at in range(100_000)]},
            "has 100000 devices, at most 128 are allowed",
        ),
        (
            {"devices": [{"name": "d", "attributes": {f"a{at}": {"int": at} for at in range(129)}}]},
            "129 attributes",
        ),
        (
            {"devices": [{"name": "d", "attributes": {"a": {"string": "x" * 2**21}}}]},
            "has 2097152 characters",
        ),
        ({"devices": [{"name": "d", "taints": [{"key": "k"}] * 17}]}, "has 17 taints"),
    ],
)
def test_a_slice_that_is_too_large_is_refused(spec: dict[str, Any], problem: str) -> None:
    with pytest.raises(BadObject, match=problem):
        check_object(slice_with(**spec))


def test_a_claim_that_is_too_large_is_refused_unless_it_is_allocated() -> None:
    claim = make_claim(*(request(f"r{at}") for at in range(33)))
    with pytest.raises(BadObject, match="has 33 requests, at most 32 are allowed"):
        check_object(claim)
    config = [{"opaque": {"driver": DRIVER, "parameters": {"x": "y" * 20_000}}}]
    with pytest.raises(BadObject, match="parameters of 20008 bytes"):
        check_object(make_claim(request(), config=config))


def test_intake_keeps_the_index_and_refuses_a_slice_with_an_amount_that_is_none() -> None:
    intake = Intake()
    good = slice_with(devices=[{"name": "d"}])
    intake.put(good)
    with pytest.raises(BadObject, match="bad quantity"):
        intake.put(slice_with(devices=[{"name": "d", "capacity": {"memory": {"value": "much"}}}]))
    assert seen(intake.cluster.devices.pools) == {"s": ["d"]}
    intake.drop(good)
    assert seen(intake.cluster.devices.pools) == {}
