"""A strategy per resource, scarce resource avoidance, and cpu and memory kept beside devices."""

from typing import Any

import pytest

from stromboli.policy.policy import PolicyError
from stromboli.testing import World
from tests.manifests import group, node, pod, policy

PLUGIN = "resource-strategy-fit"
GPU = "nvidia.com/gpu"


def _world(task: dict[str, Any], *objects: dict[str, Any], **arguments: Any) -> World:
    world = World(policy=policy("enqueue", (PLUGIN, arguments))).add(group("j", 1, phase=""), *objects, task)
    world.step()
    return world


def _scores(task: dict[str, Any], *objects: dict[str, Any], **arguments: Any) -> dict[str, float]:
    return _world(task, *objects, **arguments).scores(PLUGIN, "p")


def _strategy(type: str, weight: int = 1) -> dict[str, Any]:
    return {"type": type, "weight": weight}


# -- strategies


def test_cpu_and_memory_are_spread_unless_something_is_configured() -> None:
    task = pod("p", "j", cpu="1", memory="1Gi", gpu="1")
    here = node("a", cpu="4", memory="2Gi", gpu="2")
    assert _scores(task, here) == {"a": (0.75 + 0.5) / 2 * 1000}
    assert _scores(task, here, resources={GPU: {"type": "MostAllocated"}}) == {"a": 500}


def test_each_resource_has_its_strategy_and_weight() -> None:
    task = pod("p", "j", cpu="1", gpu="1")
    resources = {"cpu": _strategy("LeastAllocated"), GPU: _strategy("MostAllocated", 3)}
    nodes = [node("a", cpu="4", gpu="4"), node("b", cpu="4", gpu="1"), node("c", cpu="4")]
    assert _scores(task, *nodes, resourceStrategyFitWeight=1, resources=resources) == {
        "a": (0.75 + 0.25 * 3) / 4 * 100,
        "b": (0.75 + 3) / 4 * 100,
        "c": 0.75 / 4 * 100,
    }


def test_where_something_does_not_fit_the_score_is_zero() -> None:
    task = pod("p", "j", cpu="2", memory="1Gi")
    assert _scores(task, node("a", cpu="4"), pod("old", on="a", cpu="3"), node("b", cpu="4"))["a"] == 0


def test_the_exact_name_beats_a_beginning_and_the_longer_beginning_the_shorter() -> None:
    resources = {
        "nvidia.com/*": _strategy("MostAllocated"),
        "nvidia.com/gpu-*": _strategy("LeastAllocated"),
        "nvidia.com/gpu-a": _strategy("MostAllocated", 2),
    }
    for name, fraction in {"nvidia.com/x": 0.25, "nvidia.com/gpu-b": 0.75, "nvidia.com/gpu-a": 0.25}.items():
        task, here = pod("p", "j", cpu=0, **{name: "1"}), node("a", **{name: "4"})
        assert _scores(task, here, resources=resources) == {"a": fraction * 1000}, name


@pytest.mark.parametrize("name", ["*", "nvidia*gpu", "*gpu*", "nvidia.com/**"])
def test_other_asterisks_are_ignored_with_a_warning(name: str, caplog: pytest.LogCaptureFixture) -> None:
    task, here = pod("p", "j", cpu="1", gpu="1"), node("a", cpu="4", gpu="4")
    assert _scores(task, here, resources={name: _strategy("MostAllocated"), "cpu": {}}) == {"a": 750}
    assert "is ignored" in caplog.text


def test_what_is_out_of_range_keeps_the_default_with_a_warning() -> None:
    resources = {"cpu": _strategy("Middle", -1)}
    chosen = World(
        policy=policy("enqueue", (PLUGIN, {"resourceStrategyFitWeight": -1, "resources": resources}))
    ).engine.policy
    arguments = chosen.plugins[0].arguments
    assert (arguments.weight, arguments.resources["cpu"].type, arguments.resources["cpu"].weight) == (
        10,
        "LeastAllocated",
        1,
    )
    assert len(chosen.warnings) == 3


def test_a_wrong_type_is_refused() -> None:
    with pytest.raises(PolicyError, match="resources"):
        World(policy=policy("enqueue", (PLUGIN, {"resources": "cpu"}))).step()


# -- annotations


def _own(type: str, weights: str | None) -> dict[str, Any]:
    annotations = {"volcano.sh/resource-strategy-scoring-type": type}
    if weights is not None:
        annotations["volcano.sh/resource-strategy-weight"] = weights
    return pod("p", "j", annotations=annotations, cpu="1", memory="1Gi")


def test_annotations_take_the_place_of_the_configuration() -> None:
    here = node("a", cpu="4", memory="2Gi")
    assert _scores(_own("MostAllocated", '{"cpu": 2}'), here) == {"a": 250}
    assert _scores(_own("LeastAllocated", '{"cpu": 1, "memory": 3}'), here) == {
        "a": (0.75 + 0.5 * 3) / 4 * 1000
    }
    assert _scores(_own("MostAllocated", '{"cpu": 0, "memory": 1}'), here) == {"a": 500}


