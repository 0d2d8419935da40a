"""Jobs of thousands of pods or tasks: served in slices, beside small ones; left out, and told, where too large."""

from __future__ import annotations

import time
from typing import Any

import pytest

from stromboli.controllers.job.observed_state import CreatePod, ObservedState, Outcome
from stromboli.controllers.options import Options
from stromboli.controllers.watched_kinds import Pod
from stromboli.kube.request import Request
from tests.controllers.in_memory_api import InMemoryApi
from tests.controllers.job.simulated_job import SimulatedJob, job_manifest, make_job, policy, task
from tests.controllers.job.submitted_jobs import Prompt, admit, at_work, live, phase, run, submitted, touch
from tests.controllers.running import names, wait_until, wait_until_idle

MANY = [{"name": f"c{index}", "image": "busybox"} for index in range(1001)]
TOO_LARGE: dict[str, tuple[list[dict[str, Any]], dict[str, Any]]] = {
    "the job has 1001 tasks, at most 1000 are allowed: use fewer tasks with more replicas, or several jobs": (
        [task(f"t{index}", 1) for index in range(1001)],
        {},
    ),
    "the job has 100001 pods, at most 100000 are allowed: split it into several jobs": (
        [task(replicas=100_001)],
        {},
    ),
    "the job has 257 volumes, at most 256 are allowed: mount fewer": (
        [task()],
        {"volumes": [{"mountPath": f"/{index}", "volumeClaimName": f"c{index}"} for index in range(257)]},
    ),
    "the job has 257 policies in one list, at most 256 are allowed: name fewer events and exit codes": (
        [task(policies=[policy("AbortJob", exitCode=code) for code in range(257)])],
        {},
    ),
    "a pod of task worker has 1001 containers, at most 1000 are allowed: use several pods": (
        [task(spec={"containers": MANY})],
        {},
    ),
}


@pytest.mark.parametrize("text", TOO_LARGE)
def test_a_job_that_got_past_admission_and_is_too_large_says_so_and_the_others_run(text: str) -> None:
    tasks, spec = TOO_LARGE[text]

    async def story() -> None:
        api = submitted(*tasks, **spec)
        api.put("jobs", job_manifest(task(replicas=2), name="small"))
        async with at_work(api) as runner:
            admit(api)
            await wait_until(lambda: len(api.every("pods")) == 2)
            touch(api)
            await wait_until_idle(api, runner)
            await runner.recorder.flush()
            state = api.find("jobs", "j", "team")["status"]["state"]
            assert (phase(api), state["reason"], state["message"]) == ("Pending", "TooLarge", text)
            assert names(api.every("pods")) == ["small-worker-0", "small-worker-1"]
            assert api.events.count(("TooLarge", text)) == 1
            assert [request for request in api.requests if "persistentvolumeclaims" in request.path] == []

    run(story())


def test_a_job_that_shrinks_below_the_limit_goes_on() -> None:
    async def story() -> None:
        api = submitted(task(replicas=100_001), minAvailable=1)
        async with at_work(api) as runner:
            await wait_until(
                lambda: api.find("jobs", "j", "team")["status"]["state"].get("reason") == "TooLarge"
            )
            job = api.find("jobs", "j", "team")
            job["spec"]["tasks"][0]["replicas"] = 2
            api.put("jobs", job)
            await wait_until_idle(api, runner)
            admit(api)
            await wait_until(lambda: len(api.every("pods")) == 2)
            state = api.find("jobs", "j", "team")["status"]["state"]
            assert (state["phase"], state.get("reason", "")) == ("Pending", "")

    run(story())


def grown(*tasks: dict[str, Any], **spec: Any) -> SimulatedJob:
    """A job whose pods all exist."""
    return SimulatedJob(make_job(*tasks, **spec)).settle(most=200)


def test_a_job_of_a_thousand_tasks_is_reconciled_in_time() -> None:
    """Every task was compared with every pod."""
    simulated = grown(*(task(f"t{index}", 1) for index in range(1000)), minAvailable=1)
    simulated.set_all("Running")
    begin = time.process_time()
    for _ in range(5):
        simulated.step()
    assert time.process_time() - begin < 5


@pytest.mark.parametrize("action", ["RestartTask", "RestartPod"])
def test_thousands_of_pods_that_fail_together_restart_their_task_in_time(action: str) -> None:
    """For every failure all pods were looked for that it is about, and added to those before."""
    simulated = grown(task(replicas=3000, policies=[policy(action, "PodFailed")]))
    simulated.set_all("Running").settle().set_all("Failed")
    begin = time.process_time()
    simulated.step()
    assert time.process_time() - begin < 5
    assert all(pod.metadata.deletion_timestamp for pod in simulated.pods.values())


def test_tasks_that_depend_on_a_large_one_look_at_its_pods_once() -> None:
    first = task("first", 2000, minAvailable=2000)
    others = [task(f"t{index}", 1, dependsOn={"name": ["first"]}) for index in range(900)]
    simulated = grown(first, *others, minAvailable=1)
    begin = time.process_time()
    simulated.set_all("Running").settle(most=20)
    assert time.process_time() - begin < 10
    assert len(simulated.pods) == 2900


