"""The page of a job or another gang, from an API server, with the rights of who looks."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from stromboli.cli.cluster.cluster_errors import ClusterError
from stromboli.cli.cluster.cluster_kinds import JOBS, Manifest
from stromboli.cli.dashboard.pages.job_page import TABS, group_page, job_page
from stromboli.cli.dashboard.pages.page_content import PageContent
from stromboli.cli.dashboard.reading import gang_events
from tests.cli.dashboard.served_cluster import (
    READER,
    FixedLogs,
    ServedCluster,
    job_manifest,
    pod_manifest,
    served,
)
from tests.cli.dashboard.view_requests import HOSTILE, html_of, links_of, text_of
from tests.manifests import group

TRAIN = {"namespace": "default", "name": "train"}
JOB = "/jobs/default/train"


def on_cluster(work: Callable[[ServedCluster], Awaitable[None]], folder: Path, **options: Any) -> None:
    async def run() -> None:
        async with served(folder, **options) as cluster:
            await work(cluster)

    asyncio.run(run())


async def train(cluster: ServedCluster, *, pods: bool = True, **changes: Any) -> Manifest:
    """A job with its PodGroup and its pods, one of them failed."""
    await cluster.create(job_manifest(**changes))
    job = await (await cluster.session()).get(JOBS, "train", "default")
    gang = group(f"train-{job['metadata']['uid']}", 3, phase="Running")
    gang["metadata"]["ownerReferences"] = [
        {
            "apiVersion": JOBS.api_version,
            "kind": "Job",
            "name": "train",
            "uid": job["metadata"]["uid"],
            "controller": True,
        }
    ]
    await cluster.create(gang)
    ended = {
        "name": "main",
        "restartCount": 2,
        "image": "none",
        "imageID": "",
        "ready": False,
        "state": {"terminated": {"exitCode": 3, "reason": "Error", "startedAt": "2027-01-15T07:01:00Z"}},
    }
    if pods:
        await cluster.create(
            pod_manifest(job, "master", 0, "n1"),
            pod_manifest(job, "worker", 0, "n2"),
            pod_manifest(job, "worker", 1, "n2", phase="Failed", containerStatuses=[ended]),
            pod_manifest(job, "worker", 2),
        )
    return job


def test_the_overview_tells_facts_tasks_and_what_happened(tmp_path: Path) -> None:
    async def work(cluster: ServedCluster) -> None:
        await train(cluster, priorityClassName="high")
        page = await cluster.page(job_page, JOB, TRAIN)
        text = text_of(page)
        assert page.title == "Job train"
        assert "3 of 4 pods start together" in text
        assert "Priority class high" in text
        assert "phase Running" in text
        assert "let in: its first pod was made" in text
        assert {
            "/queues/default",
            "/jobs/default/train?tab=pods&task=worker&phase=Running",
            "/jobs/default/train/suspend",
            "/pods/default/train-worker-1",
        } <= set(links_of(page))
        assert "Error: exit code 3" in text

    on_cluster(work, tmp_path)


def test_pods_are_those_of_the_task_and_phase_of_the_address(tmp_path: Path) -> None:
    async def pods(cluster: ServedCluster, **query: str) -> list[str]:
        page = await cluster.page(job_page, JOB, TRAIN, tab="pods", **query)
        return sorted(each.rpartition("/")[2] for each in links_of(page) if each.startswith("/pods/"))

    async def work(cluster: ServedCluster) -> None:
        await train(cluster)
        assert len(await pods(cluster)) == 4
        assert await pods(cluster, task="master") == ["train-master-0"]
        assert await pods(cluster, task="worker", phase="Failed") == ["train-worker-1"]
        assert len(await pods(cluster, task="x,y in (", phase="No")) == 4

    on_cluster(work, tmp_path)


def test_pods_of_an_earlier_job_of_that_name_are_not_shown(tmp_path: Path) -> None:
    async def work(cluster: ServedCluster) -> None:
        await train(cluster, pods=False)
        earlier = pod_manifest({"metadata": {"name": "train", "uid": "another"}}, "worker", 0, "n1")
        del earlier["metadata"]["ownerReferences"]
        await cluster.create(earlier)
        page = await cluster.page(job_page, JOB, TRAIN, tab="pods")
        assert "train-worker-0" not in text_of(page)

    on_cluster(work, tmp_path)


def test_a_job_that_does_not_exist_is_named(tmp_path: Path) -> None:
    async def work(cluster: ServedCluster) -> None:
        with pytest.raises(
            ClusterError, match=r"job.batch.volcano.sh/train does not exist in namespace default"
        ):
            await cluster.page(job_page, JOB, TRAIN)

    on_cluster(work, tmp_path)


def test_what_a_viewer_may_not_read_is_left_out_and_the_right_is_named(tmp_path: Path) -> None:
    async def work(cluster: ServedCluster) -> None:
        await train(cluster)
        await cluster.allow("ann", [{**READER[0], "resources": ["jobs", "podgroups"]}])
        page = await cluster.page(job_page, JOB, TRAIN, user="ann", tab="pods")
        assert "train-worker" not in html_of(page)
        assert 'user "ann" may not list pods in namespace default' in text_of(page).replace("&quot;", '"')

    on_cluster(work, tmp_path)


def test_a_gang_of_another_owner_has_its_members(tmp_path: Path) -> None:
    async def work(cluster: ServedCluster) -> None:
        job = await train(cluster)
        name = f"train-{job['metadata']['uid']}"
        path = f"/podgroups/default/{name}"
        page = await cluster.page(group_page, path, {"namespace": "default", "name": name})
        assert "3 of 4 pods start together" in text_of(page)
        assert "/jobs/default/train" in links_of(page)
        page = await cluster.page(
            group_page, path, {"namespace": "default", "name": name}, tab="pods", phase="Pending"
        )
        assert "train-worker-2" in text_of(page)
        assert "train-worker-0" not in text_of(page)

    on_cluster(work, tmp_path)


@pytest.mark.parametrize("tab", ["overview", "events"])
def test_a_page_says_where_events_may_be_missing(
    tab: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(cluster: ServedCluster) -> None:
        job = await train(cluster)
        about = {"kind": "Job", "name": "train", "namespace": "default", "uid": job["metadata"]["uid"]}
        event = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e1", "namespace": "default"}}
        await cluster.create({**event, "involvedObject": about, "reason": "ExecuteAction", "type": "Normal"})
        assert "Some may be missing" not in text_of(await cluster.page(job_page, JOB, TRAIN, tab=tab))
        monkeypatch.setattr(gang_events, "MOST_EVENTS_READ", 1)
        assert "Some may be missing" in text_of(await cluster.page(job_page, JOB, TRAIN, tab=tab))

    on_cluster(work, tmp_path)


def test_the_explanation_is_that_of_the_command(tmp_path: Path) -> None:
    async def work(cluster: ServedCluster) -> None:
        waiting = group("huge", 2, phase="Pending", minResources={"cpu": "100"})
        await cluster.create(waiting)
        names = {"namespace": "default", "name": "huge"}
        page: PageContent | None = None
        request = await cluster.request("/podgroups/default/huge", names, tab="explanation")
        for _ in range(20):
            page = await group_page(request)
            if "explained" in page.regions:
                break
        assert page is not None
        assert "PodGroup default/huge" in page.regions["explained"]
        assert "stromboli explain podgroup/huge -n default" in text_of(page)

    on_cluster(work, tmp_path)


@pytest.mark.parametrize("tab", TABS)
def test_hostile_objects_and_logs_are_shown_harmlessly(tab: str, tmp_path: Path) -> None:
    async def work(cluster: ServedCluster) -> None:
        job = await train(cluster, pods=False)
        admin = await cluster.session()
        message = HOSTILE * 5000
        conditions = [{"status": "Pending", "lastTransitionTime": "2027-01-15T07:00:00Z"}]
        state = {"phase": "Pending", "message": message, "reason": HOSTILE}
        status = {"status": {"state": state, "conditions": conditions, "taskStatusCount": {HOSTILE: {}}}}
        await admin.patch(JOBS, "train", status, "default", "status")
        await admin.patch(JOBS, "train", {"metadata": {"annotations": {"note": message}}}, "default")
        await cluster.create(
            pod_manifest(job, "worker", 0, "n1", reason=HOSTILE, message=message, phase="Failed"),
            {
                "apiVersion": "v1",
                "kind": "Event",
                "metadata": {"name": "e1", "namespace": "default"},
                "involvedObject": {
                    "kind": "Job",
                    "name": "train",
                    "namespace": "default",
                    "uid": job["metadata"]["uid"],
                },
                "reason": "Evict",
                "message": HOSTILE * 40,
                "type": HOSTILE,
                "lastTimestamp": "2027-01-15T07:00:00Z",
            },
        )
        page = await cluster.page(
            job_page, JOB, TRAIN, tab=tab, pod=HOSTILE, sort=HOSTILE, phase=HOSTILE, done=HOSTILE
        )
        assert "<script" not in html_of(page)
        assert "\x1b" not in html_of(page)
        assert len(html_of(page)) < 300_000

    logs = FixedLogs(
        HOSTILE.encode() * 100, b"\n\x1b]0;title\x07\x1b[31mred\n", b"x" * 9_000_000, b"\n<b>\n" * 3000
    )
    on_cluster(work, tmp_path, logs=logs)


def test_a_log_is_the_end_of_what_is_asked_for(tmp_path: Path) -> None:
    logs = FixedLogs(b"first\n", b"second\tword\n")

    async def work(cluster: ServedCluster) -> None:
        await train(cluster)
        query = {"tab": "logs", "pod": "train-worker-0", "tail": "500", "previous": "1"}
        page = await cluster.page(job_page, JOB, TRAIN, **query)
        assert "first\nsecond  word" in page.regions["log"]
        assert (logs.asked[-1].tail, logs.asked[-1].previous) == (500, True)
        page = await cluster.page(job_page, JOB, TRAIN, tab="logs", tail="9999999", container="none")
        assert (logs.asked[-1].tail, logs.asked[-1].container) == (100, "main")

    on_cluster(work, tmp_path, logs=logs)


def test_a_viewer_without_the_right_to_logs_is_told_which_right_that_is(tmp_path: Path) -> None:
    async def work(cluster: ServedCluster) -> None:
        await train(cluster)
        await cluster.allow("ann", [{**READER[0], "resources": ["jobs", "podgroups", "pods", "events"]}])
        page = await cluster.page(job_page, JOB, TRAIN, user="ann", tab="logs", pod="train-worker-0")
        assert 'user "ann" may not get pods/log' in text_of(page).replace("&quot;", '"')

    on_cluster(work, tmp_path, logs=FixedLogs(b"secret\n"))
