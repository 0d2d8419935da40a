"""The overview: numbers that lead to their objects, and charts of the time that was watched."""

from __future__ import annotations

from stromboli.cli.dashboard.pages.overview_page import overview
from stromboli.cli.dashboard.pages.page_content import ViewRequest
from stromboli.cli.dashboard.pages.usage_charts import latest_rate, rates
from stromboli.cli.live.usage_samples import LONG_STEP, RECENT_SPAN, RECENT_STEP, UsageHistory, UsageSample
from stromboli.simulator.cluster_notation import nodes, queues
from stromboli.simulator.job_manifests import job_manifests
from tests.cli.dashboard.view_requests import NOW, links_of, rendered, text_of, view_request

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


def test_every_number_leads_to_its_objects() -> None:
    page = rendered(overview, view_request("/", *CLUSTER))
    links = links_of(page)
    for target in ("/nodes?sort=state", "/nodes?resource=cpu", "/nodes?resource=gpu", "/jobs?waiting=1"):
        assert target in links
    text = text_of(page)
    assert "CPU in use 75 % 12 of 16" in text
    assert "Jobs waiting 1" in text


def test_charts_come_once_there_is_something_to_draw() -> None:
    request = view_request("/", *CLUSTER)
    assert "once the cluster has been watched for a while" in text_of(rendered(overview, request))
    watched(request, 600)
    page = rendered(overview, request)
    assert page.regions["charts"].count("<svg") == 3
    assert "Utilisation: now CPU 75 %, Memory 0 %, GPU 0 %" in page.regions["charts"]


def test_a_day_is_drawn_from_fewer_samples() -> None:
    request = view_request("/", *CLUSTER, query={"span": "24h"})
    history = watched(request, 3 * RECENT_SPAN)
    assert len(history.samples(RECENT_SPAN)) == RECENT_SPAN / RECENT_STEP
    assert len(history.samples(24 * RECENT_SPAN)) == 3 * RECENT_SPAN / LONG_STEP + 1
    assert rendered(overview, request).regions["charts"].count("<svg") == 3


def test_starts_are_counted_by_the_minute() -> None:
    samples = [sample(0.0, 0), sample(10.0, 5), sample(20.0, 5)]
    assert rates(samples, [each.pod_starts for each in samples]) == [30.0, 30.0, 0.0]
    assert latest_rate(samples, [each.pod_starts for each in samples]) == 15.0
    assert rates(samples[:1], [0]) == [0.0]
    assert latest_rate([], []) == 0.0


def test_what_waits_is_told_by_cause() -> None:
    assert "What waits, and why" in text_of(rendered(overview, view_request("/", *CLUSTER)))
