"""How cost grows with nodes, pending pods and running pods: numbers, and a plot.

The plot shows processor time of first cycles, as a comparison along an axis must not depend on what else the machine
did meanwhile; of later cycles, which are too short for that, the median of wall time.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import NamedTuple

from bench.measure import Measurement, measure_apart
from bench.run import machine, problem_of, table
from bench.workload import Workload
from bench.workloads import WORKLOADS, custom

NODES = (1000, 2500, 5000, 10_000, 20_000)
LARGEST = NODES[-1]
RUNNING_PER_NODE = 10

Runs = list[Measurement]


class Curve(NamedTuple):
    """One line of a plot: the workload at each step, and what counts of its runs."""

    label: str
    workload: Callable[[int], Workload]
    value: Callable[[Runs], float]


class Panel(NamedTuple):
    """One plot: a size that grows, and curves over it."""

    title: str
    label: str
    unit: str
    steps: tuple[int, ...]
    """What the workloads are made with: nodes, or pending pods."""
    curves: tuple[Curve, ...]
    each: int = 1
    """What the axis counts, times the step."""


def _cpu(runs: Runs) -> float:
    return min(run.cpu for run in runs)


def _micros_per_pod(runs: Runs) -> float:
    return min(run.cpu / max(run.binds, 1) for run in runs) * 1e6


def _later_ms(runs: Runs) -> float:
    return median(seconds for run in runs for seconds in run.later) * 1000


def _load(runs: Runs) -> float:
    return min(run.load for run in runs)


def _memory(runs: Runs) -> float:
    return max(run.peak_mib for run in runs)


def _grown(name: str) -> Callable[[int], Workload]:
    """A workload of 20,000 nodes with as many as a step says, everything else in proportion."""
    return lambda nodes: WORKLOADS[name].scaled(nodes / LARGEST)


_UNIFORM, _MIXED = _grown("L-2000x20-20000n"), _grown("L-2000x20-20000n-mixed")
_IDLE = _grown("M-20000n-200000p")
_FULL, _EVICTING = _grown("U-2000x20-20000n"), _grown("U-2000x20-20000n-evict")

PANELS = (
    Panel(
        "More nodes: 10,000 pending pods",
        "nodes",
        "s per cycle",
        (500, 1000, 2000, 5000, 10_000, 20_000),
        (Curve("", lambda nodes: custom(nodes, 10_000, 0), _cpu),),
    ),
    Panel(
        "More pending pods: 2,000 nodes",
        "pending pods",
        "s per cycle",
        (2500, 5000, 10_000, 20_000, 40_000),
        (Curve("", lambda pending: custom(2000, pending, 0), _cpu),),
    ),
    Panel(
        "More of both: two pending pods per node",
        "nodes",
        "us per pod",
        NODES,
        (Curve("uniform", _UNIFORM, _micros_per_pod), Curve("mixed", _MIXED, _micros_per_pod)),
    ),
    Panel(
        "Load: ten running pods per node",
        "running pods",
        "s",
        NODES,
        (Curve("", _IDLE, _load),),
        RUNNING_PER_NODE,
    ),
    Panel(
        "Memory: the same",
        "running pods",
        "MiB",
        NODES,
        (Curve("", _IDLE, _memory),),
        RUNNING_PER_NODE,
    ),
    Panel(
        "Later cycles, nothing new: the same",
        "running pods",
        "ms per cycle",
        NODES,
        (
            Curve("idle", _IDLE, _later_ms),
            Curve("two pods per node find no room", _FULL, _later_ms),
            Curve("the same, evicting allowed", _EVICTING, _later_ms),
        ),
        RUNNING_PER_NODE,
    ),
)

Points = dict[Panel, list[list[float]]]
"""The values of each panel: a list for each curve, a value for each step."""


def main(repeat: int, scale: float, plot: str, markdown: bool = False) -> None:
    """Measure along every axis, print, draw."""
    measured = measure_panels(repeat, scale)
    seeds = sorted({workload.seed for workload in WORKLOADS.values() if workload.seed is not None})
    print(f"{machine()}; seed of mixed worlds {', '.join(map(str, seeds))}; {repeat} runs")
    for panel, values in measured.items():
        print(f"\n{panel.title} ({panel.unit})\n")
        print("\n".join(table(rows_of(panel, values), markdown)))
    if plot:
        draw(measured, Path(plot))
        print(f"\ndrawn to {plot}")


def measure_panels(repeat: int, scale: float) -> Points:
    """All values; a workload that several curves share is measured once."""
    known: dict[tuple[str, object], Runs] = {}

    def runs_of(workload: Workload) -> Runs:
        key = (workload.name, workload.sizes)
        if key not in known:
            print(f"{workload.name} {workload.sizes} ...", file=sys.stderr, flush=True)
            runs = known[key] = measure_apart(workload, repeat)
            if problem := problem_of(workload, runs[0]):
                raise RuntimeError(f"{workload.name}: {problem}")
        return known[key]

    return {
        panel: [
            [curve.value(runs_of(curve.workload(step).scaled(scale))) for step in panel.steps]
            for curve in panel.curves
        ]
        for panel in PANELS
    }


def rows_of(panel: Panel, values: list[list[float]]) -> list[list[str]]:
    """A table: a row for each curve, a column for each step."""
    head = [panel.label, *(f"{step * panel.each:,}" for step in panel.steps)]
    return [
        head,
        *(
            [curve.label or panel.unit, *map(_shown, line)]
            for curve, line in zip(panel.curves, values, strict=True)
        ),
    ]


def _shown(value: float) -> str:
    return f"{value:.0f}" if value >= 20 else f"{value:.2f}" if value >= 0.1 else f"{value:.3f}"


COLOURS = ("#b3381f", "#2f6f9f", "#7a7a7a")


def draw(measured: Points, path: Path) -> None:
    """Small plots beside each other, the same bytes for the same numbers."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update(
        {
            "svg.hashsalt": "stromboli",
            "svg.fonttype": "none",
            "font.family": "sans-serif",
            "font.size": 10,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.titlesize": 10,
            "axes.titlelocation": "left",
        }
    )
    from matplotlib import pyplot
    from matplotlib.ticker import FuncFormatter

    figure, plots = pyplot.subplots(2, 3, figsize=(12, 6.6), layout="constrained")
    for plot, (panel, values) in zip(plots.flat, measured.items(), strict=True):
        steps = [step * panel.each for step in panel.steps]
        for curve, line, colour in zip(panel.curves, values, COLOURS, strict=False):
            plot.plot(steps, line, marker="o", markersize=4, color=colour, linewidth=2, label=curve.label)
        plot.set_title(panel.title)
        plot.set_xlabel(panel.label)
        plot.set_ylabel(panel.unit)
        plot.set_ylim(bottom=0, top=(1.4 if len(values) > 2 else 1.15) * max(max(line) for line in values))
        plot.set_xlim(left=0)
        plot.grid(axis="y", color="#dddddd", linewidth=0.8)
        plot.set_axisbelow(True)
        plot.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / 1000:g}k" if value else "0"))
        if len(panel.curves) > 1:
            plot.legend(frameon=False, fontsize=9)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None, "Creator": "python -m bench scaling"})
    pyplot.close(figure)
