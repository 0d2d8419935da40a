"""Queues at work: closed and opened by commands, alone and with their children, and left alone otherwise."""

from __future__ import annotations

import asyncio
from typing import Any

from stromboli.controllers.options import Options
from stromboli.controllers.queue.controller import QueueController
from stromboli.kube.request import ApiError, NoResponse, Request
from tests.controllers.in_memory_api import InMemoryApi
from tests.controllers.running import running_controllers, wait_until, wait_until_idle

MARK = "volcano.sh/closed-by-parent"


def make_queue(api: InMemoryApi, name: str, parent: str = "root", state: str = "Open") -> None:
    spec = {"weight": 1, **({"parent": parent} if parent else {})}
    api.put("queues", {"metadata": {"name": name}, "spec": spec, "status": {"state": state}})


def make_group(api: InMemoryApi, name: str, queue: str, phase: str = "Running") -> None:
    meta = {"name": name, "namespace": "ns"}
    api.put(
        "podgroups", {"metadata": meta, "spec": {"queue": queue, "minMember": 1}, "status": {"phase": phase}}
    )


def command(
    api: InMemoryApi, action: str, queue: str, number: int = 0, uid: str = "", namespace: str = "default"
) -> None:
    target = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "name": queue, "uid": uid}
    meta = {"name": f"{action}-{queue}-{number}".lower(), "namespace": namespace}
    meta["creationTimestamp"] = f"2026-01-01T00:00:{number:02}Z"
    api.put("commands", {"metadata": meta, "action": action, "target": target})


def states(api: InMemoryApi) -> dict[str, str]:
    return {
        queue["metadata"]["name"]: queue.get("status", {}).get("state", "") for queue in api.every("queues")
    }


def mark(api: InMemoryApi, name: str) -> str | None:
    annotations: dict[str, Any] = api.find("queues", name)["metadata"].get("annotations", {})
    return annotations.get(MARK)


def world(*queues: str) -> InMemoryApi:
    """`team/one`: a queue below another."""
    api = InMemoryApi()
    make_queue(api, "root", "")
    for path in queues:
        parent, _, name = path.rpartition("/")
        make_queue(api, name, parent or "root")
    return api


def test_a_new_queue_becomes_open_and_hangs_below_the_root() -> None:
    async def run() -> None:
        api = world()
        api.put("queues", {"metadata": {"name": "fresh"}, "spec": {"weight": 1}})
        async with running_controllers(api, QueueController) as runner:
            await wait_until_idle(api, runner)
        assert states(api) == {"root": "Open", "fresh": "Open"}
        assert api.find("queues", "fresh")["spec"]["parent"] == "root"
        assert "parent" not in api.find("queues", "root")["spec"]

    asyncio.run(run())


def test_a_closing_queue_without_a_parent_is_closed_before_it_is_given_one() -> None:
    """Admission refuses every change of a queue that is closing, so that it would close never."""

    async def run() -> None:
        api = world()
        make_queue(api, "old", "", state="Closing")
        make_group(api, "g", "old")

        def admission(request: Request) -> None:
            changes = request.method == "PATCH" and request.path.endswith("queues/old")
            if changes and states(api)["old"] == "Closing":
                raise ApiError(400, "", "queue state must be in [Open Closed]")

        api.before = admission
        async with running_controllers(api, QueueController) as runner:
            await wait_until_idle(api, runner)
            assert [request.path for request in api.writes if request.path.endswith("queues/old")] == []
            api.remove("podgroups", "g", "ns")
            await wait_until_idle(api, runner)
        assert states(api)["old"] == "Closed"
        assert api.find("queues", "old")["spec"]["parent"] == "root"

    asyncio.run(run())


def test_a_quiet_controller_writes_nothing() -> None:
    async def run() -> None:
        api = world("a", "b", "a/c")
        make_group(api, "g", "a")
        async with running_controllers(api, QueueController) as runner:
            await wait_until_idle(api, runner)
            allocated = {"allocated": {"cpu": "3"}, "state": "Open"}
            for _ in range(3):
                api.put("queues", {**api.find("queues", "a"), "status": allocated})
            make_group(api, "g", "a", "Inqueue")
            await wait_until_idle(api, runner)
        assert api.writes == []

    asyncio.run(run())


def test_an_empty_queue_is_closed_at_once_and_a_busy_one_when_the_last_group_leaves() -> None:
    async def run() -> None:
        api = world("empty", "busy")
        make_group(api, "g", "busy")
        for name in ("empty", "busy"):
            command(api, "CloseQueue", name)
        async with running_controllers(api, QueueController) as runner:
            await wait_until_idle(api, runner)
            assert states(api) == {"root": "Open", "empty": "Closed", "busy": "Closing"}
            assert api.every("commands") == []
            api.remove("podgroups", "g", "ns")
            await wait_until(lambda: states(api)["busy"] == "Closed")
        assert api.events == [("CloseQueue", "Close queue succeed")] * 2

    asyncio.run(run())


