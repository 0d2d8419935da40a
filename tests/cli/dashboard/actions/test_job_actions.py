"""What is done to jobs from the dashboard: with the rights of the viewer, once, and as its commands would."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from stromboli.cli.cluster.cluster_errors import ClusterError
from stromboli.cli.cluster.cluster_kinds import JOBS, Manifest
from stromboli.cli.dashboard.actions.action_routes import ACTIONS, ActionRoute
from stromboli.cli.dashboard.pages.page_content import PageContent
from stromboli.kube.request import ApiError
from tests.cli.dashboard.served_cluster import READER, ServedCluster, job_manifest, on_cluster
from tests.cli.dashboard.view_requests import HOSTILE, html_of, text_of

TRAIN = {"namespace": "default", "name": "train"}


def route(verb: str) -> ActionRoute:
    return next(each for each in ACTIONS if each.pattern == f"/jobs/{{namespace}}/{{name}}/{verb}")


async def page(cluster: ServedCluster, verb: str, user: str = "", **query: str) -> PageContent:
    return await cluster.page(route(verb).render, f"/jobs/default/train/{verb}", TRAIN, user, **query)


async def act(cluster: ServedCluster, verb: str, user: str = "", **fields: str) -> str:
    """Send a form about the job as it is now."""
    target = await job(cluster) or {"metadata": {"uid": ""}}
    given = {"uid": target["metadata"]["uid"], **fields}
    request = await cluster.request(f"/jobs/default/train/{verb}", TRAIN, user)
    return await route(verb).perform(request, given)


async def job(cluster: ServedCluster) -> Manifest | None:
    return await (await cluster.session()).find(JOBS, "train", "default")


@pytest.mark.parametrize(
    ("verb", "phase", "done", "action"),
    [("suspend", "Running", "suspended", "AbortJob"), ("resume", "Aborted", "resumed", "ResumeJob")],
)
def test_orders_go_to_the_controller(verb: str, phase: str, done: str, action: str, tmp_path: Path) -> None:
    async def work(cluster: ServedCluster) -> None:
        await cluster.create(job_manifest(phase=phase))
        shown = text_of(await page(cluster, verb))
        assert f"stromboli job {verb} train -n default" in shown
        assert "kubectl create -n default -f -" in shown
        assert await act(cluster, verb) == f"/jobs/default/train?done={done}"
        assert await cluster.commands() == [(action, "train")]

    on_cluster(work, tmp_path)


def test_a_job_that_is_suspended_already_is_told_nothing(tmp_path: Path) -> None:
    async def work(cluster: ServedCluster) -> None:
        await cluster.create(job_manifest(phase="Aborted"))
        shown = await page(cluster, "suspend")
        assert "is Aborted already" in text_of(shown)
        assert "<form" not in html_of(shown)
        uid = (await job(cluster) or {})["metadata"]["uid"]
        assert await act(cluster, "suspend", uid=uid) == "/jobs/default/train?done=suspended"
        assert await cluster.commands() == []

    on_cluster(work, tmp_path)


def test_a_job_that_has_ended_cannot_be_suspended(tmp_path: Path) -> None:
    async def work(cluster: ServedCluster) -> None:
        await cluster.create(job_manifest(phase="Completed"))
        assert "a job that has ended cannot be suspended" in text_of(await page(cluster, "suspend"))
        uid = (await job(cluster) or {})["metadata"]["uid"]
        with pytest.raises(ClusterError, match="has ended"):
            await act(cluster, "suspend", uid=uid)

    on_cluster(work, tmp_path)


@pytest.mark.parametrize(
    ("verb", "right", "fields"),
    [
        ("suspend", "create commands.bus.volcano.sh in namespace default", {}),
        ("delete", "delete jobs.batch.volcano.sh in namespace default", {"sure": "yes"}),
        ("scale", "patch jobs.batch.volcano.sh in namespace default", {"task": "worker", "replicas": "1"}),
    ],
)
def test_without_the_right_there_is_no_button_and_the_api_server_refuses(
    verb: str, right: str, fields: dict[str, str], tmp_path: Path
) -> None:
    async def work(cluster: ServedCluster) -> None:
        await cluster.create(job_manifest())
        await cluster.allow("ann", READER)
        shown = await page(cluster, verb, user="ann")
        assert f'user "ann" may not {right}' in text_of(shown).replace("&quot;", '"')
        assert 'type="submit"' not in html_of(shown)
        with pytest.raises(ApiError) as refused:
            await act(cluster, verb, user="ann", **fields)
        assert refused.value.status == 403
        assert await cluster.commands() == []
        assert await job(cluster) is not None

    on_cluster(work, tmp_path)


def test_a_job_is_deleted_once_the_box_is_ticked_and_a_second_time_is_no_error(tmp_path: Path) -> None:
    async def work(cluster: ServedCluster) -> None:
        await cluster.create(job_manifest())
        uid = (await job(cluster) or {})["metadata"]["uid"]
        with pytest.raises(ClusterError, match="tick the box"):
            await act(cluster, "delete")
        assert await act(cluster, "delete", sure="yes") == "/jobs?namespace=default&done=deleted"
        assert await job(cluster) is None
        request = await cluster.request("/jobs/default/train/delete", TRAIN)
        again = await route("delete").perform(request, {"uid": uid, "sure": "yes"})
        assert again == "/jobs?namespace=default&done=deleted"

    on_cluster(work, tmp_path)


@pytest.mark.parametrize("verb", ["suspend", "delete", "scale"])
def test_another_job_of_the_same_name_is_left_alone(verb: str, tmp_path: Path) -> None:
    async def work(cluster: ServedCluster) -> None:
        await cluster.create(job_manifest())
        with pytest.raises(ClusterError, match="another object has this name"):
            await act(cluster, verb, uid="an earlier one", sure="yes", task="worker", replicas="1")
        assert await job(cluster) is not None

    on_cluster(work, tmp_path)


def test_a_task_is_scaled_and_minimums_go_down_with_it(tmp_path: Path) -> None:
    async def work(cluster: ServedCluster) -> None:
        await cluster.create(job_manifest())
        shown = await page(cluster, "scale", task="worker", replicas="1")
        changes = "worker replicas 3 -&gt; 1, worker minAvailable 2 -&gt; 1, minAvailable 3 -&gt; 2"
        assert changes in text_of(shown)
        assert "stromboli job scale train -n default --task worker --replicas 1" in text_of(shown)
        held = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', html_of(shown)))
        request = await cluster.request("/jobs/default/train/scale", TRAIN)
        assert await route("scale").perform(request, held) == "/jobs/default/train?done=scaled"
        changed = await job(cluster)
        assert changed is not None
        assert changed["spec"]["tasks"][1]["replicas"] == 1
        assert changed["spec"]["minAvailable"] == 2

    on_cluster(work, tmp_path)


def test_scaling_is_chosen_then_shown_and_only_then_done(tmp_path: Path) -> None:
    async def work(cluster: ServedCluster) -> None:
        await cluster.create(job_manifest())
        first = html_of(await page(cluster, "scale"))
        assert re.findall(r'<form[^>]* method="(\w+)"', first) == ["get"]
        assert "kubectl" not in first
        second = html_of(await page(cluster, "scale", task="worker", replicas="5"))
        assert re.findall(r'<form[^>]* method="(\w+)"', second) == ["get", "post"]
        assert "--task worker --replicas 5" in second
        assert 'method="post" action="/jobs/default/train/scale?task=worker&amp;replicas=5"' in second, (
            "what was chosen is there still if it is refused"
        )

    on_cluster(work, tmp_path)


@pytest.mark.parametrize("replicas", ["1000001", "-1", "many"])
def test_a_number_that_cannot_be_stays_in_its_field_with_what_is_wrong(replicas: str, tmp_path: Path) -> None:
    async def work(cluster: ServedCluster) -> None:
        await cluster.create(job_manifest())
        shown = await page(cluster, "scale", task="worker", replicas=replicas)
        assert f'name="replicas" value="{replicas}"' in html_of(shown)
        assert '<option value="worker" selected="">' in html_of(shown)
        assert "is no number of pods: write one from 0 to 1,000,000" in text_of(shown)
        assert 'method="post"' not in html_of(shown)

    on_cluster(work, tmp_path)


@pytest.mark.parametrize("verb", ["suspend", "scale", "delete"])
def test_forms_of_actions_are_no_filters_which_are_sent_as_soon_as_something_is_chosen(
    verb: str, tmp_path: Path
) -> None:
    async def work(cluster: ServedCluster) -> None:
        await cluster.create(job_manifest())
        shown = html_of(await page(cluster, verb, task="worker", replicas="5"))
        assert set(re.findall(r'<form[^>]* class="([^"]*)"', shown)) == {"action-form"}

    on_cluster(work, tmp_path)


def test_a_viewer_who_may_update_jobs_and_not_patch_them_scales_them(tmp_path: Path) -> None:
    async def work(cluster: ServedCluster) -> None:
        await cluster.create(job_manifest())
        editor = {"apiGroups": ["batch.volcano.sh"], "resources": ["jobs"], "verbs": ["update"]}
        await cluster.allow("ann", [*READER, editor])
        chosen = await page(cluster, "scale", user="ann", task="worker", replicas="2")
        assert 'method="post"' in html_of(chosen)
        await act(cluster, "scale", user="ann", task="worker", replicas="2")
        assert (await job(cluster) or {})["spec"]["tasks"][1]["replicas"] == 2

    on_cluster(work, tmp_path)


@pytest.mark.parametrize(
    "fields",
    [
        {"task": "worker", "replicas": "-1"},
        {"task": "worker", "replicas": "9999999"},
        {"task": "worker", "replicas": "٣"},
        {"task": "worker"},
        {"task": HOSTILE, "replicas": "1"},
        {"replicas": "1"},
    ],
)
def test_wrong_fields_change_nothing_and_are_named(fields: dict[str, Any], tmp_path: Path) -> None:
    async def work(cluster: ServedCluster) -> None:
        await cluster.create(job_manifest())
        with pytest.raises(ClusterError):
            await act(cluster, "scale", **fields)
        assert (await job(cluster) or {})["spec"]["tasks"][1]["replicas"] == 3

    on_cluster(work, tmp_path)


@pytest.mark.parametrize("verb", ["suspend", "resume", "scale", "delete"])
def test_hostile_addresses_are_shown_harmlessly(verb: str, tmp_path: Path) -> None:
    async def work(cluster: ServedCluster) -> None:
        await cluster.create(job_manifest())
        shown = await page(cluster, verb, task=HOSTILE, replicas=HOSTILE, done=HOSTILE)
        assert "<script" not in html_of(shown)

    on_cluster(work, tmp_path)


def test_pods_are_spoken_of_where_there_are_any(tmp_path: Path) -> None:
    async def work(cluster: ServedCluster) -> None:
        manifest = job_manifest(phase="Pending")
        await cluster.create(manifest)
        shown = text_of(await page(cluster, "suspend"))
        assert "It is Pending, and has no pods." in shown
        assert "Its pods are deleted" not in shown

    on_cluster(work, tmp_path)


def test_the_pods_of_a_job_that_is_suspended_are_those_that_exist(tmp_path: Path) -> None:
    async def work(cluster: ServedCluster) -> None:
        manifest = job_manifest()
        manifest["status"] |= {"running": 2, "pending": 1}
        await cluster.create(manifest)
        shown = text_of(await page(cluster, "suspend"))
        assert "It is Running, with 3 pods. Its pods are deleted" in shown.replace("  ", " ")

    on_cluster(work, tmp_path)


def test_a_job_that_has_ended_is_not_scaled_and_nothing_is_said_to_happen(tmp_path: Path) -> None:
    async def work(cluster: ServedCluster) -> None:
        await cluster.create(job_manifest(phase="Completed"))
        assert "are deleted" not in text_of(await page(cluster, "suspend"))
        shown = await page(cluster, "scale", task="worker", replicas="5")
        assert "a job that has ended cannot be scaled" in text_of(shown)
        assert "<form" not in html_of(shown)
        with pytest.raises(ClusterError, match="cannot be scaled"):
            await act(cluster, "scale", task="worker", replicas="5")

    on_cluster(work, tmp_path)
