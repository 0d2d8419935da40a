"""The manifest of a sweep: every run with its arguments, as `sweep.json`, from which any machine can run it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
from msgspec import Struct, structs

from stromboli import __version__
from stromboli.api.errors import InputProblem, Unreadable
from stromboli.simulator.sweeps.grid import MOST_RUNS, BadGrid
from stromboli.simulator.sweeps.input_files import InputFiles
from stromboli.simulator.sweeps.planned_run import Argument, PlannedRun, planned_run

SCHEMA = 1
MOST_BYTES = 64 << 20
"""Of a `sweep.json` that is read."""


class SweepPlan(Struct, frozen=True):
    """All runs of a sweep. Paths of inputs are absolute, or relative to the file that holds the plan."""

    name: str
    runs: tuple[PlannedRun, ...]
    version: str = __version__
    schema: int = SCHEMA

    @property
    def distinct(self) -> dict[str, PlannedRun]:
        """By id: what has to be run. Several combinations may come to the same."""
        return {run.id: run for run in self.runs}

    @property
    def digest(self) -> str:
        """Of all runs together."""
        return hashlib.sha256("\n".join(sorted(self.distinct)).encode()).hexdigest()

    def encoded(self) -> bytes:
        """JSON with a line for each run."""
        head = {"schema": self.schema, "version": self.version, "name": self.name}
        lines = b",\n".join(msgspec.json.encode(run) for run in self.runs)
        return msgspec.json.encode(head)[:-1] + b',"runs":[\n' + lines + b"\n]}\n"


@dataclass(frozen=True, slots=True)
class Share:
    """A part of the runs: every `count`-th, from `index` on."""

    index: int = 0
    count: int = 1

    def of(self, runs: Sequence[PlannedRun]) -> Sequence[PlannedRun]:
        return runs[self.index :: self.count]

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"


def load_plan(path: Path, files: InputFiles) -> SweepPlan:
    """The plan in a file, with inputs that are still what they were when it was made."""
    plan = read_plan(path)
    if plan.version != __version__ or plan.schema != SCHEMA:
        raise _bad(
            path, f"made by stromboli {plan.version}, and this is {__version__}: sweep the grid itself again"
        )
    runs = tuple(_located(run, path, files) for run in plan.runs)
    return structs.replace(plan, runs=runs)


def read_plan(path: Path) -> SweepPlan:
    """The plan in a file, whatever has become of its inputs."""
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise _bad(path, f"cannot be read: {error.strerror or error}") from None
    if len(content) > MOST_BYTES:
        raise _bad(path, f"larger than {MOST_BYTES >> 20} MiB, which no sweep is")
    try:
        plan = msgspec.json.decode(content, type=SweepPlan)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise _bad(path, f"no plan of a sweep: {error}; `stromboli sweep GRID.yaml` makes one") from None
    if not 1 <= len(plan.runs) <= MOST_RUNS:
        raise _bad(path, f"{len(plan.runs):,} runs; a sweep has 1 to {MOST_RUNS:,}")
    return plan


def _located(run: PlannedRun, path: Path, files: InputFiles) -> PlannedRun:
    arguments = tuple(_checked(part, path, files) for part in run.arguments)
    if planned_run(run.configuration, arguments, run.seed).id != run.id:
        raise _bad(path, f"run {run.id[:40]!r}: not the digest of its settings; sweep the grid itself again")
    return structs.replace(run, arguments=arguments)


def _checked(part: Argument, path: Path, files: InputFiles) -> Argument:
    if not part.sha256 or part.value is None:
        return part
    place = (path.parent / part.value).absolute()
    try:
        digest = files.digest(place)
    except Unreadable as error:
        raise _bad(path, f"{part.flag}: {error}") from None
    if digest != part.sha256:
        raise _bad(path, f"{part.flag} {place}: changed since the sweep was planned; sweep the grid itself")
    return structs.replace(part, value=str(place))


def _bad(path: Path, text: str) -> BadGrid:
    return BadGrid([InputProblem(str(path), text)])
