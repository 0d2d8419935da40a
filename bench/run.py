"""All workloads, each in a process of its own, and the table of what came out."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterable, Sequence
from statistics import median

from msgspec import Struct, json

from bench.measure import Measurement, measure_apart
from bench.targets import TARGETS, Target, mark
from bench.workload import Workload
from bench.workloads import WORKLOADS
from stromboli.engine.catalog import Catalog
from stromboli.extensions import load_catalog


class Result(Struct):
    """One workload with what was measured and what it is compared with."""

    name: str
    about: str
    seed: int | None
    nodes: int
    pending_pods: int
    running_pods: int
    best: Measurement
    """The run with the fastest first cycle."""
    cycle_median: float
    """Over all runs."""
    cpu_best: float
    """The least processor time of a first cycle."""
    second_median: float | None
    """The second cycle, with nothing new since the first."""
    later_median: float | None
    """All cycles from the second on."""
    decisions_per_second: float
    load_best: float
    volcano_seconds: str
    reach: float | None
    aim: float | None
    speed: str
    """Where the cycle stands against reach and aim."""
    memory: str
    load: str = ""
    """Where the load stands against its reach."""
    counted: float = 0.0
    """The seconds that are held against targets: the median of first cycles, or of all later ones."""
    factor: float | None = None
    """Times the cost of the workload that it is compared with."""
    factor_reach: float | None = None
    problem: str = ""


def run(names: Sequence[str], scale: float, repeat: int) -> list[Result]:
    """Measure these workloads; progress goes to stderr."""
    catalog = load_catalog()
    results: dict[str, Result] = {}
    for name in with_bases(names):
        workload = WORKLOADS[name].scaled(scale)
        if lacking := missing(workload, catalog):
            print(f"{name}: not yet ({', '.join(lacking)})", file=sys.stderr)
            continue
        print(f"{name} ...", file=sys.stderr, flush=True)
        results[name] = summary(workload, measure_apart(workload, repeat), scale, results.get(workload.base))
    return list(results.values())


def with_bases(names: Sequence[str]) -> list[str]:
    """The same, each after the workload that it is compared with."""
    return list(dict.fromkeys(each for name in names for each in (WORKLOADS[name].base, name) if each))


def missing(workload: Workload, catalog: Catalog) -> list[str]:
    """What a workload is about and this version does not have."""
    actions = [f"action {name}" for name in workload.actions if name not in catalog.actions]
    return actions + [f"plugin {name}" for name in workload.plugins if name not in catalog.plugins]


def summary(workload: Workload, runs: list[Measurement], scale: float, base: Result | None) -> Result:
    """Best and median of several runs, held against the targets (which are for the full size)."""
    best = min(runs, key=lambda run: run.cycle)
    later = [seconds for run in runs for seconds in run.later]
    target = TARGETS.get(workload.name, Target()) if scale == 1 else Target()
    sizes = workload.sizes
    result = Result(
        name=workload.name,
        about=workload.about,
        seed=workload.seed,
        nodes=sizes.nodes,
        pending_pods=sizes.pending_pods,
        running_pods=sizes.running_pods,
        best=best,
        cycle_median=median(run.cycle for run in runs),
        cpu_best=min(run.cpu for run in runs),
        second_median=median(run.later[0] for run in runs) if later else None,
        later_median=median(later) if later else None,
        decisions_per_second=best.decisions / best.cycle,
        load_best=min(run.load for run in runs),
        volcano_seconds=target.volcano,
        reach=target.reach,
        aim=target.aim,
        speed="",
        memory=mark(best.peak_mib, target.memory_reach, target.memory_aim),
        load=mark(min(run.load for run in runs), target.load_reach, None),
        factor_reach=target.factor,
        problem=problem_of(workload, best),
    )
    result.counted = median(later) if workload.counts_later and later else result.cycle_median
    result.speed = mark(result.counted, target.reach, target.aim)
    if base is not None:
        result.factor = _cost(workload, result) / _cost(workload, base)
        result.speed = result.speed or mark(result.factor, target.factor, None)
    return result


def _cost(workload: Workload, result: Result) -> float:
    """What is compared with another workload: the later cycles, or the processor time of the first."""
    later = result.later_median if workload.counts_later else None
    return result.cpu_best if later is None else later


def problem_of(workload: Workload, seen: Measurement) -> str:
    """Why the numbers mean nothing, if the cycle did not do its work."""
    if seen.failures:
        return seen.failures[0]
    expected = workload.expected_binds
    if expected is None and not seen.binds:
        return "bound no pod"
    if expected is not None and seen.binds != expected:
        return f"bound {seen.binds} pods instead of {expected}"
    return workload.clears.problem(workload.sizes.pending_pods, seen.evictions, seen.held)


# -- printing

BUSY = 1.3
"""Wall time over processor time from which on something else must have had the core."""
_SPEED_TITLE = (
    "Whole cycle with the state loaded, in seconds: best and median run, least processor time, the second cycle, "
    "all later ones (nothing new arrives)\n"
    "Targets are held against the median; where nothing happens or nothing fits, against that of all later cycles"
)


def report(results: Sequence[Result], markdown: bool = False) -> str:
    """The tables for people."""
    parts = [f"{machine()}; one process, one thread", *_warnings(results), *_busy(results), "", _SPEED_TITLE]
    parts += table(_speed_rows(results), markdown)
    parts += ["", "Where the first cycle's time goes (seconds)"]
    parts += table(_phase_rows(results), markdown)
    parts += [f"PROBLEM: {result.name}: {result.problem}" for result in results if result.problem]
    return "\n".join(parts)


def machine() -> str:
    """What this ran on."""
    model = platform.processor() or platform.machine()
    if os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo") as lines:
            model = next(
                (line.split(":")[1].strip() for line in lines if line.startswith("model name")), model
            )
    return f"Python {platform.python_version()}, {os.cpu_count()} cores, {model}"


def _warnings(results: Sequence[Result]) -> list[str]:
    warnings = dict.fromkeys(text for result in results for text in result.best.warnings)
    return [f"WARNING: {text}" for text in warnings]


_SPEED_HEAD = [
    *(
        "workload",
        "nodes",
        "pending",
        "running",
        "best",
        "median",
        "cpu",
        "second",
        "later",
        "decisions/s",
        "MiB",
    ),
    *("Volcano", "faster", "reach", "aim", "speed", "memory", "load"),
]


def _busy(results: Sequence[Result]) -> list[str]:
    """Waiting for a core is not the scheduler's time, but it is in the wall time."""
    slow = [result.name for result in results if result.cycle_median > BUSY * result.cpu_best]
    if not slow:
        return []
    return [f"WARNING: the machine was busy with other things; wall time is too high for {', '.join(slow)}"]


