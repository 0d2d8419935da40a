"""One run of a container: a process group of its own, its output in a log, its end told by number or signal."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from stromboli.embedded.nodes.real.environment import Unusable
from stromboli.embedded.nodes.real.guardian import Guardian
from stromboli.embedded.nodes.real.logs import LogFile

CHUNK = 64 * 1024
_LAST_WORDS = 2.0
"""Seconds that output is waited for after the end."""


class Running:
    """A process that was started, with all that it starts itself."""

    def __init__(self, process: asyncio.subprocess.Process, guardian: Guardian, log: LogFile) -> None:
        self._process = process
        self._guardian = guardian
        self._log = log
        self._pump = asyncio.create_task(self._listen())

    @classmethod
    async def start(
        cls, words: list[str], folder: Path, variables: Mapping[str, str], guardian: Guardian, log: LogFile
    ) -> Running:
        """`Unusable` if there is no such command."""
        try:
            process = await asyncio.create_subprocess_exec(
                *words,
                cwd=folder,
                env=dict(variables),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            log.close()
            raise Unusable(f"{words[0]}: {error}", "RunContainerError") from None
        guardian.add(process.pid)
        return cls(process, guardian, log)

    async def ended(self) -> tuple[int, int]:
        """The exit code and the signal, once the process is over; whatever it left behind ends with it."""
        code = await self._process.wait()
        self.kill()
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(self._pump), _LAST_WORDS)
        self._pump.cancel()
        with suppress(asyncio.CancelledError):
            await self._pump
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

    async def _listen(self) -> None:
        assert self._process.stdout is not None
        while piece := await self._process.stdout.read(CHUNK):
            self._log.write(piece)
