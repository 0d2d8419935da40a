"""The first status of a job waits for its pods for a moment, and for pods of others that wait to be created."""

import asyncio

from stromboli.controllers.job import executor
from stromboli.controllers.job.controller import JobController
from stromboli.kube.request import Request
from tests.controllers.in_memory_api import InMemoryApi
from tests.controllers.job.simulated_job import job_manifest, task
from tests.controllers.job.submitted_jobs import admit, at_work, phase, run, submitted, writes
from tests.controllers.running import wait_until, wait_until_idle


class Calm(JobController):
    """Waits for pods as long as it takes."""

    status_period = 600.0


def test_a_job_whose_pods_follow_soon_is_written_about_once() -> None:
    async def story() -> None:
        api = submitted()
        async with at_work(api, Calm) as runner:
            assert writes(api) == [("POST", "podgroups")]
            admit(api)
            await wait_until_idle(api, runner)
            assert writes(api)[1:] == [("POST", "pods"), ("POST", "pods"), ("PATCH", "jobs/j/status")]
            status = api.find("jobs", "j", "team")["status"]
            assert (status["state"]["phase"], status["pending"]) == ("Pending", 2)

    run(story())


def test_a_job_that_is_not_let_in_says_that_it_is_pending_after_a_moment() -> None:
    class Brief(JobController):
        status_period = 0.05

    async def story() -> None:
        api = submitted()
        async with at_work(api, Brief):
            await wait_until(lambda: phase(api) == "Pending")
            assert writes(api) == [("POST", "podgroups"), ("PATCH", "jobs/j/status")]

    run(story())


def test_a_job_that_meets_an_obstacle_says_so_at_once() -> None:
    async def story() -> None:
        api = submitted(*(task(f"t{number}", replicas=100_000) for number in range(2)))
        async with at_work(api, Calm):
            await wait_until(lambda: phase(api) == "Pending")
            assert api.find("jobs", "j", "team")["status"]["state"]["reason"] == "TooLarge"

    run(story())


class BusyApi(InMemoryApi):
    """Lets every group in at once, and creates pods when a test says so, one after the other."""

    def __init__(self) -> None:
        super().__init__()
        self.creates_pods = asyncio.Event()
        self._one_at_a_time = asyncio.Lock()
        self.waiting = 0
        """Pods that were asked for."""

    async def send(self, request: Request, timeout: float = 30.0) -> bytes:
        if request.method == "POST" and request.path.endswith("/pods"):
            self.waiting += 1
            await self.creates_pods.wait()
            async with self._one_at_a_time:
                return await super().send(request, timeout)
        answer = await super().send(request, timeout)
        if request.method == "POST" and request.path.endswith("/podgroups"):
            admit(self)
        return answer


def test_pods_that_wait_to_be_created_go_before_the_first_status_of_any_job() -> None:
    jobs, each = 8, executor.MAX_PARALLEL // 4

    async def story() -> None:
        api = BusyApi()
        api.put("queues", {"metadata": {"name": "default"}})
        async with at_work(api, Calm) as runner:
            for number in range(jobs):
                api.put("jobs", job_manifest(task(replicas=each), name=f"j{number}"))
            (controller,) = runner.controllers
            # every job has a worker, has its group, and asks for pods: as many as can be asked for wait here
            await wait_until(
                lambda: (
                    controller.queue.processing == jobs == len(api.every("podgroups"))
                    and api.waiting == executor.MAX_PARALLEL
                )
            )
            api.creates_pods.set()
            await wait_until(lambda: all(job["status"] for job in api.every("jobs")))
            await wait_until_idle(api, runner)
        done = [path for _, path in writes(api)]
        statuses = [path for path in done if path.endswith("/status")]
        assert sorted(statuses) == [f"jobs/j{number}/status" for number in range(jobs)]
        in_line = jobs * each - executor.MAX_PARALLEL
        assert done[: done.index(statuses[0])].count("pods") > in_line

    run(story())
