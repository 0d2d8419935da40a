"""The lines of a trace, plain or compressed with gzip, bounded in size."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, cast

from stromboli.simulator.workloads.workload_errors import WorkloadError

MAX_BYTES = 2**30
"""Of a trace once it is decompressed."""
MAX_LINE = 2**16
"""Bytes of a line, unless it holds an object."""
REPORT_EVERY = 10_000
"""Lines or jobs between two reports of progress."""
_GZIP = b"\x1f\x8b"
_CHUNK = 2**20

Progress = Callable[[str, int, int], None]
"""Called now and then while a file is read: a step, how much of it is done, and of how much."""


def no_progress(step: str, done: int, total: int) -> None:
    """Report nothing."""


def trace_lines(
    path: str, longest: int = MAX_LINE, progress: Progress = no_progress
) -> Iterator[tuple[int, str]]:
    """Each line with its number, without a byte order mark; what is no UTF-8 in it is replaced."""
    with _opened(path) as (stored, plain):
        size = os.fstat(stored.fileno()).st_size
        for number, line in _bounded(path, plain, longest):
            if number % REPORT_EVERY == 0:
                progress("Reading", stored.tell(), size)
            yield number, line


def count_lines(path: str, largest: int) -> int:
    """The lines of a trace of at most so many bytes, which is much faster than to read them."""
    size = lines = 0
    with _opened(path) as (_, plain):
        while chunk := plain.read(_CHUNK):
            size += len(chunk)
            lines += chunk.count(b"\n")
            if size > largest:
                raise WorkloadError(path, f"it is larger than {largest} bytes; cut it into parts")
    return lines


@contextmanager
def _opened(path: str) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """A file as it is stored, and decompressed."""
    try:
        with open(path, "rb") as file:
            compressed = file.read(len(_GZIP)) == _GZIP
            file.seek(0)
            yield file, cast("IO[bytes]", gzip.GzipFile(fileobj=file)) if compressed else file
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise WorkloadError(path, f"cannot be read: {reason}") from None


def _bounded(path: str, file: IO[bytes], longest: int) -> Iterator[tuple[int, str]]:
    size = number = 0
    while line := file.readline(longest + 1):
        number += 1
        size += len(line)
        if len(line) > longest:
            raise WorkloadError(path, f"the line is longer than {longest} bytes", number)
        if size > MAX_BYTES:
            raise WorkloadError(path, f"it is larger than {MAX_BYTES} bytes; cut it into parts", number)
        yield number, line.decode("utf-8-sig" if number == 1 else "utf-8", "replace")
