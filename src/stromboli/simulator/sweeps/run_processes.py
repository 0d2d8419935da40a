"""Runs as processes of their own, so many at a time: one that fails is told and does not stop the others."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from stromboli.simulator.sweeps.planned_run import PlannedRun, command, command_line
from stromboli.simulator.sweeps.results_folder import FailedRun, ResultsFolder, is_whole

THIS_PROGRAM = (sys.executable, "-m", "stromboli")
POLL = 0.05
GRACE = 5.0
"""Seconds that a run has for its end after SIGTERM."""
SHOWN_LINES = 5
SHOWN_BYTES = 4096
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
"""Runs share the cores among themselves: each needs no threads for arithmetic."""


class SweepObserver(Protocol):
    """Is told how a sweep goes on."""

    def started(self, run: PlannedRun) -> None: ...

    def done(self, run: PlannedRun, seconds: float) -> None: ...

    def failed(self, failed: FailedRun) -> None: ...

    def tick(self) -> None:
        """Some time has passed."""


@dataclass(slots=True)
class _Process:
    run: PlannedRun
    process: subprocess.Popen[bytes]
    since: float = field(default_factory=time.monotonic)


class RunProcesses:
    """Runs the simulations that a folder lacks."""

    def __init__(
        self,
        folder: ResultsFolder,
        jobs: int,
        observer: SweepObserver,
        program: Sequence[str] = THIS_PROGRAM,
        pod: str = "",
        interrupted: Callable[[], bool] = lambda: False,
    ) -> None:
        """`pod`: the uid of the pod that this is, on a cluster. `interrupted`: whether somebody wants it to end."""
        self.folder = folder
        self.jobs = jobs
        self.observer = observer
        self.program = tuple(program)
        self.pod = pod
        self.interrupted = interrupted
        self._running: list[_Process] = []

    def run_all(self, runs: Iterable[PlannedRun]) -> list[FailedRun]:
        """Run all; those that failed. Whatever interrupts this ends the running ones, and leaves whole results."""
        waiting = deque(runs)
        failures: list[FailedRun] = []
        try:
            while waiting or self._running:
                while waiting and len(self._running) < self.jobs:
                    failures += self._start(waiting.popleft())
                failures += self._collect()
                self.observer.tick()
                if self.interrupted():
                    raise KeyboardInterrupt
                if self._running:
                    time.sleep(POLL)
        finally:
            self._stop()
        return failures

    def _start(self, run: PlannedRun) -> list[FailedRun]:
        """Start a run; that it failed, if no process can be had."""
        words = command(run, self.folder.scratch(run.id), self.program)
        try:
            self.folder.begin(run, self._line(run), self.pod)
            with self.folder.log(run.id).open("wb") as log:
                process = subprocess.Popen(
                    words,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    env={**ONE_THREAD, **os.environ},
                    start_new_session=True,  # Ctrl-C is for us: we end the runs
                )
        except OSError as error:
            return [self._failed(run, f"cannot be started: {error}", [])]
        self._running.append(_Process(run, process))
        self.observer.started(run)
        return []

    def _collect(self) -> list[FailedRun]:
        """The failures among the processes that have ended."""
        ended = [process for process in self._running if process.process.poll() is not None]
        self._running = [process for process in self._running if process not in ended]
        return [failed for process in ended if (failed := self._judge(process)) is not None]

    def _judge(self, ended: _Process) -> FailedRun | None:
        run, status = ended.run, ended.process.returncode
        try:
            if status == 0 and is_whole(self.folder.scratch(run.id)):
                self.folder.keep(run.id)
                self.observer.done(run, time.monotonic() - ended.since)
                return None
            outcome = _outcome(status) if status else "ended without a whole record"
        except OSError as error:
            outcome = f"its record cannot be kept: {error.strerror or error}"
        finally:
            self.folder.scratch(run.id).unlink(missing_ok=True)
        return self._failed(run, outcome, last_lines(self.folder.log(run.id)))

    def _failed(self, run: PlannedRun, outcome: str, lines: list[str]) -> FailedRun:
        begun = self.folder.failed(run.id)
        attempts = begun.attempts if begun is not None else 1
        failed = FailedRun(run.id, run.title, self._line(run), outcome, tuple(lines), attempts, self.pod)
        with suppress(OSError):  # it is told all the same
            self.folder.note_failure(failed)
        self.observer.failed(failed)
        return failed

    def _line(self, run: PlannedRun) -> str:
        return command_line(command(run, self.folder.record(run.id)))

    def _stop(self) -> None:
        """End what runs; what it has written so far goes."""
        running, self._running = self._running, []
        for process in running:
            _signal(process.process, signal.SIGTERM)
        deadline = time.monotonic() + GRACE
        for process in running:
            try:
                process.process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                _signal(process.process, signal.SIGKILL)
                process.process.wait()
            finally:
                for path in (self.folder.scratch, self.folder.log, self.folder.failure):
                    path(process.run.id).unlink(missing_ok=True)


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    """To all processes of a run."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)


def _outcome(status: int) -> str:
    if status > 0:
        return f"exit status {status}"
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = f"signal {-status}"
    return f"killed by {name}" + (", perhaps for want of memory" if name == "SIGKILL" else "")


def last_lines(log: Path) -> list[str]:
    """The end of what a run printed."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - SHOWN_BYTES))
            text = file.read(SHOWN_BYTES).decode(errors="replace")
    except OSError:
        return []
    return [line for line in text.splitlines() if line.strip()][-SHOWN_LINES:]
