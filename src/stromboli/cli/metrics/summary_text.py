"""The summary as people read it: a line per topic, then tables."""

from __future__ import annotations

import typer

from stromboli.api.errors import printable
from stromboli.cli.cluster.cluster_errors import shown
from stromboli.cli.cluster.object_output import print_table
from stromboli.cli.metrics.measure_text import duration_text
from stromboli.cli.metrics.metrics_summary import MetricsSummary, part_table
from stromboli.cli.metrics.prometheus_text import LONGEST_LINE
from stromboli.cli.metrics.queue_rows import queue_table
from stromboli.cli.metrics.summary_line import LineState
from stromboli.cli.output import has_colours

MOST_QUEUES = 20
"""Rows without -o wide."""
COLOURS = {
    LineState.FINE: typer.colors.GREEN,
    LineState.LOOK: typer.colors.YELLOW,
    LineState.NONE: typer.colors.BRIGHT_BLACK,
}


def print_summary(summary: MetricsSummary, place: str, wide: bool) -> None:
    span = "since its start" if summary.seconds is None else f"in the last {duration_text(summary.seconds)}"
    typer.echo(shown("; ".join(part for part in (place, summary.process, f"counted {span}") if part)))
    typer.echo()
    _print_lines(summary)
    if summary.not_told:
        typer.echo(f"\nnot told by this scheduler: {', '.join(summary.not_told)}")
    if summary.queues:
        rows = summary.queues if wide else summary.queues[:MOST_QUEUES]
        typer.echo()
        print_table(*queue_table(rows, wide))
        if len(rows) < len(summary.queues):
            typer.echo(f"and {len(summary.queues) - len(rows)} more: -o wide shows all")
    for title, parts in (("ACTION", summary.actions), ("PLUGIN", summary.plugins)) if wide else ():
        if parts:
            typer.echo()
            print_table(*part_table(title, parts))


def _print_lines(summary: MetricsSummary) -> None:
    widest = max((len(line.topic) for line in summary.lines), default=0)
    for line in summary.lines:
        state = f"{line.state.value:4}"
        if has_colours():
            state = typer.style(state, fg=COLOURS[line.state])
        typer.echo(f"{state}  {line.topic:{widest}}  {shown(line.text)}")
        if line.remedy:
            typer.echo(f"{'':{widest + 8}}-> {shown(line.remedy)}")


def print_raw(text: bytes) -> None:
    """A page as it is, but for what a terminal could obey and for the rest of lines without end."""
    for line in text.split(b"\n"):
        cut = "…" if len(line) > LONGEST_LINE else ""
        typer.echo(printable(line[:LONGEST_LINE].rstrip(b"\r").decode(errors="replace")) + cut)