def _speed_rows(results: Sequence[Result]) -> list[list[str]]:
    rows = [_SPEED_HEAD]
    for result in results:
        published = TARGETS[result.name].volcano_seconds if result.volcano_seconds else None
        rows.append(
            [
                result.name,
                f"{result.nodes:,}",
                f"{result.pending_pods:,}",
                f"{result.running_pods:,}",
                seconds(result.best.cycle),
                seconds(result.cycle_median),
                seconds(result.cpu_best),
                seconds(result.second_median),
                seconds(result.later_median),
                f"{result.decisions_per_second:,.0f}" if result.best.decisions else "",
                f"{result.best.peak_mib:.0f}",
                result.volcano_seconds,
                f"{published / result.counted:,.0f}x" if published else "",
                _reach(result),
                "" if result.aim is None else f"{result.aim:g}",
                result.speed if result.factor is None else f"{result.speed} ({result.factor:.1f}x)".strip(),
                result.memory,
                result.load,
            ]
        )
    return rows


def _reach(result: Result) -> str:
    if result.reach is not None:
        return f"{result.reach:g}"
    return "" if result.factor_reach is None else f"{result.factor_reach:g}x"


def _phase_rows(results: Sequence[Result]) -> list[list[str]]:
    names = list(dict.fromkeys(name for result in results for name in result.best.phases))
    names = [name for name in names if name != "close"] + ["close"]
    rows = [["workload", "seed", "load", *names, "binds", "evicted", "held", "decisions", "loaded MiB"]]
    for result in results:
        rows.append(
            [
                result.name,
                "" if result.seed is None else str(result.seed),
                seconds(result.load_best),
                *(seconds(result.best.phases.get(name)) for name in names),
                f"{result.best.binds:,}",
                f"{result.best.evictions:,}",
                f"{result.best.held:,}",
                f"{result.best.decisions:,}",
                f"{result.best.loaded_mib:.0f}",
            ]
        )
    return rows


def seconds(value: float | None) -> str:
    """With as many digits as mean anything."""
    if value is None:
        return ""
    return f"{value:.2f}" if value >= 1 else f"{value:.3f}" if value >= 0.01 else f"{value:.5f}"


def table(rows: Sequence[Sequence[str]], markdown: bool = False) -> Iterable[str]:
    """Columns side by side: the first to the left, the others to the right."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    lines = [
        [cell.ljust(width) if not place else cell.rjust(width) for place, (cell, width) in enumerate(pairs)]
        for pairs in (list(zip(row, widths, strict=True)) for row in rows)
    ]
    rule = ["-" * width for width in widths]
    if markdown:
        right = [line[:-1] + ":" if place else line for place, line in enumerate(rule)]
        return ["| " + " | ".join(line) + " |" for line in [lines[0], right, *lines[1:]]]
    return ["  ".join(line).rstrip() for line in [lines[0], rule, *lines[1:]]]


def as_json(results: Sequence[Result]) -> str:
    return json.format(
        json.encode({"schema": 1, "machine": f"{machine()}; one process, one thread", "results": results}),
        indent=1,
    ).decode()
