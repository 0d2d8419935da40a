"""The results as tables or as JSON."""

from __future__ import annotations

from msgspec import json

from bench.kubernetes.burst import BIND, Burst
from bench.kubernetes.run import FULL, Results, wanted
from bench.kubernetes.shapes import OURS
from bench.kubernetes.standing import MAX_CORES, MAX_MIB
from bench.kubernetes.stream import Stream
from bench.run import machine, table

_BURSTS = "All pods are there, then the scheduler is started; client limits are lifted for both"
_STREAMS = (
    "Pods arrive evenly while the scheduler runs; seconds from the create request to the answer of the bind"
)
_STANDING = "A standing cluster in which nothing is to be decided; nodes report every five minutes"


def report(results: Results, markdown: bool = False) -> str:
    """The tables."""
    sizes = results.sizes
    parts = [machine(), f"{sizes.nodes:,} nodes; no chance is involved, so there is no seed"]
    if results.bursts:
        parts += ["", _BURSTS, "", *table(_burst_rows(results), markdown)]
    if results.streams:
        parts += ["", _STREAMS, "", *table(_stream_rows(results.streams), markdown)]
    if results.standing:
        parts += ["", _STANDING, "", *table(_standing_rows(results), markdown)]
    return "\n".join([*parts, *(f"PROBLEM: {problem}" for problem in results.problems)])


def _burst_rows(results: Results) -> list[list[str]]:
    head = [
        "shape",
        "scheduler",
        "binds/s",
        "ratio",
        "cpu ratio",
        "reach",
        "first bind",
        "last bind",
        "settled",
    ]
    costs = ["cpu own", "cpu apiserver", "cpu etcd", "all ms/bind", "MiB", "binds", "events", "other writes"]
    rows = [head + costs]
    for burst in results.bursts:
        ratio = results.ratio(burst)
        goal = wanted(burst.shape)
        reached = (
            f"{goal:g}x {_mark(ratio >= goal)}"
            if ratio is not None and results.sizes.bursts == FULL.bursts
            else ""
        )
        rows.append(
            [
                burst.shape,
                burst.scheduler,
                f"{burst.binds_per_second:,.0f}",
                _times(ratio),
                _times(results.cpu_ratio(burst)),
                reached,
                f"{burst.first:.1f}",
                f"{burst.last:.1f}",
                f"{burst.settled:.1f}",
                *_costs(burst),
                f"{burst.cpu_binding / burst.pods * 1000:.2f}",
                f"{burst.mib:.0f}",
                *_writes(burst),
            ]
        )
    return rows


def _times(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.1f}x"


def _costs(measured: Burst | Stream) -> list[str]:
    return [f"{measured.cpu[name]:.1f}" for name in (measured.scheduler, "kube-apiserver", "etcd")]


def _writes(burst: Burst) -> list[str]:
    binds, events = (
        burst.writes.get(BIND, 0),
        sum(burst.writes.get(f"{verb} events", 0) for verb in ("create", "patch")),
    )
    return [f"{count:,}" for count in (binds, events, sum(burst.writes.values()) - binds - events)]


def _stream_rows(streams: list[Stream]) -> list[list[str]]:
    rows = [
        ["shape", "scheduler", "pods/s", "P50", "P99", "cpu own", "cpu apiserver", "cpu etcd", "over seconds"]
    ]
    for stream in streams:
        name = " ".join((stream.scheduler, *stream.flags))
        rows.append(
            [
                stream.shape,
                name,
                f"{stream.rate:g}",
                f"{stream.p50:.3f}",
                f"{stream.p99:.3f}",
                *_costs(stream),
                f"{stream.seconds:.0f}",
            ]
        )
    return rows


def _standing_rows(results: Results) -> list[list[str]]:
    standing = results.standing
    assert standing is not None
    return [
        [
            "nodes",
            "pods",
            "ready after",
            "MiB",
            "peak MiB",
            f"under {MAX_MIB:g}",
            "cpu",
            f"under {MAX_CORES:.0%}",
        ],
        [
            f"{standing.nodes:,}",
            f"{standing.pods:,}",
            f"{standing.ready:.1f}",
            f"{standing.mib:.0f}",
            f"{standing.peak_mib:.0f}",
            _mark(standing.peak_mib < MAX_MIB),
            f"{standing.cores:.2%} of a core",
            _mark(standing.cores < MAX_CORES),
        ],
    ]


def _mark(reached: bool) -> str:
    return "yes" if reached else "MISSED"


def as_json(results: Results) -> str:
    ratios = {burst.shape: results.ratio(burst) for burst in results.bursts if burst.scheduler == OURS}
    whole = {"schema": 1, "machine": machine(), "ratios": ratios, "results": results}
    return json.format(json.encode(whole), indent=1).decode()
