"""How the time of a cycle grows with nodes, pending pods and running pods: numbers, and a plot.

The plot shows processor time, as a comparison along an axis must not depend on what else the machine did meanwhile.
"""

from __future__ import annotations

import sys
from pathlib import Path
from statistics import median
from typing import NamedTuple

from bench.measure import measure_apart
from bench.run import machine, problem_of, seconds, table
from bench.workload import Workload
from bench.workloads import custom


class Axis(NamedTuple):
    """One size that grows while the others stay."""

    title: str
    label: str
    steps: tuple[int, ...]
    nodes: int | None = None
    pending: int | None = None
    running: int | None = None

    def workload(self, step: int, scale: float) -> Workload:
        """Gangs of twenty on nodes with room for all."""
        nodes, pending, running = (
            round((step if size is None else size) * scale)
            for size in (self.nodes, self.pending, self.running)
        )
        return custom(nodes, pending, running, f"{self.label} {step}")


AXES = [
    Axis(
        "More nodes: 10,000 pending pods",
        "nodes",
        (500, 1000, 2000, 4000, 6000, 8000, 10_000),
        pending=10_000,
        running=0,
    ),
    Axis(
        "More pending pods: 2,000 nodes",
        "pending pods",
        (2500, 5000, 10_000, 20_000, 30_000, 40_000),
        nodes=2000,
        running=0,
    ),
    Axis(
        "More running pods: 5,000 nodes, 2,000 pending",
        "running pods",
        (0, 20_000, 40_000, 60_000, 80_000, 100_000),
        nodes=5000,
        pending=2000,
    ),
]


class Point(NamedTuple):
    """The cycle at one size: least processor time of all runs, best and median wall time."""

    step: int
    cpu: float
    best: float
    median: float
    second: float
    """The median of the second cycle, with nothing new."""
    peak_mib: float


def main(repeat: int, scale: float, plot: str) -> None:
    """Measure along every axis, print, draw."""
    measured = {axis: measure_axis(axis, repeat, scale) for axis in AXES}
    print(machine())
    for axis, points in measured.items():
        print(f"\n{axis.title}")
        print("\n".join(table(_rows(axis, points))))
    if plot:
        draw(measured, Path(plot))
        print(f"\ndrawn to {plot}")


def measure_axis(axis: Axis, repeat: int, scale: float) -> list[Point]:
    points = []
    for step in axis.steps:
        workload = axis.workload(step, scale)
        print(f"{workload.name} ...", file=sys.stderr, flush=True)
        runs = measure_apart(workload, repeat)
        if problem := problem_of(workload, runs[0]):
            raise RuntimeError(f"{workload.name}: {problem}")
        cycles = [run.cycle for run in runs]
        later = [run.later[0] for run in runs]
        peak = max(run.peak_mib for run in runs)
        points.append(
            Point(step, min(run.cpu for run in runs), min(cycles), median(cycles), median(later), peak)
        )
    return points


def _rows(axis: Axis, points: list[Point]) -> list[list[str]]:
    head = [axis.label, "cpu s", "best s", "median s", "second cycle s", "MiB"]
    return [
        head,
        *(
            [
                f"{p.step:,}",
                seconds(p.cpu),
                seconds(p.best),
                seconds(p.median),
                seconds(p.second),
                f"{p.peak_mib:.0f}",
            ]
            for p in points
        ),
    ]


def draw(measured: dict[Axis, list[Point]], path: Path) -> None:
    """Three small plots beside each other, the same bytes for the same numbers."""
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

    figure, plots = pyplot.subplots(1, len(measured), figsize=(12, 3.6), layout="constrained")
    for plot, (axis, points) in zip(plots, measured.items(), strict=True):
        steps = [point.step for point in points]
        plot.plot(steps, [point.cpu for point in points], marker="o", color="#b3381f", linewidth=2)
        plot.set_title(axis.title)
        plot.set_xlabel(axis.label)
        plot.set_ylim(bottom=0)
        plot.set_xlim(left=0)
        plot.grid(axis="y", color="#dddddd", linewidth=0.8)
        plot.set_axisbelow(True)
        plot.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / 1000:g}k" if value else "0"))
    plots[0].set_ylabel("seconds per cycle (processor time)")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None, "Creator": "python -m bench scaling"})
    pyplot.close(figure)
