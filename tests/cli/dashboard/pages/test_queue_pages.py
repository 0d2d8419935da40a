"""Queues on the dashboard: the tree, who borrows from whom, and a page for each."""

from __future__ import annotations

import re

import pytest

from stromboli.cli.dashboard.pages.page_content import NotThere, PageContent
from stromboli.cli.dashboard.pages.page_elements import BAR_WIDTH, MARK_HALF, Row
from stromboli.cli.dashboard.pages.queue_pages import (
    Loan,
    exchange_list,
    exchanges,
    queue_list,
    queue_page,
    usage_cell,
    use_address,
)
from stromboli.cli.live import cluster_records
from stromboli.cli.live.visible_records import Visibility
from stromboli.policy.presets import PRESETS
from stromboli.simulator.cluster_notation import nodes, queues
from stromboli.simulator.job_manifests import job_manifests
from tests.cli.dashboard.number_links import assert_numbers_lead_to_as_many
from tests.cli.dashboard.pages.test_job_list_page import owned, volcano_job
from tests.cli.dashboard.view_requests import html_of, links_of, rendered, text_of, view_request

CLUSTER = (
    *nodes("n1 cpu=8,memory=32Gi; n2 cpu=8,memory=32Gi"),
    *queues("research weight=1; production weight=1"),
    *job_manifests("train", queue="research", pods=3, cpu=4, running_on="n1 n1 n2"),
    *job_manifests("serve", queue="production", pods=2, cpu=4),
)


def test_a_queue_that_uses_more_than_it_deserves_borrows_from_one_that_leaves_some() -> None:
    request = view_request("/queues", *CLUSTER, policy=PRESETS["basic"])
    (exchange,) = exchanges(request.content.queues(), "cpu")
    assert amounts(exchange.borrowers) == [("research", 4.0)]
    assert amounts(exchange.lenders) == [("production", 8.0)]
    page = rendered(queue_list, request)
    text = text_of(page)
    assert "research borrows 4" in text
    assert (
        "production leaves 8 of what it deserves and has pods that wait for it: they may reclaim it" in text
    )
    assert "/jobs?queue=production&pending=1&sort=-by-cpu" in links_of(page)


def amounts(loans: list[Loan]) -> list[tuple[str, float]]:
    return [(loan.queue["name"], loan.amount) for loan in loans]


def queue_row(name: str, parent: str, used: float, deserved: float, **pending: float) -> Row:
    """A queue of which only CPU is known."""
    return {
        "name": name,
        "parent": parent,
        "children": 0,
        "used": {"cpu": used},
        "deserved": {"cpu": deserved},
        "pending": pending,
    }


def test_queues_borrow_from_those_below_the_same_parent() -> None:
    rows = [
        queue_row("root", "", 20, 20),
        queue_row("eng", "root", 12, 10),
        queue_row("sales", "", 4, 10),
        queue_row("eng-a", "eng", 9, 5),
        queue_row("eng-b", "eng", 3, 5),
        queue_row("sales-a", "sales", 4, 10),
    ]
    top, engineering = exchanges(rows, "cpu")
    assert (top.parent, amounts(top.borrowers), amounts(top.lenders)) == (
        "",
        [("eng", 2)],
        [("sales", 6)],
    )
    assert (engineering.parent, amounts(engineering.borrowers), amounts(engineering.lenders)) == (
        "eng",
        [("eng-a", 4)],
        [("eng-b", 2)],
    )


@pytest.mark.parametrize(("pending", "told"), [({"cpu": 2.0}, True), ({"memory": 2.0}, False)])
def test_a_lender_reclaims_only_what_its_pods_wait_for(pending: dict[str, float], told: bool) -> None:
    (exchange,) = exchanges([queue_row("a", "", 9, 5), queue_row("b", "", 1, 5, **pending)], "cpu")
    assert ("may reclaim" in exchange_list(exchange)) is told


