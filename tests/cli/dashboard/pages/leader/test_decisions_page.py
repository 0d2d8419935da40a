"""What the last cycles did: the list, a cycle in full, and what is shown where the leader does not tell."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from html import unescape
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from stromboli.cli.dashboard.pages.leader.cycle_rates import cycle_rates
from stromboli.cli.dashboard.pages.leader.decisions_page import ROUTES, decisions
from stromboli.cli.dashboard.pages.page_content import NotThere, PageContent
from stromboli.cli.live.cluster_records import News
from stromboli.scheduler.explain.cycle_documents import CycleDecision, CycleEntry, CycleList, LostCause
from stromboli.simulator.cluster_notation import nodes, queues
from stromboli.simulator.job_manifests import job_manifests
from tests.cli.dashboard.number_links import numbers_of
from tests.cli.dashboard.telling_leader import TellingLeader
from tests.cli.dashboard.view_requests import (
    HOSTILE,
    NOW,
    html_of,
    links_of,
    rendered,
    text_of,
    view_request,
)
from tests.processor_time import TIMES

SINCE = NOW - 3600
PARTS = {"open": 0.001, "enqueue": 0.002, "allocate": 0.012, "close": 0.001}
CLUSTER = (
    *nodes("n1 cpu=8,memory=32Gi"),
    *queues("research weight=3"),
    *job_manifests("train", queue="research", pods=1, cpu=4, running_on="n1"),
)
DECISIONS = [
    CycleDecision("let-in", "default", "train", "default/train", "research", action="enqueue"),
    CycleDecision("bound", "default", "train-0", "default/train", "research", "n1", "allocate"),
    CycleDecision(
        "evicted",
        "web",
        "gone-1",
        "web/gone",
        "production",
        "n9",
        "preempt",
        beneficiary="default/train",
        chosen_by="priority, gang",
    ),
    CycleDecision("moved", "web", "gone-2", "web/gone", "", "n9", "shuffle", destination="n1"),
]


def entry(number: int, **fields: Any) -> CycleEntry:
    begun = SINCE + number
    told = {"last_number": number, "last_time": begun, "seconds": 0.016, "parts": PARTS, **fields}
    return CycleEntry(number, begun, **told)


def idle(first: int, last: int) -> CycleEntry:
    count = last - first + 1
    return entry(
        first, kind="idle", last_number=last, last_time=SINCE + last, cycles=count, seconds=0.001 * count
    )


LOST = LostCause("division by zero", "mine", "job_order")
ENTRIES = [
    idle(1, 40),
    entry(41, let_in=1, bound=1, evicted=2, moved=1, waiting=3, pending=2, decisions=DECISIONS),
    entry(42, bound=30, left_out=30, seconds=2.5, parts={"allocate": 2.5}),
    entry(43, kind="lost", cycles=5, last_number=47, lost=LOST),
    idle(48, 60),
]


def page_of(*entries: CycleEntry, **query: str) -> PageContent:
    leader = TellingLeader(list(entries), since=SINCE)
    return leader.page(decisions, view_request("/decisions", *CLUSTER, query=query))


def rows_in(page: PageContent) -> list[str]:
    return re.findall(r'<tr><td><a href="[^"]*cycle=(\d+)', page.regions["cycle-list"])


def follow(page: PageContent, fragment: str) -> PageContent:
    """The page to which the first link with such a text in its target leads."""
    target = next(each for each in links_of(page) if fragment in each)
    return page_of(*ENTRIES, **dict(parse_qsl(urlsplit(unescape(target)).query)))


def test_the_page_is_read_with_the_rights_of_the_viewer_and_stays_live():
    (route,) = ROUTES
    assert (route.personal, route.refresh) == (True, 2.0)


def test_cycles_are_listed_with_the_newest_first_and_the_run_that_goes_on_above():
    page = page_of(*ENTRIES)
    assert rows_in(page) == ["43", "42", "41", "1"]
    assert "1 to 40" in page.regions["cycle-list"]
    assert "48 to 60" in page.regions["current-cycle"]
    assert "nothing to decide" in page.regions["current-cycle"]


def test_the_time_of_each_action_is_told_in_words():
    assert "open 1 ms, enqueue 2 ms, allocate 12 ms, close 1 ms" in page_of(*ENTRIES).regions["cycle-list"]


def test_only_the_run_that_goes_on_changes_while_nothing_is_decided():
    before, after = page_of(*ENTRIES), page_of(*ENTRIES[:-1], idle(48, 90))
    changed = {name for name, text in after.regions.items() if before.regions[name] != text}
    assert changed == {"cycle-rates", "current-cycle"}


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("decided", ["42", "41"]),
        ("starts", ["42", "41"]),
        ("evictions", ["41"]),
        ("let-in", ["41"]),
        ("idle", ["1"]),
        ("lost", ["43"]),
        (HOSTILE, ["43", "42", "41", "1"]),
    ],
)
def test_the_address_says_which_cycles_are_shown(kind: str, expected: list[str]):
    assert rows_in(page_of(*ENTRIES, kind=kind)) == expected


def test_lost_cycles_say_why():
    page = page_of(*ENTRIES, kind="lost")
    assert "plugin mine failed at job_order: division by zero" in text_of(page)
    now = page_of(*ENTRIES[:4]).regions["current-cycle"]
    assert 'class="warn"' in now
    assert "division by zero" in now


def test_the_slowest_cycle_of_the_last_minutes_is_a_link_to_it():
    page = page_of(*ENTRIES)
    assert re.search(r'cycle=42&amp;leader=\d+">2.5 s<', page.regions["cycle-rates"])


def test_rates_are_those_of_the_last_minutes():
    told = CycleList(since=0.0, cycles=[
        CycleEntry(1, 0.0, "idle", 600, 600.0, cycles=600, seconds=0.6),
        CycleEntry(601, 601.0, last_time=601.0, bound=10, evicted=5, seconds=0.5),
    ])  # fmt: skip
    rates = cycle_rates(told)
    assert rates.cycles == pytest.approx(60, rel=0.01)
    assert (rates.starts, rates.evictions) == (2.0, 1.0)
    assert rates.median == pytest.approx(0.001)
    assert rates.slowest is told.cycles[1]
    assert cycle_rates(CycleList()).slowest is None


def test_a_cycle_in_full_names_each_decision_and_leads_to_what_it_is_about():
    page = follow(page_of(*ENTRIES), "cycle=41")
    assert page.title == "Cycle 41"
    text = text_of(page)
    assert "1 let in, 1 bound, 1 evicted, 1 moved" in text
    assert "allocate 12 ms 75 %" in text
    assert {"/pods/default/train-0", "/podgroups/default/train", "/queues/research", "/nodes/n1"} <= set(
        links_of(page)
    )
    assert "for default/train , chosen by priority, gang" in text
    assert "/pods/web/gone-1" not in links_of(page)
    assert "web/gone-1" in text


def test_numbers_whose_names_the_leader_does_not_tell_lead_to_those_of_now():
    latest = page_of(*ENTRIES[:2], entry(42, waiting=3, pending=2, bound=1)).regions["current-cycle"]
    assert numbers_of(latest)[1:] == [("/jobs?scheduling=Pending", 3), ("/jobs?pending=1", 2)]
    links = links_of(page_of(*ENTRIES, cycle="41"))
    assert links.count("/jobs?pending=1") == 3
    assert links.count("/jobs?scheduling=Pending") == 1


def test_the_number_of_evictions_leads_to_them():
    page = follow(page_of(*ENTRIES), "kind=evicted")
    assert "web/gone-1" in page.regions["cycle-decisions"]
    assert "train-0" not in page.regions["cycle-decisions"]


def test_decisions_that_are_not_named_are_counted():
    assert "30 more decisions are not named" in text_of(page_of(*ENTRIES, cycle="42"))


def test_any_cycle_of_a_run_leads_to_the_run():
    assert page_of(*ENTRIES, cycle="17").title == "Cycle 1 to 40"


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"cycle": "99"}, "remembers cycles 1 to 60"),
        ({"cycle": "abc"}, "'abc' is no number of a cycle"),
        ({"cycle": "41", "leader": "5"}, "Another leader"),
    ],
)
def test_a_cycle_that_is_not_remembered_is_not_there(query: dict[str, str], message: str):
    with pytest.raises(NotThere, match=message):
        page_of(*ENTRIES, **query)


def test_a_leader_that_has_not_ended_a_cycle_says_so():
    assert "has not ended a cycle yet" in text_of(page_of())


# -- without the leader


def test_without_a_leader_the_page_says_why_and_shows_what_the_cluster_tells():
    request = view_request("/decisions", *CLUSTER)
    request.records.news += [
        News(NOW - 30, "started", "default/train", "queue research", group="default/train"),
        News(NOW - 20, "evicted", "default/train-0", "reclaim", 3, "default/train"),
        News(NOW - 10, "evicted", "default/train-9", "preempt", group="default/train"),
        News(NOW - 5, "completed", "default/gone", "queue research", group="default/gone"),
    ]
    page = rendered(decisions, request)
    text = text_of(page)
    assert "The leader does not tell of its cycles" in text
    assert "asked again every few seconds" in text
    assert "started default/train" in text
    assert "evicted default/train-9 of default/train" in text
    assert "completed default/gone" in text
    objects = [target for target in links_of(page) if not target.startswith("/decisions")]
    assert sorted(objects) == ["/podgroups/default/train"] * 2 + ["/pods/default/train-0"]


@pytest.mark.parametrize(
    ("refusal", "remedy"),
    [
        ('pods is forbidden: User "ann" cannot list resource "pods"', "stromboli-explain-cluster"),
        ("x leads and answers no questions: it runs without --enable-explain", "--enable-explain=true lets"),
    ],
)
def test_a_leader_that_does_not_tell_says_what_to_do(refusal: str, remedy: str):
    leader = TellingLeader(ENTRIES, refusal=refusal)
    text = text_of(leader.page(decisions, view_request("/decisions", query={"kind": "evictions"})))
    assert remedy in text
    assert "No start, end or eviction has been seen yet" in text


# -- hostile and large


def test_hostile_texts_are_shown_as_texts():
    long = HOSTILE * 500
    hostile = CycleDecision("bound", long, long, long, long, long, long, long, long, long)
    entries = [
        entry(1, parts={long: 1.0, **{f"{HOSTILE}{n}": 0.1 for n in range(500)}}, decisions=[hostile] * 300),
        entry(2, kind="lost", lost=LostCause(long, long, long)),
        entry(3, bound=1),
    ]
    for query in ({}, {"cycle": "1"}, {"cycle": "2"}, {"sort": HOSTILE, "page": HOSTILE}):
        page = html_of(page_of(*entries, **query))
        assert "<script" not in page
        assert len(page) < 1_000_000


def test_numbers_that_make_no_sense_are_shown():
    odd = CycleEntry(
        5, 1e300, last_number=5, last_time=-1e300, cycles=0, seconds=-1e300, bound=-5, parts={"open": -1.0}
    )
    assert "5" in rows_in(page_of(odd, entry(6)))
    assert page_of(odd, cycle="5").title == "Cycle 5"


def test_many_cycles_make_a_bounded_page_quickly():
    many = [
        entry(number, bound=number, decisions=DECISIONS, parts={**PARTS, "preempt": 0.001, "reclaim": 0.002})
        for number in range(1, 1001)
    ]
    leader = TellingLeader(many, since=SINCE)
    request = view_request("/decisions", *CLUSTER)

    async def story(viewers: Any) -> tuple[PageContent, float]:
        asking = replace(request, viewer=viewers[0])
        taken = []
        for _ in range(TIMES):
            begun = time.process_time()
            page = await decisions(asking)
            taken.append(time.process_time() - begun)
        return page, min(taken)

    page, seconds = leader.run(story)
    assert seconds < 0.5
    assert len(html_of(page)) < 400_000
    assert "Page 1 of 10" in text_of(page)


def test_a_run_that_decides_nothing_new_tells_of_the_pods_that_it_holds():
    page = page_of(entry(1, kind="idle", pipelined=10, waiting=1, pending=1))
    assert "nothing new, 10 pods held for nodes that are being freed" in text_of(page)
    assert "1 job waits for its queue, 1 has pods that wait for nodes" in re.sub(r" +", " ", text_of(page))
