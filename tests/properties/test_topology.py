"""Gangs on a tree of HyperNodes: the fast search is the naive one, and no gang is ever torn apart."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import structs

from stromboli.api import names
from stromboli.api.types.meta import Object
from stromboli.api.types.node import Node
from stromboli.api.types.pod import Pod
from stromboli.api.types.scheduling import HyperNode
from stromboli.engine.cycle import Engine, Outcome
from stromboli.engine.decisions import Bind, Decision, PodCondition
from stromboli.model.intake.assumed_tasks import after_failed_bind
from tests.properties.living import LivingWorld, binds, engine
from tests.properties.naive_allocate import NAIVE
from tests.properties.rebuild import kept_sums, rebuilt_sums
from tests.properties.strategies import examples
from tests.properties.topology_worlds import Placed, PlacedPod, topology_world, topology_worlds, torn_gangs

EVICTING = "allocate, preempt, reclaim, gangpreempt, gangreclaim, backfill"
TIERS: dict[str, tuple[str, ...]] = {
    "packed": ("priority, gang", "predicates, nodeorder, binpack, network-topology-aware"),
    "by queues": ("priority, gang", "drf, predicates, proportion, nodeorder, network-topology-aware"),
    "no gangs": ("priority", "predicates, network-topology-aware"),
}


def policy(name: str, actions: str = "allocate, backfill") -> Callable[[], Engine]:
    return lambda: engine(*TIERS[name], actions=actions, action_functions=(NAIVE,))


@pytest.mark.parametrize("name", TIERS)
@given(objects=topology_worlds())
@examples(10)
def test_the_search_decides_as_one_that_tries_every_domain(name: str, objects: list[Object]) -> None:
    fast = LivingWorld(objects, policy(name))
    slow = LivingWorld(objects, policy(name, "naive-allocate, backfill"))
    for _ in range(3):
        first, second = fast.step(), slow.step()
        assert first.lost is None
        assert second.lost is None
        assert binds(first.decisions) == binds(second.decisions)
        assert first.pipelined == second.pipelined


# -- a cluster in which much goes wrong


class Unlucky:
    """A world in which binds fail, nodes are lost with their pods, switches change and the scheduler is restarted."""

    def __init__(self, seed: int, make: Callable[[], Engine]):
        self.chance = random.Random(seed)
        self.world = LivingWorld(topology_world(seed, 1 + seed % 4), make)
        self.replaced = 0

    def cycle(self) -> Outcome:
        outcome = self.world.cycle()
        decisions = []
        for decision in outcome.decisions:
            if isinstance(decision, Bind) and self.chance.random() < 0.2:
                task = self.world.intake.cluster.tasks[decision.uid]
                status = after_failed_bind(task)
                assert status is not None
                self.world.intake.cluster.move(task, status, None)
            else:
                decisions.append(decision)
        self.world.come_true(decisions)
        return outcome

    def bad_luck(self) -> None:
        what = self.chance.random()
        if what < 0.3:
            self._lose_node()
        elif what < 0.5:
            self.world = LivingWorld(list(self.world.objects.values()), self.world.make_engine)
        elif what < 0.65:
            self._change_switch()

    def _all(self, kind: type[Object]) -> list[Object]:
        return [obj for obj in self.world.objects.values() if isinstance(obj, kind)]

    def _lose_node(self) -> None:
        nodes = self._all(Node)
        if not nodes:
            return
        lost = self.chance.choice(nodes)
        self.world.drop(lost)
        for pod in self._all(Pod):
            if isinstance(pod, Pod) and pod.spec.node_name == lost.name and self.chance.random() < 0.7:
                self.world.drop(pod)
                self.replaced += 1
                name = f"{pod.name}-{self.replaced}"
                meta = structs.replace(pod.metadata, name=name, uid=name, deletion_timestamp=None)
                spec = structs.replace(pod.spec, node_name="")
                self.world.put(
                    structs.replace(pod, metadata=meta, spec=spec, status=type(pod.status)(phase="Pending"))
                )

    def _change_switch(self) -> None:
        switches = self._all(HyperNode)
        if switches:
            switch = self.chance.choice(switches)
            assert isinstance(switch, HyperNode)
            self.world.drop(switch)
            if self.chance.random() < 0.6:
                members = tuple(member for member in switch.spec.members if self.chance.random() < 0.7)
                self.world.put(structs.replace(switch, spec=structs.replace(switch.spec, members=members)))

    def placed(self) -> Placed:
        """The pods of gangs that hold room, with their nodes."""
        found: Placed = {}
        for pod in self._all(Pod):
            assert isinstance(pod, Pod)
            held = pod.spec.node_name and pod.status.phase in ("Running", "Pending")
            if held and pod.metadata.deletion_timestamp is None:
                self._add(found, pod, pod.spec.node_name)
        return found

    def chosen(self, decisions: list[Decision]) -> Placed:
        """The pods that a cycle binds or nominates, with their nodes."""
        found: Placed = {}
        for decision in decisions:
            if isinstance(decision, Bind):
                self._add(found, self.world._pod(decision), decision.node)
            elif isinstance(decision, PodCondition) and decision.nominated_node:
                self._add(found, self.world._pod(decision), decision.nominated_node)
        return found

    @staticmethod
    def _add(found: Placed, pod: Pod, node: str) -> None:
        gang = pod.metadata.annotations.get(names.GROUP_NAME, "")
        best_effort = not any(container.resources.requests for container in pod.spec.containers)
        found.setdefault(gang, {})[pod.name] = PlacedPod(node, dict(pod.metadata.labels), best_effort)


@pytest.mark.parametrize("actions", ["allocate, backfill", EVICTING])
@given(seed=st.integers(0, 2**32))
@example(seed=51)
@example(seed=7039)  # the last switch goes
@example(seed=131071)  # a gang runs outside of all HyperNodes, and its best-effort pod goes anywhere
@examples(12)
def test_no_gang_is_bound_or_nominated_across_its_tier(actions: str, seed: int) -> None:
    unlucky = Unlucky(seed, policy("packed", actions))
    for _ in range(6):
        before, objects = unlucky.placed(), list(unlucky.world.objects.values())
        outcome = unlucky.cycle()
        assert outcome.lost is None
        assert not outcome.session.failures
        assert torn_gangs(objects, before, unlucky.chosen(outcome.decisions)) == []
        cluster = unlucky.world.intake.cluster
        assert kept_sums(cluster) == rebuilt_sums(cluster)
        unlucky.bad_luck()
