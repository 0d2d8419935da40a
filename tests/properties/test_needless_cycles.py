"""Whatever changes, a cycle that is not begun for it would have placed and evicted nobody."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from stromboli.api.types.meta import Object
from stromboli.api.types.native_group import NativePodGroup
from stromboli.api.types.pod import Pod
from stromboli.api.types.scheduling import PodGroup
from stromboli.engine.decisions import Bind, Decision, Evict
from stromboli.extensions import load_catalog
from stromboli.policy.policy import load_policy
from stromboli.scheduler.mirror.cluster_mirror import ClusterMirror
from stromboli.scheduler.mirror.cluster_watches import ClusterWatches
from stromboli.scheduler.mirror.kubernetes_world import KubernetesWorld
from stromboli.scheduler.mirror.news import NOW
from stromboli.scheduling_loop import Scheduler
from tests.manifests import EPOCH, decoded, group, node, pod, policy, queue
from tests.properties.strategies import contests, examples, worlds

pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")  # two worlds are many words

CATALOG = load_catalog()
PLACING = policy("enqueue, allocate, backfill", "priority gang | drf predicates proportion nodeorder")
EVICTING = policy(
    "enqueue, allocate, preempt, reclaim, backfill",
    "priority gang conformance | drf predicates proportion nodeorder",
)
ROUNDS = 12
"""Cycles after which a world that still changes by itself is left alone."""


class Follower:
    """A scheduler on a mirror into which changes are put by hand; nothing is written."""

    def __init__(self, text: str, objects: list[Object]) -> None:
        nobody: Any = None
        self.mirror = ClusterMirror(ClusterWatches(nobody))
        self.world = KubernetesWorld(self.mirror, lambda orders: None, lambda: EPOCH + 10, clock=lambda: 0.0)
        self.scheduler = Scheduler(self.world, load_policy(text, CATALOG, "test"), CATALOG)
        self.objects = {(type(obj), obj.key): obj for obj in objects}
        for obj in objects:
            self.mirror.seam.changes.put(obj, new=True)

    def places(self) -> list[Decision]:
        """Whom a cycle binds or evicts."""
        return [each for each in self.scheduler.cycle().decisions if isinstance(each, Bind | Evict)]

    def comes_to_rest(self) -> bool:
        """Whether there is soon a cycle that decides nothing at all."""
        return any(not self.scheduler.cycle().decisions for _ in range(ROUNDS))

    def decide_by_news(self) -> list[Decision]:
        """Whom the cycles bind or evict that news starts, one after the other, until there is none."""
        decided: list[Decision] = []
        self.world.absorb()
        for _ in range(ROUNDS):
            if self.world.take_patience(self.scheduler.engine) == math.inf:
                return decided
            outcome = self.scheduler.cycle()
            self.world.note_outcome(outcome)
            decided += [each for each in outcome.decisions if isinstance(each, Bind | Evict)]
        raise AssertionError("cycles start each other for ever")

    def is_news(self) -> bool:
        self.world.absorb()
        return self.world.take_patience(self.scheduler.engine) <= NOW

    def put(self, obj: Object) -> None:
        self.objects[type(obj), obj.key] = obj
        self.mirror.seam.changes.put(obj, new=False)

    def drop(self, obj: Object) -> None:
        if self.objects.pop((type(obj), obj.key), None) is not None:
            self.mirror.seam.changes.drop(obj)

    def echo(self, chance: random.Random) -> None:
        """The API server shows a pod that was bound where it is, running or not yet."""
        placed = [task for task in self.world.cluster.tasks.values() if task.node is not None]
        if placed and isinstance(pod := self.objects.get((Pod, (task := chance.choice(placed)).key)), Pod):
            spec = structs.replace(pod.spec, node_name=task.node.name if task.node else "")
            phase = chance.choice(("Pending", "Running", "Succeeded"))
            self.put(structs.replace(pod, spec=spec, status=structs.replace(pod.status, phase=phase)))


def change(follower: Follower, others: list[Object], chance: random.Random) -> None:
    """One object is added, changed as in another world, told again, deleted, or is what we decided ourselves."""
    known = list(follower.objects.values())
    match chance.randrange(5):
        case 0:
            follower.put(chance.choice(others))
        case 1:
            follower.drop(chance.choice(known))
        case 2:
            groups = [obj for obj in known if isinstance(obj, PodGroup | NativePodGroup)]
            follower.put(chance.choice(groups or known))
        case _:
            follower.echo(chance)


def check(text: str, objects: list[Object], others: list[Object], seed: int) -> None:
    follower, chance = Follower(text, objects), random.Random(seed)
    for _ in range(15):
        if not follower.comes_to_rest():
            return
        change(follower, others, chance)
        if not follower.is_news():
            assert follower.places() == []


@examples(20)
@given(worlds(mostly_pending=True), worlds(mostly_pending=True), st.integers(0, 2**16))
def test_a_cycle_that_is_not_begun_would_have_placed_nobody(
    objects: list[Object], others: list[Object], seed: int
) -> None:
    check(PLACING, objects, others, seed)


@examples(10)
@given(worlds(mostly_pending=True), worlds(mostly_pending=True), st.integers(0, 2**16))
def test_after_the_cycles_that_news_starts_the_next_would_place_nobody(
    objects: list[Object], others: list[Object], seed: int
) -> None:
    follower, chance = Follower(PLACING, objects), random.Random(seed)
    for _ in range(8):
        follower.decide_by_news()
        assert follower.places() == []
        change(follower, others, chance)


@examples(20)
@given(contests(), contests(), st.integers(0, 2**16))
def test_a_cycle_that_is_not_begun_would_have_evicted_nobody(
    objects: list[Object], others: list[Object], seed: int
) -> None:
    check(EVICTING, objects, others, seed)


def test_who_waits_for_the_room_of_a_job_that_starts_is_let_in_without_further_news() -> None:
    """A phase changes at the end of a cycle, so the next one lets others in."""
    policy_text = policy("enqueue, allocate", "gang | overcommit predicates nodeorder")
    first = pod("a-0", "a", cpu=4)
    objects = [queue(), node("n1", cpu=4), node("n2", cpu=4), group("a", 1, phase=""), first]
    objects[3]["spec"]["minResources"] = {"cpu": "4"}
    follower = Follower(policy_text, [decoded(obj) for obj in objects])
    assert len(follower.decide_by_news()) == 1
    second = group("b", 1, phase="")
    second["spec"]["minResources"] = {"cpu": "4"}
    follower.put(decoded(second))
    follower.put(decoded(pod("b-0", "b", cpu=4)))
    assert follower.decide_by_news() == []  # what "a" was let in for is still to be taken
    [task] = [task for task in follower.world.cluster.tasks.values() if task.node is not None]
    assert task.node is not None
    follower.put(decoded(pod("a-0", "a", cpu=4, on=task.node.name, phase="Pending")))
    assert len(follower.decide_by_news()) == 1


def test_a_standby_remembers_no_news_as_it_decides_nothing() -> None:
    follower = Follower(PLACING, [decoded(queue()), decoded(group("g", 1)), decoded(pod("g-0", "g"))])
    follower.world.follow()
    assert not follower.is_news()
