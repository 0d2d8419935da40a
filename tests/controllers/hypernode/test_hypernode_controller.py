"""HyperNodes at work: discovered, put right, counted; one source that fails stops nobody."""

from __future__ import annotations

import asyncio
import base64
import json
import random
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from stromboli.controllers.hypernode import controller as module
from stromboli.controllers.hypernode import discovery_config, ufm_client
from stromboli.controllers.hypernode.controller import HyperNodeController
from stromboli.controllers.options import Options
from stromboli.controllers.runner import ControllerRunner
from stromboli.kube.request import ApiError, NoResponse, Request
from tests.controllers.chaos import UnreliableApi
from tests.controllers.in_memory_api import InMemoryApi
from tests.controllers.running import running_controllers, wait_until, wait_until_idle
from tests.serving import BAD, behaving, serving

SOURCE = "volcano.sh/network-topology-source"
CONFIG_MAP = ("volcano-controller-configmap", "volcano-system")
LABELS: dict[str, Any] = {
    "source": "label",
    "enabled": True,
    "config": {
        "networkTopologyTypes": {
            "gpu": [{"nodeLabel": "switch"}, {"nodeLabel": "rack"}, {"nodeLabel": "kubernetes.io/hostname"}]
        }
    },
}


def ufm(url: str, **entry: Any) -> dict[str, Any]:
    secret = {"name": "ufm-credentials", "namespace": "volcano-system"}
    return {
        "source": "ufm",
        "enabled": True,
        "credentials": {"secretRef": secret},
        "config": {"endpoint": url},
        **entry,
    }


def configure(api: InMemoryApi, *sources: dict[str, Any]) -> None:
    configure_text(api, json.dumps({"networkTopologyDiscovery": sources}))


def configure_text(api: InMemoryApi, text: str) -> None:
    name, namespace = CONFIG_MAP
    api.put(
        "configmaps",
        {"metadata": {"name": name, "namespace": namespace}, "data": {"volcano-controller.conf": text}},
    )


def put_node(api: InMemoryApi, name: str, **labels: str) -> None:
    api.put("nodes", {"metadata": {"name": name, "labels": labels}})


def put_hyper_node(api: InMemoryApi, name: str, *nodes: str, **labels: str) -> None:
    members = [{"type": "Node", "selector": {"exactMatch": {"name": node}}} for node in nodes]
    api.put(
        "hypernodes", {"metadata": {"name": name, "labels": labels}, "spec": {"tier": 1, "members": members}}
    )


def world(*sources: dict[str, Any], racks: int = 2) -> InMemoryApi:
    api = InMemoryApi()
    for number in range(racks * 2):
        put_node(api, f"n{number}", rack=f"r{number // 2}", switch="s0")
    if sources:
        configure(api, *sources)
    return api


def put_secret(api: InMemoryApi) -> None:
    data = {key: base64.b64encode(key.encode()).decode() for key in ("username", "password")}
    meta = {"name": "ufm-credentials", "namespace": "volcano-system"}
    api.put("secrets", {"metadata": meta, "data": data})


def port(leaf: str, node: str) -> dict[str, str]:
    return {"description": "Computer", "system_name": node, "peer_node_name": leaf}


def tree(api: InMemoryApi) -> dict[str, tuple[list[str], int]]:
    """Members and count by the value of the place's label, else by name."""
    objects = {obj["metadata"]["name"]: obj for obj in api.every("hypernodes")}
    shown = {name: _shown(obj) for name, obj in objects.items()}
    return {
        shown[name]: (
            sorted(
                shown.get(member["selector"]["exactMatch"]["name"], member["selector"]["exactMatch"]["name"])
                for member in obj["spec"]["members"]
            ),
            obj.get("status", {}).get("nodeCount", 0),
        )
        for name, obj in sorted(objects.items())
    }


def _shown(obj: dict[str, Any]) -> str:
    labels = obj["metadata"].get("labels", {})
    return str(labels.get("rack") or labels.get("switch") or obj["metadata"]["name"])


