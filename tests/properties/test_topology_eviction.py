"""Evicting actions in clusters with HyperNodes: a hard gang is never bound, promised or nominated across its tier."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.api.types.meta import Object
from stromboli.api.types.node import Node
from stromboli.api.types.pod import Pod
from stromboli.api.types.scheduling import HyperNode
from stromboli.engine.cycle import Engine, Outcome
from stromboli.engine.decisions import Bind, Evict, PodCondition
from stromboli.engine.eviction.victim_selection import VictimSelection
from stromboli.extensions import load_catalog
from stromboli.model.job import Job, SubJob
from stromboli.model.status import ALLOCATED_CLASS
from stromboli.policy.policy import load_policy
from stromboli.policy.presets import PRESETS
from tests.properties.living import LivingWorld
from tests.properties.rebuild import kept_sums, rebuilt_sums
from tests.properties.strategies import contest, examples
from tests.properties.topology_worlds import shaped

_changed = msgspec.structs.replace

TIERS = """
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: predicates}, {name: proportion}, {name: nodeorder}, {name: network-topology-aware}]
"""
GENTLE = """
configurations:
- {name: ACTION, arguments: {fewestVictims: true, doNoHarm: true, holdFor: 2s}}
"""
PLUGIN = "  - name: network-topology-aware\n"
CATALOG = load_catalog()


def _policies() -> dict[str, str]:
    pairs = {"gang pair": ("gangpreempt", "gangreclaim"), "pair": ("preempt", "reclaim")}
    policies = {}
    for name, actions in pairs.items():
        plain = f'actions: "enqueue, allocate, backfill, {", ".join(actions)}"' + TIERS
        first, second = (GENTLE.replace("ACTION", action) for action in actions)
        policies[name] = plain
        policies[f"gentle {name}"] = plain + first + second.replace("configurations:\n", "").lstrip("\n")
    policies["eviction first"] = 'actions: "gangreclaim, gangpreempt, allocate, backfill"' + TIERS
    policies["consolidate"] = 'actions: "enqueue, allocate, backfill, consolidate, shuffle"' + TIERS
    full = PRESETS["full"]
    if PLUGIN not in full:
        full = full.replace("configurations:", PLUGIN + "configurations:", 1)
    return {**policies, "full": full}


POLICIES = _policies()


def build(seed: int, nodes: int, waiting: int) -> list[Object]:
    return shaped(contest(random.Random(seed), nodes, waiting), random.Random(seed + 1))


class World(LivingWorld):
    """A cluster whose victims are submitted again, in which some binds fail, nodes go and schedulers start anew."""

    def __init__(self, objects: Iterable[Object], policy: str, chance: random.Random):
        super().__init__(objects, lambda: Engine(load_policy(POLICIES[policy], CATALOG), CATALOG))
        self.chance = chance

    def happen(self, outcome: Outcome) -> None:
        """Let decisions come true, save for a bind that fails now and then, and let something go wrong."""
        binds = [decision for decision in outcome.decisions if isinstance(decision, Bind)]
        failed = self.chance.choice(binds) if binds and self.chance.random() < 0.3 else None
        self.come_true(decision for decision in outcome.decisions if decision is not failed)
        for decision in outcome.decisions:
            if isinstance(decision, Evict):
                self._submit_again(decision)
        if self.chance.random() < 0.2:
            self.engine = self.make_engine()
        nodes = sorted(obj.name for obj in self.objects.values() if isinstance(obj, Node))
        if len(nodes) > 1 and self.chance.random() < 0.15:
            self.drop(self.objects[Node, self.chance.choice(nodes)])

    def _submit_again(self, decision: Evict) -> None:
        pod = self.gone[decision.uid]
        meta = _changed(pod.metadata, uid=f"{pod.metadata.uid}+", deletion_timestamp=None)
        status = _changed(pod.status, phase="Pending", conditions=(), nominated_node_name="")
        self.put(_changed(pod, metadata=meta, spec=_changed(pod.spec, node_name=""), status=status))

    def cycle(self) -> Outcome:
        self.gone = {obj.metadata.uid: obj for obj in self.objects.values() if isinstance(obj, Pod)}
        return super().cycle()


class Switches:
    """What every HyperNode has, worked out from the objects alone."""

    def __init__(self, world: World):
        self.objects = {obj.name: obj for obj in world.objects.values() if isinstance(obj, HyperNode)}
        self.top = max(obj.spec.tier for obj in self.objects.values()) + 1

    def limit(self, unit: Job | SubJob) -> int:
        """The highest tier that a hard topology allows; that of the top if there is none."""
        policy = unit.policy if isinstance(unit, SubJob) else None
        job = unit.job if isinstance(unit, SubJob) else unit
        topology = policy.network_topology if policy is not None else job.group.spec.network_topology
        return topology.highest_tier_allowed if topology is not None and topology.mode == "hard" else self.top

    def together(self, nodes: set[str], limit: int) -> bool:
        return limit >= self.top or any(
            obj.spec.tier <= limit and nodes <= self._members(name) for name, obj in self.objects.items()
        )

    def _members(self, name: str) -> set[str]:
        if name not in self.objects:
            return {name}
        members = self.objects[name].spec.members
        return {node for member in members for node in self._members(member.selector.exact_match.name)}


def units(world: World) -> list[Job | SubJob]:
    jobs = [job for job in world.intake.cluster.jobs.values() if job.group is not None]
    return [*jobs, *(sub_job for job in jobs for sub_job in job.sub_jobs.values())]


def tasks_of(unit: Job | SubJob) -> dict[str, str]:
    """The nodes on which tasks hold room, by the task's uid; a node that is lost has no place in the network."""
    tasks = unit.tasks if isinstance(unit, SubJob) else unit.tasks.values()
    placed = (task for task in tasks if task.node is not None and task.node.object is not None)
    return {task.uid: task.node.name for task in placed if ALLOCATED_CLASS[task.status]}


