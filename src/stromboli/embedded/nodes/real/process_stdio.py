"""Standard input and output of a process: pipes, or a pseudo-terminal.

The pipes are ours: with asyncio's, a process does not end while a process that it left running holds them. What is not
read stays in the pipe, so that a process whose reader is slow waits, and nothing piles up here.
"""

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
import struct
import termios
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

CHUNK = 64 * 1024
"""Bytes that are read at once."""
OUTPUT_WAIT = 2.0
"""Seconds that output is waited for after the process exited."""
LATE_READS = 16
"""How often output is read after that: more than a full pipe takes, if its reader was slow."""
LATE_WAIT = 0.05
"""Seconds that each of these waits."""


class _OutputProtocol(asyncio.StreamReaderProtocol):
    """A terminal whose other end is closed is at its end; as an error, that would hide what was not read yet."""

    def connection_lost(self, error: Exception | None) -> None:
        super().connection_lost(None if isinstance(error, OSError) and error.errno == errno.EIO else error)


class ProcessOutput:
    """What a process writes to a pipe or terminal."""

    def __init__(self, reader: asyncio.StreamReader, pipe: asyncio.ReadTransport) -> None:
        self._reader = reader
        self._pipe = pipe
        self._exited: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        self._late_reads = 0

    @classmethod
    async def open(cls, descriptor: int) -> ProcessOutput:
        reader = asyncio.StreamReader()
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: _OutputProtocol(reader), os.fdopen(descriptor, "rb", buffering=0)
        )
        return cls(reader, transport)

    async def read(self) -> bytes:
        """The next piece; empty at the end, or if nothing comes any more after the process exited."""
        reading = asyncio.ensure_future(self._reader.read(CHUNK))
        try:
            waiting: set[asyncio.Future[Any]] = {reading, self._exited}
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            if self._exited.done():
                await asyncio.wait({reading}, timeout=self._patience())
            return reading.result() if reading.done() else b""
        except OSError:
            return b""
        finally:
            reading.cancel()

    def _patience(self) -> float:
        left = self._exited.result() + OUTPUT_WAIT - asyncio.get_running_loop().time()
        if left > 0:
            return left
        self._late_reads += 1
        return LATE_WAIT if self._late_reads <= LATE_READS else 0.0

    def end(self) -> None:
        """The process exited: only a process that left its group may still hold the pipe, and it is not waited for."""
        if not self._exited.done():
            self._exited.set_result(asyncio.get_running_loop().time())

    def close(self) -> None:
        self.end()
        self._pipe.close()


class _WriteControl(asyncio.BaseProtocol):
    """Whether a pipe has room, and whether it is open."""

    def __init__(self) -> None:
        self.room = asyncio.Event()
        self.room.set()
        self.lost = False

    def pause_writing(self) -> None:
        self.room.clear()

    def resume_writing(self) -> None:
        self.room.set()

    def connection_lost(self, _: Exception | None) -> None:
        self.lost = True
        self.room.set()


class ProcessInput:
    """What a process reads from a pipe or terminal."""

    def __init__(self, pipe: asyncio.WriteTransport, control: _WriteControl, terminal: bool) -> None:
        self._pipe = pipe
        self._control = control
        self._terminal = terminal

    @classmethod
    async def open(cls, descriptor: int, terminal: bool = False) -> ProcessInput:
        pipe, control = await asyncio.get_running_loop().connect_write_pipe(
            _WriteControl, os.fdopen(descriptor, "wb", buffering=0)
        )
        return cls(pipe, control, terminal)

    async def write(self, piece: bytes) -> bool:
        """Returns once the process has read nearly all; False if it does not read any more."""
        if not self._pipe.is_closing():
            self._pipe.write(piece)
            await self._control.room.wait()
        return not self._control.lost

    def end(self) -> None:
        """The input ends; a terminal stays open, as its other end is the output."""
        if not self._terminal and not self._pipe.is_closing():
            self._pipe.write_eof()

    def close(self) -> None:
        if not self._pipe.is_closing() or self._pipe.get_write_buffer_size():
            self._pipe.abort()


@dataclass(slots=True)
class ProcessStdio:
    """Our ends, and the descriptors of the process's ends until it has them."""

    stdout: ProcessOutput
    stderr: ProcessOutput | None = None
    """None if it goes where the output goes."""
    stdin: ProcessInput | None = None
    terminal: int | None = None
    """A descriptor of the terminal."""
    ends: list[int] = field(default_factory=list)
    """Of standard input (-1 for none), output and errors."""

    @classmethod
    async def pipes(cls, stdin: bool = False, stderr: bool = False) -> ProcessStdio:
        """`OSError` if no more files may be open."""
        ours, end = os.pipe()
        stdio = await cls._with_output(ours, [-1, end, end])
        try:
            if stdin:
                stdio.ends[0], ours = os.pipe()
                stdio.stdin = await ProcessInput.open(ours)
            if stderr:
                ours, stdio.ends[2] = os.pipe()
                stdio.stderr = await ProcessOutput.open(ours)
        except BaseException:  # also if the caller is cancelled
            stdio.close_ends()
            stdio.close()
            raise
        return stdio

    @classmethod
    async def pseudo_terminal(cls) -> ProcessStdio:
        """`OSError` if no more files may be open."""
        ours, end = os.openpty()
        stdio = await cls._with_output(ours, [end, end, end])
        try:
            stdio.terminal = os.dup(ours)
            stdio.stdin = await ProcessInput.open(os.dup(ours), True)
        except BaseException:  # also if the caller is cancelled
            stdio.close_ends()
            stdio.close()
            raise
        return stdio

    @classmethod
    async def _with_output(cls, ours: int, ends: list[int]) -> ProcessStdio:
        """Take over the descriptors: they are closed if this fails or is cancelled."""
        try:
            return cls(await ProcessOutput.open(ours), ends=ends)
        except BaseException:
            _close(ends)
            raise

    def resize(self, rows: int, columns: int) -> None:
        """The size of the window, of which processes on the terminal are told."""
        if self.terminal is not None:
            size = struct.pack("HHHH", min(rows, 0xFFFF), min(columns, 0xFFFF), 0, 0)  # 16 bits each
            with suppress(OSError):
                fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, size)

    def close_ends(self) -> None:
        """Once the process has its ends, or could not be started."""
        _close(self.ends)
        self.ends = []

    def end(self) -> None:
        """The process exited."""
        for output in (self.stdout, self.stderr):
            if output is not None:
                output.end()

    def close(self) -> None:
        if self.terminal is not None:
            os.close(self.terminal)
            self.terminal = None
        for side in (self.stdout, self.stderr, self.stdin):
            if side is not None:
                side.close()


def _close(ends: list[int]) -> None:
    for descriptor in {*ends} - {-1}:
        os.close(descriptor)
