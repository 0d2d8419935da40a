"""The fuller node scores higher."""

from typing import Any

import pytest

from stromboli.engine.placement.node_functions import Nodes
from stromboli.plugins.binpack import BinpackArguments
from stromboli.policy.arguments import parse_arguments
from stromboli.testing import World
from tests.manifests import group, node, pod, policy


def _scores(task: dict[str, Any], *nodes: dict[str, Any], **arguments: Any) -> dict[str, float]:
    given = {f"binpack.{key}": value for key, value in arguments.items()}
    world = World(policy=policy("enqueue", ("binpack", given))).add(group("j", 1, phase=""), *nodes, task)
    world.step()
    return world.scores("binpack", "p")


def test_the_score_is_the_weighted_mean_of_what_would_be_used() -> None:
    task = pod("p", "j", cpu="1", memory="1Gi")
    nodes = [node("a", cpu="2", memory="4Gi"), node("b", cpu="4", memory="4Gi")]
    assert _scores(task, *nodes) == {"a": (0.5 + 0.25) / 2 * 100, "b": (0.25 + 0.25) / 2 * 100}
    assert _scores(task, *nodes, weight=5, cpu=3)["a"] == (0.5 * 3 + 0.25) / 4 * 500


def test_what_runs_counts_as_used_and_what_does_not_fit_scores_nothing() -> None:
    task, old = pod("p", "j", cpu="1", memory="1Gi"), pod("old", on="a", cpu="2")
    scores = _scores(task, node("a", cpu="4", memory="4Gi"), old, node("b", cpu="0.5", memory="4Gi"))
    assert scores == {"a": (0.75 + 0.25) / 2 * 100, "b": 0}


def test_only_resources_that_are_asked_for_and_weighed_count() -> None:
    task = pod("p", "j", cpu="1", gpu="2")
    nodes = [node("a", cpu="4", gpu="4"), node("b", cpu="4")]
    assert _scores(task, *nodes) == {"a": 25, "b": 25}
    listed: dict[str, Any] = {"resources": " nvidia.com/gpu, ,", "resources.nvidia.com/gpu": 3}
    assert _scores(task, *nodes, **listed) == {"a": (0.25 + 0.5 * 3) / 4 * 100, "b": 0.25 / 4 * 100}
    assert _scores(task, *nodes, **{"resources.nvidia.com/gpu": 3}) == {"a": 25, "b": 25}, "not listed"


def test_a_resource_of_weight_zero_may_even_be_short() -> None:
    task = pod("p", "j", cpu="8", memory="1Gi")
    assert _scores(task, node("a", cpu="4", memory="2Gi"), cpu=0) == {"a": 50}


def test_a_task_without_requests_scores_zero() -> None:
    assert _scores(pod("p", "j", cpu=0), node("a", cpu="4")) == {"a": 0}


def test_weight_zero_switches_it_off() -> None:
    world = World(policy=policy("enqueue", ("binpack", {"binpack.weight": 0}))).add(
        group("j", 1, phase=""), pod("p", "j", cpu="1")
    )
    world.step()
    assert list(world.plugin("binpack").node_scores(world.task("p"))) == []


@pytest.mark.parametrize("key", ["binpack.cpu", "binpack.memory", "binpack.resources.nvidia.com/gpu"])
def test_a_negative_weight_counts_as_one_with_a_warning(key: str) -> None:
    arguments, problems = parse_arguments(BinpackArguments, {"binpack.resources": "nvidia.com/gpu", key: -2})
    assert (arguments.cpu, arguments.memory, arguments.weights["nvidia.com/gpu"]) == (1, 1, 1)
    assert "must not be negative" in problems[0].message


def test_steps_ahead_score_as_if_the_tasks_were_there() -> None:
    world = World(policy=policy("enqueue", "binpack")).add(
        group("j", 1, phase=""), node("a", cpu="4"), pod("p", "j", cpu="1")
    )
    world.step()
    task, rows = world.task("p"), world.cluster.columns.version.argsort()
    (score,) = world.plugin("binpack").node_scores(task)
    ahead = score.score(task, Nodes(world.cluster.columns, rows, task.shape, 5))
    assert ahead.tolist() == [25, 50, 75, 100, 0]
