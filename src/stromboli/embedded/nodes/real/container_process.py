"""A run of a container: a process group of its own, its output in a log, its exit code or signal at the end."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress

from stromboli.daemon.connection_limits import restore_descriptor_limit
from stromboli.embedded.nodes.real.container_environment import ContainerError
from stromboli.embedded.nodes.real.container_launch import ContainerLaunch
from stromboli.embedded.nodes.real.container_logs import LogFile
from stromboli.embedded.nodes.real.process_guardian import ProcessGuardian

CHUNK = 64 * 1024
_OUTPUT_TIMEOUT = 2.0
"""Seconds that output is waited for after the process exited."""


class ContainerProcess:
    """A started process, with all processes that it starts."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        reader: asyncio.StreamReader,
        pipe: asyncio.ReadTransport,
        guardian: ProcessGuardian,
        log: LogFile,
    ) -> None:
        self._process = process
        self._reader = reader
        self._pipe = pipe
        self._guardian = guardian
        self._log = log
        self._copying = asyncio.create_task(self._copy_output())

    @classmethod
    async def start(
        cls, launch: ContainerLaunch, guardian: ProcessGuardian, log: LogFile
    ) -> ContainerProcess:
        """`ContainerError` if there is no such command."""
        reader, pipe, end = await _open_pipe()
        try:
            process = await asyncio.create_subprocess_exec(
                *launch.arguments,
                cwd=launch.folder,
                env=dict(launch.variables),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=end,
                stderr=asyncio.subprocess.STDOUT,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            pipe.close()
            log.close()
            raise ContainerError(f"{launch.arguments[0]}: {error}", "RunContainerError") from None
        finally:
            os.close(end)
        restore_descriptor_limit(process.pid)
        guardian.add(process.pid)
        return cls(process, reader, pipe, guardian, log)

    async def wait(self) -> tuple[int, int]:
        """The exit code and the signal, once the process exited; whatever it left running is killed."""
        code = await self._process.wait()
        self.kill()
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(self._copying), _OUTPUT_TIMEOUT)
        self._copying.cancel()
        with suppress(asyncio.CancelledError):
            await self._copying
        self._pipe.close()
        self._guardian.remove(self._process.pid)
        self._log.close()
        return (128 - code, -code) if code < 0 else (code, 0)

    def terminate(self) -> None:
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        with suppress(OSError):
            os.killpg(self._process.pid, number)

    async def _copy_output(self) -> None:
        while piece := await self._reader.read(CHUNK):
            self._log.write(piece)


async def _open_pipe() -> tuple[asyncio.StreamReader, asyncio.ReadTransport, int]:
    """A pipe of our own: with asyncio's, a process does not end while a process that it left running holds the pipe.

    The last item is the descriptor to write to.
    """
    reading, writing = os.pipe()
    reader = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(reading, "rb", buffering=0)
    )
    return reader, transport, writing
