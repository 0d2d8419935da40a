"""The page of a pod."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from stromboli.cli.dashboard.pages.pod_page import TABS, pod_page, state_of_container
from tests.cli.dashboard.served_cluster import FixedLogs, job_manifest, pod_manifest, served
from tests.cli.dashboard.view_requests import HOSTILE, html_of, links_of, text_of

NAMES = {"namespace": "default", "name": "train-worker-0"}
PATH = "/pods/default/train-worker-0"


@pytest.mark.parametrize("tab", TABS)
def test_every_part_of_a_hostile_pod_is_shown_harmlessly(tab: str, tmp_path: Path) -> None:
    async def work() -> None:
        async with served(tmp_path, logs=FixedLogs(b"\x1b[2J" + HOSTILE.encode() * 5000)) as cluster:
            job = job_manifest()
            job["metadata"]["uid"] = ""
            waiting = {"waiting": {"reason": HOSTILE, "message": HOSTILE * 100}}
            status = {"name": "main", "image": "none", "imageID": "", "ready": False, "restartCount": 1}
            pod = pod_manifest(job, "worker", 0, "n1", containerStatuses=[{**status, "state": waiting}])
            del pod["metadata"]["ownerReferences"]
            pod["metadata"]["annotations"]["note"] = HOSTILE * 1000
            await cluster.create(pod)
            page = await cluster.page(pod_page, PATH, NAMES, tab=tab, container=HOSTILE)
            assert "<script" not in html_of(page)
            assert "\x1b" not in html_of(page)
            assert len(html_of(page)) < 200_000

    asyncio.run(work())


def test_a_pod_leads_to_its_gang_its_node_and_its_logs(tmp_path: Path) -> None:
    async def work() -> None:
        async with served(tmp_path) as cluster:
            pod = pod_manifest(job_manifest(), "worker", 0, "n1")
            del pod["metadata"]["ownerReferences"]
            await cluster.create(pod)
            page = await cluster.page(pod_page, PATH, NAMES)
            assert {
                "/nodes/n1",
                "/podgroups/default/train-None",
                f"{PATH}?tab=logs&container=main",
            } <= set(links_of(page))
            assert "worker, index 0" in text_of(page)

    asyncio.run(work())


@pytest.mark.parametrize(
    ("state", "text"),
    [
        (None, "not started"),
        ({"running": {"startedAt": "2027-01-15T07:00:00Z"}}, "running since 2027-01-15T07:00:00Z"),
        ({"terminated": {"exitCode": 0}}, "ended with 0"),
        ({"terminated": {"exitCode": 137, "reason": "OOMKilled"}}, "ended with 137: OOMKilled"),
        (
            {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}},
            "waiting: ImagePullBackOff: no such image",
        ),
        ({"waiting": {}}, "waiting"),
    ],
)
def test_the_state_of_a_container_is_told_in_words(state: object, text: str) -> None:
    assert state_of_container(state) == text