def test_a_group_that_moves_to_another_queue_lets_the_first_one_close() -> None:
    async def run() -> None:
        api = world("a", "b")
        make_group(api, "g", "a")
        command(api, "CloseQueue", "a")
        async with running_controllers(api, QueueController) as runner:
            await wait_until_idle(api, runner)
            assert states(api)["a"] == "Closing"
            make_group(api, "g", "b")
            await wait_until(lambda: states(api)["a"] == "Closed")

    asyncio.run(run())


def test_children_close_and_open_with_their_parent_but_for_those_that_were_closed_before() -> None:
    async def run() -> None:
        api = world("team", "team/one", "team/two", "one/deep")
        command(api, "CloseQueue", "two")
        async with running_controllers(api, QueueController) as runner:
            await wait_until_idle(api, runner)
            command(api, "CloseQueue", "team", 1)
            await wait_until_idle(api, runner)
            assert set(states(api).values()) == {"Open", "Closed"}
            assert states(api)["root"] == "Open"
            assert (mark(api, "one"), mark(api, "deep"), mark(api, "two")) == ("true", "true", None)
            command(api, "OpenQueue", "team", 2)
            await wait_until_idle(api, runner)
            assert states(api) == {
                "root": "Open",
                "team": "Open",
                "one": "Open",
                "deep": "Open",
                "two": "Closed",
            }
            assert (mark(api, "team"), mark(api, "one"), mark(api, "two")) == ("false", "false", None)

    asyncio.run(run())


def test_commands_are_carried_out_in_the_order_in_which_they_were_given() -> None:
    async def run() -> None:
        api = world("a")
        command(api, "OpenQueue", "a", 2)
        command(api, "CloseQueue", "a", 1)
        async with running_controllers(api, QueueController) as runner:
            await wait_until_idle(api, runner)
        assert states(api)["a"] == "Open"
        assert [reason for reason, _ in api.events] == ["CloseQueue"]

    asyncio.run(run())


def test_a_command_survives_a_write_that_fails_and_a_controller_that_dies() -> None:
    async def run() -> None:
        api = world("a")
        command(api, "CloseQueue", "a")

        def trouble(request: Request) -> None:
            if request.path.endswith("/status"):
                raise ApiError(403, "Forbidden", "not today")

        api.before = trouble
        async with running_controllers(api, QueueController):
            await wait_until(lambda: len(api.writes) > 2)
        assert len(api.every("commands")) == 1
        api.before = lambda request: None
        async with running_controllers(api, QueueController) as runner:
            await wait_until_idle(api, runner)
        assert states(api)["a"] == "Closed"
        assert api.every("commands") == []
        assert ("CloseQueue", "Close queue failed for not today") in api.events

    asyncio.run(run())


def test_a_lost_answer_does_no_harm() -> None:
    async def run() -> None:
        api = world("a")
        command(api, "CloseQueue", "a")
        lost = iter([True, True, True])

        def lose(request: Request) -> None:
            if request.method != "GET" and next(lost, False):
                raise NoResponse("lost")

        api.after = lose
        async with running_controllers(api, QueueController) as runner:
            await wait_until(lambda: not api.every("commands"))
            await wait_until_idle(api, runner)
        assert states(api)["a"] == "Closed"

    asyncio.run(run())


def test_a_child_waits_for_its_parent_to_open_and_the_user_is_told_if_it_does_not() -> None:
    async def run() -> None:
        api = world("team", "team/one")
        command(api, "CloseQueue", "team")
        async with running_controllers(api, QueueController, options=Options(max_requeue_num=3)) as runner:
            await wait_until_idle(api, runner)
            command(api, "OpenQueue", "one", 1)
            await wait_until(lambda: not api.every("commands"))
            await wait_until_idle(api, runner)
            assert states(api)["one"] == "Closed"
            assert ("OpenQueue", _REFUSED) in api.events

        api = world("team", "team/one")
        command(api, "CloseQueue", "team")
        async with running_controllers(api, QueueController) as runner:
            await wait_until_idle(api, runner)
            command(api, "OpenQueue", "one", 1)
            await asyncio.sleep(0.05)
            command(api, "OpenQueue", "team", 2)
            await wait_until(lambda: not api.every("commands"))
            await wait_until_idle(api, runner)
            assert states(api)["one"] == "Open"

    asyncio.run(run())


_REFUSED = "Failed to open queue one because its parent queue team is closing or closed. Open the parent queue first."


def test_the_root_cannot_be_closed_and_says_so() -> None:
    async def run() -> None:
        api = world()
        command(api, "CloseQueue", "root")
        async with running_controllers(api, QueueController) as runner:
            await wait_until_idle(api, runner)
            await runner.recorder.flush()
        assert (states(api), api.every("commands")) == ({"root": "Open"}, [])
        text = "Queue root can not be closed, since all queues are below it, so nothing is done; close those instead"
        assert api.events == [("CloseQueue", text)]

    asyncio.run(run())


