"""A container that clients are attached to: each sees its output from now on, and may write to its input."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from stromboli.embedded.nodes.pod_streams import StreamRefused

if TYPE_CHECKING:
    from stromboli.embedded.nodes.real.container_process import ContainerProcess
    from stromboli.embedded.nodes.real.process_stdio import ProcessInput

ATTACH_BUFFER = 256 * 1024
"""Bytes of output that are kept for a client that reads slowly; a container that writes more waits for it."""
PIECE = 128
"""Bytes that a piece counts in addition to its own, lest many small ones take much memory."""
ATTACH_TIMEOUT = 5.0
"""Seconds for which a container waits for a client that does not read, before that is cut off."""


class AttachedOutput:
    """Output on its way to a client, of bounded size."""

    def __init__(self) -> None:
        self._pieces: deque[bytes] = deque()
        self._size = 0
        self._ended = False
        self._changed = asyncio.Event()

    def put(self, piece: bytes) -> None:
        if not self._ended:
            self._pieces.append(piece)
            self._size += len(piece) + PIECE
            self._changed.set()

    async def read(self) -> bytes:
        while not self._pieces and not self._ended:
            self._changed.clear()
            await self._changed.wait()
        if not self._pieces:
            return b""
        piece = self._pieces.popleft()
        self._size -= len(piece) + PIECE
        self._changed.set()
        return piece

    def end(self) -> None:
        self._ended = True
        self._changed.set()

    async def wait_for_room(self) -> bool:
        """False if the client does not read."""
        deadline = asyncio.get_running_loop().time() + ATTACH_TIMEOUT
        while self._size > ATTACH_BUFFER and not self._ended:
            self._changed.clear()
            try:
                async with asyncio.timeout_at(deadline):
                    await self._changed.wait()
            except TimeoutError:
                return False
        return True


class AttachedContainer:
    """A client and the container; within `async with`, at whose end the container goes on."""

    def __init__(self, container: ContainerProcess, stdin: bool) -> None:
        self._container = container
        self.stdout = AttachedOutput()
        self.stderr = None if container.stdio.stderr is None else AttachedOutput()
        self.stdin = AttachedInput(container) if stdin and container.launch.stdin else None
        self._too_slow = False
        self._ended = asyncio.Event()

    @property
    def stdio(self) -> AttachedContainer:
        return self

    def resize(self, rows: int, columns: int) -> None:
        self._container.stdio.resize(rows, columns)

    async def __aenter__(self) -> AttachedContainer:
        self._container.attached.add(self)
        if self._container.exited:
            self.end()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._container.attached.discard(self)
        self.end()
        if self.stdin is not None:
            self.stdin.end()

    async def wait(self) -> int:
        """0, whatever the exit code is: whoever is attached reads that in the pod's status."""
        await self._ended.wait()
        if self._too_slow:
            raise StreamRefused(
                f"cut off: the client left more than {ATTACH_BUFFER} bytes unread for {ATTACH_TIMEOUT:g} seconds"
            )
        return 0

    async def put(self, piece: bytes, error: bool) -> None:
        """Hand output on, as soon as the client has read nearly all that came before."""
        output = self.stderr if error and self.stderr is not None else self.stdout
        output.put(piece)
        if not await output.wait_for_room():
            self._too_slow = True
            self._container.attached.discard(self)
            self.end()

    def end(self) -> None:
        for output in (self.stdout, self.stderr):
            if output is not None:
                output.end()
        self._ended.set()


class AttachedInput:
    """The container's input, which other clients may write to as well."""

    def __init__(self, container: ContainerProcess) -> None:
        self._input: ProcessInput | None = container.stdio.stdin
        self._once = container.launch.stdin_once

    async def write(self, piece: bytes) -> bool:
        return self._input is not None and await self._input.write(piece)

    def end(self) -> None:
        """With `stdinOnce`, the input of the first client is all that there is."""
        if self._once and self._input is not None:
            self._input.end()
