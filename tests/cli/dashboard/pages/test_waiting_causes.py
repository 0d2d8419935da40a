"""What waits and why: which jobs fall together, what is said of them, and where that leads."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, urlsplit

from stromboli.cli.dashboard.pages.job_list_page import job_list
from stromboli.cli.dashboard.pages.page_content import PageContent
from stromboli.cli.dashboard.pages.waiting_causes import waiting_card, waiting_causes
from tests.cli.dashboard.view_requests import HOSTILE, NOW, links_of, rendered, text_of, view_request
from tests.manifests import group
from tests.processor_time import least_seconds


def row(reason: str, **fields: Any) -> dict[str, Any]:
    return {
        "waitsFor": reason,
        "queue": "research",
        "pending": 2,
        "waiting": {"cpu": 4.0},
        "toCome": 0,
        "asks": {},
        "created": NOW - 60,
        **fields,
    }


def page_of(*rows: dict[str, Any]) -> PageContent:
    return PageContent("", {"waiting": waiting_card(rows, NOW)})


def test_jobs_whose_reasons_differ_in_numbers_alone_wait_for_the_same_cause():
    causes = waiting_causes(
        [
            row("0/5 nodes are unavailable: 3 Insufficient cpu, 2 Insufficient memory"),
            row("0/5 nodes are unavailable: 2 Insufficient cpu, 3 Insufficient memory"),
            row("0/5 nodes are unavailable: 5 Insufficient cpu"),
        ]
    )
    assert [(cause.text, cause.jobs) for cause in causes] == [
        ("0/5 nodes are unavailable: … Insufficient cpu, … Insufficient memory", 2),
        ("0/5 nodes are unavailable: 5 Insufficient cpu", 1),
    ]


def test_names_of_queues_are_taken_out_where_they_differ():
    (cause,) = waiting_causes(
        [
            row('the capability of queue "a" has too little cpu left', queue="a"),
            row('the capability of queue "b" has too little cpu left', queue="b"),
        ]
    )
    assert cause.text == "the capability of queue … has too little cpu left"
    assert cause.queues == {"a": 1, "b": 1}
    (cause,) = waiting_causes(
        [row("not admitted to queue a yet", queue="a"), row("not admitted to queue b yet", queue="b")]
    )
    assert cause.text == "not admitted to queue … yet"


def test_a_cause_says_what_its_jobs_want_and_how_long_the_oldest_waits():
    (cause,) = waiting_causes(
        [
            row("no room", pending=3, waiting={"cpu": 6.0, "gpu": 2.0}, created=NOW - 600),
            row("no room", pending=0, waiting={}, created=0.0),
            row(""),
        ]
    )
    assert (cause.jobs, cause.pods, cause.wants, cause.since) == (2, 3, {"cpu": 6.0, "gpu": 2.0}, NOW - 600)
    text = text_of(page_of(row("no room", waiting={"cpu": 6.0, "memory": 2.0**31}, created=NOW - 700)))
    assert "6 CPU, 2Gi Memory" in text
    assert "11m" in text


def waiting_group(name: str, reason: str) -> dict[str, Any]:
    manifest = group(name, 1)
    manifest["status"] = {
        "phase": "Inqueue",
        "conditions": [{"type": "Unschedulable", "status": "True", "message": reason}],
    }
    return manifest


def test_a_cause_leads_to_the_list_of_its_jobs_and_of_no_others():
    reasons = [
        "0/4 nodes are unavailable: 4 Insufficient cpu",
        "0/5 nodes are unavailable: 5 Insufficient cpu",
        "0/5 nodes are unavailable: 3 Insufficient cpu, 2 Insufficient memory",
    ]
    manifests = [waiting_group(f"gang-{place}", reason) for place, reason in enumerate(reasons)]
    rows = view_request("/", *manifests).content.all_jobs()
    for cause in waiting_causes(rows):
        query = dict(parse_qsl(urlsplit(cause.jobs_address()).query))
        listed = text_of(rendered(job_list, view_request("/jobs", *manifests, query=query)))
        assert f"{cause.jobs} of 3 jobs" in listed
        assert f"Jobs that wait for the same: {cause.text}" in listed
        assert cause.jobs_address() in links_of(page_of(*rows))


def test_a_cause_that_is_gone_has_no_jobs():
    page = rendered(job_list, view_request("/jobs", group("gang", 1), query={"cause": "0123456789abcdef"}))
    assert "0 of 1 jobs" in text_of(page)
    assert "Jobs that wait for the same: nothing any more" in text_of(page)


def test_further_causes_are_counted():
    words = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa"]
    text = text_of(page_of(*(row(f"waits for {word}") for word in words)))
    assert "2 more jobs wait for 2 other causes" in text


def test_nothing_waits():
    assert "No job waits." in text_of(page_of(row("")))


def test_hostile_reasons_are_shown_as_texts():
    reasons = [HOSTILE * 1000, '"' * 5000, "\n\x1b[31m" + "x " * 5000, "1" * 100_000]
    card = waiting_card([row(reason, queue=HOSTILE) for reason in reasons], NOW)
    assert "<script" not in card
    assert len(card) < 20_000


def test_many_reasons_are_grouped_quickly():
    rows = [
        row(f"0/{place % 50} nodes are unavailable: {place % 7} Insufficient cpu") for place in range(5000)
    ]
    (cause,) = waiting_causes(rows)
    assert least_seconds(lambda: waiting_causes(rows)) < 0.5
    assert cause.jobs == 5000


def test_pods_to_come_are_told_in_words_beside_those_that_wait():
    asks = {"cpu": 0.0, "gpu": 240.0}
    text = text_of(page_of(row("not let in", pending=0, waiting={}, toCome=30, asks=asks)))
    assert "30 to come asks for 240 GPU" in text
    text = text_of(page_of(row("not let in", toCome=30, asks=asks), row("not let in")))
    assert "4 and 30 to come 8 CPU; asks for 240 GPU" in text


def test_one_further_cause_of_one_job_is_told_in_the_singular():
    words = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota"]
    assert "1 more job waits for 1 other cause:" in text_of(page_of(*(row(word) for word in words)))
