"""The progress of a simulation on a terminal: jobs that are done, and how far virtual time has come."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from stromboli.simulator.runs.simulation import Progress

_INTERVAL = 0.1
"""Seconds from one look at it to the next."""


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