def test_numbers_of_jobs_lead_to_as_many_jobs() -> None:
    gang, *pods = job_manifests("grow", queue="research", pods=3, minimum=1, cpu=1, running_on="n2")
    cluster = (*CLUSTER, owned(gang, "grow"), *pods, volcano_job("grow", phase="Pending"))
    for path, render, chosen in (
        ("/queues", queue_list, {}),
        ("/queues/research", queue_page, {"queue": "research"}),
    ):
        request = view_request(path, *cluster, names=chosen)
        compared = assert_numbers_lead_to_as_many(request, rendered(render, request))
        assert ("/jobs?queue=research&scheduling=Running", 2) in compared


def test_amounts_of_a_queue_lead_to_who_has_them() -> None:
    request = view_request("/queues/research", *CLUSTER, names={"queue": "research"}, policy=PRESETS["basic"])
    assert {"/jobs?queue=research&sort=-by-cpu", "/policy"} <= set(links_of(rendered(queue_page, request)))
    assert use_address({"name": "top", "children": 2}, "cpu") == "/queues/top#region-below"


def test_guarantee_and_capability_are_told_in_words_and_by_marks_of_their_own() -> None:
    tree = queues("own guarantee=cpu:2 deserved=cpu:4 capability=cpu:8")
    page = rendered(queue_list, view_request("/queues", *nodes("n1 cpu=8"), *tree))
    assert "0 of 4, guaranteed 2, at most 8" in text_of(page)
    marks = re.findall(r'<path d="([^"]*)" transform="translate\(([\d.]+) 0\)"', html_of(page))
    assert len({shape for shape, _ in marks}) == 3
    assert max(float(place) for _, place in marks) == BAR_WIDTH - MARK_HALF, "all of it is on the bar"


def test_a_guarantee_of_nothing_is_not_told() -> None:
    row = {**queue_row("a", "", 2, 4), "guarantee": {"cpu": 0.0}, "capability": {}, "children": 0}
    assert "guaranteed" not in usage_cell(row, "cpu")


def test_a_queue_that_deserves_no_told_amount_has_no_bar() -> None:
    row = {**queue_row("a", "", 2, 4), "deserved": {}, "guarantee": {}, "capability": {}, "children": 0}
    cell = usage_cell(row, "cpu")
    assert "<svg" not in cell
    assert text_of(PageContent("", {"cell": cell})).split() == ["2"]


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
    assert "CPU 12 used, 8 deserved deserved 8 12 8 - - 0" in text_of(page)
    assert "/queues/research/close" in links_of(page)


def test_a_queue_that_does_not_exist_or_is_hidden_is_not_there() -> None:
    hidden = Visibility(hidden=frozenset({cluster_records.QUEUES}))
    for name, visibility in (("nowhere", Visibility()), ("research", hidden)):
        request = view_request(f"/queues/{name}", *CLUSTER, names={"queue": name}, visibility=visibility)
        with pytest.raises(NotThere, match=f"Queue {name} does not exist, or you may not list queues"):
            rendered(queue_page, request)


def test_how_to_learn_why_jobs_wait_is_told_where_any_do() -> None:
    for queue, waits in (("production", True), ("research", False)):
        request = view_request(f"/queues/{queue}", *CLUSTER, names={"queue": queue})
        assert ("Why its jobs wait" in text_of(rendered(queue_page, request))) == waits


def test_a_queue_without_pods_uses_nothing_of_every_resource() -> None:
    tree = queues("idle")
    request = view_request("/queues/idle", *nodes("g cpu=8,nvidia.com/gpu=8"), *tree, names={"queue": "idle"})
    (row,) = (row for row in request.content.queues() if row["name"] == "idle")
    cells = [usage_cell({**row, "children": 0}, resource) for resource in ("cpu", "memory", "gpu")]
    assert all(re.search(r"<small>0\b", cell) for cell in cells)


def test_the_page_of_queues_says_where_a_share_ends() -> None:
    text = text_of(rendered(queue_list, view_request("/queues", *CLUSTER)))
    assert "A share by weight ends at what a queue asks for: its jobs that run or wait." in text
