"""The list of jobs: which are shown, how they are counted, and where they lead."""

from __future__ import annotations

import re
from typing import Any

import pytest

from stromboli.api.decoding import decode
from stromboli.cli.dashboard.pages.job_list_page import job_list
from stromboli.cli.dashboard.pages.page_content import PageContent
from stromboli.cli.live.visible_records import Visibility
from stromboli.simulator.cluster_notation import nodes, queues
from stromboli.simulator.job_manifests import job_manifests
from tests.cli.dashboard.number_links import assert_numbers_lead_to_as_many
from tests.cli.dashboard.view_requests import HOSTILE, html_of, links_of, rendered, text_of, view_request
from tests.manifests import group, pod
from tests.processor_time import least_seconds
from tests.simulator.workload_manifests import job

Manifest = dict[str, Any]


def volcano_job(name: str, phase: str = "Running", namespace: str = "default", **spec: Any) -> Manifest:
    manifest = job(name, **spec)
    manifest["metadata"] |= {"namespace": namespace, "uid": f"uid-{name}"}
    manifest["status"] = {"state": {"phase": phase}}
    return manifest


def owned(manifest: Manifest, owner: str) -> Manifest:
    manifest["metadata"]["ownerReferences"] = [
        {
            "apiVersion": "batch.volcano.sh/v1alpha1",
            "kind": "Job",
            "name": owner,
            "uid": f"uid-{owner}",
            "controller": True,
        }
    ]
    return manifest


CLUSTER = (
    *nodes("n1 cpu=8,memory=32Gi; g1 cpu=32,memory=256Gi,nvidia.com/gpu=8"),
    *queues("research weight=3; production weight=1"),
    *job_manifests("train", queue="research", pods=2, cpu=4, gpu=2, running_on="g1 g1"),
    *job_manifests("more", queue="research", pods=20, cpu=4),
    *job_manifests("serve", queue="production", namespace="web", pods=2, cpu=2, running_on="n1 n1"),
    volcano_job("done", "Completed"),
)


def page_of(*manifests: Manifest, **query: str) -> PageContent:
    return rendered(job_list, view_request("/jobs", *manifests, query=query))


def names_in(page: PageContent) -> set[str]:
    return set(re.findall(r'href="/(?:jobs|podgroups)/[^"/]+/([^"/?]+)"', page.regions["job-list"]))


def test_all_jobs_are_listed_with_those_that_have_no_podgroup():
    assert names_in(page_of(*CLUSTER)) == {"train", "more", "serve", "done"}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"queue": "research"}, {"train", "more"}),
        ({"namespace": "web"}, {"serve"}),
        ({"phase": "Completed"}, {"done"}),
        ({"waiting": "1"}, {"more"}),
        ({"pending": "1"}, {"more"}),
        ({"scheduling": "Running"}, {"train", "serve"}),
        ({"node": "g1"}, {"train"}),
        ({"q": "PRODUCTION ser"}, {"serve"}),
        ({"q": "nobody"}, set()),
        ({"queue": "research", "waiting": "1", "q": "train"}, set()),
    ],
)
def test_the_address_says_which_jobs_are_shown(query: dict[str, str], expected: set[str]):
    assert names_in(page_of(*CLUSTER, **query)) == expected


def test_counts_of_phases_are_those_of_the_lists_that_they_lead_to():
    page = page_of(*CLUSTER, queue="research", phase="Running")
    counts = re.findall(r'href="([^"]*)"[^>]*>([A-Z][a-z ]*?) (\d+)<', page.regions["job-phases"])
    assert {title for _, title, _ in counts} >= {"All", "Waiting for room"}
    for target, _, count in counts:
        query = dict(part.split("=") for part in target.partition("?")[2].replace("&amp;", "&").split("&"))
        assert len(names_in(page_of(*CLUSTER, **query))) == int(count)


def test_every_number_leads_to_as_many_jobs():
    for query in ({}, {"queue": "research"}, {"pending": "1"}, {"scheduling": "Running"}):
        request = view_request("/jobs", *CLUSTER, query=query)
        compared = assert_numbers_lead_to_as_many(request, rendered(job_list, request))
        assert any("pending=1" in target for target, _ in compared)


