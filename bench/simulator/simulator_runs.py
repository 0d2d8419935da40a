"""Runs of `stromboli simulate` as commands, on all cores; finished ones are kept and not repeated.

A result is kept under a key made of the command, of what is in the files it reads, and of the code. So whoever
interrupts the benchmark goes on where it was, and whoever changes the code starts anew.
"""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct, json
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

import stromboli

SOURCE = Path(stromboli.__file__).parent


class SimulatorRun(NamedTuple):
    """A command `stromboli simulate`, without the options that say how to show its result."""

    title: str
    arguments: tuple[str, ...]
    files: tuple[Path, ...]
    """What it reads."""
    keeps_starts: bool = False
    """The start of every job is part of the result."""


class RunResult(Struct):
    """What came of a run."""

    measures: dict[str, Any]
    cpu_s: float
    """Processor time of the whole command."""
    starts: dict[str, float | None] = {}
    """By the name of the job, in seconds since the first submission; only where the run keeps them."""


class RunFailed(Exception):
    """The command did not succeed."""


def run_all(runs: Sequence[SimulatorRun], folder: Path, cores: int) -> dict[SimulatorRun, RunResult]:
    """The results of all runs; those that are not kept in the folder yet are made now."""
    folder.mkdir(parents=True, exist_ok=True)
    results = {run: result for run in runs if (result := kept(run, folder))}
    missing = [run for run in runs if run not in results]
    print(f"{len(runs)} runs: {len(results)} are in {folder}, {len(missing)} to go", file=sys.stderr)
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    times = TimeElapsedColumn(), TimeRemainingColumn()
    with (
        ThreadPoolExecutor(cores) as pool,
        Progress(*columns, *times, console=Console(stderr=True)) as progress,
    ):
        bar = progress.add_task("simulating", total=len(missing))
        futures = {pool.submit(execute, run, folder): run for run in missing}
        try:
            for future in as_completed(futures):
                results[futures[future]] = future.result()
                progress.update(bar, advance=1, description=futures[future].title)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return results


def kept(run: SimulatorRun, folder: Path) -> RunResult | None:
    """The result of the same command on the same files by the same code, if there is one."""
    path = _place(run, folder)
    return json.decode(path.read_bytes(), type=RunResult) if path.exists() else None


def execute(run: SimulatorRun, folder: Path) -> RunResult:
    """Run the command and keep what came of it."""
    with tempfile.TemporaryDirectory() as scratch:
        record = Path(scratch, "record.json")
        saving = ["--save", str(record)] if run.keeps_starts else []
        command = [sys.executable, "-m", "stromboli", "simulate", *run.arguments, *saving, "-o", "json", "-q"]
        output, cpu_s = _output_and_cpu(command, Path(scratch))
        starts = _starts(record) if run.keeps_starts else {}
    result = RunResult(json.decode(output), cpu_s, starts)
    path = _place(run, folder)
    partial = path.with_suffix(f".{os.getpid()}")
    partial.write_bytes(json.encode(result))
    partial.replace(path)
    return result


def _output_and_cpu(command: Sequence[str], scratch: Path) -> tuple[bytes, float]:
    """What a command prints, and its processor time."""
    with (scratch / "out").open("w+b") as out, (scratch / "err").open("w+b") as err:
        process = subprocess.Popen(command, stdout=out, stderr=err)
        try:
            _, status, usage = os.wait4(process.pid, 0)
        except BaseException:
            process.kill()
            process.wait()
            raise
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        if process.returncode:
            raise RunFailed(f"{' '.join(command)}: {err.read().decode(errors='replace')[-2000:]}")
        return out.read(), usage.ru_utime + usage.ru_stime


def _starts(record: Path) -> dict[str, float | None]:
    jobs = json.decode(record.read_bytes())["jobs"]
    return {job["name"]: job.get("started") for job in jobs}


# -- keys


def _place(run: SimulatorRun, folder: Path) -> Path:
    words = [*run.arguments, str(run.keeps_starts), code_version(), *map(_digest, run.files)]
    return folder / f"{hashlib.sha256(repr(words).encode()).hexdigest()[:32]}.json"


@cache
def code_version() -> str:
    """The same as long as the code and the interpreter are."""
    whole = hashlib.sha256(platform.python_version().encode())
    for path in sorted(SOURCE.rglob("*.py")):
        whole.update(f"{path.relative_to(SOURCE)} {_digest(path)}\n".encode())
    return whole.hexdigest()


@cache
def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
