"""The benchmark works: all schedulers do their work on a small scale, in turn on one control plane."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.kubernetes.bench_cluster import BenchCluster
from bench.kubernetes.burst import burst
from bench.kubernetes.report import as_json, report
from bench.kubernetes.run import QUICK, Results
from bench.kubernetes.shapes import BARE, OURS, THEIRS, Shape
from bench.kubernetes.standing import standing
from bench.kubernetes.stream import stream

pytestmark = [pytest.mark.real_only, pytest.mark.usefixtures("built")]


def test_every_scheduler_binds_everything_and_the_tables_say_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.kubernetes.bench_cluster.SETTLED_AFTER", 0.5)
    results = Results(QUICK)
    with BenchCluster(tmp_path) as cluster:
        for scheduler in (THEIRS, BARE, OURS):
            shape = Shape(2, 5, prefix=scheduler.replace(" ", "-"))
            results.bursts.append(burst(cluster, scheduler, shape, nodes=3))
        results.streams.append(stream(cluster, OURS, Shape(3, 2, "arriving"), nodes=3, rate=20.0))
        results.standing = standing(cluster, nodes=3, pods=20, seconds=0.5)
    assert results.problems == []
    assert [(burst.scheduler, burst.bound) for burst in results.bursts] == [
        (THEIRS, 10),
        (BARE, 10),
        (OURS, 10),
    ]
    assert all(burst.binds_per_second > 0 and sum(burst.cpu.values()) > 0 for burst in results.bursts)
    assert results.burst_ratio("2x5", BARE, lambda burst: burst.binds_per_second) is not None
    assert results.streams[0].bound == 6
    assert 0 < results.streams[0].gang_p50 <= results.streams[0].p99 < 30
    assert results.standing.mib > 20
    assert "2x5" in report(results)
    assert '"schema": 2' in as_json(results)
