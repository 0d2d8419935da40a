"""Objects as kubectl shows them: tables, JSON, YAML, names; once, or as they change."""

from __future__ import annotations

import enum
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import typer

from stromboli.cli.cluster.cluster_errors import shown
from stromboli.cli.cluster.cluster_kinds import Manifest, full_name, name_of, namespace_of
from stromboli.kube.api_resources import Resource

if TYPE_CHECKING:
    from stromboli.cli.cluster.cluster_session import ClusterSession, ObjectList

LONGEST_CELL = 120
GAP = "   "
NONE = "<none>"


class ObjectFormat(enum.StrEnum):
    """How objects are shown; `wide` is a table with more columns."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


OUTPUT = typer.Option(ObjectFormat.TABLE, "--output", "-o", help="How to show it.")
WATCH = typer.Option(False, "--watch", "-w", show_default=False, help="Go on showing what changes.")
SELECTOR = typer.Option(
    "", "--selector", "-l", metavar="LABELS", show_default=False, help="By labels, as kubectl: a=b,c!=d."
)


class Column(NamedTuple):
    """A column of a table, and what it shows of an object."""

    title: str
    value: Callable[[Manifest], object]
    wide: bool = False
    """Only with `-o wide`."""


NAME_COLUMN = Column("NAME", name_of)
NAMESPACE_COLUMN = Column("NAMESPACE", namespace_of)


def cell(value: object) -> str:
    """A value of a table: never more than one line, never long."""
    text = shown("" if value is None else str(value))
    return text if len(text) <= LONGEST_CELL else f"{text[: LONGEST_CELL - 1]}…"


def columns_for(columns: Sequence[Column], wide: bool, with_namespace: bool) -> list[Column]:
    """The columns that are shown, after the namespace if objects are of several."""
    first = [NAMESPACE_COLUMN] if with_namespace else []
    return first + [column for column in columns if wide or not column.wide]


def table_lines(
    titles: Sequence[str], rows: Sequence[Sequence[object]], widths: Sequence[int] = ()
) -> list[str]:
    """A table as kubectl aligns it: columns as wide as their widest cell, three spaces in between."""
    cells = [[cell(value) for value in row] for row in rows]
    lines = [list(titles), *cells] if titles else cells
    sizes = list(widths) or [max(map(len, column)) for column in zip(*lines, strict=True)]
    return [
        GAP.join(text.ljust(size) for text, size in zip(line, sizes, strict=True)).rstrip() for line in lines
    ]


def print_table(titles: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    for line in table_lines(titles, rows):
        typer.echo(line)


def without_managed_fields(manifest: Manifest) -> Manifest:
    """An object as kubectl shows it, without who set which field."""
    metadata = {
        key: value for key, value in (manifest.get("metadata") or {}).items() if key != "managedFields"
    }
    return {**manifest, "metadata": metadata}


def print_object(
    resource: Resource, manifest: Manifest, columns: Sequence[Column], output: ObjectFormat
) -> None:
    """One object, as `get NAME` shows it."""
    if output in (ObjectFormat.TABLE, ObjectFormat.WIDE):
        chosen = columns_for(columns, output is ObjectFormat.WIDE, with_namespace=False)
        print_table([column.title for column in chosen], [[column.value(manifest) for column in chosen]])
    else:
        print_document(resource, manifest, output)


def print_document(resource: Resource, manifest: Manifest, output: ObjectFormat) -> None:
    """An object as JSON, YAML or its name."""
    if output is ObjectFormat.NAME:
        typer.echo(shown(full_name(resource, name_of(manifest))))
    else:
        write_document(without_managed_fields(manifest), output)


def write_document(content: object, output: ObjectFormat) -> None:
    """JSON or YAML; both escape what a terminal could take for a command."""
    from stromboli.cli.output import Format, write_as

    write_as(Format(output.value), content)


def write_list(items: Sequence[Manifest], output: ObjectFormat) -> None:
    """Several objects as a list, in JSON or YAML."""
    content = [without_managed_fields(item) for item in items]
    write_document({"apiVersion": "v1", "kind": "List", "items": content}, output)


def print_list(
    session: ClusterSession,
    resource: Resource,
    items: Sequence[Manifest],
    columns: Sequence[Column],
    output: ObjectFormat,
) -> None:
    """All objects of a list."""
    if output is ObjectFormat.NAME:
        for item in items:
            print_document(resource, item, output)
    elif output in (ObjectFormat.JSON, ObjectFormat.YAML):
        write_list(items, output)
    elif not items:
        where = f" in namespace {session.namespace}" if resource.namespaced and session.scope else ""
        typer.echo(shown(f"No {resource.plural} found{where}."), err=True)
    else:
        chosen = _chosen(session, resource, columns, output)
        rows = [[column.value(item) for column in chosen] for item in items]
        print_table([column.title for column in chosen], rows)


def _chosen(
    session: ClusterSession, resource: Resource, columns: Sequence[Column], output: ObjectFormat
) -> list[Column]:
    several = resource.namespaced and session.all_namespaces
    return columns_for(columns, output is ObjectFormat.WIDE, several)


async def show_list(
    session: ClusterSession,
    resource: Resource,
    columns: Sequence[Column],
    output: ObjectFormat,
    watch: bool = False,
    labels: str = "",
    fields: str = "",
    keep: Callable[[Manifest], bool] = lambda _: True,
    prepare: Callable[[Manifest], Awaitable[None]] | None = None,
) -> None:
    """List and show objects; with `watch` go on with every change, until interrupted.

    `prepare` reads again what the columns need beside an object, before its change is shown.
    """
    listed = await session.list(resource, labels=labels, fields=fields)
    items = [item for item in listed.items if keep(item)]
    print_list(session, resource, items, columns, output)
    if watch:
        await _show_changes(session, resource, columns, output, listed, labels, fields, keep, prepare)


async def _show_changes(
    session: ClusterSession,
    resource: Resource,
    columns: Sequence[Column],
    output: ObjectFormat,
    listed: ObjectList,
    labels: str,
    fields: str,
    keep: Callable[[Manifest], bool],
    prepare: Callable[[Manifest], Awaitable[None]] | None,
) -> None:
    """A row, document or name for each change; the header before the first row, unless the list had it."""
    from stromboli.cli.cluster.lasting_watch import lasting_changes

    chosen = _chosen(session, resource, columns, output)
    titles = [column.title for column in chosen]
    rows = [[cell(column.value(item)) for column in chosen] for item in listed.items if keep(item)]
    widths = [max(map(len, texts)) for texts in zip(titles, *rows, strict=True)]
    has_header = bool(rows)
    async for change in lasting_changes(session, resource, listed.version, labels=labels, fields=fields):
        if not keep(change.object):
            continue
        if output in (ObjectFormat.TABLE, ObjectFormat.WIDE):
            if prepare is not None:
                await prepare(change.object)
            row = [cell(column.value(change.object)) for column in chosen]
            widths = [max(size, len(text)) for size, text in zip(widths, row, strict=True)]
            for line in table_lines((), [row] if has_header else [titles, row], widths):
                typer.echo(line)
            has_header = True
        else:
            print_document(resource, change.object, output)
        sys.stdout.flush()
