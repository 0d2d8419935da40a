"""Container logs: output line by line with its time, in files of bounded size; written and read here."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO

from stromboli.api.go_scalars import micro_time
from stromboli.embedded.nodes.pod_logs import LogQuery

LARGEST = 10 * 1024 * 1024
"""Bytes of a file, as a kubelet has it; then another one begins."""
MOST_FILES = 5
"""Files of a log; the oldest goes when there would be more."""
LONGEST_LINE = 64 * 1024
POLL = 0.2
READ = 256 * 1024
"""Bytes that are read at a time."""


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
        self._rests: dict[object, bytes] = {}
        """The beginning of a line, by where it comes from."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file: BinaryIO = path.open("wb", buffering=0)
        self._size = 0

    def write(self, piece: bytes, source: object = None) -> None:
        """Lines of several sources are not mixed."""
        *lines, rest = (self._rests.pop(source, b"") + piece).split(b"\n")
        if len(rest) > LONGEST_LINE:
            lines.append(rest)
        elif rest:
            self._rests[source] = rest
        if lines:
            self._put(lines)

    def close(self) -> None:
        if self._rests:
            self._put([*self._rests.values()])
            self._rests.clear()
        self._file.close()

    def _put(self, lines: list[bytes]) -> None:
        stamp = f"{micro_time(self._clock())} ".encode()
        text = b"".join(stamp + line + b"\n" for line in lines)
        with suppress(OSError):  # a full disk loses output, but does not stop the container
            if self._size and self._size + len(text) > LARGEST:
                self._rotate()
            self._file.write(text)
            self._size += len(text)

    def _rotate(self) -> None:
        """Start a new file; the full one stays open until the new one is."""
        names = generations(self._path)
        for elder, name in pairwise(names):
            with suppress(FileNotFoundError):
                name.replace(elder)
        full, self._file = self._file, self._path.open("wb", buffering=0)
        self._size = 0
        full.close()


def generations(path: Path) -> list[Path]:
    """The files of a log, the oldest first; the last is being written."""
    elders = [path.with_name(f"{path.name}.{number}") for number in range(MOST_FILES - 1, 0, -1)]
    return [*elders, path]


def delete_log(path: Path) -> None:
    """All files, that of earlier releases too."""
    for each in (*generations(path), path.with_suffix(".old")):
        each.unlink(missing_ok=True)


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
        if query.tail is not None:
            reader.skip_to_last(max(0, query.tail))
        while (lines := reader.existing_lines()) is not None:
            if block := _block(lines, query):
                yield block
            await asyncio.sleep(0)
        while query.follow:
            at_end = ended()  # before reading, so that the last lines are not missed
            if block := _block(reader.new_lines(), query):
                yield block
            elif at_end:
                return
            else:
                await asyncio.sleep(POLL)


class _Reader:
    """Reads a log from its beginning, across files, also those that begin meanwhile."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._files = _open_all(path)
        """Those that are yet to be read, the oldest first; the first is being read."""
        self._rest = b""

    def __enter__(self) -> _Reader:
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._files:
            file.close()

    def skip_to_last(self, count: int) -> None:
        """Go to where so many lines are left."""
        for index in range(len(self._files) - 1, -1, -1):
            position, count = _before_last_lines(self._files[index], count)
            self._files[index].seek(position)
            if position:
                for file in self._files[:index]:
                    file.close()
                del self._files[:index]
                return

    def existing_lines(self) -> list[bytes] | None:
        """The next whole lines; None once all files that were there have been read."""
        piece = self._files[0].read(READ)
        while not piece and len(self._files) > 1:
            self._files.pop(0).close()
            piece = self._files[0].read(READ)
        return self._lines(piece) if piece else None

    def new_lines(self) -> list[bytes]:
        file = self._files[0]
        piece = file.read(READ)
        if not piece and (newer := self._newer_file()) is not None:
            piece = file.read(READ)  # what was written before the next file began
            if piece:
                newer.close()
            else:
                file.close()
                self._files = [newer]
                piece = newer.read(READ)
        return self._lines(piece)

    def _lines(self, piece: bytes) -> list[bytes]:
        *lines, self._rest = (self._rest + piece).split(b"\n")
        return [line + b"\n" for line in lines]

    def _newer_file(self) -> BinaryIO | None:
        """The file that follows the one being read, if there is one; the oldest if that is gone."""
        own = _inode(self._files[0])
        while True:
            inodes = [_inode_at(name) for name in generations(self._path)]
            if own == inodes[-1] or inodes[-1] is None:
                return None
            first = next(index for index, inode in enumerate(inodes) if inode is not None)
            position = inodes.index(own) + 1 if own in inodes else first
            with suppress(FileNotFoundError):
                newer = generations(self._path)[position].open("rb")
                if _inode(newer) == inodes[position]:  # else they have moved on meanwhile
                    return newer
                newer.close()


def _open_all(path: Path) -> list[BinaryIO]:
    """The files of a log, the oldest first; opened from the last on, as they become older meanwhile."""
    files: list[BinaryIO] = []
    for name in reversed(generations(path)):
        with suppress(FileNotFoundError):
            file = name.open("rb")
            if _inode(file) in map(_inode, files):
                file.close()
            else:
                files.insert(0, file)
    if not files:
        raise FileNotFoundError(path)
    return files


def _inode(file: BinaryIO) -> int:
    return os.fstat(file.fileno()).st_ino


def _inode_at(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except FileNotFoundError:
        return None


def _before_last_lines(file: BinaryIO, count: int) -> tuple[int, int]:
    """Where the last lines of a file begin, and how many more are wanted from files before it."""
    end = file.seek(0, os.SEEK_END)
    if count == 0:
        return end, 0
    newlines = 0
    while end > 0:
        start = max(0, end - READ)
        file.seek(start)
        piece = file.read(end - start)
        found = piece.count(b"\n")
        if newlines + found > count:
            for _ in range(newlines + found - count):
                skipped = piece.find(b"\n")
                piece = piece[skipped + 1 :]
            return end - len(piece), 0
        newlines, end = newlines + found, start
    return 0, count - newlines


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


def _block(lines: list[bytes], query: LogQuery) -> bytes:
    return b"".join(_formatted(line, query) for line in lines if _is_wanted(line, query))
