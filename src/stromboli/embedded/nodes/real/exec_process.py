"""A further command in a running container: `kubectl exec`, exec probes and lifecycle hooks.

It starts with what the container's own process started with, and ends with it at the latest.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from stromboli.embedded.nodes.real.container_environment import ContainerError
from stromboli.embedded.nodes.real.container_process import ContainerProcess
from stromboli.embedded.nodes.real.process_start import ProcessGroup, start_process
from stromboli.embedded.nodes.real.process_stdio import ProcessStdio

HANGUP_GRACE = 1.0
"""Seconds from the hangup of a command whose client left to its kill."""


class ExecProcess:
    """A started command; within `async with`, at whose end nothing of it runs any more."""

    def __init__(self, container: ContainerProcess, group: ProcessGroup, stdio: ProcessStdio) -> None:
        self.stdio = stdio
        self._container = container
        self._group = group
        self._exit = asyncio.create_task(self._wait())
        container.commands.add(self)

    @classmethod
    async def start(
        cls, container: ContainerProcess, arguments: Sequence[str], stdio: ProcessStdio
    ) -> ExecProcess:
        """`ContainerError` if there is no such command, or the container has ended."""
        if container.exited:
            stdio.close_ends()
            stdio.close()
            raise ContainerError("the container has ended", "RunContainerError")
        launch = replace(container.launch, arguments=[*arguments])
        group = await start_process(launch, container.group.guardian, stdio)
        command = cls(container, group, stdio)
        if container.exited:  # meanwhile
            command.kill()
        return command

    async def __aenter__(self) -> ExecProcess:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Hang up, then kill, if it still runs."""
        try:
            if not self._exit.done():
                self._group.signal(signal.SIGHUP)
                await asyncio.wait({self._exit}, timeout=HANGUP_GRACE)
        finally:
            self.kill()
            try:
                await asyncio.wait({self._exit}, timeout=HANGUP_GRACE)
            finally:
                self.stdio.close()

    async def wait(self) -> int:
        """The exit code; 128 and the number of the signal that ended it."""
        return await asyncio.shield(self._exit)

    def kill(self) -> None:
        if not self._exit.done():
            self._group.signal(signal.SIGKILL)

    async def _wait(self) -> int:
        try:
            return (await self._group.wait())[0]
        finally:
            self.stdio.end()
            self._container.commands.discard(self)


class CommandResult(NamedTuple):
    """How a command ended."""

    code: int | None
    """None if it was killed as it took too long."""
    output: bytes
    """The beginning of what it wrote."""


async def run_command(
    container: ContainerProcess, arguments: Sequence[str], timeout: float | None, most_output: int
) -> CommandResult:
    """Run a command to its end; `ContainerError` if it cannot be started."""
    output = bytearray()
    async with await ExecProcess.start(container, arguments, await ProcessStdio.pipes()) as command:

        async def read() -> int:
            while piece := await command.stdio.stdout.read():
                output.extend(piece[: most_output - len(output)])
            return await command.wait()

        try:
            return CommandResult(await asyncio.wait_for(read(), timeout), bytes(output))
        except TimeoutError:
            command.kill()
            return CommandResult(None, bytes(output))
