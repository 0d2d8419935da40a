"""Volumes and claims in numbers and shapes that nobody needs cost a bounded time, and what is wrong is refused."""

from __future__ import annotations

import time

import pytest

from stromboli.api.errors import BadObject
from stromboli.model.volumes.claim_kind import kind_of
from stromboli.testing import World
from tests.storage_manifests import Manifest, capacity, claim, claiming, storage_class, volume

PLACE, PLUGINS = "enqueue, allocate", "gang predicates"
NODES = "; ".join(f"n{number} cpu=32" for number in range(50))
SECONDS = 20.0
"""Far more than it takes: without a bound each of these takes minutes."""


@pytest.mark.parametrize(("volumes", "node"), [(1000, "n0"), (999, None)])
def test_a_pod_with_a_thousand_claims_gets_its_answer_in_bounded_time(volumes: int, node: str | None) -> None:
    world = World(nodes=NODES).add(storage_class())
    names = [f"c{number}" for number in range(1000)]
    world.add(*(claim(name, f"{number + 1}Mi") for number, name in enumerate(names)))
    world.add(*(volume(f"v{number}", "10Gi", "n0", "n1") for number in range(volumes)))
    world.job("j", cpu=1, spec=claiming(*names))
    begin = time.process_time()
    assert world.run(PLACE, PLUGINS).binds == ({"default/j-0": node} if node else {})
    world.step()
    assert time.process_time() - begin < SECONDS


def test_a_pod_with_claims_of_many_kinds_is_refused_in_bounded_time() -> None:
    world = World(nodes=NODES).add(storage_class())
    names = [f"c{number}" for number in range(600)]
    world.add(*(claim(name, selector={"matchLabels": {"for": name}}) for name in names))
    world.add(*(volume(f"v{number}", labels={"for": f"c{number}"}) for number in range(600)))
    world.job("j", cpu=1, spec=claiming(*names))
    world.job("few", cpu=1, spec=claiming(*names[:20]))
    begin = time.process_time()
    assert world.run(PLACE, PLUGINS).binds == {"default/few-0": "n0"}
    assert time.process_time() - begin < SECONDS


def test_a_claim_with_a_huge_selector_is_refused() -> None:
    world = World(nodes=NODES).add(storage_class(), *(volume(f"v{number}") for number in range(100)))
    unlike = [{"key": f"k{number}", "operator": "NotIn", "values": ["x"]} for number in range(20_000)]
    world.add(claim("data", selector={"matchExpressions": unlike}))
    result = world.job("j", cpu=1, spec=claiming("data")).run(PLACE, PLUGINS)
    assert result.why("j-0") == (
        '0/50 nodes are unavailable: 50 plugin VolumeBinding pre-predicates failed persistentvolumeclaim "data" has '
        "40000 labels, expressions and values in its selector, more than 64."
    )


def test_volumes_with_huge_affinities_are_matched_in_bounded_time() -> None:
    world = World(nodes=NODES).add(storage_class(), claim("data"))
    everywhere = [f"n{number}" for number in range(2000)]
    world.add(*(volume(f"v{number}", "10Gi", *everywhere) for number in range(100)))
    world.job("j", cpu=1, spec=claiming("data"))
    begin = time.process_time()
    assert len(world.run(PLACE, PLUGINS).binds) == 1
    assert time.process_time() - begin < SECONDS


@pytest.mark.parametrize(
    "bad",
    [
        volume("v", "much"),
        volume("v", "-1Gi"),
        claim("c", "1e99"),
        capacity("n", "10Gib"),
        capacity("n", "1Gi", maximumVolumeSize="-5"),
    ],
)
def test_amounts_that_are_none_are_refused_and_nothing_changes(bad: Manifest) -> None:
    world = World(nodes="n cpu=4").add(storage_class(), volume("v"), claim("c"))
    before = world.cluster.volumes.objects_version
    with pytest.raises((BadObject, ValueError)):
        world.add(bad)
    assert world.cluster.volumes.objects_version == before
    assert world.job("j", cpu=1, spec=claiming("c")).run(PLACE, PLUGINS).binds == {"default/j-0": "n"}


def test_what_is_remembered_of_changes_does_not_grow_for_ever() -> None:
    world = World(nodes="n cpu=4").add(storage_class(), volume("v"), claim("c"))
    free = world.cluster.volumes.free
    kind = kind_of(world.cluster.objects.claims["default/c"])
    for _ in range(300):
        assert free.serving(kind).smallest(0, kind.request) == "v"
        free.take("v", 1)
        assert free.serving(kind).smallest(0, kind.request) == ""
        free.take("v", -1)
    assert sum(map(len, free._changes.values())) < 100
