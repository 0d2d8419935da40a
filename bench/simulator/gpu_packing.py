"""GPU packing: the allocation that the authors of FGD published, run by run and by means over seeds of ours."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import NamedTuple

from bench.simulator.checks import Check, Findings
from bench.simulator.simulator_runs import RunResult, SimulatorRun

SCORES = {
    "random": "Random",
    "dotprod": "DotProd",
    "clustering": "GpuClustering",
    "packing": "GpuPacking",
    "bestfit": "BestFit",
    "fgd": "FGD",
}
"""Our names of the policies, and the authors'."""
ROBUST = "fgd-robust"
"""The plugin `fgd` without the paper's rounding, compared with the published FGD."""
ROBUST_POLICY = Path(__file__).parent / "robust_fgd.yaml"
LARGEST_LOSS = 0.2
"""By which its mean may be below the published one, in points."""
LISTS = ("default", "cpu250", "gpushare40", "multigpu20")
LOAD = 1.3
LARGEST_DIFFERENCE = 0.5
"""Of means, in points."""
LONGEST_RUN_S = 15.0
Results = Mapping[SimulatorRun, RunResult]


class PackingSizes(NamedTuple):
    """Which runs there are."""

    lists: Sequence[str] = LISTS
    published_seeds: Sequence[int] = range(42, 52)
    own_seeds: Sequence[int] = range(1, 31)


QUICK = PackingSizes(("default",), (42,), (1,))


class Series(NamedTuple):
    """Runs that differ in their seed alone."""

    trace: str
    score: str
    sequence: str
    runs: Mapping[int, SimulatorRun]

    def allocations(self, results: Results) -> list[float]:
        """GPU allocation of each run, in per cent to two decimals, as it was published."""
        return [round(100 * results[run].measures["gpu_allocation"], 2) for run in self.runs.values()]


def all_series(data: Path, sizes: PackingSizes) -> list[Series]:
    """The authors' sequences, then ours."""
    return [
        _series(data, trace, score, sequence, seeds)
        for sequence, seeds in (("go", sizes.published_seeds), ("ours", sizes.own_seeds))
        for trace in sizes.lists
        for score in (*SCORES, *([ROBUST] if sequence == "ours" else []))
    ]


def _series(data: Path, trace: str, score: str, sequence: str, seeds: Sequence[int]) -> Series:
    nodes = data / "openb" / "openb_node_list_gpu_node.csv"
    pods = data / "openb" / f"openb_pod_list_{trace}.csv"
    lists = ("--openb-nodes", str(nodes), "--openb-pods", str(pods))
    chosen = ("--policy", str(ROBUST_POLICY)) if score == ROBUST else ("--score", score)
    policy = (*chosen, "--load", str(LOAD), "--sequence", sequence)
    files = (nodes, pods, ROBUST_POLICY) if score == ROBUST else (nodes, pods)
    runs = {
        seed: SimulatorRun(
            f"{trace} {score} {sequence} {seed}", (*lists, *policy, "--seed", str(seed)), files
        )
        for seed in seeds
    }
    return Series(trace, score, sequence, runs)


def published(data: Path) -> dict[tuple[str, str], dict[int, float]]:
    """By list and policy of ours, then by seed: GPU allocation at 130 %, in per cent."""
    ours = {name: score for score, name in SCORES.items()}
    table: dict[tuple[str, str], dict[int, float]] = defaultdict(dict)
    with (data / "openb" / "published_allocation.csv").open() as file:
        for row in csv.DictReader(file):
            trace = row["trace"].removeprefix("openb_pod_list_")
            table[trace, ours[row["policy"]]][int(row["seed"])] = float(
                row["allocated_gpu_pct_at_arrived_130"]
            )
    return table


def findings(series: Sequence[Series], data: Path, results: Results) -> Iterator[Findings]:
    """A table for the authors' sequences, and one for ours."""
    expected = published(data)
    expected |= {(trace, ROBUST): of_it for (trace, score), of_it in expected.items() if score == "fgd"}
    for sequence, title in (("go", "The authors' sequences, seed by seed"), ("ours", "Sequences of ours")):
        of_it = [each for each in series if each.sequence == sequence]
        if not of_it:
            continue
        rows = [["list", "policy", "runs", "published", "ours", "sd", "difference", "equal runs", "cpu s"]]
        rows += [_row(each, expected[each.trace, each.score], results) for each in of_it]
        yield Findings(
            f"GPU allocation in per cent at 130 % arrived. {title} ({_seeds(of_it)})",
            rows,
            [check for each in of_it for check in _checks(each, expected[each.trace, each.score], results)],
        )


def _seeds(series: Sequence[Series]) -> str:
    seeds = sorted({seed for each in series for seed in each.runs})
    return f"seeds {seeds[0]} to {seeds[-1]}"


def _equal(series: Series, expected: Mapping[int, float], results: Results) -> int:
    figures = zip(series.runs, series.allocations(results), strict=True)
    return sum(abs(figure - expected[seed]) < 0.005 for seed, figure in figures)


def _row(series: Series, expected: Mapping[int, float], results: Results) -> list[str]:
    figures = series.allocations(results)
    mean = fmean(expected.values())
    replayed = series.sequence == "go"
    if replayed:
        mean = fmean(expected[seed] for seed in series.runs)
    return [
        series.trace,
        series.score,
        str(len(figures)),
        f"{mean:.2f}",
        f"{fmean(figures):.2f}",
        f"{stdev(figures):.2f}" if len(figures) > 1 else "",
        f"{fmean(figures) - mean:+.2f}",
        f"{_equal(series, expected, results)} of {len(figures)}" if replayed else "",
        f"{fmean(results[run].cpu_s for run in series.runs.values()):.1f}",
    ]


def _checks(series: Series, expected: Mapping[int, float], results: Results) -> Iterator[Check]:
    name = f"{series.trace} {series.score}"
    figures = series.allocations(results)
    if series.sequence == "go" and series.score != "random":
        equal = _equal(series, expected, results)
        yield Check(f"{name}: runs as published", str(equal), str(len(figures)), equal == len(figures))
    elif series.score == ROBUST:
        least = fmean(expected.values()) - max(LARGEST_LOSS, _tolerance(len(figures)) - LARGEST_DIFFERENCE)
        holds = fmean(figures) >= least
        yield Check(f"{name}: mean", f"{fmean(figures):.2f}", f"at least {least:.2f}", holds)
    else:
        mean = fmean(expected.values())
        near = abs(fmean(figures) - mean) <= _tolerance(len(figures))
        yield Check(
            f"{name}: mean", f"{fmean(figures):.2f}", f"{mean:.2f} ± {_tolerance(len(figures)):.1f}", near
        )
    longest = max(results[run].cpu_s for run in series.runs.values())
    yield Check(
        f"{name}: processor seconds of a run",
        f"{longest:.1f}",
        f"at most {LONGEST_RUN_S:g}",
        longest <= LONGEST_RUN_S,
    )


def _tolerance(runs: int) -> float:
    """Few seeds say less: single runs are up to 0.65 points apart by chance."""
    return LARGEST_DIFFERENCE if runs >= 10 else 2.0
