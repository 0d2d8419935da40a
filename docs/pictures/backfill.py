"""Draw docs/pictures/backfill.svg: a trace with and without backfill, as the simulator runs it."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterable
from itertools import accumulate
from pathlib import Path

from typer.testing import CliRunner

from stromboli.cli.main import app

HERE = Path(__file__).parent
TRACE = HERE.parents[1] / "examples" / "simulator" / "lublin-300.swf"
RUNS = (("none", "strict order", "#c0392b"), ("easy", "EASY backfill", "#1f77b4"))
LEFT, WIDTH, HEIGHT, GAP = 62, 780, 120, 46
DAY = 86_400
Steps = list[tuple[float, float]]


def jobs_of(backfill: str) -> list[dict[str, float]]:
    """The jobs of a simulated run, with their times."""
    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder, "record.json")
        command = ["simulate", "--swf", str(TRACE), "--backfill", backfill, "-q", "--save", str(record)]
        result = CliRunner().invoke(app, command)
        if result.exit_code:
            sys.exit(result.output)
        return [{**job, "cpu": job["requests"]["cpu"]} for job in json.loads(record.read_text())["jobs"]]


def steps(changes: Iterable[tuple[float, float]]) -> Steps:
    """Sums of changes over time."""
    ordered = sorted(changes)
    sums = accumulate(change for _, change in ordered)
    return list(dict(zip((time for time, _ in ordered), sums, strict=True)).items())


def used(jobs: list[dict[str, float]]) -> Steps:
    return steps(
        [(job["started"], job["cpu"]) for job in jobs] + [(job["ended"], -job["cpu"]) for job in jobs]
    )


def waiting(jobs: list[dict[str, float]]) -> Steps:
    return steps([(job["submitted"], 1) for job in jobs] + [(job["started"], -1) for job in jobs])


def path(values: Steps, end: float, most: float, top: float) -> str:
    """A line of steps in a panel."""
    words, last = [], 0.0
    for time, value in values:
        x = LEFT + WIDTH * time / end
        words.append(
            f"{x:.1f},{top + HEIGHT * (1 - last / most):.1f} {x:.1f},{top + HEIGHT * (1 - value / most):.1f}"
        )
        last = value
    return " ".join(words)


def panel(
    title: str, lines: list[tuple[Steps, str]], end: float, most: float, top: float, filled: bool
) -> list[str]:
    """A chart over time, with days below it."""
    bottom = top + HEIGHT
    parts = [f'<text x="{LEFT}" y="{top - 8}" class="title">{title}</text>']
    for value in (0, most / 2, most):
        y = bottom - HEIGHT * value / most
        parts.append(f'<line x1="{LEFT}" y1="{y}" x2="{LEFT + WIDTH}" y2="{y}" stroke="#8884" />')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4}" text-anchor="end">{value:g}</text>')
    for day in range(int(end / DAY) + 1):
        x = LEFT + WIDTH * day * DAY / end
        parts.append(f'<text x="{x:.1f}" y="{bottom + 16}">{f"day {day + 1}"}</text>')
    for values, colour in lines:
        fill = f"{colour}33" if filled else "none"
        parts.append(f'<polyline points="{path(values, end, most, top)}" fill="{fill}" stroke="{colour}" />')
    return parts


def picture() -> str:
    """The whole drawing."""
    runs = [(jobs_of(backfill), title, colour) for backfill, title, colour in RUNS]
    end = max(job["ended"] for jobs, _, _ in runs for job in jobs)
    longest = max(count for jobs, _, _ in runs for _, count in waiting(jobs))
    most = 50 * (int(longest / 50) + 1)
    second = 60 + HEIGHT + GAP
    parts = panel(
        "CPUs in use, of 256", [(used(jobs), colour) for jobs, _, colour in runs], end, 256, 60, True
    )
    lines = [(waiting(jobs), colour) for jobs, _, colour in runs]
    parts += panel("Jobs that wait", lines, end, most, second, False)
    for place, (jobs, title, colour) in enumerate(runs):
        wait = sum(job["started"] - job["submitted"] for job in jobs) / len(jobs) / 3600
        x = LEFT + 300 * place
        parts.append(f'<rect x="{x}" y="12" width="14" height="14" fill="{colour}" />')
        parts.append(f'<text x="{x + 22}" y="24">{title}: mean wait {wait:.1f} h</text>')
    size = f'viewBox="0 0 {LEFT + WIDTH + 20} {second + HEIGHT + 30}"'
    style = "text { font: 13px sans-serif; fill: #777 } .title { font-weight: bold } polyline { stroke-width: 1.5 }"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size}>'
    return "\n".join([head, f"<style>{style}</style>", *parts, "</svg>", ""])


if __name__ == "__main__":
    (HERE / "backfill.svg").write_text(picture())
