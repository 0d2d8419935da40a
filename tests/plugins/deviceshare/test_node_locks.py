"""A node serves one pod at a time if its device plugin requires that."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from stromboli.engine.decisions import Bind
from stromboli.model.cards.pod_cards import CardGrant
from stromboli.testing import World
from stromboli.testing.world import NOON
from tests.manifests import group
from tests.plugins.deviceshare.card_worlds import card_pod, card_policy, vgpu, vgpu_node, world_of

LOCKED = card_policy(VGPUEnable=True, NodeLockEnable=True)


def ago(seconds: int) -> str:
    return datetime.fromtimestamp(NOON - seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def locked_world(lock: str, *pods: str) -> World:
    node = vgpu_node("a", annotations={"hamivgpu": lock} if lock else {})
    return world_of(LOCKED, node, *(card_pod(name, vgpu(1000)) for name in pods))


def test_a_grant_names_the_lock_and_the_next_pod_of_the_node_waits() -> None:
    world = locked_world("", "p", "q")
    result = world.step()
    (bind,) = [decision for decision in result.decisions if isinstance(decision, Bind)]
    (grant,) = bind.grants
    assert isinstance(grant, CardGrant)
    assert (bind.name, grant.lock) == ("p", "hamivgpu")
    assert "node(s) have been locked within 5 minutes" in result.why("q")
    assert world.step().binds == {"default/q": "a"}


@pytest.mark.parametrize(
    ("lock", "bound"), [(ago(299), 0), (ago(301), 1), (ago(-(10**6)), 1), ("yesterday", 1)]
)
def test_a_fresh_lock_keeps_pods_away_and_an_old_one_was_left_behind(lock: str, bound: int) -> None:
    world = locked_world(lock, "p")
    assert len(world.step().binds) == bound


def test_a_pod_is_placed_on_a_node_that_is_not_locked() -> None:
    world = locked_world(ago(10), "p")
    world.add(vgpu_node("b"))
    assert world.step().binds == {"default/p": "b"}


def test_a_lock_that_was_taken_off_lets_the_pod_in() -> None:
    world = locked_world(ago(10), "p")
    assert world.step().binds == {}
    world.add(vgpu_node("a"))
    assert world.step().binds == {"default/p": "a"}


def test_without_the_switch_locks_are_ignored() -> None:
    node = vgpu_node("a", annotations={"hamivgpu": ago(10)})
    world = world_of(card_policy(VGPUEnable=True), node, *(card_pod(name, vgpu(1000)) for name in "pq"))
    assert len(world.step().binds) == 2


def test_the_pods_of_a_gang_share_the_lock_of_a_node() -> None:
    """Otherwise a gang of which two pods need the same node could never start."""
    pods = [card_pod(f"g-{i}", vgpu(1000), job="g") for i in range(2)]
    world = world_of(LOCKED, vgpu_node("a"), group("g", 2), *pods)
    assert len(world.step().binds) == 2
