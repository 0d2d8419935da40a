"""`stromboli events`: what happened, of several objects in one sequence."""

from __future__ import annotations

import asyncio
import sys
import time
from typing import TYPE_CHECKING

import typer

from stromboli.cli.cli_errors import Usage
from stromboli.cli.cluster.change_options import seconds_of
from stromboli.cli.cluster.cluster_errors import shown
from stromboli.cli.cluster.cluster_kinds import EVENTS, JOBS, Manifest
from stromboli.cli.cluster.name_completion import completes
from stromboli.cli.cluster.object_events import Happening, happening, merged
from stromboli.cli.cluster.object_output import (
    GAP,
    OUTPUT,
    WATCH,
    ObjectFormat,
    cell,
    print_document,
    table_lines,
    write_list,
)
from stromboli.cli.cluster.on_cluster import on_cluster
from stromboli.cli.cluster.readable_parts import ReadableParts
from stromboli.cli.objects.job_events import EventScope, scopes_of

if TYPE_CHECKING:
    from stromboli.cli.cluster.cluster_session import ClusterSession

TYPES = ("Normal", "Warning")
MOST_REMEMBERED = 10_000
"""Events of which a watch knows that they were shown."""


@on_cluster(all_namespaces=True)
async def events(
    session: ClusterSession,
    subject: str = typer.Argument(
        "",
        metavar="[JOB|KIND/NAME]",
        show_default=False,
        help="A job with its PodGroup, pods and queue; or queue/NAME, pod/NAME, ...; all unless given.",
        autocompletion=completes(JOBS),
    ),
    since: str = typer.Option(
        "", "--since", metavar="TIME", show_default=False, help="Only the last such time: 10m, 1h30m."
    ),
    types: str = typer.Option(
        "", "--types", metavar="TYPES", show_default=False, help="Only these: Normal, Warning."
    ),
    output: ObjectFormat = OUTPUT,
    watch: bool = WATCH,
) -> None:
    """Tell what happened to a job, its PodGroup, its pods and its queue, in the order of time.

    What was told several times is one line. Pods that are gone are not forgotten, as long as their events are kept.

    Exit status 0, 1 if the cluster refuses or there is no such job, 2 for a wrong command line.
    """
    if subject and session.all_namespaces:
        raise Usage("JOB or KIND/NAME and -A exclude each other: an object is in one namespace")
    chosen, parts = ChosenEvents(since, types), ReadableParts()
    listed, readable = [], []
    for scope in await scopes_of(session, subject):
        reading = session.list(EVENTS, scope.namespace, fields=scope.fields)
        answer = await (
            parts.read("events of the queue are left out", reading, None) if scope.optional else reading
        )
        if answer is not None:
            listed += [event for event in answer.items if scope.shown(event) and chosen.has(event)]
            readable.append((scope, answer.version))
    parts.tell()
    if not listed and subject and "/" not in subject and not watch:
        await session.get(JOBS, subject)  # says so if it does not exist
    lines = EventLines(output, with_namespace=session.all_namespaces)
    lines.print(listed)
    if watch:
        watches = [_watch(session, scope, version, chosen, lines) for scope, version in readable]
        await asyncio.gather(*watches)


class ChosenEvents:
    """Which events are asked for, by their age and type."""

    def __init__(self, since: str, types: str) -> None:
        self._types = {word.strip().capitalize() for word in types.split(",") if word.strip()}
        if self._types - set(TYPES):
            raise Usage(shown(f"--types {types}: the types are {' and '.join(TYPES)}"))
        try:
            self._from = time.time() - seconds_of(since) if since else 0.0
        except Usage:
            raise Usage(shown(f"--since {since}: no time; write it as 30s, 5m or 1h30m")) from None

    def has(self, event: Manifest) -> bool:
        told = happening(event)
        return told.last >= self._from and (not self._types or told.type in self._types)


class EventLines:
    """Prints events, each once."""

    def __init__(self, output: ObjectFormat, with_namespace: bool) -> None:
        self._output = output
        self._with_namespace = with_namespace
        self._widths: list[int] = []
        self._shown: dict[Happening, None] = {}

    def print(self, events: list[Manifest]) -> None:
        """A list, in the order of time."""
        if self._output in (ObjectFormat.JSON, ObjectFormat.YAML):
            write_list(sorted(events, key=lambda event: happening(event).last), self._output)
        elif self._output is ObjectFormat.NAME:
            for event in events:
                print_document(EVENTS, event, self._output)
        elif not events:
            typer.echo("No events found.", err=True)
        else:
            told = merged(map(happening, events))
            titles = self._titles()
            rows = [self._row(each) for each in told]
            self._widths = [max(map(len, column)) for column in zip(titles, *rows, strict=True)]
            self._write(titles, "MESSAGE")
            for each, row in zip(told, rows, strict=True):
                self._write(row, each.message)
        self._shown = dict.fromkeys(map(happening, events))

    def add(self, event: Manifest) -> None:
        """A change that was not shown yet."""
        told = happening(event)
        if told in self._shown:
            return
        self._shown[told] = None
        while len(self._shown) > MOST_REMEMBERED:
            del self._shown[next(iter(self._shown))]
        if self._output in (ObjectFormat.TABLE, ObjectFormat.WIDE):
            row = self._row(told)
            known = self._widths or [0] * len(row)
            self._widths = [max(size, len(text)) for size, text in zip(known, row, strict=True)]
            self._write(row, told.message)
        else:
            print_document(EVENTS, event, self._output)
        sys.stdout.flush()

    def _titles(self) -> list[str]:
        wide = ["SOURCE"] if self._output is ObjectFormat.WIDE else []
        return [
            *(["NAMESPACE"] if self._with_namespace else []),
            "LAST SEEN",
            "TYPE",
            "REASON",
            "OBJECT",
            *wide,
        ]

    def _row(self, told: Happening) -> list[str]:
        wide = [told.source] if self._output is ObjectFormat.WIDE else []
        first = [told.namespace] if self._with_namespace else []
        return [
            cell(text)
            for text in (*first, told.when(time.time()), told.type, told.reason, told.object, *wide)
        ]

    def _write(self, row: list[str], message: str) -> None:
        head = table_lines((), [row], self._widths)[0]
        width = sum(self._widths) + len(GAP) * (len(self._widths) - 1)
        typer.echo(f"{head:<{width}}{GAP}{shown(message)}")


async def _watch(
    session: ClusterSession, scope: EventScope, version: str, chosen: ChosenEvents, lines: EventLines
) -> None:
    """Print what is added, until interrupted."""
    from stromboli.cli.cluster.lasting_watch import lasting_changes

    async for change in lasting_changes(session, EVENTS, version, scope.namespace, fields=scope.fields):
        if change.type != "DELETED" and scope.shown(change.object) and chosen.has(change.object):
            lines.add(change.object)
