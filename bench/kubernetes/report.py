"""The results as tables for people, or as JSON."""

from __future__ import annotations

from msgspec import json

from bench.kubernetes.burst import BIND, Burst
from bench.kubernetes.run import FULL, Results, wanted
from bench.kubernetes.shapes import OURS
from bench.kubernetes.standing import MOST_CORES, MOST_MIB
from bench.kubernetes.stream import Stream
from bench.run import machine, table

_BURSTS = "All pods are there, then the scheduler is started; client limits are lifted for both"
_STREAMS = (
    "Pods arrive evenly while the scheduler runs; seconds from the create request to the answer of the bind"
)
_STANDING = "A standing cluster in which nothing is to be decided; nodes report every five minutes"


def report(results: Results, markdown: bool = False) -> str:
    """For people."""
    sizes = results.sizes
    parts = [machine(), f"{sizes.nodes:,} nodes; no chance is involved, so there is no seed"]
    if results.bursts:
        parts += ["", _BURSTS, "", *table(_burst_rows(results), markdown)]
    if results.streams:
        parts += ["", _STREAMS, "", *table(_stream_rows(results.streams), markdown)]
    if results.standing:
        parts += ["", _STANDING, "", *table(_standing_rows(results), markdown)]
    return "\n".join([*parts, *(f"PROBLEM: {one}" for one in results.problems)])


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
    for one in results.bursts:
        ratio = results.ratio(one)
        goal = wanted(one.shape)
        reached = (
            f"{goal:g}x {_mark(ratio >= goal)}"
            if ratio is not None and results.sizes.bursts == FULL.bursts
            else ""
        )
        rows.append(
            [
                one.shape,
                one.scheduler,
                f"{one.binds_per_second:,.0f}",
                _times(ratio),
                _times(results.cpu_ratio(one)),
                reached,
                f"{one.first:.1f}",
                f"{one.last:.1f}",
                f"{one.settled:.1f}",
                *_costs(one),
                f"{one.cpu_binding / one.pods * 1000:.2f}",
                f"{one.mib:.0f}",
                *_writes(one),
            ]
        )
    return rows


def _times(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.1f}x"


def _costs(one: Burst | Stream) -> list[str]:
    return [f"{one.cpu[name]:.1f}" for name in (one.scheduler, "kube-apiserver", "etcd")]


def _writes(one: Burst) -> list[str]:
    binds, events = (
        one.writes.get(BIND, 0),
        sum(one.writes.get(f"{verb} events", 0) for verb in ("create", "patch")),
    )
    return [f"{count:,}" for count in (binds, events, sum(one.writes.values()) - binds - events)]


def _stream_rows(streams: list[Stream]) -> list[list[str]]:
    rows = [
        ["shape", "scheduler", "pods/s", "P50", "P99", "cpu own", "cpu apiserver", "cpu etcd", "over seconds"]
    ]
    for one in streams:
        name = " ".join((one.scheduler, *one.flags))
        rows.append(
            [
                one.shape,
                name,
                f"{one.rate:g}",
                f"{one.p50:.3f}",
                f"{one.p99:.3f}",
                *_costs(one),
                f"{one.seconds:.0f}",
            ]
        )
    return rows


def _standing_rows(results: Results) -> list[list[str]]:
    one = results.standing
    assert one is not None
    return [
        [
            "nodes",
            "pods",
            "ready after",
            "MiB",
            "peak MiB",
            f"under {MOST_MIB:g}",
            "cpu",
            f"under {MOST_CORES:.0%}",
        ],
        [
            f"{one.nodes:,}",
            f"{one.pods:,}",
            f"{one.ready:.1f}",
            f"{one.mib:.0f}",
            f"{one.peak_mib:.0f}",
            _mark(one.peak_mib < MOST_MIB),
            f"{one.cores:.2%} of a core",
            _mark(one.cores < MOST_CORES),
        ],
    ]


def _mark(reached: bool) -> str:
    return "yes" if reached else "MISSED"


def as_json(results: Results) -> str:
    ratios = {one.shape: results.ratio(one) for one in results.bursts if one.scheduler == OURS}
    whole = {"schema": 1, "machine": machine(), "ratios": ratios, "results": results}
    return json.format(json.encode(whole), indent=1).decode()
