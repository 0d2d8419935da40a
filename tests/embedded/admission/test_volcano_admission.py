"""Volcano's admission, built into the embedded API server."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from stromboli.admission.rules.rule_context import Settings
from tests.admission.reviewing import job, task
from tests.embedded.api_requests import PODS, ApiCaller, pod, running

JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"
QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"
GROUPS = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups"


async def refused(api: ApiCaller, method: str, path: str, body: Any = None) -> str:
    status, answer = await api.request(method, path, body)
    assert status == 400, answer
    message: str = answer["message"]
    return message


def test_jobs_are_completed_and_refused_as_webhooks_would(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, crds=True, volcano_settings=Settings()) as api:
            made = await api.post(JOBS, job(task(replicas=3)))
            assert (made["spec"]["minAvailable"], made["spec"]["schedulerName"]) == (3, "volcano")
            message = await refused(api, "POST", JOBS, job(task(), name="other", queue="none"))
            assert message.startswith(
                'admission webhook "validatejob.volcano.sh" denied the request: unable to find'
            )
            made["spec"]["queue"] = "other"
            assert "job updates may not change fields" in await refused(api, "PUT", f"{JOBS}/train", made)

    asyncio.run(scenario())


def test_queues_are_known_as_soon_as_they_are_stored_and_after_a_restart(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, crds=True, volcano_settings=Settings()) as api:
            await api.post(QUEUES, {"metadata": {"name": "top"}})
            await api.post(QUEUES, {"metadata": {"name": "leaf"}, "spec": {"parent": "top"}})
        async with running(tmp_path, crds=True, volcano_settings=Settings()) as api:
            assert "has 1 child queues: leaf" in await refused(api, "DELETE", f"{QUEUES}/top")
            await api.delete(f"{QUEUES}/leaf")
            await api.delete(f"{QUEUES}/top")
            assert "failed to get parent queue top" in await refused(
                api, "POST", QUEUES, {"metadata": {"name": "late"}, "spec": {"parent": "top"}}
            )

    asyncio.run(scenario())


def test_a_queue_with_a_job_without_pods_is_deleted_once_the_job_is_gone(tmp_path: Path) -> None:
    async def scenario() -> None:
        settings = Settings(queue_allocated_pods_check=True)
        async with running(tmp_path, crds=True, volcano_settings=settings) as api:
            await api.post(QUEUES, {"metadata": {"name": "blue"}})
            await api.post(JOBS, job(task(), name="train", queue="blue"))
            message = await refused(api, "DELETE", f"{QUEUES}/blue")
            assert (
                "queue blue cannot be deleted because it has unfinished jobs, such as Job default/train"
                in message
            )
            await api.delete(f"{JOBS}/train")
            await api.post(GROUPS, {"metadata": {"name": "gang"}, "spec": {"queue": "blue"}})
            assert "such as PodGroup default/gang" in await refused(api, "DELETE", f"{QUEUES}/blue")
            await api.delete(f"{GROUPS}/gang")
            await api.delete(f"{QUEUES}/blue")

    asyncio.run(scenario())


def test_by_default_a_queue_with_a_job_without_pods_is_deleted_as_in_volcano(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, crds=True, volcano_settings=Settings()) as api:
            await api.post(QUEUES, {"metadata": {"name": "blue"}})
            await api.post(JOBS, job(task(), name="train", queue="blue"))
            await api.delete(f"{QUEUES}/blue")

    asyncio.run(scenario())


def test_a_namespace_names_the_queue_of_its_groups(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, crds=True, volcano_settings=Settings()) as api:
            await api.post(QUEUES, {"metadata": {"name": "blue"}})
            marks = {"scheduling.volcano.sh/queue-name": "blue"}
            await api.patch("/api/v1/namespaces/default", {"metadata": {"annotations": marks}})
            made = await api.post(GROUPS, {"metadata": {"name": "g"}, "spec": {"minMember": 1}})
            assert made["spec"]["queue"] == "blue"

    asyncio.run(scenario())


def test_budgets_of_our_pods_are_checked(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, crds=True, volcano_settings=Settings()) as api:
            marks = {"annotations": {"volcano.sh/jdb-min-available": "0"}}
            await api.post(PODS, pod("theirs", metadata=marks))
            message = await refused(api, "POST", PODS, pod("ours", metadata=marks, schedulerName="volcano"))
            assert "it must be a positive integer" in message

    asyncio.run(scenario())


def test_without_rules_the_kinds_are_stored_as_they_are(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, crds=True) as api:
            made = await api.post(JOBS, job(task(replicas=3), queue="none"))
            assert "minAvailable" not in made["spec"]

    asyncio.run(scenario())
