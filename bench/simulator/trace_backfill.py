"""Backfill on traces: every job's start against that of the textbook's schedulers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from bench.simulator.checks import Check, Findings
from bench.simulator.simulator_runs import RunResult, SimulatorRun
from tests.simulator.textbook_backfill import Measures, RigidJob, measures, read_trace, schedule

TRACES = ("lublin_256", "hpc2n-excerpt")
BACKFILLS = ("none", "easy", "conservative")
UTILISATION = 0.01
SLOWDOWN = 0.05
"""How far utilisation and bounded slowdown may be from the reference, as a share of it."""


class TraceRun(NamedTuple):
    """A trace under a kind of backfill."""

    trace: Path
    backfill: str
    run: SimulatorRun


def trace_runs(data: Path, quick: bool) -> list[TraceRun]:
    """All traces with all kinds of backfill; quick: the excerpts that come with the examples."""
    if quick:
        examples = Path(__file__).parents[2] / "examples" / "simulator"
        traces = [examples / "lublin-300.swf", examples / "hpc2n-300.swf"]
    else:
        traces = [data / "swf" / f"{trace}.swf" for trace in TRACES]
    return [
        TraceRun(
            trace,
            backfill,
            SimulatorRun(
                f"{trace.stem} {backfill}", ("--swf", str(trace), "--backfill", backfill), (trace,), True
            ),
        )
        for trace in traces
        for backfill in BACKFILLS
    ]


def findings(title: str, runs: Sequence[TraceRun], results: Mapping[SimulatorRun, RunResult]) -> Findings:
    """Every run beside the textbook's."""
    rows = [
        [
            "trace",
            "backfill",
            "jobs",
            "mean wait s",
            "mean bounded slowdown",
            "utilisation",
            "other starts",
            "cpu s",
        ]
    ]
    checks: list[Check] = []
    for each in runs:
        jobs, processors = read_trace(each.trace)
        reference = schedule(jobs, processors, each.backfill)
        expected, result = measures(reference, processors), results[each.run]
        rows.append(_row(f"{each.trace.stem}", each.backfill, _own_measures(result), result))
        rows[-1][-2] = str(other_starts(reference, result.starts)) if result.starts else ""
        rows.append(_row("", "(textbook)", expected, None))
        checks += _checks(each, expected, _own_measures(result))
    return Findings(f"{title}, beside schedulers written from the textbook", rows, checks)


def _own_measures(result: RunResult) -> Measures:
    return Measures(**{field: result.measures[field] for field in Measures.__dataclass_fields__})


def other_starts(reference: Sequence[RigidJob], starts: Mapping[str, float | None]) -> int:
    """How many jobs start at another moment than in the reference; both have them in the order of submission."""
    begin = min(job.submit for job in reference)
    pairs = zip(reference, starts.values(), strict=True)
    return sum(start is None or abs(start - (job.start - begin)) > 0.5 for job, start in pairs)


def _row(trace: str, backfill: str, figures: Measures, result: RunResult | None) -> list[str]:
    return [
        trace,
        backfill,
        f"{figures.jobs:,}",
        f"{figures.mean_wait_s:,.0f}",
        f"{figures.mean_bounded_slowdown:,.1f}",
        f"{100 * figures.utilisation:.2f} %",
        "",
        f"{result.cpu_s:.1f}" if result else "",
    ]


def _checks(each: TraceRun, expected: Measures, figures: Measures) -> Iterator[Check]:
    name = f"{each.trace.stem} {each.backfill}"
    yield Check(f"{name}: jobs", str(figures.jobs), str(expected.jobs), figures.jobs == expected.jobs)
    for field, share in (("utilisation", UTILISATION), ("mean_bounded_slowdown", SLOWDOWN)):
        mine, theirs = getattr(figures, field), getattr(expected, field)
        near = abs(mine - theirs) <= share * theirs
        yield Check(f"{name}: {field}", f"{mine:.4g}", f"{theirs:.4g} ± {share:.0%}", near)