def given_room(outcome: Outcome, uids: dict[str, str]) -> dict[str, set[str]]:
    """The nodes that each task was bound to, promised or nominated for in a cycle, by uid."""
    nodes: dict[str, set[str]] = defaultdict(set)
    for decision in outcome.decisions:
        if isinstance(decision, Bind):
            nodes[decision.uid].add(decision.node)
        elif isinstance(decision, PodCondition) and decision.nominated_node:
            nodes[decision.uid].add(decision.nominated_node)
    for key, node in outcome.pipelined.items():
        nodes[uids[key]].add(node)
    return nodes


@pytest.mark.parametrize("policy", POLICIES)
@given(seed=st.integers(0, 2**32), nodes=st.integers(2, 4), waiting=st.integers(1, 3))
@examples(12)
def test_a_hard_gang_is_never_given_room_across_its_tier(
    policy: str, seed: int, nodes: int, waiting: int
) -> None:
    world = World(build(seed, nodes, waiting), policy, random.Random(seed))
    for _ in range(4):
        world.intake.cluster.settle()
        switches = Switches(world)
        before = {unit: tasks_of(unit) for unit in units(world)}
        uids = {task.key: task.uid for task in world.intake.cluster.tasks.values()}
        outcome = world.cycle()
        assert outcome.lost is None
        assert not outcome.session.failures
        assert kept_sums(world.intake.cluster) == rebuilt_sums(world.intake.cluster)
        evicted = {decision.uid for decision in outcome.decisions if isinstance(decision, Evict)}
        given_nodes = given_room(outcome, uids)
        for unit, running in before.items():
            members = unit.tasks if isinstance(unit, SubJob) else unit.tasks.values()
            if not switches.together(set(running.values()), switches.limit(unit)):
                members = [
                    task for task in members if not task.best_effort
                ]  # those of a divided gang go anywhere
            gained = {node for task in members for node in given_nodes.get(task.uid, ())}
            stay = {node for uid, node in running.items() if uid not in evicted}
            assert not gained or switches.together(gained | stay, switches.limit(unit))
        world.happen(outcome)


@pytest.mark.parametrize("policy", ["pair", "gentle pair"])
@given(seed=st.integers(0, 2**32), nodes=st.integers(2, 6), waiting=st.integers(1, 3))
@examples(6)
def test_domains_that_are_not_tried_could_not_have_been_cleared(
    policy: str, seed: int, nodes: int, waiting: int
) -> None:
    def decided() -> list[tuple[object, object]]:
        world, outcomes = World(build(seed, nodes, waiting), policy, random.Random(seed)), []
        for _ in range(3):
            outcome = world.cycle()
            outcomes.append((outcome.decisions, outcome.pipelined))
            world.happen(outcome)
        return outcomes

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(VictimSelection, "promising", lambda _, domains, *rest: domains)
        every_domain = decided()
    assert decided() == every_domain
