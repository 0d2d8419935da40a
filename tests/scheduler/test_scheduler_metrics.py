"""Metrics: Volcano's names and labels, filled from cycles, and gone when their objects are."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Histogram, disable_created_metrics, generate_latest

from stromboli.engine.decisions import Bind, Evict
from stromboli.engine.plugin import QueueLimit
from stromboli.model.queue import Queue
from stromboli.scheduler.scheduler_metrics import SchedulerMetrics, StageHistogram
from stromboli.scheduler.writes.write_orders import WriteFailure, WriteOrder
from stromboli.testing import World
from tests.manifests import EPOCH, group, pod, policy, queue
from tests.number_of_examples import scaled

POLICY = """
actions: "enqueue, allocate"
tiers:
- plugins:
  - name: gang
  - name: drf
  - name: proportion
  - name: predicates
"""
VOLCANO = """\
e2e_scheduling_latency_milliseconds open_session_duration_milliseconds plugin_scheduling_latency_milliseconds
action_scheduling_latency_milliseconds task_scheduling_latency_milliseconds scheduling_stage_duration_milliseconds
e2e_job_scheduling_latency_milliseconds e2e_job_scheduling_duration e2e_job_scheduling_start_time
e2e_job_scheduling_last_time schedule_attempts_total pod_preemption_victims total_preemption_attempts
eviction_transactions_total unschedule_task_count unschedule_job_count job_retry_counts job_share
queue_allocated_milli_cpu queue_allocated_memory_bytes queue_allocated_scalar_resources
queue_request_milli_cpu queue_inqueue_memory_bytes queue_deserved_scalar_resources queue_capacity_milli_cpu
queue_real_capacity_milli_cpu queue_share queue_weight queue_overused
namespace_share namespace_weight namespace_weighted_share
queue_request_memory_bytes queue_request_scalar_resources queue_inqueue_milli_cpu queue_inqueue_scalar_resources
queue_deserved_milli_cpu queue_deserved_memory_bytes queue_capacity_memory_bytes queue_capacity_scalar_resources
queue_real_capacity_memory_bytes queue_real_capacity_scalar_resources
vgpu_device_shared_number vgpu_device_allocated_memory vgpu_device_allocated_cores vgpu_device_memory_limit
vgpu_device_memory_allocation_for_a_certain_pod vgpu_device_core_allocation_for_a_certain_pod
"""


class Story:
    def __init__(self, policy: str = POLICY, queues: str = "other") -> None:
        self.world = World("n1 cpu=2", queues, EPOCH + 100, policy=policy)
        self.now = self.world.rehearsal.now
        self.metrics = SchedulerMetrics(self.now)

    def cycle(self) -> str:
        self.metrics.cycle(self.world.step().outcome)
        return self.text

    @property
    def text(self) -> str:
        return self.metrics.text().decode()


def value(text: str, series: str) -> float:
    match = re.search(rf"^{re.escape(series)} (\S+)$", text, re.MULTILINE)
    assert match, f"no {series} in\n{text}"
    return float(match[1])


@pytest.mark.parametrize("name", VOLCANO.split())
def test_every_metric_of_volcanos_is_there_under_its_name(name: str) -> None:
    text = SchedulerMetrics().text().decode()
    assert re.search(rf"^# TYPE volcano_{name} ", text, re.MULTILINE), text


def test_a_gang_that_runs_and_one_that_waits() -> None:
    story = Story()
    story.world.add(group("runs", 2, created=0), *(pod(f"runs-{n}", "runs") for n in range(2)))
    story.world.add(group("waits", 3, created=0), *(pod(f"waits-{n}", "waits") for n in range(3)))
    text = story.cycle()
    assert value(text, 'volcano_unschedule_task_count{job_id="waits"}') == 3
    assert value(text, 'volcano_unschedule_task_count{job_id="runs"}') == 0
    assert value(text, "volcano_unschedule_job_count") == 1
    assert value(text, 'volcano_job_retry_counts{job_id="waits"}') == 1
    assert value(text, 'volcano_queue_allocated_milli_cpu{queue_name="default"}') == 2000
    assert value(text, 'volcano_queue_request_milli_cpu{queue_name="default"}') == 5000
    assert value(text, 'volcano_job_share{job_id="runs",job_ns="default"}') == 1.0
    assert value(text, 'stromboli_queue_pending_tasks{queue_name="default"}') == 3
    assert value(text, 'stromboli_queue_oldest_pending_seconds{queue_name="default"}') == 100
    assert value(text, 'stromboli_decisions_total{decision="Bind"}') == 2
    labels = '{job_name="runs",job_namespace="default",queue="default"}'
    assert value(text, f"volcano_e2e_job_scheduling_duration{labels}") == 100_000
    assert value(text, "volcano_e2e_scheduling_latency_milliseconds_count") == 1
    assert value(text, 'volcano_action_scheduling_latency_milliseconds_count{action="allocate"}') == 1
    assert value(text, 'volcano_schedule_attempts_total{result="scheduled"}') == 2
    for stage in ("Predicate", "Scoring"):
        assert value(text, f'volcano_scheduling_stage_duration_milliseconds_count{{stage="{stage}"}}') == 2
    series = 'volcano_plugin_scheduling_latency_milliseconds_count{OnSession="OnSessionOpen",plugin="gang"}'
    assert value(text, series) == 1


def test_a_task_that_fits_nowhere_is_an_attempt_too() -> None:
    story = Story()
    story.world.add(group("lost", 1), pod("lost-0", "lost", spec={"nodeSelector": {"no": "such"}}))
    assert value(story.cycle(), 'volcano_schedule_attempts_total{result="unschedulable"}') == 1


def test_series_of_what_is_gone_are_gone() -> None:
    story = Story()
    owner, member = group("runs", 1), pod("runs-0", "runs")
    story.world.add(owner, member)
    assert 'job_id="runs"' in story.cycle()
    story.world.remove(member)
    story.world.remove(owner)
    story.world.remove(queue("other"))
    text = story.cycle()
    assert "runs" not in text
    assert 'queue_name="other"' not in text
    assert 'queue_name="default"' in text


def test_series_without_a_namespace_stay_until_the_last_of_that_name_is_gone() -> None:
    story = Story()
    groups = [group("runs", 1, namespace=namespace) for namespace in ("one", "two")]
    story.world.add(*groups)
    story.cycle()
    story.world.remove(groups[0])
    text = story.cycle()
    assert 'volcano_unschedule_task_count{job_id="runs"}' in text
    assert 'job_ns="one"' not in text
    story.world.remove(groups[1])
    assert 'job_id="runs"' not in story.cycle()


def test_a_resource_that_a_queue_no_longer_holds_is_shown_as_zero() -> None:
    story = Story()
    amounts = story.metrics._queues._amounts["allocated"]
    amounts.set("q", {"cpu": 1.0, "nvidia.com/gpu": 2.0})
    amounts.set("q", {"cpu": 1.0})
    series = 'volcano_queue_allocated_scalar_resources{queue_name="q",resource="nvidia.com/gpu"}'
    assert value(story.text, series) == 0


def test_a_capability_that_was_taken_away_is_no_longer_shown() -> None:
    story = Story(queues="other capability=cpu:1")
    series = 'volcano_queue_capacity_milli_cpu{queue_name="other"}'
    assert value(story.cycle(), series) == 1000
    story.world.add(queue("other"))
    text = story.cycle()
    assert series not in text
    assert 'volcano_queue_share{queue_name="other"}' in text


def test_what_became_of_decisions() -> None:
    story = Story()
    bind = Bind("ns", "p", "u", "n1", "ns/j")
    story.metrics.prebound(WriteOrder(bind, created=story.now() - 1), 0.5)
    story.metrics.written(WriteOrder(bind, created=story.now() - 2), 0.01)
    story.metrics.write_failed(WriteFailure(Evict("ns", "p", "u", "n1", "ns/j", "preempt"), "no"))
    story.metrics.write_failed(WriteFailure(bind, "no"))
    story.metrics.pod_arrived(story.now() - 3)
    story.metrics.request_sent("10.0.0.1:6443", "POST", "409")
    text = story.text
    assert value(text, 'volcano_task_scheduling_latency_milliseconds_sum{stage="Watched"}') == 3000
    assert value(text, 'volcano_schedule_attempts_total{result="error"}') == 1
    assert value(text, 'rest_client_requests_total{code="409",host="10.0.0.1:6443",method="POST"}') == 1
    assert value(text, 'volcano_task_scheduling_latency_milliseconds_sum{stage="Bound"}') == pytest.approx(
        2000
    )
    assert value(text, 'volcano_scheduling_stage_duration_milliseconds_count{stage="Bind"}') == 1
    assert value(text, 'volcano_scheduling_stage_duration_milliseconds_sum{stage="PreBind"}') == 500
    assert value(text, 'volcano_task_scheduling_latency_milliseconds_sum{stage="PreBound"}') == 1000
    assert value(text, 'stromboli_write_failures_total{decision="Evict"}') == 1


def test_an_amount_without_limit_is_shown_as_infinite() -> None:
    tree = POLICY.replace("- name: proportion", "- name: capacity\n    enableHierarchy: true")
    story = Story(tree, "eng capability=cpu:6; web parent=eng deserved=cpu:3")
    story.world.add(group("runs", 1, created=0, queue="web"), pod("runs-0", "runs"))
    text = story.cycle()
    assert value(text, 'volcano_queue_real_capacity_milli_cpu{queue_name="default"}') == float("inf")
    assert value(text, 'volcano_queue_allocated_milli_cpu{queue_name="web"}') == 1000
    assert "telemetry_failures_total{" not in text


AMOUNTS = st.one_of(st.floats(), st.integers(), st.just(10**400), st.just(float("nan")), st.none())


@settings(max_examples=scaled(25), deadline=None)
@given(st.dictionaries(st.integers(-1, 3), AMOUNTS, max_size=4), AMOUNTS, st.text())
def test_whatever_a_plugin_says_of_a_queue_the_others_are_shown(
    most: dict[int, float], created: float, name: str
) -> None:
    story = Story()
    story.world.add(group("runs", 1, created=0), pod("runs-0", "runs"))
    outcome = story.world.step().outcome
    session = outcome.session
    odd = session.cluster.queues["other"]
    session.rules.queue_limits = lambda queue: (
        [QueueLimit(queue, "limit", most, {}, name)] if queue is odd else []
    )
    story.metrics.cycle(outcome)
    story.metrics.pod_arrived(created)
    story.metrics.request_sent(name, name, name)
    story.metrics.written(WriteOrder(Bind("ns", name, "u", "n1", "ns/j"), created=created), created)
    text = story.text
    assert value(text, 'volcano_queue_allocated_milli_cpu{queue_name="default"}') == 1000
    assert value(text, 'volcano_unschedule_task_count{job_id="runs"}') == 0


def test_a_job_that_is_not_let_in_counts_although_it_has_no_pods_yet() -> None:
    story = Story()
    podless = group("podless", 3, created=0)
    podless["spec"]["minResources"] = {"cpu": "3"}
    story.world.add({**podless, "status": {"phase": "Pending"}})
    text = story.cycle()
    assert value(text, 'stromboli_queue_pending_jobs{queue_name="default"}') == 1
    assert value(text, 'stromboli_queue_pending_tasks{queue_name="default"}') == 0
    assert value(text, 'stromboli_queue_oldest_pending_seconds{queue_name="default"}') == 100


@pytest.mark.parametrize(("ago", "counted"), [(299, 1), (300, 0)])
def test_evictions_of_pods_that_started_within_five_minutes_are_counted(ago: int, counted: int) -> None:
    story = Story(policy("enqueue, allocate, preempt", "priority conformance"))
    started = datetime.fromtimestamp(story.now() - ago, UTC).isoformat()
    story.world.job("old", pods=0, minimum=0, priority=1)
    story.world.add(pod("old-0", "old", cpu=2, on="n1", status={"startTime": started}))
    story.world.job("new", cpu=2, priority=9)
    assert value(story.cycle(), 'stromboli_young_evictions_total{action="preempt"}') == counted


def test_evictions_of_young_pods_count_from_zero_so_that_alerts_see_the_first() -> None:
    text = Story(policy("enqueue, allocate, preempt, reclaim", "priority conformance")).cycle()
    assert value(text, 'stromboli_young_evictions_total{action="preempt"}') == 0
    assert value(text, 'stromboli_young_evictions_total{action="reclaim"}') == 0


def test_a_plugin_that_fails_when_the_metrics_ask_it_is_counted() -> None:
    story = Story()
    outcome = story.world.step().outcome

    def fail(queue: Queue) -> list[QueueLimit]:
        raise RuntimeError("not now")

    outcome.session.rules.queue_limits = fail
    story.metrics.cycle(outcome)
    assert value(story.text, 'stromboli_telemetry_failures_total{part="queue metrics"}') == 3
    assert value(story.text, 'stromboli_queue_pending_jobs{queue_name="other"}') == 0


def test_every_metric_is_documented() -> None:
    page = (Path(__file__).parents[2] / "docs" / "scheduler.md").read_text()
    families = {
        family.name
        for family in SchedulerMetrics().registry.collect()
        if not family.name.startswith("process_")
    }
    named = {name.removesuffix("_total") for name in re.findall(r"[a-z0-9_]{5,}", page)}
    for family in families:
        assert family.removeprefix("volcano_") in named or family in named, family


# -- durations by stage, taken in many at a time


BUCKETS = (0.5, 10.0, 500.0)


@given(st.lists(st.lists(st.integers(0, 1000).map(float), max_size=20), max_size=3))
def test_a_stage_histogram_is_shown_like_one_of_the_librarys(batches: list[list[float]]) -> None:
    disable_created_metrics()  # type: ignore[no-untyped-call]
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    stages = StageHistogram("stage_ms", "Stages", BUCKETS, ours)
    library = Histogram("stage_ms", "Stages", ("stage",), registry=theirs, buckets=BUCKETS)
    for batch in batches:
        stages.observe("Scoring", *batch)
        for duration in batch:
            library.labels("Scoring").observe(duration)
    assert generate_latest(ours) == generate_latest(theirs)
