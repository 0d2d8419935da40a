"""Where nodes are divided among schedulers differently than in Volcano on purpose (spec 06 11)."""

from __future__ import annotations

import pytest

from stromboli.controllers.runner import ControllerRunner
from stromboli.controllers.sharding.sharding_config import BadShardingConfig
from tests.controllers.running import wait_until, wait_until_idle
from tests.controllers.sharding.shares import divided, nodes, yaml_config
from tests.controllers.sharding.test_sharding_controller import (
    BY_PERIOD_ALONE,
    configure,
    make_node,
    make_pod,
    play,
    shards,
    world,
)


def test_a_limit_of_nodes_holds_for_all_nodes_together() -> None:
    """In Volcano for each 50 nodes, in whatever order they come."""
    states = nodes(**{f"n{number:03}": 0.5 + number / 1000 for number in range(120)})
    text = "schedulerConfigs: [{name: one, cpuUtilizationMax: 1, maxNodes: 3}]"
    assert divided(text, states) == {"one": "n115 n116 n117"}


def test_a_policy_that_cannot_be_set_up_gives_nobody_all_nodes() -> None:
    """In Volcano its scheduler takes all nodes that are left."""
    policies = "[{name: allocation-rate, arguments: {minCPUUtil: 0.5}}]"
    with pytest.raises(BadShardingConfig, match=r"minCPUUtil 0\.5 and maxCPUUtil 0"):
        yaml_config(f"schedulerConfigs: [{{name: one, policies: {policies}}}, {{name: two}}]")


def test_after_a_reload_no_node_is_desired_twice() -> None:
    """In Volcano every shard is computed as if it were alone, until the next period."""
    api = world("a", "b")

    async def story(runner: ControllerRunner) -> None:
        config = "schedulerConfigs: [{name: one, cpuUtilizationMax: 1, maxNodes: 1}, "
        configure(api, config + "{name: two, cpuUtilizationMax: 1}]")
        await wait_until(lambda: len(shards(api)) == 2 and "two" in shards(api))
        await wait_until_idle(api, runner)
        assert shards(api) == {"one": "a", "two": "b"}

    play(api, story, BY_PERIOD_ALONE)


def test_a_shard_that_is_written_takes_no_node_that_another_keeps() -> None:
    """Volcano decides for each shard alone, so a node may stay in one, be given to another, and a third be lost."""
    api = world(*(f"n{number:02}" for number in range(22)))
    for number in range(21):
        make_pod(api, f"p{number}", f"n{number:02}", cpu="2")

    async def story(runner: ControllerRunner) -> None:
        (controller,) = runner.controllers
        config = "schedulerConfigs: [{name: busy, cpuUtilizationMin: 0.4, cpuUtilizationMax: 1}, "
        configure(api, config + "{name: calm, cpuUtilizationMax: 0.3}]")
        await wait_until(lambda: shards(api).get("calm") == "n21")
        await wait_until_idle(api, runner)
        make_node(api, "n22")
        make_pod(api, "new", "n21", cpu="2")
        make_pod(api, "p0", "n00", cpu="0")
        await wait_until(lambda: controller.nodes.get("n22") is not None)  # type: ignore[attr-defined]
        await wait_until_idle(api, runner)
        controller.queue.add("")
        await wait_until(lambda: shards(api)["calm"] == "n00 n22")
        await wait_until_idle(api, runner)
        assert shards(api)["busy"].split() == [f"n{number:02}" for number in range(1, 22)]

    play(api, story, BY_PERIOD_ALONE)