def test_jobs_of_the_same_age_stay_in_order_of_their_names_while_they_change():
    manifests = [group(name, 1) for name in ("b", "c", "a")]
    request = view_request("/jobs", *manifests)

    def order() -> list[str]:
        page = rendered(job_list, request)
        return re.findall(r'href="/podgroups/default/(\w)"', page.regions["job-list"])

    assert order() == ["a", "b", "c"]
    manifests[0]["status"]["phase"] = "Running"
    request.records.put(decode(manifests[0]), new=False)
    assert order() == ["a", "b", "c"]


def test_a_job_leads_to_its_page_and_a_gang_of_another_owner_to_that_of_its_podgroup():
    page = page_of(volcano_job("train"), owned(group("train-1", 2), "train"), group("gang", 1))
    assert {"/jobs/default/train", "/podgroups/default/gang"} <= set(links_of(page))


def test_a_viewer_who_may_not_list_jobs_is_led_to_the_podgroup():
    hidden = Visibility(namespaces={"jobs": frozenset()})
    request = view_request(
        "/jobs", volcano_job("train"), owned(group("train-1", 2), "train"), visibility=hidden
    )
    assert "/podgroups/default/train-1" in links_of(rendered(job_list, request))


def test_pods_that_do_not_exist_yet_are_counted_among_all():
    assert "0/3" in text_of(page_of(volcano_job("train", "Pending")))


def test_why_a_job_waits_leads_to_the_explanation():
    page = page_of(*CLUSTER, waiting="1")
    assert "/podgroups/default/more?tab=explanation" in links_of(page)


def test_jobs_are_sorted_by_the_column_that_the_address_names():
    page = page_of(*CLUSTER, sort="-job")
    order = re.findall(r'href="/(?:jobs|podgroups)/[^"/]+/([^"/?]+)"', page.regions["job-list"])
    assert order == ["train", "serve", "more", "done"]


def test_hostile_texts_are_shown_as_texts():
    waiting = group(HOSTILE, 1, queue=HOSTILE, namespace=HOSTILE)
    waiting["status"]["conditions"] = [
        {"type": "Unschedulable", "status": "True", "message": HOSTILE * 1000, "reason": HOSTILE}
    ]
    page = page_of(waiting, q="script", sort=HOSTILE, node="")
    assert "<script" not in html_of(page)
    assert len(html_of(page)) < 20_000


def test_many_jobs_make_a_bounded_page_quickly():
    manifests = [
        each
        for number in range(1500)
        for each in (group(f"gang-{number}", 2, namespace=f"ns-{number % 400}"), pod(f"p-{number}"))
    ]
    request = view_request("/jobs", *manifests)
    page = rendered(job_list, request)
    assert least_seconds(lambda: rendered(job_list, request)) < 0.5
    assert len(html_of(page)) < 200_000
    assert "Page 1 of 15" in text_of(page)


def test_a_job_that_runs_with_fewer_pods_says_why_the_others_wait():
    elastic = job_manifests("elastic", queue="research", pods=5, cpu=4, minimum=1, running_on="n1 n1")
    page = page_of(*CLUSTER, *elastic, pending="1")
    assert names_in(page) == {"more", "elastic"}
    assert "runs with 2 of 5 pods; the others wait" in text_of(page)
    assert names_in(page_of(*CLUSTER, *elastic, waiting="1")) == {"more"}


def test_a_gang_that_is_not_let_in_shows_what_it_asks_for():
    asked = {"cpu": "60", "nvidia.com/gpu": "240", "pods": "30"}
    text = text_of(page_of(*CLUSTER, group("big", 30, phase="Pending", minResources=asked), q="big"))
    assert "0 of their pods wait, 30 are to come" in text
    assert "0/30" in text
    assert "asks for 240" in text


def test_the_age_of_a_job_is_its_own_and_not_that_of_the_podgroup_it_has_since_it_was_resumed():
    resumed = owned(group("resumed-1", 1, created=5000.0), "resumed")
    older = volcano_job("resumed")
    older["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    request = view_request("/jobs", older, resumed)
    (row,) = request.content.all_jobs()
    assert row["created"] == request.records.jobs["default/resumed"].created
    assert row["created"] != request.records.groups["default/resumed-1"].created


def test_a_job_that_has_ended_shows_how_its_pods_ended():
    done = volcano_job("done", "Completed")
    done["status"] |= {"succeeded": 3, "failed": 1}
    assert "succeeded 3, failed 1" in text_of(page_of(done))
    untold = text_of(page_of(volcano_job("untold", "Failed")))
    assert "0/" not in untold
