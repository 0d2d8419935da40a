"""The overview: numbers that lead to their objects, and charts of the time that was watched."""

from __future__ import annotations

import re

import pytest

from stromboli.api.decoding import decode
from stromboli.cli.dashboard.pages.overview_page import overview
from stromboli.cli.dashboard.pages.page_content import PageContent, ViewRequest
from stromboli.cli.dashboard.pages.usage_charts import (
    MOST_POINTS,
    latest_rate,
    rates,
    thinned,
    time_until_now,
)
from stromboli.cli.live.cluster_records import PODS, Event, InvolvedObject
from stromboli.cli.live.usage_samples import (
    LONG_SPAN,
    LONG_STEP,
    RECENT_SPAN,
    RECENT_STEP,
    UsageHistory,
    UsageSample,
)
from stromboli.cli.live.visible_records import Visibility
from stromboli.simulator.cluster_notation import nodes, queues
from stromboli.simulator.job_manifests import job_manifests
from tests.cli.dashboard.number_links import assert_numbers_lead_to_as_many
from tests.cli.dashboard.pages.test_job_list_page import Manifest, owned, volcano_job
from tests.cli.dashboard.view_requests import NOW, links_of, rendered, text_of, view_request
from tests.manifests import group

CLUSTER = (
    *nodes("n1 cpu=8,memory=32Gi; n2 cpu=8,memory=32Gi,nvidia.com/gpu=4"),
    *queues("research; production"),
    *job_manifests("train", queue="research", pods=3, cpu=4, running_on="n1 n1 n2"),
    *job_manifests("serve", queue="production", pods=2, cpu=4),
)


def watched(request: ViewRequest, seconds: float, step: float = RECENT_STEP) -> UsageHistory:
    """With samples of so much time up to now."""
    history = request.view.history
    count = int(seconds / step)
    for number in range(count + 1):
        request.records.pod_starts += 2
        history.add(request.content, NOW - step * (count - number))
    return history


def sample(time: float, starts: int) -> UsageSample:
    return UsageSample(time, {"cpu": 0.5}, 1, 2, 3, 4, starts, 0)


def elastic_job() -> list[Manifest]:
    """It runs, and two of its pods wait; its Job says that it is pending still."""
    gang, *pods = job_manifests("grow", queue="research", pods=3, minimum=1, cpu=1, running_on="n2")
    return [owned(gang, "grow"), *pods, volcano_job("grow", phase="Pending")]


def ready(manifest: Manifest, status: str) -> Manifest:
    manifest["status"]["conditions"] = [{"type": "Ready", "status": status}]
    return manifest


def test_every_number_leads_to_as_many_objects() -> None:
    broken, drained, lost = nodes("n3 cpu=8; n4 cpu=8; n5 cpu=8")
    drained["spec"]["unschedulable"] = lost["spec"]["unschedulable"] = True
    request = view_request(
        "/", *CLUSTER, *elastic_job(), ready(broken, "False"), ready(drained, "True"), ready(lost, "False")
    )
    page = rendered(overview, request)
    compared = assert_numbers_lead_to_as_many(request, page)
    assert dict(compared).keys() >= {
        "/nodes?state=NotReady",
        "/nodes?state=SchedulingDisabled",
        "/jobs?scheduling=Running",
        "/jobs?waiting=1",
        "/jobs?pending=1",
        "/jobs?queue=research&scheduling=Running",
        "/jobs?queue=production&waiting=1",
    }
    text = text_of(page)
    assert "Nodes not ready 2 Nodes cordoned 2" in text
    assert "Pods waiting 4" in text
    assert "CPU in use 32 % 13 of 40" in text


def test_nodes_that_are_only_cordoned_do_not_count_as_not_ready() -> None:
    (drained,) = nodes("n3 cpu=8")
    drained["spec"]["unschedulable"] = True
    text = text_of(rendered(overview, view_request("/", ready(drained, "True"))))
    assert "Nodes cordoned 1" in text
    assert "not ready" not in text


def test_who_may_not_list_pods_is_not_told_that_nothing_is_in_use() -> None:
    blind = Visibility({"pods": frozenset()})
    text = text_of(rendered(overview, view_request("/", *CLUSTER, visibility=blind)))
    assert "CPU in use ? not known of 16" in text


def evicted(pod: str) -> Event:
    (node,) = nodes("any cpu=1")
    metadata = decode({**node, "metadata": {"name": pod, "namespace": "default"}}).metadata
    return Event(metadata, InvolvedObject("Pod", "default", pod), "Evict", f"reclaim of {pod}")


