"""A run of a container: a process group of its own, its output in a log, its exit code or signal at the end."""

from __future__ import annotations

import asyncio
import signal
from contextlib import suppress
from typing import Protocol

from stromboli.embedded.nodes.real.attached_container import AttachedContainer
from stromboli.embedded.nodes.real.container_launch import ContainerLaunch
from stromboli.embedded.nodes.real.container_logs import LogFile
from stromboli.embedded.nodes.real.process_guardian import END_TIMEOUT, ProcessGuardian
from stromboli.embedded.nodes.real.process_start import ProcessGroup, start_process
from stromboli.embedded.nodes.real.process_stdio import ProcessOutput, ProcessStdio


class Command(Protocol):
    """A further command that runs in the container."""

    def kill(self) -> None: ...

    async def wait(self) -> int: ...


class ContainerProcess:
    """A started process, with all processes that it starts."""

    def __init__(
        self, launch: ContainerLaunch, group: ProcessGroup, stdio: ProcessStdio, log: LogFile
    ) -> None:
        self.launch = launch
        self.group = group
        self.commands: set[Command] = set()
        """Which end with it."""
        self.attached: set[AttachedContainer] = set()
        self.exited = False
        self.stdio = stdio
        self._log = log
        self._copying = asyncio.gather(*(self._copy(output) for output in (stdio.stdout, stdio.stderr)))

    @classmethod
    async def start(
        cls, launch: ContainerLaunch, guardian: ProcessGuardian, log: LogFile
    ) -> ContainerProcess:
        """`ContainerError` if there is no such command."""
        try:
            if launch.tty:
                stdio = await ProcessStdio.pseudo_terminal()
            else:  # errors between the lines of the output that they belong to, unless a client wants them apart
                stdio = await ProcessStdio.pipes(stdin=launch.stdin, stderr=launch.stdin)
            group = await start_process(launch, guardian, stdio)
        except BaseException:
            log.close()
            raise
        return cls(launch, group, stdio, log)

    async def wait(self) -> tuple[int, int]:
        """The exit code and the signal, once the process exited; whatever it left running is killed."""
        end = await self.group.wait()
        self.exited = True
        await self._end_commands()
        self.stdio.end()
        with suppress(asyncio.CancelledError):
            await self._copying
        for client in tuple(self.attached):
            client.end()
        self.stdio.close()
        self._log.close()
        return end

    async def _end_commands(self) -> None:
        """Kill further commands, and wait until they are gone: they may hold what the container has."""
        for command in self.commands:
            command.kill()
        if self.commands:
            ends = {asyncio.ensure_future(command.wait()) for command in self.commands}
            await asyncio.wait(ends, timeout=END_TIMEOUT)

    def terminate(self) -> None:
        self.group.signal(signal.SIGTERM)

    def kill(self) -> None:
        self.group.signal(signal.SIGKILL)

    async def _copy(self, output: ProcessOutput | None) -> None:
        """Output to the log and to those who are attached; a container waits for a slow client, though not for long."""
        while output is not None and (piece := await output.read()):
            self._log.write(piece, output)
            if self.attached:
                error = output is self.stdio.stderr
                await asyncio.gather(*(client.put(piece, error) for client in self.attached))
