"""What is remembered of shapes of tasks: as many as there are, within a bound on memory."""

from __future__ import annotations

import numpy as np
import pytest

from stromboli.engine.placement import node_placement
from stromboli.engine.placement.evaluation import Evaluation
from stromboli.engine.placement.node_placement import Placement
from stromboli.engine.placement.usage_evaluation import AHEAD_BYTES, BASE_BYTES, NODE_BYTES, LookAhead
from stromboli.testing import World
from tests.manifests import node, policy

SHAPES = 300


@pytest.fixture
def world() -> World:
    world = World("n1 cpu=1; n2 cpu=1", policy=policy("allocate", "gang | predicates"))
    for number in range(SHAPES):
        world.job(f"job{number}", cpu=f"{2000 + number}m")
    return world


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Evaluation]:
    """The evaluations that are made."""
    made: list[Evaluation] = []

    class Noted(Evaluation):
        def __init__(self, *arguments: object) -> None:
            super().__init__(*arguments)  # type: ignore[arg-type]
            made.append(self)

    monkeypatch.setattr(node_placement, "Evaluation", Noted)
    return made


def find_all(world: World, rounds: int, some: bool = False) -> Placement:
    """Look for a node for each task, round by round, on all nodes or on one alone."""
    placement, cluster = world.step().outcome.session.placement, world.cluster
    placement._known.clear()
    placement.opening()
    rows = np.array([0]) if some else None
    for _ in range(rounds):
        for task in cluster.tasks.values():
            placement.find(cluster, task, rows=rows)
    return placement


@pytest.mark.parametrize("some", [False, True])
def test_each_shape_is_evaluated_once_however_many_there_are(
    world: World, made: list[Evaluation], some: bool
) -> None:
    world.step()
    made.clear()
    placement = find_all(world, rounds=2, some=some)
    assert len(made) == SHAPES
    assert placement._bytes == sum(evaluation.usage.bytes for evaluation in made)
    placement.opening()
    assert len(placement._known) == (0 if some else SHAPES)


def test_what_is_remembered_takes_a_bounded_amount_of_memory(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_placement, "MAX_BYTES", 50_000)
    placement = find_all(world, rounds=2)
    assert 1 < len(placement._known) < SHAPES
    assert placement._bytes <= 50_000
    assert placement._bytes == sum(evaluation.usage.bytes for evaluation in placement._known.values())
    monkeypatch.setattr(node_placement, "MAX_BYTES", 1)
    assert len(find_all(world, rounds=1)._known) == 1


def test_an_evaluation_counts_with_the_memory_that_it_takes(world: World, made: list[Evaluation]) -> None:
    placement, cluster = find_all(world, rounds=1), world.cluster
    first, nodes = placement._known[next(iter(placement._known))], len(cluster.columns)
    before = first.usage.bytes
    assert before == BASE_BYTES + NODE_BYTES * nodes
    first.usage._evaluate_ahead(next(iter(cluster.tasks.values())))
    for task in cluster.tasks.values():
        placement.find(cluster, task)
    assert first.counted == first.usage.bytes == before + AHEAD_BYTES * nodes
    assert placement._bytes == sum(evaluation.usage.bytes for evaluation in placement._known.values())
    with_ahead = sum(part.nbytes for part in vars(LookAhead(nodes)).values())
    assert AHEAD_BYTES * nodes == with_ahead


def test_an_evaluation_counts_with_the_nodes_that_there_are() -> None:
    world = World("n1 cpu=1", policy=policy("allocate", "gang | predicates")).job("first", cpu=2)
    placement = world.step().outcome.session.placement
    world.add(*(node(f"n{number}", cpu=1) for number in range(2, 50))).job("second", cpu=2).step()
    (evaluation,) = placement._known.values()
    assert placement._bytes == evaluation.counted == evaluation.usage.bytes
    for number in range(2, 50):
        world.remove(node(f"n{number}", cpu=1))
    world.job("third", cpu=2).step()
    assert placement._bytes == evaluation.counted == evaluation.usage.bytes == BASE_BYTES + NODE_BYTES


def test_256_kinds_of_pods_are_remembered_on_20000_nodes() -> None:
    assert (BASE_BYTES + NODE_BYTES * 20_000) * 256 < node_placement.MAX_BYTES
