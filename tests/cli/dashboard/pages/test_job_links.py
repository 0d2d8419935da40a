"""A job has one page, from wherever a link leads to it."""

from __future__ import annotations

from typing import Any

from stromboli.cli.dashboard.pages.job_links import job_link, row_address
from stromboli.cli.live.visible_records import Visibility
from stromboli.simulator.reports.page.markup import element
from tests.cli.dashboard.served_cluster import job_manifest
from tests.cli.dashboard.view_requests import HOSTILE, view_request
from tests.manifests import group


def owned(name: str, job: str) -> dict[str, Any]:
    manifest = group(name, 1)
    owner = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": job, "uid": "u"}
    manifest["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
    return manifest


def test_a_job_is_found_by_its_podgroup_and_another_gang_is_its_podgroup() -> None:
    request = view_request("/jobs", job_manifest(), owned("train-u", "train"), group("alone", 1))
    assert job_link(request.records, "default/train-u") == '<a href="/jobs/default/train">default/train</a>'
    assert (
        job_link(request.records, "default/alone") == '<a href="/podgroups/default/alone">default/alone</a>'
    )
    addresses = {row_address(request.records, row) for row in request.content.all_jobs()}
    assert addresses == {"/jobs/default/train", "/podgroups/default/alone"}


def test_a_viewer_who_may_not_see_jobs_is_led_to_the_podgroup() -> None:
    blind = Visibility({"jobs": frozenset()})
    request = view_request("/jobs", job_manifest(), owned("train-u", "train"), visibility=blind)
    shown = '<a href="/podgroups/default/train-u">default/train</a>'
    assert job_link(request.records, "default/train-u") == shown


def test_what_has_gone_is_a_name_without_a_link() -> None:
    assert job_link(view_request("/jobs").records, "default/gone") == "default/gone"
    assert "<script" not in element("td", job_link(view_request("/jobs").records, HOSTILE))