async def becomes(api: InMemoryApi, expected: dict[str, tuple[list[str], int]]) -> None:
    try:
        await wait_until(lambda: tree(api) == expected)
    except TimeoutError:
        assert tree(api) == expected


TREE = {"r0": (["n0", "n1"], 2), "r1": (["n2", "n3"], 2), "s0": (["r0", "r1"], 4)}


@asynccontextmanager
async def running(api: InMemoryApi, **options: Any) -> AsyncIterator[ControllerRunner]:
    async with running_controllers(api, HyperNodeController, **options) as runner:
        yield runner
        await wait_until_idle(api, runner)


async def wait_until_nothing_is_due(api: InMemoryApi, runner: ControllerRunner) -> None:
    """Wait until what follows from all changes, our own writes included, is done."""
    await wait_until_idle(api, runner)
    while any(controller.queue._delayed for controller in runner.controllers):
        await wait_until_idle(api, runner)


def play(story: Callable[[], Any]) -> None:
    asyncio.run(story())


def test_hyper_nodes_appear_with_their_counts_and_then_nothing_is_written() -> None:
    async def story() -> None:
        api = world(LABELS)
        async with running(api) as runner:
            await becomes(api, TREE)
            await wait_until_nothing_is_due(api, runner)
            written = len(api.writes)
            assert 6 <= written <= 9
            put_node(api, "n0", rack="r0", switch="s0", other="label")
            await wait_until_nothing_is_due(api, runner)
            assert len(api.writes) == written
        for obj in api.every("hypernodes"):
            assert obj["metadata"]["labels"][SOURCE] == "label"
            assert obj["spec"]["tierName"] in ("rack", "switch")

    play(story)


def test_hyper_nodes_follow_the_nodes() -> None:
    async def story() -> None:
        api = world(LABELS)
        async with running(api):
            await becomes(api, TREE)
            put_node(api, "n1", rack="r1", switch="s0")
            await becomes(api, {"r0": (["n0"], 1), "r1": (["n1", "n2", "n3"], 3), "s0": (["r0", "r1"], 4)})
            api.remove("nodes", "n0")
            await becomes(api, {"r1": (["n1", "n2", "n3"], 3), "s0": (["r1"], 3)})
            put_node(api, "n4", rack="r2", switch="s1")
            await becomes(
                api,
                {"r1": (["n1", "n2", "n3"], 3), "r2": (["n4"], 1), "s0": (["r1"], 3), "s1": (["r2"], 1)},
            )
            for number in range(1, 5):
                put_node(api, f"n{number}")
            await becomes(api, {})

    play(story)


def test_counts_follow_nodes_for_hyper_nodes_that_users_made() -> None:
    """Volcano counts again only when the HyperNode changes, and nodes that do not exist."""

    async def story() -> None:
        api = world()
        put_hyper_node(api, "mine", "n0", "n9")
        pattern = {"type": "Node", "selector": {"regexMatch": {"pattern": "^n"}}}
        api.put("hypernodes", {"metadata": {"name": "all"}, "spec": {"tier": 2, "members": [pattern]}})
        count = lambda name: api.find("hypernodes", name).get("status", {}).get("nodeCount")  # noqa: E731
        put_hyper_node(api, "empty", "no-such-node")
        async with running(api):
            await wait_until(lambda: (count("mine"), count("all"), count("empty")) == (1, 4, 0))
            put_node(api, "n9")
            await wait_until(lambda: (count("mine"), count("all")) == (2, 5))
            api.remove("nodes", "n0")
            await wait_until(lambda: (count("mine"), count("all")) == (1, 4))
            written = len(api.writes)
            put_node(api, "n1", rack="elsewhere")
            put_hyper_node(api, "mine", "n1", "n2", "n3")
            await wait_until(lambda: count("mine") == 3)
            assert len(api.writes) == written + 1

    play(story)


