"""What somebody else made is neither changed, used nor deleted, whatever name a job has."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stromboli.api.types.volcano_job import Job
from stromboli.controllers import api_writer
from stromboli.controllers.job.controller import JobController
from stromboli.controllers.job.job_volumes import generated_claim_name
from stromboli.kube.request import ApiError, Backoff, Request
from tests.controllers.in_memory_api import InMemoryApi
from tests.controllers.job.simulated_job import job_manifest, make_job, policy, task
from tests.controllers.job.submitted_jobs import admit, at_work, live, phase, run, submitted, touch
from tests.controllers.running import names, wait_until, wait_until_idle

KEYS = {"id_rsa": "dGhlaXJz", "config": "dGhlaXJz"}
CLAIM = generated_claim_name(make_job(), 0)
VOLUMES = {"volumes": [{"mountPath": "/data", "volumeClaim": {"accessModes": ["ReadWriteOnce"]}}]}
FOREIGN: list[tuple[str, str, str, dict[str, Any], dict[str, Any]]] = [
    ("secrets", "Secret", "j-ssh", {"data": KEYS}, {"plugins": {"ssh": []}}),
    ("configmaps", "ConfigMap", "j-svc", {"data": {"VC_WORKER_NUM": "7"}}, {"plugins": {"svc": []}}),
    ("services", "Service", "j", {"spec": {"theirs": True}}, {"plugins": {"svc": []}}),
    ("networkpolicies", "NetworkPolicy", "j", {"spec": {"theirs": True}}, {"plugins": {"svc": []}}),
    ("podgroups", "PodGroup", "j-u1", {"spec": {"minMember": 9}, "status": {"phase": "Inqueue"}}, {}),
    ("persistentvolumeclaims", "PersistentVolumeClaim", CLAIM, {"spec": {}}, VOLUMES),
]


@pytest.fixture(autouse=True)
def _prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that is free again is noticed at once."""
    quick = Backoff(first=0.01, longest=0.05)
    monkeypatch.setattr("stromboli.controllers.job.controller.NAME_TAKEN_RETRY", quick)


def state(api: InMemoryApi) -> dict[str, Any]:
    found: dict[str, Any] = api.find("jobs", "j", "team").get("status", {}).get("state", {})
    return found


@pytest.mark.parametrize(
    ("plural", "kind", "name", "content", "spec"), FOREIGN, ids=[row[1] for row in FOREIGN]
)
@pytest.mark.parametrize("owner", [None, "another job", "not controlling"])
def test_an_object_of_somebody_else_is_left_alone_and_the_job_waits_until_it_is_gone(
    plural: str, kind: str, name: str, content: dict[str, Any], spec: dict[str, Any], owner: str | None
) -> None:
    reference = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "k", "controller": True}
    if owner == "not controlling":
        reference |= {"name": "j", "uid": "u1", "controller": False}
    owners = [{"uid": "u2", **reference}] if owner else []

    async def story() -> None:
        api = submitted(**spec)
        theirs = api.put(
            plural, {"metadata": {"name": name, "namespace": "team", "ownerReferences": owners}, **content}
        )
        text = (
            f'{kind} "{name}" exists already and is not of this Job:'
            " delete or rename it, or give the Job another name"
        )
        async with at_work(api) as runner:
            await wait_until(lambda: state(api).get("reason") == "NameTaken")
            admit(api)
            await wait_until_idle(api, runner)
            assert (phase(api), state(api)["message"]) == ("Pending", text)
            assert api.every("pods") == []
            if plural != "podgroups":
                assert api.find(plural, name, "team") == theirs
            await runner.recorder.flush()
            assert api.events.count(("NameTaken", text)) == 1
            api.remove(plural, name, "team")
            await wait_until(lambda: bool(api.every("podgroups")) and "reason" not in state(api))
            admit(api)
            await wait_until(lambda: len(api.every("pods")) == 2)
            await wait_until(lambda: not state(api).get("reason"))

    run(story())


@pytest.mark.parametrize(
    ("plural", "name", "content", "spec"), [(row[0], *row[2:]) for row in FOREIGN[:5]], ids=lambda value: ""
)
def test_a_job_that_ends_deletes_nothing_that_took_the_place_of_its_own(
    plural: str, name: str, content: dict[str, Any], spec: dict[str, Any]
) -> None:
    async def story() -> None:
        api = submitted(**spec)
        async with at_work(api) as runner:
            admit(api)
            await wait_until(lambda: len(api.every("pods")) == 2)
            api.remove(plural, name, "team")
            theirs = api.put(plural, {"metadata": {"name": name, "namespace": "team"}, **content})
            live(api, "Succeeded")
            await wait_until(lambda: phase(api) == "Completed")
            await wait_until_idle(api, runner)
            assert api.find(plural, name, "team") == theirs

    run(story())


