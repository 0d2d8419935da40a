"""Options of commands that change objects: trying them first, and waiting for the effect."""

from __future__ import annotations

import asyncio
import enum
import math
import shutil
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING

import typer

from stromboli.cli.cli_errors import Usage
from stromboli.cli.cluster.cluster_errors import EXPIRED, FORBIDDEN, TimedOut, shown
from stromboli.cli.cluster.cluster_kinds import Manifest, full_name, name_of
from stromboli.kube.api_resources import Resource
from stromboli.kube.request import ApiError, NoResponse, is_transient

if TYPE_CHECKING:
    from stromboli.cli.cluster.cluster_session import ClusterSession, ObjectChange, ObjectList
    from stromboli.cli.cluster.object_output import ObjectFormat

POLL = 0.5
"""Seconds until a broken watch is begun again."""


class DryRun(enum.StrEnum):
    """`client` prints what would be sent, `server` lets the API server check it and store nothing."""

    NONE = "none"
    CLIENT = "client"
    SERVER = "server"


DRY_RUN = typer.Option(
    DryRun.NONE,
    "--dry-run",
    help="client: show what would be sent; server: let the cluster check it, and change nothing.",
)
WAIT = typer.Option(False, "--wait", show_default=False, help="Until it has come true.")
TIMEOUT = typer.Option(
    "0",
    "--timeout",
    metavar="TIME",
    show_default=False,
    help="The longest wait, such as 30s or 5m; 0: for ever.",
)


def seconds_of(timeout: str, option: str = "--timeout") -> float:
    """The longest wait in seconds, infinite for 0."""
    from stromboli.api.go_scalars import duration

    seconds = float(timeout) if timeout.isdecimal() and len(timeout) < 10 else duration(timeout)
    if seconds is None or not 0 <= seconds < math.inf:
        raise Usage(f"{option} {shown(timeout[:60])}: no time; write it as 30s, 5m or 1h30m")
    return seconds or math.inf


async def wait_until(
    session: ClusterSession,
    resource: Resource,
    name: str,
    reached: Callable[[Manifest | None], bool],
    timeout: float = math.inf,
    namespace: str | None = None,
    meaning: str = "it has come true",
    tell: Callable[[Manifest | None], str] | None = None,
) -> Manifest | None:
    """The object once it is as wanted (None if it is gone); `TimedOut` after the timeout.

    `reached` is asked for each state, and may raise `ClusterError` if it can never come true. On a terminal, `tell`
    says what is awaited while it waits.
    """
    limit = None if math.isinf(timeout) else timeout
    where = session.namespace if namespace is None else namespace
    progress = ProgressLine()
    note = None if tell is None else lambda current: progress.show(tell(current))
    try:
        async with asyncio.timeout(limit):
            return await _follow(session, resource, name, reached, where, note)
    except TimeoutError:
        raise TimedOut(
            f"{full_name(resource, name)}: after {timeout:g} s it is still not so that {meaning};"
            " --timeout says how long to wait"
        ) from None
    finally:
        progress.clear()


async def _follow(
    session: ClusterSession,
    resource: Resource,
    name: str,
    reached: Callable[[Manifest | None], bool],
    namespace: str,
    note: Callable[[Manifest | None], None] | None,
) -> Manifest | None:
    """List and watch until it is as wanted; who may not watch, as with Volcano's own roles, looks again and again."""
    fields, answered = f"metadata.name={name}", False
    while True:
        try:
            listed = await session.list(resource, namespace, "", fields)
            answered = True
            states = _states(listed, session.watch(resource, listed.version, namespace, "", fields))
            async for current in states:
                if reached(current):
                    return current
                if note is not None:
                    note(current)
        except (NoResponse, ApiError) as error:
            if not answered or not is_transient(error):
                raise
        await asyncio.sleep(POLL)


async def _states(listed: ObjectList, changes: AsyncIterator[ObjectChange]) -> AsyncIterator[Manifest | None]:
    """An object as it was listed, and after each change; None where it does not exist."""
    yield listed.items[0] if listed.items else None
    try:
        async for change in changes:
            if change.type != "BOOKMARK":
                yield None if change.type == "DELETED" else change.object
    except ApiError as error:
        if error.status not in (FORBIDDEN, EXPIRED):
            raise


class ProgressLine:
    """A line on a terminal that is written over; nothing elsewhere."""

    def __init__(self) -> None:
        self._is_terminal = sys.stderr.isatty()
        self._shown = False

    def show(self, text: str) -> None:
        if self._is_terminal:
            width = max(20, shutil.get_terminal_size().columns - 1)
            sys.stderr.write(f"\r\x1b[K{shown(text)[:width]}")
            sys.stderr.flush()
            self._shown = True

    def clear(self) -> None:
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._shown = False


def tell_change(resource: Resource, name: str, verb: str, dry_run: DryRun = DryRun.NONE) -> None:
    """`job.batch.volcano.sh/train created (server dry run)`, as kubectl tells it."""
    suffix = {DryRun.NONE: "", DryRun.CLIENT: " (dry run)", DryRun.SERVER: " (server dry run)"}[dry_run]
    typer.echo(shown(f"{full_name(resource, name)} {verb}{suffix}"))


def report_changes(
    resource: Resource,
    manifests: Sequence[Manifest],
    verb: str,
    output: ObjectFormat,
    dry_run: DryRun = DryRun.NONE,
) -> None:
    """What was done to objects: a sentence for each, or with -o the objects as they are now."""
    from stromboli.cli.cluster.object_output import ObjectFormat, print_document, write_list

    if output in (ObjectFormat.TABLE, ObjectFormat.WIDE):
        for manifest in manifests:
            tell_change(resource, name_of(manifest), verb, dry_run)
    elif output is ObjectFormat.NAME or len(manifests) == 1:
        for manifest in manifests:
            print_document(resource, manifest, output)
    else:
        write_list(manifests, output)


class ChangeReport:
    """What was done to objects, told of each as it is done; as JSON and YAML of all at the end."""

    def __init__(self, resource: Resource, verb: str, output: ObjectFormat, dry_run: DryRun) -> None:
        self._resource = resource
        self._verb = verb
        self._output = output
        self._dry_run = dry_run
        self._kept: list[Manifest] = []

    def add(self, manifest: Manifest, resource: Resource | None = None, verb: str = "") -> None:
        """An object that was changed; of another kind or in another way than the others, if so."""
        from stromboli.cli.cluster.object_output import ObjectFormat

        if self._output in (ObjectFormat.JSON, ObjectFormat.YAML):
            self._kept.append(manifest)
        else:
            kind, what = resource or self._resource, verb or self._verb
            report_changes(kind, [manifest], what, self._output, self._dry_run)

    def end(self) -> None:
        if self._kept:
            report_changes(self._resource, self._kept, self._verb, self._output, self._dry_run)
