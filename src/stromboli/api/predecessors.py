"""Jobs that a job waits for, as its annotation names them: which end of each of them lets it start, or never will.

`prepare` means `afterok:prepare`. Several are separated by commas, names of one condition by colons, as Slurm has it:
`afterok:prepare:fetch,afterany:clean`. All of them must come true.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from stromboli.api.errors import quoted
from stromboli.api.name_rules import dns_subdomain_errors

MAX_PREDECESSORS = 100
MAX_TEXT = 16 * 1024
"""Bytes of the annotation."""
COMPLETED = "Completed"
SUSPENDED = frozenset({"Aborting", "Aborted"})
"""Phases from which a job goes on if it is resumed."""
FINISHED = frozenset({COMPLETED, "Failed", "Terminated"})
ENDED = FINISHED | {"Aborted"}
"""Phases of a job after which nothing happens by itself."""
_NOT_STARTED = SUSPENDED | {"", "Pending"}


class After(StrEnum):
    """When the job that is waited for lets the other start."""

    OK = "afterok"
    ANY = "afterany"
    NOT_OK = "afternotok"
    STARTED = "after"


MEANING = {
    After.OK: "the completion",
    After.ANY: "the end",
    After.NOT_OK: "the failure",
    After.STARTED: "the start",
}


class Verdict(StrEnum):
    """What a phase of the other job means."""

    WAITS = "waits"
    MET = "met"
    NEVER = "never"


class BadPredecessors(ValueError):
    """A list of jobs to wait for that cannot be read; says what is wrong with it and what would be right."""


class Predecessor(NamedTuple):
    """A job to wait for, and for which end of it."""

    name: str
    after: After = After.OK

    def __str__(self) -> str:
        return f"{self.after}:{self.name}"

    def verdict(self, phase: str) -> Verdict:
        """What it means that the other job is in this phase."""
        if self.after is After.STARTED:
            return Verdict.WAITS if phase in _NOT_STARTED else Verdict.MET
        if phase not in FINISHED:
            return Verdict.WAITS
        if self.after is After.ANY or (phase == COMPLETED) == (self.after is After.OK):
            return Verdict.MET
        return Verdict.NEVER

    @property
    def when_deleted(self) -> Verdict:
        """What it means that the other job was deleted before it had come true: it will not complete."""
        return Verdict.NEVER if self.after is After.OK else Verdict.MET


def parse_predecessors(text: str) -> tuple[Predecessor, ...]:
    """The jobs that a text names, each once."""
    if len(text.encode()) > MAX_TEXT:
        raise BadPredecessors(f"longer than {MAX_TEXT} bytes: name fewer jobs")
    listed: dict[Predecessor, None] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        listed.update(dict.fromkeys(_part(part)))
    if not listed:
        raise BadPredecessors("no job is named: write the name of a job, or afterany:NAME")
    if len(listed) > MAX_PREDECESSORS:
        raise BadPredecessors(f"{len(listed)} jobs, at most {MAX_PREDECESSORS} are possible: name fewer")
    return tuple(listed)


def _part(part: str) -> list[Predecessor]:
    if "?" in part:
        raise BadPredecessors(f"{quoted(part)}: any of several (?) is not possible; all of them count")
    first, *others = [word.strip() for word in part.split(":")]
    after, named = (first, others) if others else (After.OK, [first])
    if after not in list(After):
        valid = ", ".join(After)
        raise BadPredecessors(f"{quoted(part)}: {quoted(after)} is no condition; use {valid}")
    for name in named:
        if dns_subdomain_errors(name):
            raise BadPredecessors(f"{quoted(name)} is no name of a job")
    return [Predecessor(name, After(after)) for name in named]


def format_predecessors(predecessors: Iterable[Predecessor]) -> str:
    """As the annotation has it."""
    return ",".join(map(str, predecessors))
