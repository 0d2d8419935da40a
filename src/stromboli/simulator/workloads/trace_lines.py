"""The lines of a trace, plain or compressed with gzip, bounded in size."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from typing import IO, cast

from stromboli.simulator.workloads.workload_errors import WorkloadError

MAX_BYTES = 2**30
"""Of a trace once it is decompressed."""
MAX_LINE = 2**16
"""Bytes of a line, unless it holds an object."""
_GZIP = b"\x1f\x8b"


def trace_lines(path: str, longest: int = MAX_LINE) -> Iterator[tuple[int, str]]:
    """Each line with its number, without a byte order mark; what is no UTF-8 in it is replaced."""
    try:
        with open(path, "rb") as file:
            compressed = file.read(len(_GZIP)) == _GZIP
            file.seek(0)
            yield from _bounded(
                path, cast("IO[bytes]", gzip.GzipFile(fileobj=file)) if compressed else file, longest
            )
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
