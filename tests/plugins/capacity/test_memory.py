"""A capacity that lives on equals one built afresh; what is taken back leaves no trace; order is left to nothing."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from stromboli.api.types.meta import Object, ObjectMeta
from stromboli.api.types.scheduling import Guarantee, Queue, QueueSpec, QueueStatus
from stromboli.engine.cycle import Engine
from stromboli.extensions import load_catalog
from stromboli.model.cluster import Change, Dirty
from stromboli.model.status import Status
from stromboli.plugins.capacity.plugin import Capacity
from stromboli.policy.policy import load_policy
from tests.manifests import decoded, group, node, pod
from tests.plugins.capacity.policies import policy
from tests.properties.living import LivingWorld, binds, plain
from tests.properties.strategies import examples

QUEUES = ("top", "a", "b", "other", "c", "deep")
PARENTS = ("root", "root", "top", "other", "a", "nowhere", "c")
AMOUNTS = ({}, {}, {"cpu": "1"}, {"cpu": "2", "memory": "1Gi"}, {"cpu": "3"}, {"nvidia.com/gpu": "1"})
ACTIONS = "enqueue, allocate, backfill, reclaim, preempt"


def queue(name: str, parent: str = "", **spec: Any) -> Queue:
    return Queue(ObjectMeta(name), QueueSpec(parent=parent, **spec), QueueStatus("Open"))


@st.composite
def forests(draw: st.DrawFn) -> list[Object]:
    """Queues in a tree that may be broken, with jobs anywhere in it; some run."""
    objects: list[Object] = [queue("root", reclaimable=False), queue("default")]
    for name in QUEUES:
        deserved, capability, guarantee = (draw(st.sampled_from(AMOUNTS)) for _ in range(3))
        kept = Guarantee(dict(guarantee) if draw(st.integers(0, 3)) == 3 else {})
        spec = {"deserved": dict(deserved), "capability": dict(capability), "guarantee": kept}
        objects.append(
            queue(name, draw(st.sampled_from(PARENTS)), priority=draw(st.sampled_from((0, 0, 1))), **spec)
        )
    nodes = draw(st.integers(1, 3))
    objects.extend(
        decoded(node(f"n{number}", memory="8Gi", gpu=2 * (number == 0))) for number in range(nodes)
    )
    for number in range(draw(st.integers(1, 6))):
        running = draw(st.integers(0, 2)) == 2
        least = draw(st.sampled_from((None, None, {"cpu": "1"}, {"cpu": "2", "memory": "1Gi"})))
        phase = "Running" if running else draw(st.sampled_from(("Inqueue", "Pending")))
        name = f"g{number}"
        home = draw(st.sampled_from((*QUEUES, "default")))
        objects.append(
            decoded(
                group(name, 1, queue=home, phase=phase, minResources=least, created=draw(st.integers(0, 2)))
            )
        )
        for member in range(draw(st.integers(1, 3))):
            shape = draw(
                st.sampled_from(
                    (
                        {"cpu": 1, "memory": "1Gi"},
                        {"cpu": 2, "memory": "1Gi"},
                        {"cpu": 1, "memory": "1Gi", "gpu": 1},
                        {"cpu": 0},
                    )
                )
            )
            where = f"n{draw(st.integers(0, nodes - 1))}" if running else ""
            objects.append(decoded(pod(f"{name}-x-{member}", name, on=where, **shape)))
    return objects


def make(tree: bool, levels: int) -> Engine:
    catalog = load_catalog()
    return Engine(load_policy(policy(ACTIONS, tree=tree, levels=levels, one_tier=True), catalog), catalog)


def capacity(engine: Engine) -> Capacity:
    return next(plugin for plugin in engine.rules.plugins if isinstance(plugin, Capacity))


def numbers(plugin: Capacity) -> dict[str, Any]:
    """All that it knows of queues, without what it knows it for."""
    known = plugin.session.cluster.queues
    return {
        name: (
            share.limit,
            share.deserved,
            share.guarantee,
            share.held,
            share.inqueue_below,
            share.oldest,
            [above.queue.name for above in share.ancestors],
            plugin._inqueue.of(share.queue),
            plugin.queue_order(share.queue),
        )
        for name in known
        if (share := plugin._tree.of(known[name])) is not None
    } | {"detached": {queue.name: why for queue, why in plugin._tree.detached.items()}}


def afresh(plugin: Capacity) -> Capacity:
    new = type(plugin)(plugin.arguments, plugin.switches)
    new.session = plugin.session
    new.opening(plugin.session, Dirty())
    return new


def surprise(world: LivingWorld, later: list[Object], chance: random.Random) -> None:
    """As any cluster, and queues come, go and change their parents."""
    world.surprise(later, chance)
    for obj in [obj for obj in world.objects.values() if isinstance(obj, Queue)]:
        if obj.metadata.name in QUEUES and chance.random() < 0.1:
            world.drop(obj)


@given(forests(), forests(), st.booleans(), st.integers(0, 2), st.integers(0, 2**32))
@examples(30)
def test_a_plugin_that_lives_on_equals_one_built_afresh(
    objects: list[Object], later: list[Object], tree: bool, levels: int, seed: int
) -> None:
    chance = random.Random(seed)
    world = LivingWorld(objects, lambda: make(tree, levels))
    for _ in range(4):
        outcome = world.cycle()
        assert outcome.lost is None
        assert not outcome.session.failures
        world.come_true(outcome.decisions)
        surprise(world, later, chance)
        world.intake.cluster.settle()
        kept = capacity(world.engine)
        kept.session.total = world.intake.cluster.total
        kept.opening(kept.session, world.intake.cluster.dirty)
        assert numbers(kept) == numbers(afresh(kept))


@given(forests(), st.booleans(), st.integers(0, 2), st.integers(0, 2**32))
@examples(30)
def test_objects_in_any_order_give_the_same_decisions(
    objects: list[Object], tree: bool, levels: int, seed: int
) -> None:
    straight = LivingWorld(objects, lambda: make(tree, levels))
    mixed = LivingWorld(random.Random(seed).sample(objects, len(objects)), lambda: make(tree, levels))
    for _ in range(2):
        first, second = straight.step(), mixed.step()
        assert binds(first.decisions) == binds(second.decisions)
        assert plain(first.decisions) == plain(second.decisions)
        assert first.pipelined == second.pipelined


@given(
    forests(),
    st.lists(st.tuples(st.integers(0, 99), st.sampled_from(Status), st.integers(0, 9)), max_size=12),
)
@examples(30)
def test_moves_are_followed_and_taking_them_back_leaves_no_trace(
    objects: list[Object], steps: list[tuple[int, Status, int]]
) -> None:
    world = LivingWorld(objects, lambda: make(True, 1))
    world.cycle()
    cluster, plugin = world.intake.cluster, capacity(world.engine)
    plugin.opening(plugin.session, Dirty())
    cluster.listeners = [plugin]
    before, journal = numbers(plugin), []
    tasks = sorted(cluster.tasks.values(), key=lambda task: task.uid)
    for which, status, where in steps:
        task = tasks[which % len(tasks)]
        place = cluster.columns.nodes[where % len(cluster.columns.nodes)]
        on_node = status not in (Status.PENDING, Status.SUCCEEDED, Status.FAILED)
        change = cluster.move(task, status, place if on_node else None)
        assert isinstance(change, Change)
        journal.append(change)
        new = afresh(plugin)
        for queue in cluster.queues.values():
            old, fresh = plugin._tree.of(queue), new._tree.of(queue)
            assert (old and (old.held, plugin.queue_order(queue))) == (
                fresh and (fresh.held, new.queue_order(queue))
            )
    for change in reversed(journal):
        cluster.undo(change)
    assert numbers(plugin) == before


@given(forests(), st.booleans())
@examples(20)
def test_no_queue_and_no_ancestor_goes_beyond_its_limit(objects: list[Object], tree: bool) -> None:
    world = LivingWorld(objects, lambda: make(tree, 0))
    before = {name: dict(queue.allocated) for name, queue in world.intake.cluster.queues.items()}
    world.cycle()
    plugin = capacity(world.engine)
    for name, queue in world.intake.cluster.queues.items():
        seat = plugin._tree.of(queue)
        if seat is None:
            assert queue.allocated == before[name]
        elif any(
            amount > before[name].get(dim, 0) for dim, amount in queue.allocated.items() if dim in (0, 1)
        ):
            assert not seat.children
            for share in (seat, *seat.ancestors):
                assert all(share.held.get(dim, 0) <= share.limit.get(dim, 0) for dim in (0, 1))


@given(forests())
@examples(20)
def test_a_quiet_cluster_costs_no_look_at_queues_or_jobs(objects: list[Object]) -> None:
    world = LivingWorld(objects, lambda: make(True, 0))
    for _ in range(8):
        if not world.step().decisions:
            break
    plugin = capacity(world.engine)
    tree = plugin._tree
    below = {queue: share.held_below for queue, share in tree.shares.items()}
    world.intake.cluster.dirty = Dirty()
    world.intake.cluster.dirty.everything = False
    assert world.cycle().decisions == []
    assert plugin._tree is tree
    assert all(share.held_below is below[queue] for queue, share in tree.shares.items())
