"""Samples of what a cluster uses: evenly spaced, of the last hour and day, and bounded."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.api.decoding import decode
from stromboli.cli.live.cluster_content import ClusterContent
from stromboli.cli.live.cluster_records import ClusterRecords
from stromboli.cli.live.usage_samples import LONG_SPAN, LONG_STEP, RECENT_SPAN, RECENT_STEP, UsageHistory
from stromboli.simulator.cluster_notation import nodes
from stromboli.simulator.job_manifests import job_manifests

START = 1_800_000_000.0
HOUR, DAY = 3600.0, 24 * 3600.0


def content_of(*manifests: dict[str, object]) -> ClusterContent:
    records = ClusterRecords()
    for manifest in manifests:
        object = decode(manifest)
        assert object is not None
        records.put(object, new=True)
    return ClusterContent(records, None, None)


EMPTY = content_of()


def history_of(*moments: float) -> UsageHistory:
    history = UsageHistory()
    for moment in moments:
        history.add(EMPTY, START + moment)
    return history


def test_a_sample_has_the_part_of_each_resource_that_pods_have() -> None:
    content = content_of(
        *nodes("n1 cpu=8,memory=16Gi; g1 cpu=8,memory=16Gi,nvidia.com/gpu=8"),
        *job_manifests("run", pods=2, cpu=2, memory="4Gi", gpu=2, running_on="g1 g1"),
        *job_manifests("wait", pods=3, cpu=2),
    )
    content.records.pod_starts, content.records.evictions = 7, 3
    history = UsageHistory()
    history.add(content, START)
    (sample,) = history.samples(HOUR)
    assert sample.used == {"cpu": 0.25, "memory": pytest.approx(0.25, abs=0.05), "gpu": 0.5}
    assert list(sample.used) == ["cpu", "memory", "gpu"]
    assert (sample.running_jobs, sample.waiting_jobs) == (1, 1)
    assert (sample.running_pods, sample.waiting_pods) == (2, 3)
    assert (sample.pod_starts, sample.evictions) == (7, 3)


def test_a_cluster_without_nodes_has_nothing_to_use() -> None:
    (sample,) = history_of(0).samples(HOUR)
    assert sample.used == {}
    assert UsageHistory().samples(HOUR) == []


def test_samples_are_taken_when_one_is_due() -> None:
    history = history_of(0, 1, RECENT_STEP - 0.1, RECENT_STEP, RECENT_STEP + 1, 3 * RECENT_STEP)
    assert [sample.time - START for sample in history.samples(HOUR)] == [0, RECENT_STEP, 3 * RECENT_STEP]


def test_an_hour_is_kept_in_full_and_a_day_in_part() -> None:
    history = history_of(*(second * RECENT_STEP for second in range(int(2 * DAY / RECENT_STEP))))
    recent, long = history.samples(HOUR), history.samples(DAY)
    assert len(recent) == RECENT_SPAN / RECENT_STEP
    assert {later.time - earlier.time for earlier, later in pairwise(recent)} == {RECENT_STEP}
    assert len(long) <= LONG_SPAN / LONG_STEP + 1
    assert long[-1].time - long[0].time >= DAY - 2 * LONG_STEP
    assert long[-1] is recent[-1], "the latest is there at any span"
    assert [sample.time for sample in history.samples(600)] == [sample.time for sample in recent[-60:]]


@given(
    st.lists(st.floats(0, 400), min_size=1, max_size=300), st.sampled_from([60.0, 600.0, HOUR, 6 * HOUR, DAY])
)
def test_samples_of_a_span_are_in_order_and_within_it(pauses: list[float], span: float) -> None:
    history, now = UsageHistory(), START
    for pause in pauses:
        now += pause
        history.add(EMPTY, now)
    times = [sample.time for sample in history.samples(span)]
    assert times
    assert times == sorted(set(times))
    assert times[0] > times[-1] - span
    assert now - times[-1] < RECENT_STEP
