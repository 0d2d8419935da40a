"""The benchmark works: both schedulers do their work on a small scale, and the tables say so."""

from __future__ import annotations

import pytest

from bench.kubernetes.report import as_json, report
from bench.kubernetes.run import QUICK, run
from bench.kubernetes.shapes import OURS, THEIRS, Shape
from bench.kubernetes.stream import stream

TINY = QUICK._replace(nodes=3, bursts=(Shape(2, 5),), standing_nodes=5, standing_pods=40, quiet=1.0)


@pytest.mark.usefixtures("built")
def test_both_schedulers_bind_everything_and_a_standing_cluster_stands() -> None:
    results = run(TINY, ["burst", "standing"])
    assert results.problems == []
    assert [(burst.scheduler, burst.bound) for burst in results.bursts] == [(THEIRS, 10), (OURS, 10)]
    assert all(burst.binds_per_second > 0 and burst.cpu[burst.scheduler] > 0 for burst in results.bursts)
    assert results.ratio(results.bursts[1]) is not None
    assert results.standing is not None
    assert results.standing.mib > 20
    assert "2x5" in report(results)
    assert '"schema": 1' in as_json(results)


@pytest.mark.usefixtures("built")
def test_pods_that_arrive_one_by_one_are_timed() -> None:
    result = stream(OURS, Shape(10, 1), nodes=3, rate=20.0, flags=("--schedule-period=100ms",))
    assert result.problem == ""
    assert result.bound == 10
    assert 0 < result.p50 <= result.p99 < 10
