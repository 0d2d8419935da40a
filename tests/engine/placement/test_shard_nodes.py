"""Nodes of our own: the only ones, or the first to be tried (spec 05 11.3)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.model.shard import Shard
from stromboli.testing import World
from tests.properties.strategies import examples

ALLOCATE = "enqueue, allocate, backfill"
PLUGINS = "priority gang | predicates nodeorder"


def sharded(nodes: str, *own: str, strict: bool) -> World:
    world = World(nodes=nodes)
    world.cluster.set_shard(Shard(own, strict))
    return world


def test_with_hard_shards_nothing_else_is_used_and_that_is_said() -> None:
    world = sharded("n1 cpu=4; n2 cpu=1; n3 cpu=4", "n2", strict=True).job("job", pods=2, cpu=1, minimum=1)
    result = world.run(ALLOCATE, PLUGINS)
    assert result.binds == {"default/job-0": "n2"}
    assert "2 node isn't in scheduler node shard" in result.verdict("job-1").message


def test_with_soft_shards_others_serve_when_ones_own_are_full() -> None:
    world = sharded("n1 cpu=9; n2 cpu=1; n3 cpu=1", "n2", "n3", strict=False).job("job", pods=3, cpu=1)
    assert set(world.run(ALLOCATE, PLUGINS).binds.values()) == {"n1", "n2", "n3"}


def test_room_now_elsewhere_goes_before_room_to_come_at_home() -> None:
    world = sharded("home cpu=1; away cpu=1", "home", strict=False)
    world.job("old", cpu=1, running_on="home")
    leaving = world.task("old-0")
    world.cluster.move(leaving, type(leaving.status).RELEASING, leaving.node)
    world.job("new", cpu=1)
    assert world.run(ALLOCATE, PLUGINS).binds == {"default/new-0": "away"}


@pytest.mark.parametrize("strict", [True, False])
def test_room_is_made_at_home(strict: bool) -> None:
    world = sharded("a cpu=1; home cpu=1", "home", strict=strict)
    for name in ("a", "home"):
        world.job(f"old-{name}", cpu=1, priority=1, running_on=name, minimum=0)
    world.job("urgent", cpu=1, priority=9)
    assert world.run("enqueue, allocate, preempt", PLUGINS).evicted == ["default/old-home-0"]


def test_a_shard_that_changes_is_taken_over_by_the_next_cycle() -> None:
    world = sharded("n1 cpu=9; n2 cpu=9", strict=True).job("job", pods=2, cpu=1, minimum=1)
    assert not world.run(ALLOCATE, PLUGINS).binds
    world.cluster.set_shard(Shard({"n2"}, strict=True))
    assert set(world.step().binds.values()) == {"n2"}


@pytest.mark.slow
@examples(30)
@given(
    own=st.sets(st.sampled_from(["n0", "n1", "n2", "n3"])),
    sizes=st.lists(st.integers(1, 4), min_size=4, max_size=4),
    pods=st.integers(1, 12),
)
def test_a_soft_shard_places_as_many_as_no_shard_and_a_hard_one_only_at_home(
    own: set[str], sizes: list[int], pods: int
) -> None:
    nodes = "; ".join(f"n{number} cpu={size}" for number, size in enumerate(sizes))
    at_home = sum(size for number, size in enumerate(sizes) if f"n{number}" in own)
    for strict, room in ((True, at_home), (False, sum(sizes))):
        world = sharded(nodes, *own, strict=strict).job("job", pods=pods, minimum=1, cpu=1)
        binds = world.run(ALLOCATE, PLUGINS).binds.values()
        assert len(binds) == min(pods, room)
        assert sum(node in own for node in binds) == min(pods, at_home)
