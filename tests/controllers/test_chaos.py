"""Everything that may go wrong goes wrong: refusals, lost answers, conflicts, controllers killed half way.

Afterwards all is as if nothing had happened: nothing is missing, nothing was made twice.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stromboli.controllers import pending_writes
from stromboli.controllers.job.controller import JobController
from stromboli.controllers.options import Options
from stromboli.controllers.runner import ControllerRunner
from stromboli.controllers.volcano_controllers import CONTROLLERS
from stromboli.kube.request import ApiError, NoResponse, Request
from tests.controllers.chaos import Chaos, RunningClock, UnreliableApi
from tests.controllers.in_memory_api import InMemoryApi
from tests.controllers.queue.test_queue_controller import command, make_group, make_queue, states
from tests.controllers.running import NOW, wait_until, wait_until_idle
from tests.number_of_examples import scaled

NEVER_GIVES_UP = Options(max_requeue_num=-1)
GROUP = "scheduling.k8s.io/group-name"
TROUBLES = [
    NoResponse("lost"),
    ApiError(409, "Conflict", "changed"),
    ApiError(429, "TooManyRequests", "slowly"),
    ApiError(500, "InternalError", "etcd"),
    ApiError(503, "ServiceUnavailable", "away"),
]


class PromptJobs(JobController):
    """Tells counts at once."""

    status_period = 0.0


KINDS = tuple(PromptJobs if kind is JobController else kind for kind in CONTROLLERS)


class Trouble:
    """Fails requests by chance, before or after they were carried out, until it is recorded to stop."""

    def __init__(self, seed: int, often: float) -> None:
        self._random = random.Random(seed)
        self._often = often
        self.over = False

    def before(self, request: Request) -> None:
        if not self.over and self._random.random() < self._often:
            raise self._random.choice(TROUBLES)

    def after(self, request: Request) -> None:
        """Only the answer is lost: the write itself is done."""
        if not self.over and self._random.random() < self._often:
            raise NoResponse("lost on the way back")


def world(seed: int, often: float) -> UnreliableApi:
    api = UnreliableApi(seed, often)
    make_queue(api, "root", "")
    make_queue(api, "default")
    for name, parent in (
        ("team", "root"),
        ("one", "team"),
        ("two", "team"),
        ("deep", "one"),
        ("busy", "root"),
    ):
        make_queue(api, name, parent, state="")
    make_group(api, "g", "busy")
    for number in range(4):
        owner = {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "name": "web",
            "uid": "web",
            "controller": True,
        }
        meta = {"name": f"web-{number}", "namespace": "ns", "ownerReferences": [owner] if number else []}
        api.put("pods", {"metadata": meta, "spec": {"schedulerName": "volcano", "containers": []}})
    for name in ("a", "b", "c"):
        api.put("jobtemplates", {"metadata": {"name": name, "namespace": "ns"}, "spec": {"minAvailable": 1}})
    steps: list[Any] = [{"name": "a"}, {"name": "b", "dependsOn": {"targets": ["a"]}}]
    steps.append({"name": "c", "dependsOn": {"targets": ["a", "b"]}})
    api.put("jobflows", {"metadata": {"name": "f", "namespace": "ns"}, "spec": {"flows": steps}})
    spec = {
        "schedule": "* * * * *",
        "timeZone": "UTC",
        "jobTemplate": {"spec": {}},
        "concurrencyPolicy": "Forbid",
    }
    api.put("cronjobs", {"metadata": {"name": "t", "namespace": "ns"}, "spec": spec})
    return api


def finish(api: InMemoryApi) -> None:
    """Every job of a flow or a schedule comes to a good end: they have no pods."""
    for job in api.every("jobs"):
        if (
            job["metadata"]["namespace"] == "ns"
            and job.get("status", {}).get("state", {}).get("phase") != "Completed"
        ):
            state = {"phase": "Completed", "lastTransitionTime": "2026-01-01T00:05:00Z"}
            api.put("jobs", {**job, "status": {"state": state}})


async def recovered(api: InMemoryApi, runner: ControllerRunner) -> None:
    """Wait until nothing is left to be tried again."""
    await wait_until(lambda: not any(controller.queue.failing for controller in runner.controllers), 30)
    await wait_until_idle(api, runner, 20)


async def settle(api: UnreliableApi, runner: ControllerRunner, chaos: Chaos) -> None:
    """Nothing more happens but that deleted pods go and groups are let in: then all comes to rest, and stays so."""
    for _ in range(2000):
        chaos.admit()
        chaos.remove_deleted()
        await asyncio.sleep(0.01)
        if not chaos.violations():
            break
    await recovered(api, runner)
    assert not chaos.violations(), chaos.violations()


async def tumble(api: UnreliableApi, chaos: Chaos, trouble: Trouble, seed: int, deaths: int) -> None:
    """Let controllers work through trouble, killing them now and then; then let them finish in peace."""
    chance, clock = random.Random(seed), RunningClock()
    for life in range(deaths + 1):
        runner = ControllerRunner(api, KINDS, NEVER_GIVES_UP, clock=clock)  # type: ignore[arg-type]
        running = asyncio.create_task(runner.run())
        try:
            for step in range(10):
                await asyncio.sleep(chance.random() * 0.04)
                chaos.act()
                if step == 5:
                    finish(api)
                if life == 0 and step == 3:
                    command(api, "CloseQueue", "team", 1)
                    command(api, "CloseQueue", "two", 2)
                    command(api, "CloseQueue", "busy", 3)
            if life == deaths:
                trouble.over, api.unreliable = True, False
                for _ in range(5):  # a job that ends lets the next one begin
                    await recovered(api, runner)
                    finish(api)
                await settle(api, runner, chaos)
                chaos.end()
                await settle(api, runner, chaos)
                runner.stop()
                await running
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


@pytest.mark.slow
@settings(max_examples=scaled(10), deadline=None)
@given(seed=st.integers(0, 10**6), often=st.sampled_from([0.0, 0.1, 0.3]), deaths=st.integers(0, 3))
def test_whatever_goes_wrong_all_is_right_in_the_end(seed: int, often: float, deaths: int) -> None:
    api, trouble = world(seed, often), Trouble(seed, often)
    chaos = Chaos(api, seed)
    api.before, api.after = trouble.before, trouble.after
    logging.disable(logging.CRITICAL)
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(pending_writes, "TIMEOUT", 5.0)
            asyncio.run(tumble(api, chaos, trouble, seed, deaths))
    finally:
        logging.disable(logging.NOTSET)
    chaos.check_past()
    assert states(api) == {
        "root": "Open",
        "default": "Open",
        "team": "Closed",
        "one": "Closed",
        "two": "Closed",
        "deep": "Closed",
        "busy": "Closing",
    }
    assert api.every("commands") == []
    groups = {name for kind, space, name in api.objects if (kind, space) == ("podgroups", "ns")} - {"g"}
    alone = api.find("pods", "web-0", "ns")["metadata"]
    assert groups == {"podgroup-web", f"podgroup-{alone['uid']}"}
    bare = [pod["metadata"] for pod in api.every("pods") if pod["metadata"]["namespace"] == "ns"]
    assert all(meta["annotations"][GROUP] in groups for meta in bare)
    flow = api.find("jobflows", "f", "ns")["status"]
    assert flow["state"]["phase"] == "Succeed"
    assert flow["completedJobs"] == ["f-a", "f-b", "f-c"]
    cron = api.find("cronjobs", "t", "ns")["status"]
    assert (cron.get("active", []), cron["lastScheduleTime"]) == ([], "2026-01-01T00:01:00Z")
    created = [change[3]["metadata"] for change in api._changes if change[1:3] == ("jobs", "ADDED")]
    made = Counter(meta["name"] for meta in created if meta["namespace"] == "ns")
    assert made == {"f-a": 1, "f-b": 1, "f-c": 1, f"t-{int(NOW + 60) // 60}": 1}
