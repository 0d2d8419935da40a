"""The page of a run: self-contained, safe with any names, small however large the run, right in a browser."""

from __future__ import annotations

import asyncio
import re
from html.parser import HTMLParser
from pathlib import Path
from random import Random

import numpy as np
import pytest

from stromboli.simulator.reports.page.chart_scales import amounts, clock, shares, slowdowns, waits
from stromboli.simulator.reports.page.markup import Markup, element
from stromboli.simulator.reports.page.node_lanes import lanes
from stromboli.simulator.reports.page.run_page import run_page, write_page
from stromboli.simulator.runs.run_record import EVICTED, EvictionRecord, JobRecord, PodRecord, RunRecord
from tests.chromium import browser
from tests.simulator.reports.run_records import busy_run, job, record_of

HOSTILE = "</title><script>alert(1)</script><img src=x onerror=alert(1)>\"'&\x1b[31m"
CHARTS = (
    "Utilisation over time",
    "Waiting and running jobs",
    "Waiting times",
    "Bounded slowdown",
    "Queues against what they deserve",
    "Users against what they deserve",
    "Waiting times by gang size",
    "Evictions and the work they lost",
    "Fragmentation over time",
    "Nodes over time",
)


def eventful_run() -> RunRecord:
    record = busy_run(
        150, settings={"backfill": "easy"}, measures={"gpu_allocation": 0.9, "fragmentation": 0.1}
    )
    for pod in record.pods[::40]:
        pod.outcome = EVICTED
        lost = pod.ended - pod.started
        record.evictions.append(EvictionRecord(pod.ended, pod.job, pod.pod, pod.node, lost, "preempt"))
    return record


