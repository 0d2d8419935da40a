"""What a release is made of: the commit, the version, where files go, and how each step ended."""

from __future__ import annotations

import os
import subprocess
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

SHOWN_OUTPUT = 3000
"""Characters at the end of a failed command's output that are shown."""
MAKE_VARIABLES = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")
MINUTE = 60.0
BUILD_BY = (".whl", ".tar.gz", ".tgz", ".tar")
"""How the names of files end that are published."""


class ReleaseError(Exception):
    """A step failed; the message says what is wrong and what to do."""


class Result(Enum):
    """How a step ended."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_CHECKED = "not checked"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a step ended, in words, with what it could not check."""

    result: Result
    detail: str
    unchecked: tuple[str, ...] = ()


def passed(detail: str, *unchecked: str) -> Outcome:
    return Outcome(Result.PASSED, detail, unchecked)


def not_checked(reason: str) -> Outcome:
    return Outcome(Result.NOT_CHECKED, reason, (reason,))


@dataclass(frozen=True, slots=True)
class Release:
    """What steps are told."""

    root: Path
    """Of the repository."""
    out: Path
    """Where files go that are published, and the record."""
    version: str
    commit: str
    committed: str
    """When the commit was made, in ISO 8601."""
    epoch: int
    """The same in seconds: the time of every file in a package."""
    signer: str
    """Who signs off: the user of git."""
    skip_tests: bool = False
    helm: str = ""
    """The program; empty if there is none."""
    sign_with: str = ""
    """An SSH key; empty if nothing is signed."""
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))

    def artifacts(self, *endings: str) -> list[Path]:
        """The files to be published that exist so far, by name."""
        wanted = endings or BUILD_BY
        return sorted(file for file in self.out.iterdir() if file.name.endswith(wanted))

    def export(self, folder: Path) -> Path:
        """The files of the commit, and no others, in a new folder."""
        archive = folder.with_suffix(".export")
        folder.mkdir(parents=True)
        run(["git", "archive", "--format=tar", f"--output={archive}", self.commit], self.root)
        with tarfile.open(archive) as files:
            files.extractall(folder, filter="data")
        archive.unlink()
        return folder

    def tracked(self, *paths: str) -> set[str]:
        """The files of the commit below some paths."""
        listed = run(["git", "ls-tree", "-r", "-z", "--name-only", self.commit, "--", *paths], self.root)
        return set(filter(None, listed.split("\0")))


def _without_make(environment: Mapping[str, str]) -> dict[str, str]:
    """Without what a make above, such as `make release`, says to those that it starts."""
    return {name: value for name, value in environment.items() if name not in MAKE_VARIABLES}


def run(
    command: list[str],
    folder: Path,
    seconds: float = 2 * MINUTE,
    environment: Mapping[str, str] | None = None,
    text: str = "",
) -> str:
    """The standard output of a command that has to succeed; `text` is its standard input."""
    shown = " ".join(command)
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=_without_make(os.environ if environment is None else environment),
            input=text,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds,
            check=False,
        )
    except FileNotFoundError:
        raise ReleaseError(f"{shown}: there is no {command[0]} here") from None
    except subprocess.TimeoutExpired:
        raise ReleaseError(f"{shown}: took longer than {seconds:g} seconds") from None
    if done.returncode != 0:
        output = (done.stdout + done.stderr).strip()[-SHOWN_OUTPUT:]
        raise ReleaseError(f"{shown}: ended with {done.returncode}\n{output}")
    return done.stdout
