"""The end of a log: bounded whatever a container writes, and in words where it cannot be read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from stromboli.cli.cluster.cluster_session import ClusterSession
from stromboli.cli.dashboard.reading.log_reading import (
    LARGEST_LOG,
    LARGEST_LOG_READ,
    LONGEST_LOG_LINE,
    LogChoice,
    LogTail,
    read_log,
)
from stromboli.kube.request import ApiError, NoResponse

CHOICE = LogChoice("p", "main")


class Pieces:
    """A client that is sent these pieces, or an error."""

    def __init__(self, *pieces: bytes | Exception) -> None:
        self._pieces = pieces
        self.taken = 0

    @asynccontextmanager
    async def stream(self, path: str, idle_timeout: float) -> AsyncIterator[AsyncIterator[bytes]]:
        async def come() -> AsyncIterator[bytes]:
            for piece in self._pieces:
                if isinstance(piece, Exception):
                    raise piece
                self.taken += 1
                yield piece

        yield come()


def tail(*pieces: bytes | Exception) -> LogTail:
    session = ClusterSession(cast(Any, Pieces(*pieces)), None, "default")
    return asyncio.run(read_log(session, "default", CHOICE))


def test_lines_come_as_they_were_written():
    assert tail(b"one\ntw", b"o\n\nlast") == LogTail(["one", "two", "", "last"])


def test_many_bytes_are_bounded_and_the_latest_stay():
    read = tail(*[b"%07d " % number + b"x" * 1000 + b"\n" for number in range(2000)])
    assert sum(map(len, read.lines)) <= LARGEST_LOG
    assert read.lines[-1].startswith("0001999")
    assert "only the last" in read.note


def test_what_never_ends_is_read_no_further():
    client = Pieces(*[b"x" * 65536] * 1000)
    read = asyncio.run(read_log(ClusterSession(cast(Any, client), None, "default"), "default", CHOICE))
    assert client.taken <= LARGEST_LOG_READ // 65536
    assert len(read.lines) == 1
    assert len(read.lines[0]) < LONGEST_LOG_LINE + 100
    assert "the latest are not shown" in read.note


def test_errors_are_sentences():
    assert "log in again" in tail(ApiError(401, "Unauthorized", "no")).note
    assert tail(b"one\n", NoResponse("broken")).note == "the log does not come: broken"


@given(st.lists(st.binary(max_size=200), max_size=20))
def test_whatever_is_written_is_harmless(pieces: list[bytes]):
    for line in tail(*pieces).lines:
        assert line.isprintable()
