"""`stromboli decisions`: what the last cycles of the leader did, and how long each action took."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import typer

from stromboli.cli.cli_errors import print_note
from stromboli.cli.cluster.cluster_errors import ClusterError, shown
from stromboli.cli.cluster.object_output import WATCH, cell, table_lines
from stromboli.cli.cluster.on_cluster import on_cluster
from stromboli.cli.metrics.measure_text import duration_text
from stromboli.cli.objects.job_events import job_of_group
from stromboli.cli.output import StatusFormat, write_as
from stromboli.embedded.tables import age_text

if TYPE_CHECKING:
    from stromboli.cli.cluster.cluster_session import ClusterSession
    from stromboli.scheduler.explain.cycle_documents import CycleDecision, CycleEntry, CycleList

PAUSE = 1.0
"""Seconds from one question to the leader to the next."""
NAMED = 2
"""Decisions of a cycle that its line names."""
PARTS = ("open", "close")
"""What a cycle spends time on besides its actions."""


@on_cluster(namespaced=False)
async def decisions(
    session: ClusterSession,
    limit: int = typer.Option(20, "--limit", metavar="NUMBER", min=1, max=500, help="The newest so many."),
    output: StatusFormat = typer.Option(StatusFormat.TABLE, "--output", "-o", help="How to show it."),
    watch: bool = WATCH,
    leader: str = typer.Option(
        "",
        "--leader",
        metavar="URL",
        show_default=False,
        help="The address of the leading scheduler.",
    ),
) -> None:
    """Tell what the last scheduling cycles did: pods bound and evicted, jobs let in, time by action.

    The newest cycle is last. Cycles in a row that decided nothing are one line, with what each took on average; -w
    leaves them out. The leader must answer questions (--enable-explain; `stromboli up` does), and you must have the
    right to list pods and PodGroups of all namespaces.

    Exit status 0, 1 if the leader does not tell, 2 for a wrong command line.
    """
    cycles = await _asked(session, 0, limit, leader)
    lines = CycleLines(output)
    lines.print(cycles)
    while watch:
        await asyncio.sleep(PAUSE)
        try:
            newer = await _asked(session, cycles.newest, 0, leader)
            if newer.since != cycles.since:  # another leader counts anew
                newer = await _asked(session, 0, 0, leader)
        except ClusterError as error:
            print_note(f"not read this time: {shown(str(error))}")
            continue
        known = cycles.newest if newer.since == cycles.since else 0
        lines.add([entry for entry in newer.cycles if entry.number > known and entry.kind != "idle"])
        cycles = newer


async def _asked(session: ClusterSession, after: int, limit: int, leader: str) -> CycleList:
    from stromboli.cli.leader.leader_query import Unreachable, ask_cycles

    answer = await ask_cycles(session, after, limit, leader)
    if isinstance(answer, Unreachable):
        raise ClusterError(f"the leader does not tell what it decided: {answer.why}")
    return answer


class _Column(NamedTuple):
    title: str
    value: Callable[[CycleEntry], str]
    wide: bool = False


class CycleLines:
    """Prints cycles, the newest last."""

    def __init__(self, output: StatusFormat) -> None:
        self._output = output
        self._columns = [each for each in COLUMNS if output is StatusFormat.WIDE or not each.wide]
        self._widths: list[int] = []

    def print(self, cycles: CycleList) -> None:
        """A list."""
        from msgspec import to_builtins

        if self._output in (StatusFormat.JSON, StatusFormat.YAML):
            write_as(self._output, {"schema": 1, **to_builtins(cycles)})
        elif not cycles.cycles:
            typer.echo("No cycle has ended yet.", err=True)
        else:
            self._write(cycles.cycles, [column.title for column in self._columns])

    def add(self, entries: Sequence[CycleEntry]) -> None:
        """What came since."""
        from msgspec import to_builtins

        if self._output in (StatusFormat.JSON, StatusFormat.YAML):
            for entry in entries:
                write_as(self._output, to_builtins(entry))
        elif entries:
            self._write(entries)

    def _write(self, entries: Sequence[CycleEntry], titles: Sequence[str] = ()) -> None:
        rows = [[cell(column.value(entry)) for column in self._columns] for entry in entries]
        known = self._widths or [0] * len(self._columns)
        lines = [list(titles), *rows] if titles else rows
        self._widths = [
            max(size, *map(len, column)) for size, column in zip(known, zip(*lines, strict=True), strict=True)
        ]
        for line in table_lines(titles, rows, self._widths):
            typer.echo(line)


# -- columns


def _number(entry: CycleEntry) -> str:
    return f"{entry.number}" if entry.cycles == 1 else f"{entry.number}-{entry.last_number}"


def _age(entry: CycleEntry) -> str:
    return age_text.duration_text(max(time.time() - entry.last_time, 0.0))


def _took(entry: CycleEntry) -> str:
    """Of a run, what its cycles took on average."""
    return f"{duration_text(entry.seconds / max(entry.cycles, 1))}{' each' if entry.cycles > 1 else ''}"


def _by_action(entry: CycleEntry) -> str:
    """The actions that took a tenth of the time at least, the longest first; of a run on average."""
    actions = {part: seconds for part, seconds in entry.parts.items() if part not in PARTS}
    longest = sorted(actions, key=lambda part: -actions[part])
    return ", ".join(
        f"{part} {duration_text(actions[part] / max(entry.cycles, 1))}"
        for part in longest
        if actions[part] >= 0.1 * entry.seconds > 0
    )


def _what(entry: CycleEntry) -> str:
    """What the cycle did, in words."""
    if entry.lost is not None:
        return f"lost: {entry.lost.message}"
    if entry.kind == "idle":
        return "nothing decided"
    named = [_in_words(decision) for decision in _noteworthy(entry)[:NAMED]]
    count = entry.let_in + entry.bound + entry.evicted + entry.released
    if not named:
        return f"{count} decisions"
    return ", ".join(named) + (f" and {count - len(named)} more" if count > len(named) else "")


def _noteworthy(entry: CycleEntry) -> list[CycleDecision]:
    """Evictions first, and then binds: they matter most."""
    order = {"evicted": 0, "moved": 0, "bound": 1}
    return sorted(entry.decisions, key=lambda decision: order.get(decision.kind, 2))


def _in_words(decision: CycleDecision) -> str:
    name = f"{decision.namespace}/{decision.name}"
    match decision.kind:
        case "bound":
            return f"{name} to {decision.node}"
        case "evicted":
            return f"{name} evicted" + (f" for {_job(decision.beneficiary)}" if decision.beneficiary else "")
        case "moved":
            return f"{name} moved to {decision.destination}"
        case "let-in":
            return f"{_job(name)} let in"
        case "gate-removed":
            return f"{name} let out of the gate"


def _job(key: str) -> str:
    """The job of a PodGroup, as other commands name it."""
    namespace, slash, group = key.partition("/")
    return f"{namespace}{slash}{job_of_group(group)}"


COLUMNS = (
    _Column("CYCLE", _number),
    _Column("AGE", _age),
    _Column("TOOK", _took),
    _Column("BY ACTION", _by_action),
    _Column("LET IN", lambda entry: f"{entry.let_in}", wide=True),
    _Column("BOUND", lambda entry: f"{entry.bound}"),
    _Column("EVICTED", lambda entry: f"{entry.evicted}"),
    _Column("PIPELINED", lambda entry: f"{entry.pipelined}", wide=True),
    _Column("REFUSED", lambda entry: f"{entry.refused}", wide=True),
    _Column("WAITING", lambda entry: f"{entry.waiting}", wide=True),
    _Column("PENDING", lambda entry: f"{entry.pending}", wide=True),
    _Column("WHAT", _what),
)
