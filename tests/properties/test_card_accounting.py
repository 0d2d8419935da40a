"""Whatever is placed, given up, evicted, finished and restarted: no card is given out beyond what it has."""

from __future__ import annotations

from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from stromboli.model.cards.node_cards import CardColumns, NodeCards
from stromboli.model.cluster import Change, Cluster
from stromboli.model.status import Status
from stromboli.testing import World
from tests.manifests import Manifest, group
from tests.plugins.deviceshare.card_worlds import card, card_pod, card_policy, mig_config, vgpu, vgpu_node
from tests.properties.strategies import examples

URGENT: Manifest = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "urgent"},
    "value": 100,
}
NODES = [
    vgpu_node("soft", card("GPU-a", 8000, count=3), card("GPU-b", 6000, count=2)),
    vgpu_node("hard", *(card(f"GPU-{name}", 40960, mode="mig", count=7) for name in "cd")),
]
MEMORY = (1000, 3000, 6000, 10000, 20000)
asks = st.builds(vgpu, st.sampled_from(MEMORY), st.sampled_from((0, 30, 100)), st.sampled_from((1, 1, 2)))
jobs = st.tuples(
    st.just("job"), st.lists(asks, min_size=1, max_size=3), st.integers(1, 3), st.sampled_from(("", "urgent"))
)
steps = st.one_of(
    jobs, st.tuples(st.sampled_from(("finish", "delete", "vanish")), st.integers(0, 20)), st.just(("cycle",))
)


class Watcher:
    """Looks at all cards after every move, also in the middle of a trial and of its undo."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    def on_move(self, change: Change) -> str | None:
        for models in self.cluster.cards.nodes.values():
            for cards in models.values():
                held = CardColumns(len(cards.cards))
                for task in cards.tasks:
                    for share in cards.shares_of(task) if task.status is not Status.PIPELINED else ():
                        held.add(task, share, 1)
                assert_within(cards, held)
                assert_within(cards, cards.later)
        return None


def assert_within(cards: NodeCards, taken: CardColumns) -> None:
    for each in cards.cards:
        assert taken.sharers[each.index] <= each.count
        assert taken.memory[each.index] <= each.memory
        assert taken.cores[each.index] <= each.cores
        slots = taken.slots[each.index]
        assert all(count == 1 for count in slots.values())
        assert len({slot.group for slot in slots}) <= 1


def snapshot(cluster: Cluster) -> dict[str, Any]:
    """What is taken of each card, and by whom."""

    def columns(taken: CardColumns) -> tuple[Any, ...]:
        holders = [{task.name: count for task, count in holding.items()} for holding in taken.holders]
        return taken.sharers, taken.memory, taken.cores, taken.slots, holders

    return {
        node: [columns(taken) for taken in (models["hamivgpu"].now, models["hamivgpu"].later)]
        for node, models in cluster.cards.nodes.items()
    }


def restarted(world: World, policy: str) -> World:
    """The same cluster from what its objects show."""
    fresh = World(policy=policy).add(URGENT, mig_config(), *NODES)
    for task in world.cluster.tasks.values():
        if task.node is not None and task.status is not Status.PIPELINED:
            limits = [dict(container.resources.limits) for container in task.shape.spec.containers]
            job = task.job.name if task.job is not None else ""
            (pod,) = card_pod(
                task.name,
                *limits,  # type: ignore[arg-type]
                job=job,
                on=task.node.name,
                annotations=task.annotations,
            )
            if task.terminating:
                pod["metadata"]["deletionTimestamp"] = "2026-11-01T11:59:00Z"
            fresh.add(pod)
    fresh.step()
    return fresh


def change(world: World, number: int, step: tuple[Any, ...]) -> None:
    world.rehearsal.sync()  # what was decided has come true
    if step[0] == "job":
        _, containers, minimum, priority = step
        name = f"j{number}"
        terms = {"priorityClassName": priority} if priority else {}
        world.add(group(name, minimum, **terms))
        for i, limits in enumerate(containers):
            world.add(*card_pod(f"{name}-{i}", limits, job=name, priority=priority))
        return
    on_node = [task for task in world.cluster.tasks.values() if task.node is not None]
    if step[0] == "cycle" or not on_node:
        world.step()
        return
    task = on_node[step[1] % len(on_node)]
    if step[0] == "finish":
        world.finish(task.name)
    elif step[0] == "vanish":
        world.rehearsal.vanish(task)
    elif task.node is not None and task.job is not None:
        limits = [dict(container.resources.limits) for container in task.shape.spec.containers]
        (pod,) = card_pod(
            task.name,
            *limits,  # type: ignore[arg-type]
            job=task.job.name,
            on=task.node.name,
            annotations=task.annotations,
        )
        pod["metadata"]["deletionTimestamp"] = "2026-11-01T11:59:00Z"
        world.add(pod)


@given(
    story=st.lists(steps, max_size=12),
    sharing=st.sampled_from(("", "binpack", "spread")),
)
@examples(20)
@example(
    story=[
        ("job", [vgpu(6000)], 1, ""),
        ("job", [vgpu(6000)] * 3, 3, ""),
        ("cycle",),
        ("delete", 0),
        ("cycle",),
    ],
    sharing="",
)
@example(
    story=[
        ("job", [vgpu(10000), vgpu(20000, number=2)], 1, ""),
        ("cycle",),
        ("job", [vgpu(20000, 100)], 1, "urgent"),
    ],
    sharing="binpack",
)
def test_no_card_is_given_out_beyond_what_it_has_and_memory_equals_a_restart(
    story: list[tuple[Any, ...]], sharing: str
) -> None:
    policy = card_policy(
        "allocate, preempt, backfill", "priority gang conformance", VGPUEnable=True, SchedulePolicy=sharing
    )
    world = World(policy=policy).add(URGENT, mig_config(), *NODES)
    world.cluster.listeners.append(Watcher(world.cluster))
    for number, step in enumerate([("cycle",), *story, ("cycle",)]):
        change(world, number, step)
    world.rehearsal.sync()
    assert snapshot(world.cluster) == snapshot(restarted(world, policy).cluster)