def test_a_running_job_whose_keys_were_replaced_is_counted_all_the_same() -> None:
    async def story() -> None:
        api = submitted(task(replicas=1), plugins={"ssh": []})
        async with at_work(api) as runner:
            admit(api)
            await wait_until(lambda: len(api.every("pods")) == 1)
            api.remove("secrets", "j-ssh", "team")
            theirs = api.put(
                "secrets", {"metadata": {"name": "j-ssh", "namespace": "team"}, "data": dict(KEYS)}
            )
            job = api.find("jobs", "j", "team")
            job["spec"]["tasks"][0]["replicas"] = 2  # another host for the configuration of ssh
            api.put("jobs", job)
            live(api, "Running")
            await wait_until(lambda: api.find("jobs", "j", "team")["status"].get("running") == 1)
            await wait_until_idle(api, runner)
            assert api.find("secrets", "j-ssh", "team") == theirs
            assert names(api.every("pods")) == ["j-worker-0"]

    run(story())


def test_an_object_that_goes_while_its_creation_is_asked_about_is_made_again() -> None:
    async def story() -> None:
        api = submitted(plugins={"svc": []})
        api.put("configmaps", {"metadata": {"name": "j-svc", "namespace": "team"}})

        def gone(request: Request) -> None:
            if request.method == "GET" and request.path.endswith("configmaps/j-svc"):
                api.objects.pop(("configmaps", "team", "j-svc"), None)

        api.before = gone
        async with at_work(api):
            await wait_until(lambda: bool(api.every("podgroups")))
            data = api.find("configmaps", "j-svc", "team")["data"]
            assert data["VC_WORKER_NUM"] == "2"

    run(story())


