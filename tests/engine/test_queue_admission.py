"""Pods that wait at a gate until their queue has room for them (spec 05 6.5, 03 10)."""

from __future__ import annotations

from stromboli.api import names
from stromboli.engine.cycle import Engine, Outcome
from stromboli.engine.decisions import Bind, GateRemoval
from stromboli.plugins.capacity.plugin import Capacity
from stromboli.testing import World
from stromboli.testing.policy_text import catalog_with, policy_of
from tests.manifests import Manifest, binds, group, node, pod, queue
from tests.properties.living import LivingWorld

GATE = names.QUEUE_ALLOCATION_GATE
ON = [names.QUEUE_ADMISSION]


def held(name: str, gates: tuple[str, ...] = (GATE,), annotated: str = "true", priority: int = 0):
    return pod(name, "web", gates=gates, annotations={GATE: annotated}, priority=priority)


def decided(*pods, plugins: str = "proportion", features=ON, cpu: str = "8", capability: str = "8"):
    """Pods let out of the gate, and pods bound, by one cycle."""
    world = World(features=features).add(queue(capability={"cpu": capability}), node("n1", cpu=cpu))
    result = world.add(group("web"), *pods).run(plugins=f"priority gang | {plugins} | predicates")
    let_out = [decision.name for decision in result.decisions if isinstance(decision, GateRemoval)]
    return let_out, list(binds(result))


def test_the_gate_of_a_pod_is_removed_when_its_queue_has_capacity_before_it_is_placed() -> None:
    assert decided(held("a"), pod("free", "web")) == (["a"], ["free"])


def test_without_the_feature_the_gate_stays() -> None:
    assert decided(held("a"), features=[]) == ([], [])


def test_pods_with_another_gate_or_without_ours_keep_their_gates() -> None:
    assert decided(held("a", ("mine",)), held("b", (GATE, "mine")), held("c", annotated="no")) == ([], [])


def test_a_full_queue_removes_no_gates() -> None:
    assert decided(pod("old", "web", on="n1"), held("a"), capability="1") == ([], [])


def test_capacity_removes_no_more_gates_than_pods_fit() -> None:
    pods = [held(f"w-{number}") for number in range(5)]
    let_out, _ = decided(*pods, plugins="capacity", capability="3")
    assert len(let_out) == 3


def test_capacity_reserves_for_pods_whose_gate_was_removed() -> None:
    """The one that was let out finds no node that is large enough, but its place in the queue is its own."""
    waiting = pod(
        "waits", "web", cpu="2", annotations={GATE: "true"}, labels={}, spec={"nodeSelector": {"no": "such"}}
    )
    let_out, bound = decided(
        waiting, held("a"), held("b"), pod("free", "web"), plugins="capacity", capability="3"
    )
    assert len(let_out) + len(bound) == 1


def test_capacity_drops_reservations_of_placed_pods() -> None:
    placed = pod("placed", "web", cpu="2", annotations={GATE: "true"}, priority=9)
    let_out, bound = decided(placed, held("a"), plugins="capacity", capability="3")
    assert (let_out, bound) == (["a"], ["placed"])


def test_a_question_about_a_pod_reserves_nothing_for_it() -> None:
    world = World().add(queue(capability={"cpu": "1"}), node("n1", cpu=8))
    session = world.add(group("web"), held("a"), held("b")).session(Capacity)
    session.features = frozenset(ON)
    (plugin,) = session.rules.plugins
    plugin.opening(session, session.changed)
    a, b = world.task("a"), world.task("b")
    home = world.cluster.queues["default"]
    assert session.rules.allocatable(home, a)
    assert session.rules.allocatable(home, b), "no gate has been removed yet"
    session.journal.lift_gate(a)
    assert session.rules.allocatable(home, a)
    assert not session.rules.allocatable(home, b)


def living(*pods: Manifest, capability: str) -> LivingWorld:
    """A cluster with one engine for all cycles."""
    objects = [queue(capability={"cpu": capability}), node("n1", cpu=8), group("web"), *pods]
    catalog = catalog_with((), ())
    policy = policy_of(catalog, "enqueue, allocate", "priority gang | capacity | predicates", "")
    return LivingWorld(objects, lambda: Engine(policy, catalog, features=ON))


def let_out(outcome: Outcome) -> list[str]:
    return [decision.name for decision in outcome.decisions if isinstance(decision, GateRemoval)]


def test_capacity_reserves_for_a_pod_whose_gate_removal_is_not_shown_yet() -> None:
    world = living(held("a"), capability="2")
    assert let_out(world.cycle()) == ["a"]
    world.put(pod("a", "web", annotations={GATE: "true"}))
    world.put(held("b"))
    assert let_out(world.step()) == ["b"]
    world.put(held("first", priority=9))
    assert "first" not in let_out(world.step())


def test_pods_that_were_all_let_out_do_not_keep_each_other_out_of_their_queue() -> None:
    pods = [pod(f"w-{number}", "web", annotations={GATE: "true"}) for number in range(3)]
    world = living(*pods, capability="2")
    assert sum(isinstance(decision, Bind) for decision in world.step().decisions) == 2
