"""Options of commands that change objects: trying them first, and waiting for the effect."""

from __future__ import annotations

import asyncio
import enum
import math
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import typer

from stromboli.cli.cli_errors import Usage
from stromboli.cli.cluster.cluster_errors import ClusterError
from stromboli.cli.cluster.cluster_kinds import Manifest, full_name
from stromboli.kube.api_resources import Resource
from stromboli.kube.request import ApiError, NoResponse

if TYPE_CHECKING:
    from stromboli.cli.cluster.cluster_session import ClusterSession

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


def seconds_of(timeout: str) -> float:
    """The longest wait in seconds, infinite for 0."""
    from stromboli.api.go_scalars import duration

    seconds = float(timeout) if timeout.isdecimal() and len(timeout) < 10 else duration(timeout)
    if seconds is None or not 0 <= seconds < math.inf:
        raise Usage(f"--timeout {timeout}: no time; write it as 30s, 5m or 1h30m")
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
    """The object once it is as wanted (None if it is gone); `ClusterError` after the timeout.

    `reached` is asked for each state, and may raise `ClusterError` if it can never come true. On a terminal, `tell`
    says what is awaited while it waits.
    """
    limit = None if math.isinf(timeout) else timeout
    where = session.namespace if namespace is None else namespace
    progress = _Progress(tell)
    try:
        async with asyncio.timeout(limit):
            return await _follow(session, resource, name, reached, where, progress)
    except TimeoutError:
        raise ClusterError(
            f"{full_name(resource, name)}: not so within {timeout:g} seconds: {meaning};"
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
    progress: _Progress,
) -> Manifest | None:
    fields = f"metadata.name={name}"
    while True:
        listed = await session.list(resource, namespace, fields=fields)
        current = listed.items[0] if listed.items else None
        if reached(current):
            return current
        progress.show(current)
        try:
            async for change in session.watch(resource, listed.version, namespace, fields=fields):
                if change.type == "BOOKMARK":
                    continue
                current = None if change.type == "DELETED" else change.object
                if reached(current):
                    return current
                progress.show(current)
        except NoResponse:
            pass
        except ApiError as error:
            if error.status != 410:
                raise
        await asyncio.sleep(POLL)


class _Progress:
    """A line on a terminal that is written over; nothing elsewhere."""

    def __init__(self, tell: Callable[[Manifest | None], str] | None) -> None:
        self._tell = tell if sys.stderr.isatty() else None
        self._shown = False

    def show(self, current: Manifest | None) -> None:
        if self._tell is not None:
            from stromboli.cli.cluster.cluster_errors import shown

            sys.stderr.write(f"\r\x1b[K{shown(self._tell(current))[:150]}")
            sys.stderr.flush()
            self._shown = True

    def clear(self) -> None:
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
