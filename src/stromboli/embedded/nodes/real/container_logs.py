"""Container logs: output line by line with its time, in files of bounded size; written and read here."""

from __future__ import annotations

import asyncio
import os
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from stromboli.embedded.nodes.pod_logs import LogQuery

LARGEST = 16 * 1024 * 1024
"""Bytes of a file; a full file becomes the older half, and the half before it is deleted."""
LONGEST_LINE = 64 * 1024
POLL = 0.2
READ = 1024 * 1024


def pod_folder(pods: Path, namespace: str, name: str, uid: str) -> Path:
    """The pod's folder; its name is cut, as all three parts could be longer than a file name may be."""
    return pods / f"{namespace}_{name[:120]}_{uid}"


def log_file(folder: Path, container: str, run: int) -> Path:
    return folder / "logs" / container / f"{run}.log"


class LogFile:
    """The log of one run of a container, being written."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        self._path = path
        self._clock = clock
        self._rest = b""
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file: BinaryIO = path.open("wb", buffering=0)
        self._size = 0

    def write(self, piece: bytes) -> None:
        lines = (self._rest + piece).split(b"\n")
        self._rest = lines.pop()
        if len(self._rest) > LONGEST_LINE:
            lines.append(self._rest)
            self._rest = b""
        if lines:
            self._put(lines)

    def close(self) -> None:
        if self._rest:
            self._put([self._rest])
            self._rest = b""
        self._file.close()

    def _put(self, lines: list[bytes]) -> None:
        stamp = datetime.fromtimestamp(self._clock(), UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ ").encode()
        text = b"".join(stamp + line + b"\n" for line in lines)
        with suppress(OSError):  # a full disk loses output, but does not stop the container
            if self._size + len(text) > LARGEST // 2:
                self._rotate()
            self._file.write(text)
            self._size += len(text)

    def _rotate(self) -> None:
        """Start a new file; the full one stays open until the new one is."""
        with suppress(FileNotFoundError):
            self._path.replace(older(self._path))
        full, self._file = self._file, self._path.open("wb", buffering=0)
        self._size = 0
        full.close()


def older(path: Path) -> Path:
    return path.with_suffix(".old")


def delete_log(path: Path) -> None:
    """Both halves."""
    path.unlink(missing_ok=True)
    older(path).unlink(missing_ok=True)


def runs(folder: Path, container: str) -> list[int]:
    """The runs of a container that have a log, first to last."""
    return sorted(
        int(path.stem) for path in (folder / "logs" / container).glob("*.log") if path.stem.isdecimal()
    )


def find_log(folder: Path, query: LogQuery) -> Path | None:
    """The log of the last run, or of the one before; None if the container did not run as often."""
    run_numbers = runs(folder, query.container)
    back = 2 if query.previous else 1
    return log_file(folder, query.container, run_numbers[-back]) if len(run_numbers) >= back else None


async def read_log(path: Path, query: LogQuery, ended: Callable[[], bool]) -> AsyncGenerator[bytes]:
    """The lines that were asked for; with `follow` also those to come until the container has `ended`."""
    with _Reader(path) as reader:
        lines: Iterator[bytes] = (line for line in reader.existing_lines() if _is_wanted(line, query))
        if query.tail is not None:
            lines = iter(deque(lines, maxlen=max(0, query.tail)))
        for block in _blocks(_formatted(line, query) for line in lines):
            yield block
            await asyncio.sleep(0)
        while query.follow:
            at_end = ended()  # before reading, so that the last lines are not missed
            piece = b"".join(_formatted(line, query) for line in reader.new_lines())
            if piece:
                yield piece
            elif at_end:
                return
            else:
                await asyncio.sleep(POLL)


class _Reader:
    """Reads a log from its beginning, across rotations."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BinaryIO = path.open("rb")
        self._rest = b""

    def __enter__(self) -> _Reader:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def existing_lines(self) -> Iterator[bytes]:
        """Whole lines."""
        with suppress(FileNotFoundError), older(self._path).open("rb") as before:
            yield from before
        for line in self._file:
            if line.endswith(b"\n"):
                yield line
            else:
                self._rest = line

    def new_lines(self) -> list[bytes]:
        new = self._file.read(READ)
        if (
            not new
            and self._path.exists()
            and self._path.stat().st_ino != os.fstat(self._file.fileno()).st_ino
        ):
            self._file.close()
            self._file = self._path.open("rb")
            new = self._file.read(READ)
        *lines, self._rest = (self._rest + new).split(b"\n")
        return [line + b"\n" for line in lines]


def _is_wanted(line: bytes, query: LogQuery) -> bool:
    if query.since is None:
        return True
    stamp = line.partition(b" ")[0].decode(errors="replace")
    try:
        return datetime.fromisoformat(stamp).timestamp() >= query.since
    except ValueError:
        return True


def _formatted(line: bytes, query: LogQuery) -> bytes:
    return line if query.timestamps else line.partition(b" ")[2]


def _blocks(lines: Iterator[bytes], size: int = 256 * 1024) -> Iterator[bytes]:
    block = bytearray()
    for line in lines:
        block += line
        if len(block) >= size:
            yield bytes(block)
            block.clear()
    if block:
        yield bytes(block)
