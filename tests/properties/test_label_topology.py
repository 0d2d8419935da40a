"""Random racks: a native group with a topology is never in two, and starts if a naive search finds room for it."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from stromboli.api.types.node import Node
from stromboli.api.types.pod import Pod
from stromboli.model.status import ALLOCATED_CLASS
from tests.manifests import Manifest, group, native_group, node, pod, priority_class, queue
from tests.properties.living import LivingWorld, binds, engine
from tests.properties.strategies import examples

PLUGINS = ("priority, gang, conformance", "predicates, proportion, nodeorder")
EVERYTHING = "enqueue, allocate, backfill, preempt, gangpreempt"
RACKS = "abc"
NEAR = {"topology": [{"key": "rack"}]}
seeds = st.integers(0, 2**32)


def some_nodes(chance: random.Random) -> list[Manifest]:
    racks = [chance.choice(RACKS) for _ in range(chance.randint(2, 7))]
    return [
        node(f"n{place}", cpu=chance.randint(1, 4), labels={"rack": rack} if chance.random() < 0.9 else {})
        for place, rack in enumerate(racks)
    ]


def some_groups(chance: random.Random, first: int = 0) -> list[Manifest]:
    """Groups with and without a gang, some of them urgent, and pods of Volcano's that are in the way."""
    objects: list[Manifest] = []
    for name in (f"g{number}" for number in range(first, first + chance.randint(1, 3))):
        count = chance.randint(1, 5)
        minimum, priority = chance.randint(0, count), chance.choice((0, 0, 5))
        objects.append(native_group(name, minimum, priority=priority, schedulingConstraints=NEAR))
        cpus = (chance.choice((0, 1, 1, 2)) for _ in range(count))
        objects += [pod(f"{name}-x-{number}", native=name, cpu=cpu) for number, cpu in enumerate(cpus)]
    if chance.random() < 0.5:
        objects += [group(f"v{first}", 1, priorityClassName="low"), pod(f"v{first}-0", f"v{first}")]
    return objects


def disturb(world: LivingWorld, chance: random.Random) -> LivingWorld:
    """A node is lost, pods end, others come, or the scheduler starts again."""
    of_kind = {
        kind: [obj for known, obj in world.objects.items() if known[0] is kind] for kind in (Node, Pod)
    }
    if of_kind[Node] and chance.random() < 0.3:
        world.drop(chance.choice(of_kind[Node]))
    for obj in of_kind[Pod]:
        if chance.random() < 0.15:
            world.drop(obj)
    for fresh in some_groups(chance, chance.randint(0, 4)):
        kind, name = fresh["kind"], fresh["metadata"]["name"]
        if kind != "Pod" or (Pod, f"default/{name}") not in world.objects:
            world.put(fresh)
    return LivingWorld(world.objects.values(), world.make_engine) if chance.random() < 0.3 else world


def check_racks(world: LivingWorld) -> None:
    for job in world.intake.cluster.jobs.values():
        nodes = {task.node for task in job.tasks.values() if task.node and ALLOCATED_CLASS[task.status]}
        if job.native is not None and job.native.topology_key:
            assert len({node.labels.get("rack") for node in nodes if node.object}) <= 1, job


@given(seed=seeds)
@examples(10)
def test_a_group_is_never_in_two_domains(seed: int) -> None:
    chance = random.Random(seed)
    objects = [queue(), priority_class("low", -5), *some_nodes(chance), *some_groups(chance)]
    world = LivingWorld(objects, lambda: engine(*PLUGINS, actions=EVERYTHING))
    for _ in range(5):
        outcome = world.cycle()
        assert outcome.lost is None
        check_racks(world)
        world.come_true(outcome.decisions)
        world = disturb(world, chance)


@given(seed=seeds)
@examples(12)
def test_a_gang_starts_if_a_naive_search_finds_room_for_it(seed: int) -> None:
    chance = random.Random(seed)
    nodes, cpu, count = some_nodes(chance), chance.randint(1, 2), chance.randint(1, 5)
    running = [pod(f"v-{place}", "v", on=each["metadata"]["name"]) for place, each in enumerate(nodes[::2])]
    gang = [pod(f"g-x-{number}", native="g", cpu=cpu) for number in range(count)]
    near = native_group("g", count, schedulingConstraints=NEAR)
    world = LivingWorld(
        [queue(), *nodes, group("v", 1), *running, near, *gang],
        lambda: engine(*PLUGINS, actions="enqueue, allocate"),
    )
    started = bool(binds(world.cycle().decisions))
    slots = dict.fromkeys(RACKS, 0)
    for place, each in enumerate(nodes):
        rack = each["metadata"]["labels"].get("rack")
        if rack:
            slots[rack] += (int(each["status"]["allocatable"]["cpu"]) - (place % 2 == 0)) // cpu
    assert started == any(room >= count for room in slots.values())
