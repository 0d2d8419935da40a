"""A run of a container: a process group of its own, its output in a log, its exit code or signal at the end."""

from __future__ import annotations

import asyncio
import signal
from contextlib import suppress
from typing import Protocol

from stromboli.embedded.nodes.real.container_environment import ContainerError
from stromboli.embedded.nodes.real.container_launch import ContainerLaunch
from stromboli.embedded.nodes.real.container_logs import LogFile
from stromboli.embedded.nodes.real.process_guardian import ProcessGuardian
from stromboli.embedded.nodes.real.process_start import ProcessGroup, start_process
from stromboli.embedded.nodes.real.process_stdio import ProcessStdio


class Command(Protocol):
    """A further command that runs in the container."""

    def kill(self) -> None: ...


class ContainerProcess:
    """A started process, with all processes that it starts."""

    def __init__(
        self, launch: ContainerLaunch, group: ProcessGroup, stdio: ProcessStdio, log: LogFile
    ) -> None:
        self.launch = launch
        self.group = group
        self.commands: set[Command] = set()
        """Which end with it."""
        self.exited = False
        self._stdio = stdio
        self._log = log
        self._copying = asyncio.create_task(self._copy_output())

    @classmethod
    async def start(
        cls, launch: ContainerLaunch, guardian: ProcessGuardian, log: LogFile
    ) -> ContainerProcess:
        """`ContainerError` if there is no such command."""
        stdio = await ProcessStdio.pipes()
        try:
            group = await start_process(launch, guardian, stdio)
        except ContainerError:
            log.close()
            raise
        return cls(launch, group, stdio, log)

    async def wait(self) -> tuple[int, int]:
        """The exit code and the signal, once the process exited; whatever it left running is killed."""
        end = await self.group.wait()
        self.exited = True
        for command in tuple(self.commands):
            command.kill()
        self._stdio.end()
        with suppress(asyncio.CancelledError):
            await self._copying
        self._stdio.close()
        self._log.close()
        return end

    def terminate(self) -> None:
        self.group.signal(signal.SIGTERM)

    def kill(self) -> None:
        self.group.signal(signal.SIGKILL)

    async def _copy_output(self) -> None:
        while piece := await self._stdio.stdout.read():
            self._log.write(piece)
