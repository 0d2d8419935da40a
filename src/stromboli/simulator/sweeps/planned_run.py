"""A run of a sweep: what is simulated, with the contents of its inputs, and the command that does it."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from stromboli import __version__
from stromboli.api.errors import printable

PROGRAM = ("stromboli",)
ID_LENGTH = 16


class Argument(Struct, frozen=True, omit_defaults=True):
    """An option of a run: `--load 1.2`, `--swf FILE` with the digest of its content, or a switch."""

    flag: str
    value: str | None = None
    sha256: str = ""
    """Of the file or folder that the value names; empty if it names none."""


class PlannedRun(Struct, frozen=True, omit_defaults=True):
    """A simulation that does not depend on any other."""

    id: Annotated[str, Meta(pattern="^[0-9a-f]{16}$")]
    """A digest of settings and contents of inputs: the same id, the same result."""
    configuration: dict[str, str]
    """What it is among the axes of the grid, without the seed."""
    arguments: tuple[Argument, ...]
    seed: str = ""

    @property
    def title(self) -> str:
        """What distinguishes it from the other runs, for people."""
        parts = [f"{axis}={label}" for axis, label in self.configuration.items()]
        return printable(" ".join(parts + ([f"seed={self.seed}"] if self.seed else []))) or "the only run"


def planned_run(configuration: dict[str, str], arguments: Sequence[Argument], seed: str) -> PlannedRun:
    """A run with the id that its settings have, wherever its files lie."""
    settings = sorted((part.flag, part.sha256 or part.value or "") for part in arguments)
    content = msgspec.json.encode([__version__, settings])
    return PlannedRun(hashlib.sha256(content).hexdigest()[:ID_LENGTH], configuration, tuple(arguments), seed)


def command(
    run: PlannedRun,
    result: Path,
    program: Sequence[str] = PROGRAM,
    shown: Callable[[str], str] = lambda path: path,
) -> list[str]:
    """The command of a run, which saves its record at `result`; `shown` may shorten paths."""
    words = [*program, "simulate"]
    for part in run.arguments:
        words.append(part.flag)
        if part.value is not None:
            words.append(shown(part.value) if part.sha256 else part.value)
    return [*words, "--no-progress", "--save", shown(str(result))]


def command_line(words: Sequence[str]) -> str:
    """A command as a shell takes it."""
    return shlex.join(words)
