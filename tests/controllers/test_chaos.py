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

from stromboli.controllers.catalog import CONTROLLERS
from stromboli.controllers.crew import Controllers
from stromboli.controllers.options import Options
from stromboli.kube.asking import Refused, Request, Unanswered
from tests.controllers.memory import MemoryApi
from tests.controllers.queue.test_queue_controller import command, make_group, make_queue, states
from tests.controllers.working import NOW, Watch, settled, until

WITHOUT_JOBS = Options(controllers=("*", "-job-controller"), max_requeue_num=-1)
GROUP = "scheduling.k8s.io/group-name"
TROUBLES = [
    Unanswered("lost"),
    Refused(409, "Conflict", "changed"),
    Refused(429, "TooManyRequests", "slowly"),
    Refused(500, "InternalError", "etcd"),
    Refused(503, "ServiceUnavailable", "away"),
]


class Trouble:
    """Fails requests by chance, before or after they were carried out, until it is told to stop."""

    def __init__(self, seed: int, often: float) -> None:
        self._chance = random.Random(seed)
        self._often = often
        self.over = False

    def before(self, request: Request) -> None:
        if not self.over and self._chance.random() < self._often:
            raise self._chance.choice(TROUBLES)

    def after(self, request: Request) -> None:
        """Only the answer is lost: the write itself is done."""
        if not self.over and self._chance.random() < self._often:
            raise Unanswered("lost on the way back")


def world() -> MemoryApi:
    api = MemoryApi()
    make_queue(api, "root", "")
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


def finish(api: MemoryApi) -> None:
    """Every job comes to a good end, as its controller would have it."""
    for job in api.every("jobs"):
        if job.get("status", {}).get("state", {}).get("phase") != "Completed":
            state = {"phase": "Completed", "lastTransitionTime": "2026-01-01T00:05:00Z"}
            api.put("jobs", {**job, "status": {"state": state}})


async def recovered(api: MemoryApi, crew: Controllers) -> None:
    """Wait until nothing is left to be tried again."""
    await until(lambda: not any(one.queue.failing for one in crew.controllers), 30)
    await settled(api, crew, 20)


async def tumble(api: MemoryApi, seed: int, often: float, deaths: int) -> None:
    """Let controllers work through trouble, killing them now and then; then let them finish in peace."""
    chance, trouble, clock = random.Random(seed), Trouble(seed, often), Watch(NOW + 61)
    api.before, api.after = trouble.before, trouble.after
    for life in range(deaths + 1):
        last = life == deaths
        crew = Controllers(api, WITHOUT_JOBS, clock=clock, kinds=CONTROLLERS)  # type: ignore[arg-type]
        running = asyncio.create_task(crew.run())
        try:
            for step in range(4):
                await asyncio.sleep(chance.random() * 0.03)
                if step == 2:
                    finish(api)
                if life == 0 and step == 1:
                    command(api, "CloseQueue", "team", 1)
                    command(api, "CloseQueue", "two", 2)
                    command(api, "CloseQueue", "busy", 3)
            if last:
                trouble.over = True
                for _ in range(5):  # a job that ends lets the next one begin
                    await recovered(api, crew)
                    finish(api)
                await recovered(api, crew)
                crew.stop()
                await running
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10**6), often=st.sampled_from([0.0, 0.1, 0.3]), deaths=st.integers(0, 3))
def test_whatever_goes_wrong_all_is_right_in_the_end(seed: int, often: float, deaths: int) -> None:
    logging.disable(logging.CRITICAL)
    api = world()
    try:
        asyncio.run(tumble(api, seed, often, deaths))
    finally:
        logging.disable(logging.NOTSET)
    assert states(api) == {
        "root": "Open",
        "team": "Closed",
        "one": "Closed",
        "two": "Closed",
        "deep": "Closed",
        "busy": "Closing",
    }
    assert api.every("commands") == []
    groups = {one["metadata"]["name"] for one in api.every("podgroups")} - {"g"}
    alone = api.find("pods", "web-0", "ns")["metadata"]
    assert groups == {"podgroup-web", f"podgroup-{alone['uid']}"}
    assert all(one["metadata"]["annotations"][GROUP] in groups for one in api.every("pods"))
    flow = api.find("jobflows", "f", "ns")["status"]
    assert flow["state"]["phase"] == "Succeed"
    assert flow["completedJobs"] == ["f-a", "f-b", "f-c"]
    cron = api.find("cronjobs", "t", "ns")["status"]
    assert (cron.get("active", []), cron["lastScheduleTime"]) == ([], "2026-01-01T00:01:00Z")
    made = Counter(
        change[3]["metadata"]["name"] for change in api._changes if change[1:3] == ("jobs", "ADDED")
    )
    assert made == {"f-a": 1, "f-b": 1, "f-c": 1, f"t-{int(NOW + 60) // 60}": 1}
