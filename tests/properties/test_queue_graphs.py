"""Queues whose parents form any graph: cycles, self-parents, missing parents, chains. Other queues are served."""

from __future__ import annotations

import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stromboli.testing import Result, World
from tests.plugins.capacity.policies import policy
from tests.properties.strategies import examples

NAMES = [f"q{number}" for number in range(6)]
PARENTS = st.sampled_from([*NAMES, "root", "", "missing"])
GRAPHS = st.dictionaries(st.sampled_from([*NAMES, "root"]), PARENTS)
PROPORTION = 'actions: "enqueue, allocate, reclaim"\ntiers:\n- plugins: [{name: gang}, {name: proportion}]\n'
DRF = (
    'actions: "enqueue, allocate"\ntiers:\n- plugins: [{name: gang}, {name: drf, enableHierarchy: true}]\n'
    "- plugins: [{name: nodegroup, enableHierarchy: true, arguments: {strict: false}}]\n"
)


def queue_object(name: str, parent: str) -> dict[str, object]:
    return {"kind": "Queue", "metadata": {"name": name}, "spec": {"parent": parent, "guarantee": {}}}


def scheduled(graph: dict[str, str], scheduler_policy: str) -> Result:
    """One cycle over a job in every queue of a graph, and a job in a queue that nobody named as parent."""
    world = World(nodes="n1 cpu=20", queues="fine guarantee=cpu:1 deserved=cpu:1")
    for name, parent in graph.items():
        world.add(queue_object(name, parent))
    for name in ("fine", *graph):
        if name != "root":
            world.job(name, queue=name, cpu=1, min_resources={"cpu": 1})
    return world.run(policy=scheduler_policy)


def leads_to_root(name: str, graph: dict[str, str]) -> bool:
    """The naive version: follow the parents for as many steps as there are queues."""
    for _ in range(len(graph) + 1):
        if name == "root":
            return True
        if name not in graph:
            return False
        name = graph[name] or "root"
    return name == "root"


@given(GRAPHS)
@examples(30)
@example({"q0": "q1", "q1": "q0"})
@example({"q0": "q0"})
@example({"root": "q0", "q0": "root"})
@example({"root": "root"})
@example({"q0": "q1", "q1": "q2", "q2": "q0", "q3": "q1", "q4": "missing", "q5": "q4"})
def test_with_a_hierarchy_leaves_below_the_root_are_served_and_the_others_told_why(
    graph: dict[str, str],
) -> None:
    result = scheduled(graph, policy("enqueue, allocate, reclaim"))
    inner = {parent for name, parent in graph.items() if name != "root" and leads_to_root(name, graph)}
    leaves = {name for name in graph if leads_to_root(name, graph)} - inner - {"root"}
    assert set(result.bound_per_job) == {f"default/{name}" for name in ("fine", *leaves)}
    for name in graph.keys() - leaves - {"root"}:
        assert f'queue "{name}"' in result.why(f"{name}-0")


@pytest.mark.parametrize("flat", [PROPORTION, DRF], ids=["proportion", "drf"])
@given(GRAPHS)
@examples(15)
@example({"q0": "q1", "q1": "q0"})
@example({"root": "q0", "q0": "root"})
def test_without_a_hierarchy_of_queues_everybody_is_served(flat: str, graph: dict[str, str]) -> None:
    result = scheduled(graph, flat)
    assert set(result.bound_per_job) == {f"default/{name}" for name in {"fine", *graph} - {"root"}}


@pytest.mark.parametrize("first", ["root", "q1999"], ids=["chain", "cycle"])
def test_two_thousand_queues_in_a_row_hold_up_nobody(first: str) -> None:
    """A cycle took minutes when its cost grew with the third power of the depth."""
    world = World(nodes="n1 cpu=2", queues="fine")
    for number in range(2000):
        world.add(queue_object(f"q{number}", f"q{number - 1}" if number else first))
    world.job("fine", queue="fine", cpu=1).job("deep", queue="q1999", cpu=1)
    begin = time.process_time()
    result = world.run(policy=policy())
    assert result.bound_per_job == {"default/fine": 1}
    assert time.process_time() - begin < 10
    assert "levels below the root" in result.why("deep-0") or "form a loop" in result.why("deep-0")
