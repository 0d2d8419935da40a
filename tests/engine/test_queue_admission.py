"""Pods that wait at a gate until their queue has room for them (spec 05 6.5, 03 10)."""

from __future__ import annotations

from stromboli.api import names
from stromboli.engine.decisions import Bind, GateRemoval
from stromboli.plugins.capacity.plugin import Capacity
from tests import building

GATE = names.QUEUE_ALLOCATION_GATE
ON = [names.QUEUE_ADMISSION]


def held(name: str, gates: tuple[str, ...] = (GATE,), annotated: str = "true"):
    return building.pod(name, "web", gates=gates, annotations={GATE: annotated})


def decided(*pods, plugins: str = "proportion", features=ON, cpu: str = "8", capability: str = "8"):
    """Pods let out of the gate, and pods bound, by one cycle."""
    world = building.cluster_of(
        building.queue("default", capability={"cpu": capability}),
        building.node("n1", cpu=cpu),
        building.group("web", 0),
        *pods,
    )
    engine = building.engine("priority, gang", plugins, "predicates", features=features)
    decisions = engine.cycle(world, building.EPOCH).decisions
    let_out = [one.name for one in decisions if isinstance(one, GateRemoval)]
    return let_out, [one.name for one in decisions if isinstance(one, Bind)]


def test_a_pod_is_let_out_when_its_queue_has_room_and_is_not_placed_yet() -> None:
    assert decided(held("a"), building.pod("free", "web")) == (["a"], ["free"])


def test_without_the_feature_the_gate_stays() -> None:
    assert decided(held("a"), features=[]) == ([], [])


def test_who_is_held_by_another_gate_or_did_not_ask_for_ours_stays() -> None:
    assert decided(held("a", ("mine",)), held("b", (GATE, "mine")), held("c", annotated="no")) == ([], [])


def test_a_queue_that_is_full_lets_nobody_out() -> None:
    assert decided(building.running("old", "n1", "web"), held("a"), capability="1") == ([], [])


def test_capacity_lets_out_no_more_than_have_room() -> None:
    pods = [held(f"w-{number}") for number in range(5)]
    let_out, _ = decided(*pods, plugins="capacity", capability="3")
    assert len(let_out) == 3


def test_capacity_keeps_room_for_who_was_let_out() -> None:
    """The one that was let out finds no node that is large enough, but its place in the queue is its own."""
    waiting = building.pod(
        "waits", "web", cpu="2", annotations={GATE: "true"}, labels={}, selector={"no": "such"}
    )
    let_out, bound = decided(
        waiting, held("a"), held("b"), building.pod("free", "web"), plugins="capacity", capability="3"
    )
    assert len(let_out) + len(bound) == 1


def test_capacity_forgets_who_has_a_place() -> None:
    placed = building.pod("placed", "web", cpu="2", annotations={GATE: "true"}, priority=9)
    let_out, bound = decided(placed, held("a"), plugins="capacity", capability="3")
    assert (let_out, bound) == (["a"], ["placed"])


def test_asking_capacity_about_a_pod_keeps_no_room_for_it() -> None:
    world = building.cluster_of(
        building.queue(capability={"cpu": "1"}),
        building.node("n1", cpu=8),
        *(building.group("web"), held("a"), held("b")),
    )
    session = building.session_over(world, Capacity)
    session.features = frozenset(ON)
    (plugin,) = session.rules.plugins
    plugin.opening(session, session.changed)
    a, b = building.task_of(world, "a"), building.task_of(world, "b")
    queue = world.queues["default"]
    assert session.rules.allocatable(queue, a)
    assert session.rules.allocatable(queue, b), "nobody has been let out yet"
    session.lift_gate(a)
    assert session.rules.allocatable(queue, a)
    assert not session.rules.allocatable(queue, b)