def test_what_others_do_to_a_discovered_hyper_node_is_put_right() -> None:
    async def story() -> None:
        api = world(LABELS)
        async with running(api):
            await becomes(api, TREE)
            name = next(name for _, _, name in api.objects if "tier1" in name)
            api.remove("hypernodes", name)
            await becomes(api, TREE)
            assert ("hypernodes", "", name) in api.objects
            obj = api.find("hypernodes", name)
            api.put("hypernodes", {**obj, "spec": {**obj["spec"], "members": []}, "status": {"nodeCount": 7}})
            await becomes(api, TREE)

    play(story)


def test_a_write_that_is_refused_or_lost_is_tried_again_and_stops_no_other() -> None:
    """Volcano logs it, and the HyperNode is missing until nodes change."""

    async def story() -> None:
        api = world(LABELS)
        left = {"POST": 3, "PATCH": 2, "DELETE": 1}

        def trouble(request: Request) -> None:
            if left.get(request.method, 0) > 0 and "/hypernodes" in request.path:
                left[request.method] -= 1
                errors = [ApiError(409, "Conflict", "again"), ApiError(403, "Forbidden", "not now")]
                raise errors[left[request.method] % 2]

        api.before = trouble
        async with running(api):
            await becomes(api, TREE)
            put_node(api, "n0", rack="r1", switch="s0")
            put_node(api, "n1", rack="r1", switch="s0")
            await becomes(api, {"r1": (["n0", "n1", "n2", "n3"], 4), "s0": (["r1"], 4)})
        assert set(left.values()) == {0}

    play(story)


def test_an_answer_that_is_lost_makes_no_second_hyper_node() -> None:
    async def story() -> None:
        api = world(LABELS)
        lost = iter(range(3))

        def after(request: Request) -> None:
            if request.method == "POST" and "/hypernodes" in request.path and next(lost, None) is not None:
                raise NoResponse("lost")

        api.after = after
        async with running(api):
            await becomes(api, TREE)

    play(story)


def test_the_configuration_is_reread_and_a_source_that_is_disabled_leaves_its_hyper_nodes() -> None:
    async def story() -> None:
        api = world()
        async with running(api) as runner:
            configure(api, LABELS)
            await becomes(api, TREE)
            configure(api, {**LABELS, "enabled": False})
            put_node(api, "n9", rack="r9", switch="s0")
            api.remove("configmaps", *CONFIG_MAP)
            await wait_until_nothing_is_due(api, runner)
            assert tree(api) == TREE
            racks = {"networkTopologyTypes": {"gpu": [{"nodeLabel": "rack"}, {"nodeLabel": "host"}]}}
            configure(api, {**LABELS, "config": racks})
            await becomes(api, {"r0": TREE["r0"], "r1": TREE["r1"], "r9": (["n9"], 1)})
            configure(api, {**LABELS, "config": {"networkTopologyTypes": {}}})
            await becomes(api, {})

    play(story)


def test_a_configuration_that_cannot_be_read_changes_nothing_and_is_told_once() -> None:
    async def story() -> None:
        api = world(LABELS)
        async with running(api):
            await becomes(api, TREE)
            configure_text(api, "networkTopologyDiscovery: [")
            await wait_until(lambda: bool(api.events))
            put_node(api, "n4", rack="r1", switch="s0")
            await becomes(api, {**TREE, "r1": (["n2", "n3", "n4"], 3), "s0": (["r0", "r1"], 5)})
        ((reason, message),) = api.events
        assert reason == "DiscoveryConfigInvalid"
        assert "what was configured before stays in force" in message
        (event,) = api.every("events")
        assert event["involvedObject"]["name"] == CONFIG_MAP[0]

    play(story)


def test_a_type_that_is_wrong_costs_no_hyper_node() -> None:
    """Volcano deletes those of the type."""

    async def story() -> None:
        api = world(LABELS)
        async with running(api) as runner:
            await becomes(api, TREE)
            types = {"a-name-that-is-too-long": LABELS["config"]["networkTopologyTypes"]["gpu"]}
            configure(api, {**LABELS, "config": {"networkTopologyTypes": types}})
            await wait_until(lambda: bool(api.events))
            await wait_until_nothing_is_due(api, runner)
            assert tree(api) == TREE
        assert "needs 1 to 20 bytes" in api.events[0][1]

    play(story)