def test_a_job_takes_the_names_of_an_earlier_job_of_its_name_as_soon_as_those_pods_are_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without waiting for another try, which comes later and later."""
    never = Backoff(first=600.0, longest=600.0)
    monkeypatch.setattr("stromboli.controllers.job.controller.NAME_TAKEN_RETRY", never)
    earlier = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "name": "j",
        "uid": "u0",
        "controller": True,
    }

    async def story() -> None:
        api = submitted()
        metadata = {"name": "j-worker-1", "namespace": "team", "ownerReferences": [earlier]}
        api.put("pods", {"metadata": metadata, "spec": {"schedulerName": "volcano"}})
        async with at_work(api):
            admit(api)
            await wait_until(lambda: state(api).get("reason") == "NameTaken")
            api.remove("pods", "j-worker-1", "team")
            await wait_until(lambda: names(api.every("pods")) == ["j-worker-0", "j-worker-1"])

    run(story())


# -- what the API server rejects for good


def rejecting(api: InMemoryApi, method: str, end: str, status: int = 422, text: str = "too large") -> None:
    def reject(request: Request) -> None:
        if request.method == method and request.path.endswith(end):
            raise ApiError(status, "Invalid", text)

    api.before = reject


def attempts(api: InMemoryApi, method: str, end: str) -> int:
    return sum(request.method == method and request.path.endswith(end) for request in api.requests)


@pytest.mark.parametrize("status", [400, 413, 422])
@pytest.mark.parametrize("end", ["/pods", "/podgroups", "/configmaps"])
def test_what_is_rejected_is_told_and_not_tried_again_until_the_job_changes(status: int, end: str) -> None:
    async def story() -> None:
        api = submitted(task(replicas=1), plugins={"svc": []})
        rejecting(api, "POST", end, status)
        async with at_work(api) as runner:
            admit(api)
            await wait_until(lambda: state(api).get("reason") == "Rejected")
            await wait_until_idle(api, runner)
            assert state(api)["message"].endswith("until the job is changed: too large")
            before = attempts(api, "POST", end)
            for group in api.every("podgroups"):
                api.put("podgroups", {**group, "status": {"phase": "Inqueue", "pending": 1}})
            await wait_until_idle(api, runner)
            assert attempts(api, "POST", end) == before == 1
            assert runner.controllers[0].queue.failing == 0
            api.before = lambda _: None
            touch(api)
            await wait_until_idle(api, runner)
            admit(api)
            await wait_until(lambda: len(api.every("pods")) == 1 and not state(api).get("reason"))

    run(story())


class MeanwhileChanged(InMemoryApi):
    """Rejects the first pod of a job that was changed while it was created, as the watch has shown by then."""

    is_watched = staticmethod(lambda: True)
    rejections = 1

    async def send(self, request: Request, timeout: float = 30.0) -> bytes:
        if self.rejections and request.method == "POST" and request.path.endswith("/pods"):
            self.rejections -= 1
            touch(self)
            await wait_until(self.is_watched)
            raise ApiError(422, "Invalid", "too large")
        return await super().send(request, timeout)


def test_a_job_that_is_changed_while_its_pod_is_rejected_is_tried_again_at_once() -> None:
    async def story() -> None:
        api = MeanwhileChanged()
        api.put("queues", {"metadata": {"name": "default"}})
        api.put("jobs", job_manifest(task(replicas=1)))
        async with at_work(api) as runner:
            jobs = runner.context.store(Job)
            api.is_watched = lambda: any("touched" in job.metadata.labels for job in jobs)
            admit(api)
            await wait_until(lambda: len(api.every("pods")) == 1)
            await wait_until(lambda: not state(api).get("reason"))

    run(story())


def test_a_webhook_that_denies_a_pod_is_asked_again() -> None:
    async def story() -> None:
        api = submitted(task(replicas=1))
        rejecting(api, "POST", "/pods", 400, 'admission webhook "x" denied the request: not now')
        async with at_work(api):
            admit(api)
            await wait_until(lambda: attempts(api, "POST", "/pods") > 2)
            api.before = lambda _: None
            await wait_until(lambda: len(api.every("pods")) == 1)

    run(story())


def test_a_job_reports_that_its_group_cannot_be_created_until_it_can(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api_writer, "ATTEMPTS", 1)
    cause = 'failed calling webhook "mutatepodgroup.volcano.sh": no endpoints'

    async def story() -> None:
        api = submitted(task(replicas=1))
        rejecting(api, "POST", "/podgroups", 500, cause)
        async with at_work(api) as runner:
            await wait_until(lambda: state(api).get("reason") == "FailedCreate")
            api.before = lambda _: None
            await wait_until(lambda: bool(api.every("podgroups")))
            admit(api)
            await wait_until(lambda: len(api.every("pods")) == 1 and not state(api).get("reason"))
            await wait_until_idle(api, runner)
        assert ("FailedCreate", f"The PodGroup cannot be created, and is tried again: {cause}") in api.events

    run(story())


def restarted(api: InMemoryApi) -> int:
    return int(api.find("jobs", "j", "team")["status"].get("retryCount", 0))


def versions_admitted(api: InMemoryApi) -> list[str]:
    """Admit the group that there is; the versions of the job that its pods are of."""
    admit(api)
    return [pod["metadata"]["annotations"]["volcano.sh/job-version"] for pod in api.every("pods")]


def test_an_event_is_recorded_once_however_often_the_writes_after_it_fail(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(api_writer, "ATTEMPTS", 1)

    async def story() -> None:
        api = submitted(task(replicas=1), policies=[policy("RestartJob", "PodFailed")])
        async with at_work(api) as runner:
            admit(api)
            await wait_until(lambda: len(api.every("pods")) == 1)
            await wait_until_idle(api, runner)
            recorded: list[str] = []
            monkeypatch.setattr(runner.recorder, "record", lambda job, event: recorded.append(event.message))
            rejecting(api, "PATCH", "/jobs/j/status", 500, "etcd is busy")
            before = attempts(api, "PATCH", "/jobs/j/status")
            live(api, "Failed")
            await wait_until(lambda: attempts(api, "PATCH", "/jobs/j/status") > before + 3)
            api.before = lambda _: None
            for restarts in (1, 2):
                await wait_until(lambda expected=restarts: restarted(api) == expected)
                assert recorded == ["Start to execute action RestartJob "] * restarts
                await wait_until(lambda version=str(restarts): versions_admitted(api) == [version])
                await wait_until_idle(api, runner)
                live(api, "Failed")

    run(story())


def test_a_job_of_the_default_queue_has_its_group_in_the_queue_of_its_namespace() -> None:
    async def story() -> None:
        api = submitted(task(replicas=1))
        annotations = {"scheduling.volcano.sh/queue-name": "team"}
        api.put(
            "namespaces",
            {"metadata": {"name": api.every("jobs")[0]["metadata"]["namespace"], "annotations": annotations}},
        )
        async with at_work(api):
            await wait_until(lambda: bool(api.every("podgroups")))
        (group,) = api.every("podgroups")
        assert group["spec"]["queue"] == "team"

    run(story())


def test_a_status_that_is_rejected_is_told_and_not_sent_again_until_the_job_changes() -> None:
    async def story() -> None:
        api = submitted(task(replicas=1))
        rejecting(api, "PATCH", "/jobs/j/status", 413)
        async with at_work(api, JobController) as runner:
            await wait_until(lambda: bool(api.events))
            admit(api)
            await wait_until_idle(api, runner)
            assert attempts(api, "PATCH", "/jobs/j/status") == 1
            text = "The API server refuses the status of the job, until the job is changed: too large"
            assert api.events == [("Rejected", text)]
            api.before = lambda _: None
            touch(api)
            await wait_until(lambda: phase(api) == "Pending")

    run(story())


def test_keys_are_generated_for_the_secret_that_is_created_and_never_for_another() -> None:
    async def story() -> None:
        api = submitted(plugins={"ssh": []})
        async with at_work(api):
            await wait_until(lambda: bool(api.every("secrets")))
        secret = api.find("secrets", "j-ssh", "team")
        assert set(secret["data"]) == {"id_rsa", "id_rsa.pub", "authorized_keys", "config"}
        posted = [request for request in api.writes if request.path.endswith("/secrets")]
        assert json.loads(posted[0].body or b"")["metadata"]["ownerReferences"][0]["uid"] == "u1"

    run(story())
