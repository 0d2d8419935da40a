"""Progress on a terminal: of a file that is read, and of a simulation by its jobs and its virtual time."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from stromboli.simulator.runs.simulation import Progress
from stromboli.simulator.workloads import trace_lines

_INTERVAL = 0.1
"""Seconds from one look at it to the next."""


@contextmanager
def reading_bar(quiet: bool = False) -> Iterator[trace_lines.Progress]:
    """A bar for a workload that is read, on standard error if that is a terminal."""
    if quiet or not sys.stderr.isatty():
        yield trace_lines.no_progress
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    shown = time.monotonic()
    with Progress(*columns, console=Console(stderr=True), transient=True, auto_refresh=False) as bar:
        task = bar.add_task("", total=None, visible=False)

        def show(step: str, done: int, total: int) -> None:
            nonlocal shown
            if time.monotonic() - shown >= _INTERVAL:
                shown = time.monotonic()
                bar.update(task, description=step, completed=done, total=total, visible=True, refresh=True)

        yield show


@contextmanager
def progress_bar(jobs: int, quiet: bool) -> Iterator[Progress]:
    """A bar on standard error, if that is a terminal."""
    if quiet or not sys.stderr.isatty():
        yield lambda done, now: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("Simulating"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("jobs, {task.fields[clock]}"),
        TimeRemainingColumn(),
    )
    shown = 0.0
    with Progress(*columns, console=Console(stderr=True), transient=True, auto_refresh=False) as bar:
        task = bar.add_task("", total=jobs, clock=clock_text(0.0))

        def show(done: int, now: float) -> None:
            nonlocal shown
            if time.monotonic() - shown >= _INTERVAL:
                shown = time.monotonic()
                bar.update(task, completed=done, clock=clock_text(now), refresh=True)

        yield show


def clock_text(seconds: float) -> str:
    """Virtual time as people read it: `3d 04:05:06`."""
    minutes, second = divmod(int(seconds), 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    return f"{days}d {hour:02}:{minute:02}:{second:02}"
