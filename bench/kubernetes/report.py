"""The results as tables or as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from msgspec import json

from bench import jobs
from bench.kubernetes import reach
from bench.kubernetes.burst import BIND, Burst
from bench.kubernetes.medians import median_of
from bench.kubernetes.run import Results
from bench.kubernetes.shapes import BARE, OURS, THEIRS
from bench.kubernetes.stream import Stream
from bench.run import machine, table

_BURSTS = "All pods are there, then the scheduler is started; client limits are lifted for all"
_STREAMS = (
    "Pods arrive evenly while the scheduler runs; seconds from the create request to the answer of the bind,\n"
    "and of a gang from the create request of its last pod to the answer of its last bind"
)
_STANDING = "A standing cluster in which nothing is to be decided; nodes report every five minutes"
_REACH = "What we want to reach"
_SERVERS = ("kube-apiserver", "etcd")
Measured = TypeVar("Measured", Burst, Stream)


def report(results: Results, markdown: bool = False) -> str:
    """The tables."""
    sizes = results.sizes
    parts = [
        machine(),
        f"{sizes.nodes:,} nodes; medians of all runs; no chance is involved, so there is no seed",
    ]
    if results.bursts:
        parts += ["", _BURSTS, "", *table(list(_burst_rows(results)), markdown)]
    if results.streams:
        parts += ["", _STREAMS, "", *table(list(_stream_rows(results)), markdown)]
    if results.jobs:
        parts += ["", jobs.report(results.jobs, markdown)]
    if results.standing:
        parts += ["", _STANDING, "", *table(_standing_rows(results), markdown)]
    if rows := reach.rows(results):
        parts += ["", _REACH, "", *table(list(_reach_rows(rows)), markdown)]
    return "\n".join([*parts, *(f"PROBLEM: {problem}" for problem in results.problems)])


def _medians(measured: Sequence[Measured]) -> Iterator[tuple[Measured, int]]:
    """One for each shape and scheduler, and of how many runs."""
    runs: dict[tuple[str, str], list[Measured]] = {}
    for each in measured:
        runs.setdefault((each.shape, each.scheduler), []).append(each)
    return ((median_of(same), len(same)) for same in runs.values())


def _burst_rows(results: Results) -> Iterator[list[str]]:
    yield [
        *("shape", "scheduler", "runs", "binds/s", "ratio", "of bare", "cpu ratio", "apiserver ratio"),
        *("first bind", "last bind", "settled", "cpu own", "cpu apiserver", "cpu etcd", "own ms/bind"),
        *("all ms/bind", "MiB", "binds", "events", "other writes"),
    ]
    for burst, runs in _medians(results.bursts):
        yield [
            burst.shape,
            burst.scheduler,
            str(runs),
            f"{burst.binds_per_second:,.0f}",
            *_ratios(results, burst),
            f"{burst.first:.2f}",
            f"{burst.last:.1f}",
            f"{burst.settled:.1f}",
            *_costs(burst),
            f"{burst.cpu_binding[burst.scheduler] / burst.pods * 1000:.2f}",
            f"{sum(burst.cpu_binding.values()) / burst.pods * 1000:.2f}",
            f"{burst.mib:.0f}",
            *_writes(burst),
        ]


def _ratios(results: Results, burst: Burst) -> list[str]:
    """Of ours to the others', run by run: how much faster, how much cheaper, what it costs the API server."""
    if burst.scheduler != OURS:
        return [""] * 4
    binding = results.burst_ratio(burst.shape, THEIRS, lambda run: sum(run.cpu_binding.values()))
    return [
        _times(results.burst_ratio(burst.shape, THEIRS, lambda run: run.binds_per_second)),
        _digits(results.burst_ratio(burst.shape, BARE, lambda run: run.binds_per_second)),
        _times(1 / binding if binding else None),
        _times(results.burst_ratio(burst.shape, THEIRS, lambda run: run.cpu["kube-apiserver"])),
    ]


def _times(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.1f}x"


def _digits(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.2f}"


def _costs(measured: Burst | Stream) -> list[str]:
    """Of the scheduler with what it needs, of the API server, of etcd."""
    own = sum(seconds for name, seconds in measured.cpu.items() if name not in _SERVERS)
    return [f"{seconds:.1f}" for seconds in (own, *(measured.cpu[name] for name in _SERVERS))]


def _writes(burst: Burst) -> list[str]:
    binds, events = (
        burst.writes.get(BIND, 0),
        sum(burst.writes.get(f"{verb} events", 0) for verb in ("create", "patch")),
    )
    return [f"{count:,.0f}" for count in (binds, events, sum(burst.writes.values()) - binds - events)]


def _stream_rows(results: Results) -> Iterator[list[str]]:
    yield [
        *("shape", "scheduler", "runs", "pods/s", "P50", "P99", "gang P50", "gang P99"),
        *("cpu own", "cpu apiserver", "cpu etcd", "over seconds"),
    ]
    for stream, runs in _medians(results.streams):
        times = (stream.p50, stream.p99, stream.gang_p50, stream.gang_p99)
        yield [
            stream.shape,
            stream.scheduler,
            str(runs),
            f"{stream.rate:g}",
            *(f"{seconds:.3f}" for seconds in times),
            *_costs(stream),
            f"{stream.seconds:.0f}",
        ]


def _standing_rows(results: Results) -> list[list[str]]:
    standing = results.standing
    assert standing is not None
    return [
        ["nodes", "pods", "ready after", "MiB", "peak MiB", "cpu"],
        [
            f"{standing.nodes:,}",
            f"{standing.pods:,}",
            f"{standing.ready:.1f}",
            f"{standing.mib:.0f}",
            f"{standing.peak_mib:.0f}",
            f"{standing.cores:.2%} of a core",
        ],
    ]


def _reach_rows(rows: Sequence[reach.Row]) -> Iterator[list[str]]:
    yield ["what", "figure", "reach", ""]
    for row in rows:
        bound = "at most" if row.at_most else "at least"
        yield [
            row.what,
            f"{row.figure:.3g} {row.unit}".strip(),
            f"{bound} {row.reach:g} {row.unit}".strip(),
            "yes" if row.reached else "MISSED",
        ]


def as_json(results: Results) -> str:
    rows = [{**row._asdict(), "reached": row.reached} for row in reach.rows(results)]
    whole = {"schema": 2, "machine": machine(), "reach": rows, "results": results}
    return json.format(json.encode(whole), indent=1).decode()