def test_a_name_that_somebody_else_has_is_told_and_left_alone() -> None:
    async def story() -> None:
        api = world()
        put_secret(api)
        put_hyper_node(api, "spine-hn", "n0")
        with serving(lambda asked: json.dumps([port("a", "n1")]).encode()) as server:
            configure(api, ufm(server.url))
            async with running(api):
                await becomes(api, {"leaf-hn-0": (["n1"], 1), "spine-hn": (["n0"], 1)})
                await wait_until(lambda: bool(api.events))
                api.remove("hypernodes", "spine-hn")
                await becomes(api, {"leaf-hn-0": (["n1"], 1), "spine-hn": (["leaf-hn-0"], 1)})
        assert [reason for reason, _ in api.events] == ["NameTaken"]

    play(story)


@pytest.mark.parametrize("seed", range(3))
def test_whatever_goes_wrong_the_network_is_right_in_the_end(seed: int) -> None:
    """Nodes move, writes and answers are lost, watches lag and begin anew, controllers are killed."""

    async def story() -> None:
        random_ = random.Random(seed)
        api = UnreliableApi(seed, 0.3)
        configure(api, LABELS)
        put_hyper_node(api, "stale", "n0", **{SOURCE: "label"})

        def trouble(request: Request) -> None:
            if api.unreliable and random_.random() < 0.2:
                raise random_.choice([NoResponse("lost"), ApiError(500, "InternalError", "no")])

        api.before = api.after = trouble
        for _ in range(3):
            async with running_controllers(api, HyperNodeController):
                for _ in range(15):
                    number = random_.randrange(8)
                    labels = (
                        {"rack": f"r{random_.randrange(4)}", "switch": "s0"} if random_.random() < 0.9 else {}
                    )
                    put_node(api, f"n{number}", **labels)
                    await asyncio.sleep(random_.random() * 0.02)
        api.unreliable = False
        expected: dict[str, tuple[list[str], int]] = {}
        for node in api.every("nodes"):
            meta = node["metadata"]
            if rack := meta["labels"].get("rack"):
                members = [*expected.get(rack, ([], 0))[0], meta["name"]]
                expected[rack] = sorted(members), len(members)
        expected["s0"] = sorted(expected), sum(count for _, count in expected.values())
        async with running_controllers(api, HyperNodeController):
            await becomes(api, expected)

    play(story)


# -- UFM