@pytest.mark.parametrize(
    ("type", "weights"),
    [
        ("MostAllocated", None),
        ("MostAllocated", "cpu=1"),
        ("MostAllocated", '{"cpu": 1.5}'),
        ("MostAllocated", '{"cpu": true}'),
        ("MostAllocated", '["cpu"]'),
        ("MostAllocated", "[" * 100_000),
        ("Packed", '{"cpu": 1}'),
    ],
)
def test_annotations_that_are_wrong_score_nothing(type: str, weights: str | None) -> None:
    assert _scores(_own(type, weights), node("a", cpu="4")) == {"a": 0}


def test_tasks_with_other_annotations_have_another_shape_key() -> None:
    world = _world(_own("MostAllocated", '{"cpu": 1}'), pod("q", "j", cpu="1", memory="1Gi"))
    key = world.plugin(PLUGIN).shape_key
    assert key(world.task("p")) != key(world.task("q"))


# -- scarce resources


def test_nodes_with_scarce_resources_are_left_to_tasks_that_request_them() -> None:
    task = pod("p", "j", cpu="1")
    nodes = [
        node("plain", cpu="4"),
        node("one", cpu="4", gpu="1"),
        node("two", cpu="4", gpu="1", **{"x/y": "1"}),
    ]
    sra = {
        "enable": True,
        "resources": f"{GPU}, x/y, not/there",
        "weight": 2,
        "resourceWeight": {GPU: 2, "x/y": -1},
    }
    assert _scores(task, *nodes, resourceStrategyFitWeight=0, sra=sra) == {
        "plain": 200,
        "one": (1 - 2 / 4) * 200,
        "two": (1 - 3 / 4) * 200,
    }


def test_a_node_that_lacks_what_is_asked_for_gets_nothing() -> None:
    sra = {"enable": True, "resources": "x/y", "weight": 1}
    nodes = [node("a", cpu="4", gpu="1"), node("b", cpu="4")]
    task = pod("p", "j", cpu="1", gpu="1")
    assert _scores(task, *nodes, resourceStrategyFitWeight=0, sra=sra) == {"a": 100, "b": 0}


def test_both_scores_add_up() -> None:
    sra = {"enable": True, "resources": GPU, "weight": 1}
    task, here = pod("p", "j", cpu="1"), node("a", cpu="4")
    assert _scores(task, here, resourceStrategyFitWeight=1, sra=sra) == {"a": 75 + 100}


@pytest.mark.parametrize(
    "sra",
    [
        {"enable": False, "resources": GPU, "weight": 1},
        {"enable": True, "resources": GPU, "weight": -1},
        {"enable": True, "resources": GPU},
    ],
)
def test_without_any_weight_there_is_no_score(sra: dict[str, Any]) -> None:
    world = _world(pod("p", "j", cpu="1"), resourceStrategyFitWeight=0, sra=sra)
    assert list(world.plugin(PLUGIN).node_scores(world.task("p"))) == []


# -- proportional


def _refusals(task: dict[str, Any], *objects: dict[str, Any], **rates: float) -> dict[str, str]:
    keys = {f"{GPU}.{key}": rate for key, rate in rates.items()}
    kept = {"enable": True, "resources": GPU, "resourceProportion": keys}
    return _world(task, *objects, proportional=kept).refusals(PLUGIN, "p")


def test_cpu_and_memory_are_kept_beside_free_devices() -> None:
    failed = f"proportional of resource {GPU} check failed"
    task = pod("p", "j", cpu="2", memory="1G")
    objects = [
        node("full", cpu="4", memory="64G", gpu="1"),
        pod("old", on="full", cpu="1", gpu="1"),
        node("short", cpu="9", memory="64G", gpu="2"),
        node("enough", cpu="10", memory="17G", gpu="2"),
        node("lean", cpu="10", memory="16G", gpu="2"),
        node("plain", cpu="2", memory="1G"),
    ]
    assert _refusals(task, *objects, cpu=4, memory=8) == {
        "full": "",
        "short": failed,
        "enough": "",
        "lean": failed,
        "plain": "",
    }


def test_tasks_that_ask_for_the_device_pass() -> None:
    assert _refusals(pod("p", "j", cpu="2", gpu="1"), node("a", cpu="2", gpu="2"), cpu=4) == {"a": ""}


def test_one_core_and_one_gigabyte_unless_given() -> None:
    task = pod("p", "j", cpu="1", memory="1G")
    assert _refusals(task, node("a", cpu="3", memory="3G", gpu="2"), cpu=-4) == {"a": ""}
    assert _refusals(task, node("a", cpu="2", memory="3G", gpu="2"))["a"] != ""


def test_nothing_is_kept_unless_enabled() -> None:
    world = _world(pod("p", "j", cpu="1"), proportional={"enable": False, "resources": GPU})
    assert list(world.plugin(PLUGIN).node_filters(world.task("p"))) == []


def test_what_will_be_idle_does_not_count() -> None:
    leaving = pod("old", on="a", cpu="3")
    leaving["metadata"]["deletionTimestamp"] = "2026-10-01T00:00:00Z"
    assert _refusals(pod("p", "j", cpu="2"), node("a", cpu="4", gpu="1"), leaving)["a"] != ""
