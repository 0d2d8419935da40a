"""How a sweep goes on: a bar on a terminal, lines elsewhere, from which a sweep on a cluster is counted."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn

from stromboli.api.errors import printable
from stromboli.cli.simulate.moment_text import span_text
from stromboli.simulator.sweeps.planned_run import PlannedRun
from stromboli.simulator.sweeps.results_folder import FailedRun

MAX_FAILURES_SHOWN = 20
_LINE = re.compile(r"\[(\d{1,9})/(\d{1,9})(?:, (\d{1,9}) failed)?\] ")


class Counts(NamedTuple):
    """How far a sweep is."""

    total: int
    done: int = 0
    running: int = 0
    failed: int = 0

    @property
    def mark(self) -> str:
        """`[5/12, 1 failed]`: so many of so many have ended."""
        failed = f", {self.failed} failed" if self.failed else ""
        return f"[{self.done + self.failed}/{self.total}{failed}]"


def counts_in(text: str) -> Counts | None:
    """What the last line with a mark says."""
    match = next((match for line in reversed(text.splitlines()) if (match := _LINE.match(line))), None)
    if match is None:
        return None
    ended, total, failed = int(match[1]), int(match[2]), int(match[3] or 0)
    return Counts(total, max(0, ended - failed), 0, failed)


class SweepProgress:
    """Shows counts, and tells of failures as they come."""

    def __init__(self, counts: Counts, quiet: bool = False) -> None:
        self.counts = counts
        self.failures: list[FailedRun] = []
        self._at_first = counts.done + counts.failed
        self._began = time.monotonic()
        self._quiet = quiet
        self._bar: Progress | None = None
        self._task = TaskID(0)

    @contextmanager
    def shown(self) -> Iterator[SweepProgress]:
        """Show the bar, where standard error is a terminal."""
        if not self._quiet and sys.stderr.isatty():
            self._bar = Progress(
                SpinnerColumn(),
                BarColumn(bar_width=30),
                TextColumn("{task.completed}/{task.total} runs{task.fields[rest]}"),
                console=Console(stderr=True, highlight=False),
                transient=True,
            )
            self._task = self._bar.add_task("", total=self.counts.total, rest="")
            with self._bar:
                self.tick()
                yield self
            self._bar = None
        else:
            if self._at_first:
                self._print(f"{self.counts.mark} done already")
            yield self

    # -- what happens

    def started(self, run: PlannedRun) -> None:
        self.counts = self.counts._replace(running=self.counts.running + 1)

    def done(self, run: PlannedRun, seconds: float) -> None:
        running = max(0, self.counts.running - 1)
        self.counts = self.counts._replace(done=self.counts.done + 1, running=running)
        self._print(f"{self.counts.mark} {run.title}: done in {seconds:.1f} s")

    def failed(self, failed: FailedRun) -> None:
        running = max(0, self.counts.running - 1)
        self.counts = self.counts._replace(failed=self.counts.failed + 1, running=running)
        self.failures.append(failed)
        self._print(f"{self.counts.mark} {failed.title}: failed: {failed.outcome}")
        if len(self.failures) <= MAX_FAILURES_SHOWN:
            self.tell(failure_text(failed))

    def show(self, counts: Counts) -> None:
        """Counts that somebody else has counted."""
        if counts != self.counts:
            ended = (self.counts.done, self.counts.failed)
            self.counts = counts
            if ended != (counts.done, counts.failed):
                self._print(f"{counts.mark} {counts.running} running{self._time_left()}")
        self.tick()

    def tick(self) -> None:
        if self._bar is not None:
            counts = self.counts
            rest = f" · {counts.running} running" if counts.running else ""
            rest += f" · {counts.failed} failed" if counts.failed else ""
            ended = counts.done + counts.failed
            self._bar.update(
                self._task, completed=ended, total=counts.total, rest=rest + self._time_left(" · ")
            )

    def tell(self, message: str) -> None:
        """A message that stays, above the bar."""
        if self._bar is not None:
            self._bar.console.print(message, markup=False, soft_wrap=True)
        else:
            typer.echo(message, err=True)

    def _print(self, line: str) -> None:
        if self._bar is None and not self._quiet:
            typer.echo(line, err=True)

    def _time_left(self, separator: str = ", ") -> str:
        ended = self.counts.done + self.counts.failed
        left, lately = self.counts.total - ended, ended - self._at_first
        if lately <= 0 or left <= 0:
            return ""
        return f"{separator}{span_text((time.monotonic() - self._began) / lately * left)} left"


def failure_text(failed: FailedRun) -> str:
    """A failure with its command and the last that it printed."""
    lines = [f"error: {failed.title}: {failed.outcome}", f"  {failed.command}"]
    return "\n".join(map(printable, [*lines, *(f"  | {line}" for line in failed.last_lines)]))