def test_pods_with_thousands_of_variables_are_made_a_few_at_a_time() -> None:
    simulated = SimulatedJob(
        make_job(*(task(f"t{index}", 1) for index in range(1000)), plugins={"svc": []}, minAvailable=1)
    )
    simulated.step()
    begin = time.process_time()
    outcome = simulated.step()
    assert time.process_time() - begin < 5
    assert 1 <= sum(isinstance(write, CreatePod) for write in outcome.writes) <= 20


def test_huge_pods_are_created_one_at_a_time_whatever_comes_before_them() -> None:
    async def story() -> None:
        api = InFlightApi()
        api.put("queues", {"metadata": {"name": "default"}})
        variables = [{"name": f"V{index}", "value": "x"} for index in range(600)]
        huge = task("huge", 6, spec={"containers": [{"name": "c", "image": "x", "env": variables}]})
        api.put("jobs", job_manifest(task("small", 2), huge))
        async with at_work(api) as runner:
            admit(api)
            await wait_until(lambda: len(api.every("pods")) == 8)
            await wait_until_idle(api, runner)
        assert api.most == 1

    run(story())


class InFlightApi(InMemoryApi):
    """Counts the huge pods that are being created at the same time."""

    def __init__(self) -> None:
        super().__init__()
        self.now = self.most = 0

    async def send(self, request: Request, timeout: float = 30.0) -> bytes:
        creates = request.path.endswith("/pods") and len(request.body or b"") > 10_000
        self.now += creates
        self.most = max(self.most, self.now)
        try:
            return await super().send(request, timeout)
        finally:
            self.now -= creates


def test_as_many_large_jobs_as_there_are_workers_leave_room_for_a_small_one() -> None:
    async def story() -> None:
        api = submitted(task(replicas=200))
        for number in range(11):
            api.put("jobs", job_manifest(task(replicas=200), name=f"large{number}"))
        async with at_work(api, options=Options(worker_threads=1)) as runner:
            admit(api)
            await wait_until(lambda: len(api.every("pods")) > 100)
            api.put("jobs", job_manifest(task(replicas=2), name="small"))
            await wait_until(lambda: ("podgroups", "team", "small-u-small") in api.objects, 30)
            admit(api)
            await wait_until(lambda: ("pods", "team", "small-worker-1") in api.objects, 30)
            made = len(api.every("pods"))
            await wait_until(lambda: len(api.every("pods")) == 2402, 60)
            await wait_until_idle(api, runner)
        assert made < 1800

    run(story())


def test_a_large_job_that_waits_for_others_repeats_no_event(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stromboli.controllers.job.controller.LARGE_RETRY", 0.01)

    async def story() -> None:
        api = submitted(task(replicas=200), policies=[policy("RestartJob", "PodFailed")])
        async with at_work(api, Counting) as runner:
            (controller,) = runner.controllers
            admit(api)
            await wait_until(lambda: len(api.every("pods")) == 200)
            await wait_until_idle(api, runner)
            assert isinstance(controller, Counting)
            for _ in range(controller.workers // 2):
                await controller._large_jobs.acquire()
            recorded: list[Any] = []
            monkeypatch.setattr(runner.recorder, "record", lambda *event: recorded.append(event))
            live(api, "Failed")
            controller.reconciles = 0
            await wait_until(lambda: controller.reconciles > 10)
            assert recorded == []
            controller._large_jobs.release()
            await wait_until(lambda: bool(recorded))

    run(story())


def test_a_pod_that_is_bound_and_our_own_writes_start_no_look() -> None:
    async def story() -> None:
        api = submitted(task(replicas=2))
        async with at_work(api, Counting) as runner:
            (controller,) = runner.controllers
            assert isinstance(controller, Counting)
            admit(api)
            await wait_until(lambda: phase(api) == "Pending" and len(api.every("pods")) == 2)
            await wait_until_idle(api, runner)
            controller.reconciles = 0
            for pod in api.every("pods"):
                pod["spec"]["nodeName"] = "n"
                pod["status"] = {"conditions": [{"type": "PodScheduled", "status": "True"}]}
                api.put("pods", pod)
            stored = runner.context.store(Pod)
            await wait_until(lambda: all(pod.spec.node_name == "n" for pod in stored))
            await wait_until_idle(api, runner)
            assert controller.reconciles == 0
            live(api, "Running")
            await wait_until(lambda: phase(api) == "Running")
            await wait_until_idle(api, runner)
            assert controller.reconciles <= 4  # at most one for each pod, and one for the phase that is new

    run(story())


class Counting(Prompt):
    """Counts how often jobs are reconciled."""

    reconciles = 0

    def _reconcile(self, observed: ObservedState) -> Outcome:
        self.reconciles += 1
        return super()._reconcile(observed)