def test_an_eviction_leads_to_the_pod_or_to_its_job_once_that_is_gone() -> None:
    request = view_request("/", *CLUSTER)
    for pod in ("train-0", "gone-0"):
        request.records.put(evicted(pod), new=True)
    news = PageContent("", {"news": rendered(overview, request).regions["news"]})
    assert links_of(news) == ["/pods/default/train-0"]
    assert "default/gone-0" in text_of(news)
    request.records.set_record(PODS, "default/train-0", None)
    news = PageContent("", {"news": rendered(overview, request).regions["news"]})
    assert links_of(news) == ["/podgroups/default/train"]


def test_rates_lead_to_the_cycles_behind_them() -> None:
    request = view_request("/", *CLUSTER)
    watched(request, 600)
    links = links_of(rendered(overview, request))
    assert "/decisions?kind=starts" in links
    request.records.evictions += 100
    request.view.history.add(request.content, NOW + RECENT_STEP)
    assert "/decisions?kind=evictions" in links_of(rendered(overview, request))


def test_charts_come_once_there_is_something_to_draw() -> None:
    request = view_request("/", *CLUSTER)
    assert "once the cluster has been watched for a while" in text_of(rendered(overview, request))
    watched(request, 600)
    page = rendered(overview, request)
    assert page.regions["charts"].count("<svg") == 3
    assert "Utilisation: now CPU 75 %, Memory 0 %, GPU 0 %" in page.regions["charts"]


def test_a_day_is_drawn_in_full_from_fewer_samples() -> None:
    request = view_request("/", *CLUSTER, query={"span": "24h"})
    history = watched(request, LONG_SPAN, LONG_STEP)
    samples = history.samples(LONG_SPAN)
    assert len(samples) == LONG_SPAN / LONG_STEP > MOST_POINTS
    kept = thinned(samples)
    assert len(kept) <= MOST_POINTS
    assert kept[-1] is samples[-1]
    assert kept[-1].time - kept[0].time >= LONG_SPAN - 2 * LONG_STEP
    charts = rendered(overview, request).regions["charts"]
    hour = view_request("/", *CLUSTER)
    watched(hour, RECENT_SPAN)
    for day, full in zip(_lines(charts), _lines(rendered(overview, hour).regions["charts"]), strict=True):
        assert day[0] == pytest.approx(full[0], abs=2.0), "it begins where a full hour does"
        assert day[-1] == full[-1]
        assert len(day) <= MOST_POINTS


def _lines(charts: str) -> list[list[float]]:
    """Where the points of each line are, from left to right."""
    paths = re.findall(r'<path d="M([^"VZ]*)" class="line', charts)
    assert len(paths) == 7
    return [[float(point.split()[0]) for point in path.split("L")] for path in paths]


def test_starts_are_counted_by_the_minute() -> None:
    samples = [sample(0.0, 0), sample(10.0, 5), sample(20.0, 5)]
    assert rates(samples, [each.pod_starts for each in samples]) == [30.0, 30.0, 0.0]
    assert latest_rate(samples, [each.pod_starts for each in samples]) == 15.0
    assert rates(samples[:1], [0]) == [0.0]
    assert latest_rate([], []) == 0.0


def test_times_of_charts_end_now_with_few_ticks() -> None:
    assert time_until_now(3600.0, 4).ticks == [
        (-3600.0, "-60 min"),
        (-2400.0, "-40 min"),
        (-1200.0, "-20 min"),
        (0.0, "now"),
    ]


def test_what_waits_is_told_by_cause() -> None:
    waiting = rendered(overview, view_request("/", *CLUSTER)).regions["waiting"]
    text = text_of(PageContent("", {"waiting": waiting}))
    assert "not admitted to queue production yet 1 2 8 CPU" in text


def test_the_pods_of_a_gang_that_is_not_let_in_are_to_come() -> None:
    gang = group("big", 30, phase="Pending", queue="research", minResources={"nvidia.com/gpu": "240"})
    request = view_request("/", *CLUSTER, gang)
    page = rendered(overview, request)
    assert re.search(r"Pods waiting\s+2\s+30 to come", text_of(page))
    assert "asks for 240 GPU" in text_of(page)
    assert_numbers_lead_to_as_many(request, page)


def test_charts_of_what_may_not_be_listed_name_the_missing_right() -> None:
    request = view_request("/", *CLUSTER, visibility=Visibility({}, frozenset({"nodes"})))
    watched(request, 600)
    page = rendered(overview, request)
    assert "There is no chart, as you may not list nodes." in text_of(page)
    assert page.regions["charts"].count("<svg") == 2