def test_a_command_for_a_queue_that_is_gone_or_was_another_one_is_dropped() -> None:
    async def run() -> None:
        api = world("a")
        command(api, "CloseQueue", "nowhere")
        command(api, "CloseQueue", "a", uid="of-an-earlier-one")
        async with running_controllers(api, QueueController) as runner:
            await wait_until_idle(api, runner)
        assert api.every("commands") == []
        assert states(api)["a"] == "Open"

    asyncio.run(run())


def test_without_the_gate_commands_are_left_alone() -> None:
    async def run() -> None:
        api = world("a")
        command(api, "CloseQueue", "a")
        options = Options(feature_gates=(("QueueCommandSync", False),))
        async with running_controllers(api, QueueController, options=options) as runner:
            await wait_until_idle(api, runner)
        assert states(api)["a"] == "Open"
        assert len(api.every("commands")) == 1

    asyncio.run(run())


def test_a_missing_parent_is_told_and_heals_when_it_comes() -> None:
    async def run() -> None:
        api = world()
        make_queue(api, "orphan", "lost")
        async with running_controllers(api, QueueController, options=Options(max_requeue_num=1)) as runner:
            await wait_until(lambda: bool(api.events))
            reason, message = api.events[0]
            assert reason == "SyncQueue"
            assert message.startswith('SyncQueue queue failed for the parent queue "lost" of queue "orphan"')
            make_queue(api, "lost", state="Closed")
            await wait_until(lambda: states(api)["orphan"] == "Closed")
            await wait_until_idle(api, runner)

    asyncio.run(run())


def test_groups_are_counted_by_phase_and_forgotten_with_their_queue() -> None:
    async def run() -> None:
        api = world("a")
        for number, phase in enumerate(("Running", "Running", "Pending", "Inqueue")):
            make_group(api, f"g{number}", "a", phase)
        async with running_controllers(api, QueueController) as runner:
            await wait_until_idle(api, runner)
            shown = runner.metrics.text().decode()
            assert 'volcano_queue_pod_group_running_count{queue_name="a"} 2.0' in shown
            assert 'volcano_queue_pod_group_completed_count{queue_name="a"} 0.0' in shown
            api.remove("queues", "a")
            await wait_until_idle(api, runner)
            assert 'queue_name="a"' not in runner.metrics.text().decode()

    asyncio.run(run())


def test_a_command_that_nobody_knows_is_told_and_deleted_and_changes_nothing() -> None:
    async def run() -> None:
        api = world("team")
        command(api, "CloseQ", "team")
        async with running_controllers(api, QueueController) as runner:
            await wait_until_idle(api, runner)
            await runner.recorder.flush()
        assert (states(api)["team"], api.every("commands")) == ("Open", [])
        ((reason, text),) = api.events
        assert reason == "UnknownCommand"
        assert "asks for 'CloseQ', which nobody knows" in text
        assert text.endswith("use OpenQueue, CloseQueue")

    asyncio.run(run())


def test_queues_in_a_circle_are_told_once_and_do_not_open_and_close_each_other_for_ever() -> None:
    async def run() -> None:
        api = world("fine", "qy/qx", "qx/qy", "qx/below")
        for name, state in (("qx", "Open"), ("qy", "Closed")):
            api.put(
                "queues",
                {
                    "metadata": {
                        "name": name,
                        "annotations": {MARK: "true" if state == "Closed" else "false"},
                    },
                    "spec": {"weight": 1, "parent": "qy" if name == "qx" else "qx"},
                    "status": {"state": state},
                },
            )
        async with running_controllers(api, QueueController) as runner:
            await wait_until_idle(api, runner)
            command(api, "CloseQueue", "fine")
            await wait_until(lambda: states(api)["fine"] == "Closed")
            await wait_until_idle(api, runner)
            await runner.recorder.flush()
        told = sorted(message for reason, message in api.events if reason == "QueueError")
        assert told == [
            'queue "below" is cut off from the root: the parents of queue "qx" form a loop: qx -> qy -> qx;'
            ' set spec.parent of one of them to "root"',
            'the parents of queue "qx" form a loop: qx -> qy -> qx; set spec.parent of one of them to "root"',
            'the parents of queue "qy" form a loop: qy -> qx -> qy; set spec.parent of one of them to "root"',
        ]
        assert len(api.writes) < 10

    asyncio.run(run())


def test_a_parent_of_the_root_is_ignored() -> None:
    async def run() -> None:
        api = world("fine")
        make_queue(api, "root", "nowhere")
        async with running_controllers(api, QueueController) as runner:
            await wait_until_idle(api, runner)
            await runner.recorder.flush()
            assert runner.controllers[0].queue.failing == 0
        assert api.events == []

    asyncio.run(run())