def test_ufm_is_asked_with_the_name_and_password_of_the_secret_at_every_interval(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(discovery_config, "SHORTEST_INTERVAL", 0.3)

    async def story() -> None:
        api = world()
        put_secret(api)
        leaves = [port("a", "n0"), port("a", "n1"), port("b", "n2")]
        with serving(lambda asked: json.dumps(leaves).encode()) as server:
            configure(api, ufm(server.url + "/", interval="300ms"))
            async with running(api):
                spine = (["leaf-hn-0", "leaf-hn-1"], 3)
                await becomes(
                    api, {"leaf-hn-0": (["n0", "n1"], 2), "leaf-hn-1": (["n2"], 1), "spine-hn": spine}
                )
                leaves.append(port("b", "n3"))
                spine = (["leaf-hn-0", "leaf-hn-1"], 4)
                await becomes(
                    api, {"leaf-hn-0": (["n0", "n1"], 2), "leaf-hn-1": (["n2", "n3"], 2), "spine-hn": spine}
                )
        assert server.asked[0].path == "/ufmRest/resources/ports"
        token = base64.b64encode(b"username:password").decode()
        assert server.asked[0].headers["Authorization"] == f"Basic {token}"
        labels = {obj["metadata"]["labels"][SOURCE] for obj in api.every("hypernodes")}
        assert labels == {"ufm"}

    play(story)


def test_what_others_do_to_hyper_nodes_of_ufm_is_put_right_without_asking_it() -> None:
    async def story() -> None:
        api = world()
        put_secret(api)
        expected = {"leaf-hn-0": (["n0"], 1), "spine-hn": (["leaf-hn-0"], 1)}
        with serving(lambda asked: json.dumps([port("a", "n0")]).encode()) as server:
            configure(api, ufm(server.url))
            async with running(api):
                await becomes(api, expected)
                api.remove("hypernodes", "leaf-hn-0")
                await becomes(api, expected)
            assert len(server.asked) == 1

    play(story)


@pytest.mark.parametrize("status", [401, 500, 302])
def test_a_ufm_that_refuses_is_told_once_and_asked_again(
    status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RETRY", 0.05)

    async def story() -> None:
        api = world()
        put_secret(api)
        answers: list[Any] = [(status, b"no")] * 3
        with serving(
            lambda asked: answers.pop() if answers else json.dumps([port("a", "n0")]).encode()
        ) as server:
            configure(api, ufm(server.url))
            async with running(api):
                await becomes(api, {"leaf-hn-0": (["n0"], 1), "spine-hn": (["leaf-hn-0"], 1)})
            assert len(server.asked) == 4
        ((reason, message),) = api.events
        assert reason == "DiscoveryFailed"
        assert f"answered {status}" in message
        assert "password" not in message

    play(story)


@pytest.mark.parametrize("badly", BAD, ids=lambda badly: badly.__name__)
def test_whatever_ufm_does_labels_are_discovered_and_nothing_is_lost(
    badly: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ufm_client, "TIMEOUT", 0.3)
    monkeypatch.setattr(ufm_client, "MAX_BYTES", 100_000)

    async def story() -> None:
        api = world()
        put_secret(api)
        put_hyper_node(api, "leaf-hn-0", "n0", **{SOURCE: "ufm"})
        with behaving(badly) as url:
            configure(api, ufm(url), LABELS)
            async with running(api):
                await becomes(api, {**TREE, "leaf-hn-0": (["n0"], 1)})
                await wait_until(lambda: bool(api.events))
        assert [reason for reason, _ in api.events] == ["DiscoveryFailed"]

    play(story)


def test_labels_do_not_wait_for_a_ufm_that_hangs() -> None:
    async def story() -> None:
        api = world()
        put_secret(api)
        over = threading.Event()

        def answer(_: object) -> bytes:
            over.wait(20)
            return b"[]"

        with serving(answer) as server:
            configure(api, ufm(server.url), LABELS)
            async with running(api):
                await wait_until(lambda: bool(server.asked))
                await becomes(api, TREE)
                put_node(api, "n9", rack="r9", switch="s0")
                await wait_until(lambda: "r9" in tree(api))
                over.set()

    play(story)


def test_a_ufm_that_hangs_does_not_keep_the_controllers_from_ending() -> None:
    over = threading.Event()
    answered = []

    def answer(_: object) -> bytes:
        over.wait(20)
        answered.append("late")
        return b"[]"

    with serving(answer) as server:

        async def story() -> None:
            api = world()
            put_secret(api)
            configure(api, ufm(server.url))
            impatient = Options(shutdown_timeout=0.1)
            async with running_controllers(api, HyperNodeController, options=impatient):
                await wait_until(lambda: bool(server.asked))

        play(story)
        assert not answered
        over.set()


def test_a_secret_that_may_not_be_read_names_the_way_out() -> None:
    async def story() -> None:
        api = world(ufm("http://127.0.0.1:1"), LABELS)

        def forbid(request: Request) -> None:
            if "/secrets/" in request.path:
                raise ApiError(403, "Forbidden", "secrets ufm-credentials is forbidden")

        api.before = forbid
        async with running(api):
            await becomes(api, TREE)
            await wait_until(lambda: bool(api.events))
        ((_, message),) = api.events
        assert message.endswith("secrets ufm-credentials is forbidden; deploy/components/ufm grants it")

    play(story)