class Page(HTMLParser):
    """Which elements and attributes a page has."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[str] = []
        self.attributes: set[tuple[str, str]] = set()
        self.depth = 0
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append(tag)
        self.attributes |= {(name, value or "") for name, value in attrs}
        self.depth += tag not in ("meta", "link")

    def handle_endtag(self, tag):
        self.depth -= 1


def test_the_page_shows_every_chart_with_a_title_and_a_description():
    text = run_page(eventful_run())
    assert [title for title in CHARTS if f'aria-label="{title}: ' not in text] == []
    assert text.count("<desc>") == len(CHARTS)
    assert ">easy<" in text
    assert ">90.0 %<" in text


def test_the_page_says_at_the_top_under_which_policy_it_ran():
    page = run_page(record_of(job("a", 0, 1, 2), settings={"policy": "built-in policy", "backfill": "easy"}))
    assert "<p>Policy: built-in policy. Backfill: easy.</p>" in page


def test_the_page_loads_nothing_and_runs_nothing():
    page = Page(run_page(eventful_run()))
    assert page.depth == 0
    assert not {"script", "img", "iframe", "object", "embed", "form", "a"} & set(page.elements)
    assert {value for name, value in page.attributes if name in ("src", "href", "xlink:href", "style")} == {
        "data:,"
    }
    assert "http:" not in (text := run_page(eventful_run()))
    assert "https:" not in text
    assert re.search(r"default-src 'none'; img-src data:; style-src 'sha256-[\w+/=]+'; base-uri 'none'", text)
    assert not [name for name, _ in page.attributes if name.startswith("on")]


def test_hostile_names_are_shown_and_do_nothing():
    capacity = {"cpu": 4.0, HOSTILE: 1.0}
    jobs = [
        JobRecord(HOSTILE, 0, 1, {"cpu": 1.0, HOSTILE: 1.0}, 0, 9, run_time=9, queue=HOSTILE, user=HOSTILE),
        JobRecord("b", 0, 1, {"cpu": 1.0}, 0, 9, run_time=9, queue="b", user="b"),
    ]
    record = RunRecord(
        HOSTILE, capacity, {HOSTILE: capacity}, jobs, [PodRecord(0, HOSTILE, HOSTILE, 0, 9, HOSTILE)],
        evictions=[EvictionRecord(3, 0, HOSTILE, HOSTILE, 3, HOSTILE, HOSTILE)], settings={HOSTILE: HOSTILE},
        end=9, notes=[HOSTILE],
    )  # fmt: skip
    text = run_page(record)
    page = Page(text)
    assert not {"script", "img"} & set(page.elements)
    assert page.depth == 0
    assert "\x1b" not in text
    assert "&lt;script&gt;" in text


@pytest.mark.parametrize(
    "record",
    [
        RunRecord("nothing", {}, {}, []),
        RunRecord("no jobs", {"cpu": 4}, {"n1": {"cpu": 4}}, []),
        record_of(job("waits", 0, None, None), end=10, partial=True),
        record_of(job("at once", 5, 5, 5), end=5),
        record_of(job("stays", 0, 0, None), end=100),
        record_of(job("no room", 3, None, None, dropped=True), end=3),
        record_of(job("huge", 0, 1e17, 1e18, cpu=1e18), end=1e18, cpu=1e-12),
        record_of(job("before", 50, 10, 5), end=5),
        busy_run(3, nodes=1),
    ],
    ids=lambda record: record.jobs[0].name if record.jobs else record.name,
)
def test_a_page_can_be_made_of_any_record(record):
    page = Page(run_page(record))
    assert page.depth == 0
    assert "nan" not in run_page(record).lower().replace("nano", "")


def test_the_page_of_a_large_run_stays_small():
    record = busy_run(2_000, nodes=1_000, cpus=8)
    jobs = len(record.jobs)
    record.pods = [
        PodRecord(pod.job % jobs, pod.pod, pod.node, pod.started, pod.ended)
        for _ in range(8)
        for pod in record.pods
    ]
    text = run_page(record)
    assert len(record.pods) > 90_000
    assert len(text) < 3 * 2**20
    assert "48 of 1,000 nodes" in text


def test_very_long_names_do_not_make_the_page_large():
    record = busy_run(400)
    for pod in record.pods:
        pod.pod = "x" * 5_000
    assert len(run_page(record)) < 2 * 2**20


def test_charts_without_content_are_left_out():
    text = run_page(record_of(job("a", 0, 0, None), job("b", 5, 5, None), end=100))
    titles = re.findall(r"<h2>(.*?)</h2>", text)
    assert titles == [
        *("Utilisation over time", "Waiting and running jobs", "Nodes over time"),
        *("All measures", "Settings"),
    ]
    assert ">Mean wait</dt><dd>0 s<" in text
    assert ">Mean bounded slowdown</dt>" not in text


def test_the_reasons_of_evictions_are_counted():
    assert "Most frequent reasons: preempt (" in run_page(eventful_run())


def test_pods_of_a_node_never_overlap():
    random = Random(4)
    pods = []
    for _ in range(300):
        start = random.uniform(0, 100)
        pods.append((start, start + random.expovariate(0.1), random.choice((0.05, 0.1, 0.25))))
    boxes = [(*pods[place][:2], low, high) for place, spans in lanes(pods, 50) for low, high in spans]
    for first in range(len(boxes)):
        a, b, low, high = boxes[first]
        for c, d, lower, higher in boxes[:first]:
            assert not (a < d - 1e-9 and c < b - 1e-9 and low < higher - 1e-6 and lower < high - 1e-6)
    heights = {place: sum(high - low for low, high in spans) for place, spans in lanes(pods, 50)}
    scale = heights[0] / pods[0][2]
    assert all(abs(heights[place] - pod[2] * scale) < 1e-6 for place, pod in enumerate(pods))


@pytest.mark.parametrize(
    "scale", [amounts(0), amounts(3), amounts(1234), shares(0.03), clock(0, 100), clock(5e6, 9e7)]
)
def test_ticks_are_few_and_lie_within_the_scale(scale):
    assert 2 <= len(scale.ticks) <= 10
    assert all(scale.low <= value <= scale.high * (1 + 1e-9) for value, _ in scale.ticks)


def test_the_ticks_of_a_time_axis_have_one_unit():
    assert [text for _, text in clock(0, 104).ticks] == ["0", *(f"{15 * i} s" for i in range(1, 7))]
    assert [text for _, text in clock(0, 40 * 3600).ticks] == [
        "0",
        "6 h",
        "12 h",
        "18 h",
        "24 h",
        "30 h",
        "36 h",
    ]


def test_logarithmic_scales_begin_with_what_cannot_be_less():
    assert [text for _, text in waits(7200).ticks] == ["0", "1 s", "10 s", "1 min", "10 min", "1 h"]
    assert [text for _, text in slowdowns(900).ticks] == ["1", "10", "100", "1,000"]
    assert waits(7200).place(np.array([0.0, 7200.0])).tolist() == [0, 1]


def test_content_and_attributes_are_escaped_once():
    assert element("p", "a<b", Markup("<i></i>"), title='"x"', class_=None) == (
        '<p title="&quot;x&quot;">a&lt;b<i></i></p>'
    )


@pytest.mark.programs("chromium")
def test_a_browser_shows_the_page_without_complaint_or_request(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    write_page(eventful_run(), page)

    async def look() -> None:
        async with browser(tmp_path / "profile") as tab:
            backgrounds = set()
            for width, dark in ((360, False), (1400, True)):
                await tab.open(page, width, 900, dark)
                assert await tab.value("document.documentElement.scrollWidth") <= width, (
                    "only charts scroll sideways"
                )
                boxes = await tab.value(
                    "[...document.querySelectorAll('svg')].map(s => s.getBoundingClientRect().height)"
                )
                assert len(boxes) == len(CHARTS)
                assert min(boxes) > 50
                marks = (
                    "[...document.querySelectorAll('svg')].map(s => [...s.querySelectorAll('path.line,rect')]"
                )
                drawn = await tab.value(marks + ".filter(m => m.getBBox().width > 0).length)")
                assert min(drawn) >= 1, "every chart has content"
                colour = "getComputedStyle(document.body).backgroundColor"
                backgrounds.add(await tab.value(colour))
                fills = "new Set([...document.querySelectorAll('rect.pod')].map(r => getComputedStyle(r).fill)).size"
                assert await tab.value(fills) == 3, "a colour for each queue"
            assert len(backgrounds) == 2, "light and dark"
            assert tab.complaints() == []
            assert {url for url in tab.requests() if not url.startswith("data:")} == {page.as_uri()}

    asyncio.run(look())
