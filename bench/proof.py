"""The figures of the README: ours and kube-scheduler's from one run on a real API server, beside Volcano's of 2026-08.

`make bench-proof` measures, keeps the figures in docs/proof.json and writes their table into the README.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from msgspec import Struct, json

from bench.kubernetes.burst import Burst
from bench.kubernetes.run import FULL, Results
from bench.kubernetes.run import run as run_kubernetes
from bench.kubernetes.shapes import OURS, THEIRS, Shape
from bench.kubernetes.stream import Stream
from bench.measure import measure_apart
from bench.run import machine
from bench.run import table as lines
from bench.targets import TARGETS
from bench.workloads import WORKLOADS

ROOT = Path(__file__).parents[1]
FILE = ROOT / "docs" / "proof.json"
README = ROOT / "README.md"
GANGS, SINGLES = Shape(500, 20), Shape(10_000, 1)
CYCLES = {
    "W2-500x20-1000n": "One cycle: 500 gangs of 20 pods, 1,000 nodes",
    "W1-1x10000-1000n": "One cycle: one gang of 10,000 pods, 1,000 nodes",
    "W9-gpu-tiers-5000n": "One cycle: 66 GPU gangs below switches, 5,000 nodes",
}
"""Workloads on which a real Volcano was timed, in process without an API server."""
_WORDS = {"2": "two", "4": "four", "8": "eight"}


class Figure(Struct):
    """One row of the table; a scheduler without a figure was not measured."""

    what: str
    unit: str
    ours: float
    kube_scheduler: float | None = None
    volcano: str = ""


class Proof(Struct):
    """All rows, and when and where they were measured."""

    date: str
    commit: str
    """Of the sources that were measured; with `-dirty` if files differed from it."""
    machine: str
    runs: int
    figures: list[Figure]


def measure(repeat: int) -> Proof:
    """Medians of some runs: cycles in process, then bursts and streams with both schedulers in turn."""
    commit = _commit()
    cycles = [
        Figure(
            what,
            "s",
            median(run.cycle for run in measure_apart(WORKLOADS[name], repeat)),
            volcano=f"{TARGETS[name].volcano} s",
        )
        for name, what in CYCLES.items()
    ]
    sizes = FULL._replace(bursts=(GANGS, SINGLES))
    results = run_kubernetes(sizes, ("burst", "stream"), repeat, schedulers=(THEIRS, OURS))
    if results.problems:
        raise RuntimeError("; ".join(results.problems))
    date = datetime.now(UTC).date().isoformat()
    return Proof(date, commit, machine(), repeat, [*cycles, *_on_a_server(results)])


def _commit() -> str:
    describe = ["git", "describe", "--always", "--dirty", "--abbrev=8", "--exclude=*"]
    return subprocess.run(describe, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def _on_a_server(results: Results) -> Iterator[Figure]:
    def of_bursts(what: str, unit: str, shape: Shape, value: Callable[[Burst], float]) -> Figure:
        ours, theirs = (median(map(value, results.bursts_of(name, shape.name))) for name in (OURS, THEIRS))
        return Figure(what, unit, ours, theirs)

    def of_streams(what: str, shape: Shape, value: Callable[[Stream], float]) -> Figure:
        ours, theirs = (median(map(value, results.streams_of(name, shape.name))) for name in (OURS, THEIRS))
        return Figure(what, "ms", 1000 * ours, 1000 * theirs)

    singles, gangs = results.sizes.arriving
    yield of_bursts("500 gangs of 20 pods at once: binds", "/s", GANGS, lambda run: run.binds_per_second)
    yield of_bursts("10,000 single pods at once: binds", "/s", SINGLES, lambda run: run.binds_per_second)
    yield of_bursts("10,000 single pods at once: last write", "s", SINGLES, lambda run: run.settled)
    yield of_streams("50 pods/s in gangs of 20: last created to all bound", gangs, lambda run: run.gang_p50)
    yield of_streams("50 single pods/s: created to bound", singles, lambda run: run.p50)


def table(proof: Proof) -> str:
    """The rows as Markdown."""
    rows = [["Measured", "Stromboli", "kube-scheduler", "Volcano"]]
    for figure in proof.figures:
        ours, theirs = _text(figure.ours, figure.unit), ""
        if figure.kube_scheduler is not None:
            theirs = _text(figure.kube_scheduler, figure.unit)
        rows.append([figure.what, ours, theirs or "-", figure.volcano or "-"])
    return "\n".join(lines(rows, markdown=True))


def _text(value: float, unit: str) -> str:
    number = (
        f"{value:,.0f}" if value >= 100 or unit == "ms" else f"{value:.2g}" if value < 10 else f"{value:.0f}"
    )
    return f"{number}{unit}" if unit.startswith("/") else f"{number} {unit}"


def measured(proof: Proof) -> str:
    """When, how often, of what and where the figures were measured, as a sentence."""
    runs = "one run" if proof.runs == 1 else f"medians of {proof.runs} runs"
    cores = re.search(r"(\d+) cores", proof.machine)
    where = f", {_WORDS.get(cores[1], cores[1])} cores" if cores else ""
    return f"Measured on {proof.date}, {runs}, commit `{proof.commit}`{where}."


def read() -> Proof:
    """The figures that are kept."""
    return json.decode(FILE.read_bytes(), type=Proof)


def keep(proof: Proof) -> None:
    """Write the figures to docs/proof.json and their table to the README."""
    FILE.write_bytes(json.format(json.encode(proof), indent=1) + b"\n")
    README.write_text(with_table(README.read_text(), proof))


def with_table(readme: str, proof: Proof) -> str:
    """The text with the table of these figures, and how they were measured, in its place."""
    place = re.compile(r"(?<=<!-- proof -->\n).*?(?=<!-- end of proof -->)", re.S)
    return place.sub(f"{table(proof)}\n\n{measured(proof)}\n", readme)
