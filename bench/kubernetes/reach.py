"""What we want to reach on a real API server, and how far the measurements are from it."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import NamedTuple

from bench import jobs
from bench.kubernetes.burst import Burst
from bench.kubernetes.medians import median_of
from bench.kubernetes.run import FULL, Results
from bench.kubernetes.shapes import BARE, OURS, THEIRS
from bench.kubernetes.standing import MAX_CORES, MAX_MIB

TIMES_FASTER = 4.0
"""Our binds a second over kube-scheduler's."""
SHARE_OF_BARE = 0.85
"""Our binds a second over those of the bare binder."""
API_SERVER_COST = 1.6
"""The API server's processor time up to the last write, over that with kube-scheduler, for single pods."""
FIRST_BIND = 1.5
STREAM_P50, STREAM_P99, GANG_P50 = 0.030, 0.200, 0.060


class Row(NamedTuple):
    """One figure and its bound."""

    what: str
    figure: float
    reach: float
    unit: str
    at_most: bool = False
    """Whether less is better."""

    @property
    def reached(self) -> bool:
        return self.figure <= self.reach if self.at_most else self.figure >= self.reach


def rows(results: Results) -> list[Row]:
    """All of which there are measurements; none for small sizes, which prove nothing."""
    if results.sizes.nodes != FULL.nodes:
        return []
    return [*_stream_rows(results), *_burst_rows(results), *_other_rows(results)]


def _stream_rows(results: Results) -> Iterator[Row]:
    for shape in results.sizes.arriving:
        runs = results.streams_of(OURS, shape.name)
        if not runs:
            continue
        stream, rate = median_of(runs), results.sizes.rate
        if shape.size == 1:
            title = f"{rate:g} single pods/s, created to bound"
            yield Row(f"{title}, P50", stream.p50, STREAM_P50, "s", at_most=True)
            yield Row(f"{title}, P99", stream.p99, STREAM_P99, "s", at_most=True)
        else:
            title = f"gangs of {shape.size} at {rate:g} pods/s, last pod created to all bound, P50"
            yield Row(title, stream.gang_p50, GANG_P50, "s", at_most=True)


def _burst_rows(results: Results) -> Iterator[Row]:
    for shape in results.sizes.bursts:
        name = shape.name
        if (ratio := results.burst_ratio(name, THEIRS, _speed)) is not None:
            yield Row(f"burst {name}, binds/s over kube-scheduler's", ratio, TIMES_FASTER, "x")
        if shape.size > 1 and (ratio := results.burst_ratio(name, BARE, _speed)) is not None:
            yield Row(f"burst {name}, binds/s over the bare binder's", ratio, SHARE_OF_BARE, "")
        if shape.size == 1 and (ratio := results.burst_ratio(name, THEIRS, _api_server)) is not None:
            title = f"burst {name}, processor time of the API server over that with kube-scheduler"
            yield Row(title, ratio, API_SERVER_COST, "x", at_most=True)
        if runs := results.bursts_of(OURS, name):
            first = median(burst.first for burst in runs)
            yield Row(f"burst {name}, start to first bind", first, FIRST_BIND, "s", at_most=True)


def _other_rows(results: Results) -> Iterator[Row]:
    if results.jobs:
        title = f"{results.sizes.jobs:,} jobs of {jobs.EACH} pods, share of the rate of bare pods"
        yield Row(title, median(arrival.share for arrival in results.jobs), jobs.TARGET, "")
    if standing := results.standing:
        title = f"{standing.nodes:,} nodes, {standing.pods:,} pods, quiet"
        yield Row(f"{title}, memory at most", standing.peak_mib, MAX_MIB, "MiB", at_most=True)
        yield Row(f"{title}, share of a core", standing.cores, MAX_CORES, "", at_most=True)


def _speed(burst: Burst) -> float:
    return burst.binds_per_second


def _api_server(burst: Burst) -> float:
    return burst.cpu["kube-apiserver"]
