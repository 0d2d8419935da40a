"""The end of a container's log, with the rights of the viewer: bounded in lines, bytes and time."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from stromboli.cli.cluster.cluster_errors import refusal_text, shown
from stromboli.cli.cluster.cluster_kinds import PODS
from stromboli.cli.following.log_lines import LineCutter, harmless
from stromboli.kube.api_client import with_query
from stromboli.kube.request import ApiError, NoResponse

if TYPE_CHECKING:
    from stromboli.cli.cluster.cluster_session import ClusterSession

LONGEST_LOG_LINE = 4096
"""Bytes of a line that are shown."""
LARGEST_LOG = 256 * 1024
"""Bytes of all lines that are shown together."""
LARGEST_LOG_READ = 4 * 1024 * 1024
"""Bytes that are read for them."""
LOG_TIMEOUT = 10.0
"""Seconds for a log to be read."""


class LogChoice(NamedTuple):
    """Which log, and how many of its last lines."""

    pod: str
    container: str
    previous: bool = False
    tail: int = 100


class LogTail(NamedTuple):
    """The last lines of a log, or why there are none."""

    lines: list[str]
    note: str = ""


async def read_log(session: ClusterSession, namespace: str, choice: LogChoice) -> LogTail:
    """The end of a log; never an error."""
    query: dict[str, str | int] = {
        "container": choice.container,
        "tailLines": choice.tail,
        "limitBytes": LARGEST_LOG_READ,
    }
    if choice.previous:
        query["previous"] = "true"
    path = with_query(PODS.path(namespace, choice.pod, "log"), query)
    try:
        async with asyncio.timeout(LOG_TIMEOUT):
            return await _read(session, path)
    except ApiError as error:
        return LogTail([], refusal_text(error))
    except NoResponse as error:
        return LogTail([], shown(f"the log does not come: {error}"))
    except TimeoutError:
        return LogTail([], f"the log does not come within {LOG_TIMEOUT:g} seconds")


async def _read(session: ClusterSession, path: str) -> LogTail:
    cutter, lines, size, read = LineCutter(LONGEST_LOG_LINE), deque[str](), 0, 0
    left_out = False

    def add(line: bytes) -> None:
        nonlocal size, left_out
        lines.append(harmless(line).expandtabs(8))
        size += len(lines[-1].encode())
        while size > LARGEST_LOG and len(lines) > 1:
            size -= len(lines.popleft().encode())
            left_out = True

    async with session.client.stream(path, LOG_TIMEOUT) as pieces:
        async for piece in pieces:
            for line in cutter.feed(piece[: LARGEST_LOG_READ - read]):
                add(line)
            read += len(piece)
            if read >= LARGEST_LOG_READ:
                break
    for line in cutter.end():
        add(line)
    return LogTail(list(lines), _note(left_out, read >= LARGEST_LOG_READ))


def _note(left_out: bool, cut: bool) -> str:
    if cut:
        return f"its last lines are longer than {LARGEST_LOG_READ:,} bytes together: the latest are not shown"
    return f"only the last {LARGEST_LOG:,} bytes of these lines are shown" if left_out else ""
