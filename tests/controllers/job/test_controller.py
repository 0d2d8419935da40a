"""The job controller on an API server in cache: what it writes, what it does not write twice, and when it gives in."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random

from stromboli.controllers.job.controller import JobController
from stromboli.controllers.options import Options
from stromboli.controllers.runner import ControllerRunner
from stromboli.kube.request import ApiError, NoResponse, Request
from tests.controllers.in_memory_api import InMemoryApi
from tests.controllers.job.simulated_job import job_manifest, policy, task
from tests.controllers.job.submitted_jobs import (
    admit,
    at_work,
    live,
    phase,
    run,
    submitted,
    touch,
    writes,
)
from tests.controllers.running import (
    NOW,
    SettableClock,
    names,
    wait_until,
    wait_until_idle,
)


def test_a_job_lives_from_submission_to_its_end() -> None:
    async def story() -> None:
        api = submitted()
        async with at_work(api) as runner:
            assert (phase(api), names(api.every("podgroups"))) == ("Pending", ["j-u1"])
            assert api.every("pods") == []
            admit(api)
            await wait_until_idle(api, runner)
            assert names(api.every("pods")) == ["j-worker-0", "j-worker-1"]
            live(api, "Running")
            await wait_until_idle(api, runner)
            status = api.find("jobs", "j", "team")["status"]
            assert (status["state"]["phase"], status["running"]) == ("Running", 2)
            live(api, "Succeeded")
            await wait_until_idle(api, runner)
            status = api.find("jobs", "j", "team")["status"]
            assert (status["state"]["phase"], status["succeeded"]) == ("Completed", 2)
            assert status["taskStatusCount"] == {"worker": {"phase": {"Succeeded": 2}}}
            assert [condition["status"] for condition in status["conditions"]] == [
                "Pending",
                "Running",
                "Completed",
            ]
            assert api.every("podgroups") == []
            assert len(api.every("pods")) == 2

    run(story())


def test_few_writes_bring_a_job_to_its_pods() -> None:
    """A group, two pods, and the status twice: as Pending, and with its pods."""

    async def story() -> None:
        api = submitted()
        async with at_work(api) as runner:
            admit(api)
            await wait_until_idle(api, runner)
            assert writes(api) == [
                ("POST", "podgroups"),
                ("PATCH", "jobs/j/status"),
                ("POST", "pods"),
                ("POST", "pods"),
                ("PATCH", "jobs/j/status"),
            ]

    run(story())


def test_a_quiet_job_is_not_written_about_also_by_another_controller() -> None:
    async def story() -> None:
        api = submitted(plugins={"svc": [], "env": []}, volumes=[{"mountPath": "/data", "volumeClaim": {}}])
        async with at_work(api) as runner:
            admit(api)
            await wait_until_idle(api, runner)
            live(api, "Running")
            await wait_until_idle(api, runner)
        before = len(api.writes)
        async with at_work(api) as runner:
            live(api, "Running", podIP="10.0.0.1")
            await wait_until_idle(api, runner)
        assert writes(api, before) == []

    run(story())


def test_a_pod_whose_creation_was_not_answered_is_made_once() -> None:
    async def story() -> None:
        api = submitted(task(replicas=4))
        lost: list[str] = []

        def lose(request: Request) -> None:
            if request.method == "POST" and request.path.endswith("/pods") and len(lost) < 3:
                lost.append(request.path)
                raise NoResponse("the connection broke")

        api.after = lose
        async with at_work(api) as runner:
            admit(api)
            await wait_until_idle(api, runner)
            assert len(lost) == 3
            assert len(api.every("pods")) == 4
            assert api.find("jobs", "j", "team")["status"]["pending"] == 4

    run(story())


def test_a_pod_that_goes_while_its_creation_is_asked_about_is_made_again_soon() -> None:
    async def story() -> None:
        api = submitted(task(replicas=1))
        lost: list[str] = []

        def lose(request: Request) -> None:
            if request.method == "POST" and request.path.endswith("/pods") and not lost:
                lost.append(request.path)
                api._changes.pop()  # the watch begins anew just then, and hears of neither
                raise NoResponse("lost")

        def evict(request: Request) -> None:
            if request.method == "GET" and "/pods/" in request.path and len(lost) == 1:
                lost.append(request.path)
                del api.objects["pods", "team", "j-worker-0"]

        api.before, api.after = evict, lose
        async with at_work(api) as runner:
            admit(api)
            await wait_until(lambda: len(lost) == 2)
            await wait_until(lambda: bool(api.every("pods")), 5)
            await wait_until_idle(api, runner)

    run(story())


def test_a_name_that_somebody_else_has_taken_is_told_and_the_others_are_made() -> None:
    async def story() -> None:
        api = submitted()
        api.put("pods", {"metadata": {"name": "j-worker-0", "namespace": "team"}})
        async with at_work(api) as runner:
            admit(api)
            await until_pods(api, runner, 1)
            assert "j-worker-1" in names(api.every("pods"))
            await wait_until(
                lambda: any("exists already and is not of this Job" in text for _, text in api.events)
            )
            api.remove("pods", "j-worker-0", "team")
            touch(api)
            await until_pods(api, runner, 2)

    run(story())


def test_a_large_job_does_not_keep_a_small_one_waiting() -> None:
    async def story() -> None:
        api = submitted(task(replicas=400))
        api.put("jobs", job_manifest(task(replicas=2), name="small"))
        async with at_work(api) as runner:
            admit(api)
            await wait_until_idle(api, runner)
        posted = [
            json.loads(request.body or b"") for request in api.requests if request.path.endswith("team/pods")
        ]
        made = [pod["metadata"]["name"] for pod in posted]
        assert len(made) == 402
        assert max(made.index("small-worker-0"), made.index("small-worker-1")) < 200

    run(story())


async def until_pods(api: InMemoryApi, runner: ControllerRunner, count: int) -> None:
    async with asyncio.timeout(10):
        while api.find("jobs", "j", "team")["status"].get("pending") != count:
            await asyncio.sleep(0.005)


def test_a_job_waits_out_a_quota_and_tells_what_holds_it_up() -> None:
    """Volcano terminates it after some minutes."""

    async def story() -> None:
        api = submitted()
        allowed = 1

        def refuse(request: Request) -> None:
            is_pod = request.method == "POST" and request.path.endswith("/pods")
            if is_pod and len(api.every("pods")) >= allowed:
                raise ApiError(403, "Forbidden", "exceeded quota: small")

        api.before = refuse
        async with at_work(api) as runner:
            admit(api)
            await until_pods(api, runner, 1)
            await wait_until(
                lambda: ("FailedCreate", "Error creating pods: [exceeded quota: small]") in api.events
            )
            allowed = 2
            await until_pods(api, runner, 2)
            assert phase(api) == "Pending"

    run(story())


def test_commands_suspend_and_resume_a_job_and_are_deleted() -> None:
    async def story() -> None:
        api = submitted()
        async with at_work(api) as runner:
            admit(api)
            await wait_until_idle(api, runner)
            live(api, "Running")
            await wait_until_idle(api, runner)
            command(api, "stop", "AbortJob")
            await wait_until_idle(api, runner)
            assert (phase(api), api.every("pods"), api.every("podgroups")) == ("Aborted", [], [])
            command(api, "go-on", "ResumeJob")
            await wait_until_idle(api, runner)
            admit(api)
            await wait_until_idle(api, runner)
            assert (phase(api), len(api.every("pods"))) == ("Pending", 2)
            assert api.find("jobs", "j", "team")["status"].get("retryCount", 0) == 0
            assert api.every("commands") == []
        issued = [text for reason, text in api.events if reason == "CommandIssued"]
        assert issued == [
            f"Start to execute command {action}, and clean it up to make sure executed not more than once."
            for action in ("AbortJob", "ResumeJob")
        ]

    run(story())


def command(
    api: InMemoryApi, name: str, action: str, job: str = "j", uid: str = "u1", namespace: str = "team"
) -> None:
    target = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": job, "uid": uid}
    api.put(
        "commands", {"metadata": {"name": name, "namespace": namespace}, "action": action, "target": target}
    )


def test_a_command_for_an_earlier_job_of_the_name_or_for_none_does_nothing() -> None:
    async def story() -> None:
        api = submitted()
        watch = SettableClock(NOW + 61)
        command(api, "late", "AbortJob", uid="u0")
        command(api, "lost", "AbortJob", job="nobody")
        async with at_work(api, clock=watch) as runner:
            await wait_until_idle(api, runner)
            assert (phase(api), api.every("commands")) == ("Pending", [])

    run(story())


def test_a_failure_restarts_the_job_once_whatever_is_heard_twice() -> None:
    async def story() -> None:
        api = submitted(policies=[policy("RestartJob", "PodFailed")])
        async with at_work(api) as runner:
            admit(api)
            await wait_until_idle(api, runner)
            live(api, "Running")
            await wait_until_idle(api, runner)
            live(api, "Failed", "j-worker-0")
            await wait_until_idle(api, runner)
            admit(api)
            await wait_until_idle(api, runner)
            status = api.find("jobs", "j", "team")["status"]
            assert (status["retryCount"], status["version"], status["pending"]) == (1, 1, 2)
            marks = [pod["metadata"]["annotations"]["volcano.sh/job-version"] for pod in api.every("pods")]
            assert marks == ["1", "1"]

    run(story())


def test_conflicts_and_a_flaky_server_do_not_keep_a_job_from_its_end() -> None:
    async def story() -> None:
        api = submitted(task(replicas=3), policies=[policy("RestartTask", "PodFailed")])
        luck = Random(1)

        def flake(request: Request) -> None:
            if request.method in ("POST", "PATCH") and luck.random() < 0.3:
                raise ApiError(409, "Conflict", "somebody was quicker")

        def has_new_pods() -> bool:
            admit(api)
            return [pod.get("status", {}).get("phase", "Pending") for pod in api.every("pods")] == [
                "Pending"
            ] * 3

        api.before = flake
        async with at_work(api):
            for ending in ("Failed", "Succeeded"):
                await wait_until(has_new_pods)
                live(api, "Running")
                await wait_until(lambda: phase(api) == "Running")
                live(api, ending)
            await wait_until(lambda: phase(api) == "Completed")
            assert len(api.every("pods")) == 3

    run(story())


def test_what_plugins_want_is_made_followed_and_taken_away() -> None:
    async def story() -> None:
        api = submitted(plugins={"svc": ["--publish-not-ready-addresses"], "ssh": []})
        async with at_work(api) as runner:
            admit(api)
            await wait_until_idle(api, runner)
            secret = api.find("secrets", "j-ssh", "team")
            assert secret["data"].keys() == {"id_rsa", "id_rsa.pub", "authorized_keys", "config"}
            assert api.find("services", "j", "team")["spec"]["publishNotReadyAddresses"] is True
            assert api.find("networkpolicies", "j", "team")["metadata"]["ownerReferences"][0]["uid"] == "u1"
            manifest = api.find("jobs", "j", "team")
            manifest["spec"]["tasks"][0]["replicas"] = 3
            api.put("jobs", manifest)
            await wait_until_idle(api, runner)
            hosts = api.find("configmaps", "j-svc", "team")["data"]
            assert hosts["VC_WORKER_NUM"] == "3"
            again = api.find("secrets", "j-ssh", "team")
            assert again["data"]["id_rsa"] == secret["data"]["id_rsa"]
            assert again["data"]["config"] != secret["data"]["config"]
            assert api.find("jobs", "j", "team")["status"]["controlledResources"] == {
                "plugin-ssh": "ssh",
                "plugin-svc": "svc",
            }
            live(api, "Succeeded")
            await wait_until_idle(api, runner)
            assert phase(api) == "Completed"
            left = [obj for kind in ("secrets", "services", "configmaps") for obj in api.every(kind)]
            assert left == []
            left = api.find("jobs", "j", "team")["status"]["controlledResources"]
            assert left == {"succeeded-worker": "0-2"}

    run(story())


def test_what_an_earlier_job_of_the_name_left_is_not_taken_for_ours() -> None:
    """It goes when the cluster collects it, and the pods would wait for it for ever."""

    async def story() -> None:
        api = submitted(plugins={"svc": []})
        earlier = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "j", "uid": "u0"}
        meta = {"name": "j-svc", "namespace": "team", "ownerReferences": [earlier]}
        api.put("configmaps", {"metadata": meta, "data": {"VC_WORKER_NUM": "7"}})
        async with at_work(api) as runner:
            assert api.find("configmaps", "j-svc", "team")["data"] == {"VC_WORKER_NUM": "7"}
            assert api.every("podgroups") == []
            api.remove("configmaps", "j-svc", "team")
            touch(api)
            await wait_until_idle(api, runner)
            assert api.find("configmaps", "j-svc", "team")["data"]["VC_WORKER_NUM"] == "2"
            assert api.find("configmaps", "j-svc", "team")["metadata"]["ownerReferences"][0]["uid"] == "u1"

    run(story())


def test_a_job_that_ends_is_cleaned_up_once() -> None:
    """Although it is observed to be clean soon after it is observed to have ended."""

    async def story() -> None:
        api = submitted(plugins={"svc": []})
        async with at_work(api, JobController) as runner:
            admit(api)
            await wait_until_idle(api, runner)
            before = len(api.requests)
            live(api, "Succeeded")
            await wait_until_idle(api, runner)
            assert phase(api) == "Completed"
            looked = [
                request for request in api.requests[before:] if request.path.endswith("configmaps/j-svc")
            ]
            assert [request.method for request in looked] == ["GET", "DELETE"]
            left = api.find("jobs", "j", "team")["status"]["controlledResources"]
            assert left == {"succeeded-worker": "0-1"}

    run(story())


def test_volumes_are_named_and_claimed_once() -> None:
    async def story() -> None:
        api = submitted(volumes=[{"mountPath": "/data", "volumeClaim": {"accessModes": ["ReadWriteOnce"]}}])
        async with at_work(api) as runner:
            await wait_until_idle(api, runner)
        api.objects = {key: obj for key, obj in api.objects.items() if key[0] != "podgroups"}
        async with at_work(api) as runner:
            admit(api)
            await wait_until_idle(api, runner)
            (claim,) = api.every("persistentvolumeclaims")
            name = claim["metadata"]["name"]
            assert name.startswith("j-pvc-")
            assert len(name) == len("j-pvc-") + 12
            job = api.find("jobs", "j", "team")
            assert job["spec"]["volumes"][0]["volumeClaimName"] == name
            assert job["status"]["controlledResources"] == {f"volume-pvc-{name}": name}
            pod = api.find("pods", "j-worker-0", "team")
            assert pod["spec"]["volumes"][0]["persistentVolumeClaim"] == {"claimName": name}
            assert pod["spec"]["containers"][0]["volumeMounts"][0]["mountPath"] == "/data"

    run(story())


def test_a_claim_or_a_queue_that_is_missing_is_waited_for() -> None:
    async def story() -> None:
        api = submitted(volumes=[{"mountPath": "/data", "volumeClaimName": "theirs"}])
        api.remove("queues", "default")
        watch = SettableClock()
        async with at_work(api, clock=watch) as runner:
            assert (phase(api), api.every("podgroups")) == ("Pending", [])
            assert ("QueueError", MISSING_QUEUE) in api.events
            api.put("queues", {"metadata": {"name": "default"}})
            touch(api)
            await wait_until_idle(api, runner)
            assert ("PVCError", MISSING_CLAIM) in api.events
            api.put("persistentvolumeclaims", {"metadata": {"name": "theirs", "namespace": "team"}})
            touch(api)
            await wait_until_idle(api, runner)
            assert names(api.every("podgroups")) == ["j-u1"]

    run(story())


MISSING_QUEUE = "queue default is not found, the job will be in the Pending state until the queue is created"
MISSING_CLAIM = (
    "Failed to create PVC, err: pvc theirs is not found, "
    "the job will be in the Pending state until the PVC is created"
)


def test_one_broken_job_does_not_stop_the_others() -> None:
    async def story() -> None:
        api = submitted()
        api.put("jobs", job_manifest({"name": "t", "replicas": 1, "template": {"spec": []}}, name="broken"))
        api.put("jobs", job_manifest(task(), name="unknown-plugin", plugins={"nonsense": []}))
        api.put("jobs", job_manifest(task(replicas=2**31 - 1), name="huge"))
        api.put("jobs", job_manifest(task(), name="no-status") | {"status": None})
        async with at_work(api) as runner:
            admit(api)
            await wait_until_idle(api, runner)
            assert [name for name in names(api.every("pods")) if name.startswith("j-")] == [
                "j-worker-0",
                "j-worker-1",
            ]
            recorded = dict(api.events)
            assert "failed to get plugin nonsense" in recorded["PluginError"]
            assert "at most 100000" in recorded["TooLarge"]

    run(story())


def test_a_plugin_of_the_users_own_is_a_file_in_a_folder(tmp_path: Path) -> None:
    (tmp_path / "tag.py").write_text(
        "from stromboli.controllers.job.plugins.job_plugin import JobPlugin\n\n\n"
        "class Tag(JobPlugin):\n"
        "    name = 'tag'\n\n"
        "    def dress(self, member, pod):\n"
        "        pod['metadata']['labels']['tag'] = member.name\n"
    )

    async def story() -> None:
        api = submitted(plugins={"tag": []})
        async with at_work(api, options=Options(plugins_dir=tmp_path)) as runner:
            admit(api)
            await wait_until_idle(api, runner)
            assert api.find("pods", "j-worker-1", "team")["metadata"]["labels"]["tag"] == "j-worker-1"

    run(story())


def test_a_deleted_job_is_forgotten() -> None:
    async def story() -> None:
        api = submitted()
        async with at_work(api) as runner:
            admit(api)
            await wait_until_idle(api, runner)
            before = len(api.writes)
            api.remove("jobs", "j", "team")
            for pod in api.every("pods"):
                api.remove("pods", pod["metadata"]["name"], "team")
            await wait_until_idle(api, runner)
            assert writes(api, before) == []
            (controller,) = runner.controllers
            assert controller._records == {}

    run(story())


def test_counts_that_change_often_are_told_together() -> None:
    class Calm(JobController):
        status_period = 60.0

    async def story() -> None:
        api = submitted(task(replicas=5), minAvailable=1)
        async with at_work(api, Calm) as runner:
            admit(api)
            await wait_until_idle(api, runner)
            before = len(api.writes)
            for index in range(5):
                live(api, "Running", f"j-worker-{index}")
                await wait_until_idle(api, runner)
            status = api.find("jobs", "j", "team")["status"]
            assert (status["state"]["phase"], status["running"], len(writes(api, before))) == (
                "Running",
                1,
                1,
            )
            (controller,) = runner.controllers
            controller.status_period = 0.0
            touch(api)
            await wait_until_idle(api, runner)
            assert (api.find("jobs", "j", "team")["status"]["running"], len(writes(api, before))) == (5, 2)

    run(story())


class SlowWatches(InMemoryApi):
    """Tells what happened a good while later."""

    async def _lines(self, plural: str, since: int, *scope: object) -> AsyncIterator[bytes]:
        async for line in super()._lines(plural, since, *scope):  # type: ignore[arg-type]
            await asyncio.sleep(0.05)
            yield line


def test_slow_watches_let_nothing_be_made_or_deleted_twice() -> None:
    async def story() -> None:
        api = SlowWatches()
        api.put("queues", {"metadata": {"name": "default"}})
        api.put("jobs", job_manifest(task(replicas=4), policies=[policy("RestartJob", "PodFailed")]))
        async with at_work(api):
            await wait_until(lambda: any("status" not in group for group in api.every("podgroups")))
            admit(api)
            await wait_until(lambda: len(api.every("pods")) == 4)
            live(api, "Running")
            await wait_until(lambda: phase(api) == "Running")
            live(api, "Failed", "j-worker-0")
            await wait_until(lambda: api.find("jobs", "j", "team")["status"].get("version") == 1)
            await wait_until(lambda: any("status" not in group for group in api.every("podgroups")))
            admit(api)
            await wait_until(lambda: api.find("jobs", "j", "team")["status"].get("pending") == 4)
        done = writes(api)
        assert done.count(("POST", "pods")) == 8
        assert done.count(("POST", "podgroups")) == 2
        assert len([path for method, path in done if method == "DELETE" and path.startswith("pods/")]) == 4

    run(story())
