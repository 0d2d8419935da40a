"""Nodes divided among schedulers on an API server in memory: at start, by events, by the ConfigMap (spec 06 11.4)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

from stromboli.controllers.options import Options
from stromboli.controllers.runner import ControllerRunner
from stromboli.controllers.sharding.controller import ShardingController
from stromboli.kube.request import ApiError, Request
from tests.controllers.in_memory_api import InMemoryApi
from tests.controllers.running import running_controllers, wait_until, wait_until_idle

CONFIG_MAP = ("configmaps", "volcano-sharding-configmap", "volcano-system")
OPTIONS = Options(
    controllers=("sharding-controller",),
    scheduler_configs=("calm:volcano:0:0.6:false:0:0", "busy:agent:0.61:1:false:0:0"),
    shard_sync_period=3600.0,
)
BY_PERIOD_ALONE = replace(OPTIONS, enable_node_event_trigger=False)
WHOLE = "schedulerConfigs: [{name: whole, cpuUtilizationMax: 1}]"


def make_node(api: InMemoryApi, name: str, **labels: str) -> None:
    capacity = {"cpu": "4", "memory": "8Gi"}
    api.put("nodes", {"metadata": {"name": name, "labels": labels}, "status": {"capacity": capacity}})


def make_pod(api: InMemoryApi, name: str, node: str, cpu: str = "4", phase: str = "Running") -> None:
    containers = [{"resources": {"requests": {"cpu": cpu}}}]
    api.put(
        "pods",
        {
            "metadata": {"name": name, "namespace": "ns"},
            "spec": {"nodeName": node, "containers": containers, "schedulerName": "default-scheduler"},
            "status": {"phase": phase},
        },
    )


def configure(api: InMemoryApi, text: str, key: str = "sharding.yaml") -> None:
    meta = {"name": CONFIG_MAP[1], "namespace": CONFIG_MAP[2]}
    api.put("configmaps", {"metadata": meta, "data": {key: text}})


def shards(api: InMemoryApi) -> dict[str, str]:
    return {
        shard["metadata"]["name"]: " ".join(sorted(shard["spec"]["nodesDesired"]))
        for shard in api.every("nodeshards")
    }


def world(*nodes: str) -> InMemoryApi:
    api = InMemoryApi()
    for name in nodes:
        make_node(api, name)
    return api


Story = Callable[[ControllerRunner], Awaitable[None]]


def play(api: InMemoryApi, story: Story | None = None, options: Options = OPTIONS) -> None:
    """Run the controller until it is idle, then the story."""

    async def run() -> None:
        async with running_controllers(api, ShardingController, options=options) as runner:
            await wait_until_idle(api, runner)
            if story is not None:
                await story(runner)

    asyncio.run(run())


def test_nodes_are_divided_by_how_full_they_are() -> None:
    api = world("a", "b", "c")
    make_pod(api, "p", "b")
    make_pod(api, "ended", "c", phase="Succeeded")
    play(api)
    assert shards(api) == {"calm": "a c", "busy": "b"}
    status = api.find("nodeshards", "calm")["status"]
    assert status == {
        "lastUpdateTime": "2026-01-01T00:00:00Z",
        "nodesToAdd": ["a", "c"],
        "nodesToRemove": [],
    }


def test_what_fits_already_is_not_written() -> None:
    api = world("a", "b")
    play(api)
    written = len(api.writes)
    play(api)
    assert len(api.writes) == written


def test_nodes_that_come_go_fill_and_empty_cause_a_sync() -> None:
    api = world("a", "b")

    async def story(runner: ControllerRunner) -> None:
        make_node(api, "c")
        await wait_until(lambda: shards(api) == {"calm": "a b c", "busy": ""})
        make_pod(api, "p", "c", cpu="3")
        await wait_until(lambda: shards(api) == {"calm": "a b", "busy": "c"})
        make_pod(api, "p", "c", cpu="3", phase="Succeeded")
        await wait_until(lambda: shards(api) == {"calm": "a b c", "busy": ""})
        api.remove("nodes", "a")
        await wait_until(lambda: shards(api) == {"calm": "b c", "busy": ""})

    play(api, story)


def test_a_node_that_fills_a_little_waits_for_the_period() -> None:
    api = world("a")

    async def story(runner: ControllerRunner) -> None:
        (controller,) = runner.controllers
        make_pod(api, "p", "a", cpu="2")
        make_node(api, "a", zone="one")
        await wait_until_idle(api, runner)
        assert controller.queue._delayed.keys() == {""}
        controller.queue.add("")
        await wait_until_idle(api, runner)
        make_pod(api, "q", "a", cpu="500m")
        controller.queue.add("")
        await wait_until(lambda: shards(api) == {"calm": "", "busy": "a"})

    play(api, story)


def test_the_trigger_can_be_switched_off() -> None:
    api = world("a")

    async def story(runner: ControllerRunner) -> None:
        (controller,) = runner.controllers
        make_node(api, "b")
        await wait_until_idle(api, runner)
        at, _ = controller.queue._delayed[""]
        assert at - asyncio.get_running_loop().time() > 3000

    play(api, story, BY_PERIOD_ALONE)


def test_the_config_map_wins_over_flags_and_is_reloaded() -> None:
    api = world("a", "b")
    configure(api, WHOLE)

    async def story(runner: ControllerRunner) -> None:
        assert shards(api) == {"whole": "a b"}
        configure(api, WHOLE.replace("whole", "other"))
        await wait_until(lambda: shards(api) == {"other": "a b"})
        api.remove(*CONFIG_MAP)
        make_node(api, "c")
        await wait_until(lambda: shards(api) == {"other": "a b c"})

    play(api, story)


def test_a_config_map_that_comes_later_counts_too() -> None:
    api = world("a")

    async def story(runner: ControllerRunner) -> None:
        assert shards(api) == {"calm": "a", "busy": ""}
        configure(api, WHOLE)
        await wait_until(lambda: shards(api) == {"whole": "a"})

    play(api, story)


def test_a_bad_config_map_is_told_of_once_and_the_last_configuration_stays() -> None:
    api = world("a")
    configure(api, WHOLE)

    async def story(runner: ControllerRunner) -> None:
        configure(api, "schedulerConfigs: [{name: whole, policies: [{name: magic}]}]")
        await wait_until(lambda: bool(api.events))
        make_node(api, "b")
        await wait_until(lambda: shards(api) == {"whole": "a b"})
        configure(api, WHOLE, key="sharding.yml")
        await wait_until(lambda: len(api.events) == 2)

    play(api, story)
    (first, policy), (second, key) = api.events
    assert (first, second) == ("InvalidShardingConfig", "InvalidShardingConfig")
    assert "policies[0]" in policy
    assert "there is no such policy" in policy
    assert key.startswith("sharding.yaml: this key is missing")


def test_fields_without_effect_are_told() -> None:
    api = world("a")
    configure(api, WHOLE + "\nshardSyncPriod: 5s\n")
    play(api)
    assert api.events == [("ShardingFieldIgnored", "shardSyncPriod is not known and has no effect")]


def test_shards_of_schedulers_that_nobody_configured_are_deleted() -> None:
    api = world("a")
    api.put("nodeshards", {"metadata": {"name": "stranger"}, "spec": {"nodesDesired": ["a"]}})
    play(api)
    assert shards(api) == {"calm": "a", "busy": ""}


def test_a_shard_that_somebody_changes_or_deletes_is_put_right() -> None:
    api = world("a", "b")

    async def story(runner: ControllerRunner) -> None:
        api.put("nodeshards", {"metadata": {"name": "calm"}, "spec": {"nodesDesired": ["a"]}})
        await wait_until(lambda: shards(api) == {"calm": "a b", "busy": ""})
        api.remove("nodeshards", "busy")
        await wait_until(lambda: shards(api) == {"calm": "a b", "busy": ""})

    play(api, story)


def test_the_status_says_what_comes_and_goes_and_the_schedulers_own_is_kept() -> None:
    api = world("a", "b", "c")
    spec = {"nodesDesired": ["a", "x"]}
    api.put("nodeshards", {"metadata": {"name": "calm"}, "spec": spec, "status": {"nodesInUse": ["x", "a"]}})
    play(api)
    status = api.find("nodeshards", "calm")["status"]
    del status["lastUpdateTime"]
    assert status == {"nodesInUse": ["x", "a"], "nodesToAdd": ["b", "c"], "nodesToRemove": ["x"]}


def test_a_scheduler_that_writes_its_status_first_is_not_overruled() -> None:
    api = world("a")

    def race(request: Request) -> None:
        if request.path.endswith("/calm/status"):
            shard = api.find("nodeshards", "calm")
            if "status" not in shard:
                api.put("nodeshards", {**shard, "status": {"nodesInUse": ["a"]}})

    api.before = race
    play(api)
    assert api.find("nodeshards", "calm")["status"] == {"nodesInUse": ["a"]}
    assert shards(api) == {"calm": "a", "busy": ""}


def test_a_shard_that_the_api_server_refuses_is_told_of_and_the_others_are_written() -> None:
    api = world("a", "b")
    api.put("nodeshards", {"metadata": {"name": "calm"}, "spec": {"nodesDesired": []}})

    def refuse(request: Request) -> None:
        if request.method == "PATCH" and request.path.endswith("/nodeshards/calm"):
            raise ApiError(422, "Invalid", "too large")

    api.before = refuse
    play(api)
    assert shards(api) == {"calm": "", "busy": ""}
    assert [reason for reason, _ in api.events] == ["Rejected"]


def test_small_changes_of_large_shards_wait_for_larger_ones() -> None:
    api = world(*(f"n{number:02}" for number in range(30)))

    async def story(runner: ControllerRunner) -> None:
        async def replace_node(number: int) -> None:
            (controller,) = runner.controllers
            assert isinstance(controller, ShardingController)
            api.remove("nodes", f"n{number:02}")
            make_node(api, f"new-{number}")
            await wait_until(lambda: controller.nodes.get(f"new-{number}") is not None)
            controller.queue.add("")
            await wait_until_idle(api, runner)

        before = shards(api)["calm"]
        await replace_node(0)
        await replace_node(1)
        assert shards(api)["calm"] == before
        await replace_node(2)
        assert shards(api)["calm"].endswith("n29 new-0 new-1 new-2")

    play(api, story, BY_PERIOD_ALONE)
