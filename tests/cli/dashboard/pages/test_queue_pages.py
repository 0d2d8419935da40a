"""Queues on the dashboard: the tree, who borrows from whom, and a page for each."""

from __future__ import annotations

import pytest

from stromboli.cli.dashboard.pages.page_content import NotThere
from stromboli.cli.dashboard.pages.queue_pages import loans, queue_list, queue_page
from stromboli.cli.live import cluster_records
from stromboli.cli.live.visible_records import Visibility
from stromboli.policy.presets import PRESETS
from stromboli.simulator.cluster_notation import nodes, queues
from stromboli.simulator.job_manifests import job_manifests
from tests.cli.dashboard.view_requests import links_of, rendered, text_of, view_request

CLUSTER = (
    *nodes("n1 cpu=8,memory=32Gi; n2 cpu=8,memory=32Gi"),
    *queues("research weight=1; production weight=1"),
    *job_manifests("train", queue="research", pods=3, cpu=4, running_on="n1 n1 n2"),
    *job_manifests("serve", queue="production", pods=2, cpu=4),
)


def test_a_queue_that_uses_more_than_it_deserves_borrows_from_one_that_leaves_some() -> None:
    request = view_request("/queues", *CLUSTER, policy=PRESETS["basic"])
    borrowers, lenders = loans(request.content.queues(), ["cpu"])
    assert [(loan.queue, loan.amount) for loan in borrowers] == [("research", 4.0)]
    assert [(loan.queue, loan.amount) for loan in lenders] == [("production", 8.0)]
    text = text_of(rendered(queue_list, request))
    assert "research borrows 4" in text
    assert "production leaves 8 of what it deserves and has pods that wait: they may reclaim it" in text


def test_numbers_of_jobs_lead_to_those_jobs() -> None:
    links = links_of(rendered(queue_list, view_request("/queues", *CLUSTER)))
    assert "/jobs?queue=research&phase=Running" in links
    assert "/jobs?queue=production&waiting=1" in links


def test_queues_stand_below_their_parents_also_in_a_circle() -> None:
    tree = queues("a parent=b; b parent=a; child parent=top; top; lost parent=nowhere")
    page = rendered(queue_list, view_request("/queues", *tree))
    text = text_of(page)
    assert all(f" {name} " in text for name in ("a", "b", "child", "top", "lost"))
    assert 'class="depth-1"><a href="/queues/child"' in page.regions["queues"]
    assert 'class="depth-0"><a href="/queues/lost"' in page.regions["queues"]


def test_the_list_is_searched_and_sorted_by_its_address() -> None:
    request = view_request("/queues", *CLUSTER, query={"sort": "-running"})
    names = [target for target in links_of(rendered(queue_list, request)) if target.startswith("/queues/")]
    assert names.index("/queues/research") < names.index("/queues/production")
    found = rendered(queue_list, view_request("/queues", *CLUSTER, query={"q": "prod"}))
    assert "/queues/research" not in found.regions["queues"]
    assert "/queues/production" in found.regions["queues"]


def test_a_queue_has_a_page_with_its_amounts_and_actions() -> None:
    request = view_request("/queues/research", *CLUSTER, names={"queue": "research"}, policy=PRESETS["basic"])
    page = rendered(queue_page, request)
    assert page.title == "Queue research"
    assert "12/8 12 8 - - 0" in text_of(page)
    assert "/queues/research/close" in links_of(page)


def test_a_queue_that_does_not_exist_or_is_hidden_is_not_there() -> None:
    hidden = Visibility(hidden=frozenset({cluster_records.QUEUES}))
    for name, visibility in (("nowhere", Visibility()), ("research", hidden)):
        request = view_request(f"/queues/{name}", *CLUSTER, names={"queue": name}, visibility=visibility)
        with pytest.raises(NotThere, match=f"Queue {name} does not exist, or you may not list queues"):
            rendered(queue_page, request)
