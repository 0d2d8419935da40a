"""Starts the processes of a container: its own command, and further commands in it (exec, probes, hooks)."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress

from stromboli.daemon.connection_limits import restore_descriptor_limit
from stromboli.embedded.nodes.real import process_launcher
from stromboli.embedded.nodes.real.container_environment import ContainerError
from stromboli.embedded.nodes.real.container_launch import ContainerLaunch
from stromboli.embedded.nodes.real.process_guardian import ProcessGuardian, kill_session
from stromboli.embedded.nodes.real.process_stdio import ProcessStdio

NO_ROOM = "CreateContainerError"
"""The reason of a container that may be created later: the machine has no room now."""
_TRANSIENT = (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.ENOSPC)
TERMINAL_VARIABLES = {"TERM": "xterm"}
"""Of processes on a terminal, unless they are set: containers know no other name of it."""
_SET_BY_PYTHON = ("LC_CTYPE",)


class ProcessGroup:
    """A started process, with all processes that it starts and that stay in its group."""

    def __init__(
        self, process: asyncio.subprocess.Process, guardian: ProcessGuardian, terminal: bool
    ) -> None:
        """A shell on a terminal has a group for each of its jobs."""
        self.guardian = guardian
        self.leader = process.pid
        self._process = process
        self._terminal = terminal

    async def wait(self) -> tuple[int, int]:
        """The exit code and the signal, once the process exited; whatever it left running is killed."""
        code = await self._process.wait()
        self.signal(signal.SIGKILL)
        if self._terminal:
            await asyncio.to_thread(kill_session, self._process.pid)
        self.guardian.remove(self._process.pid)
        return (128 - code, -code) if code < 0 else (code, 0)

    def signal(self, number: signal.Signals) -> None:
        with suppress(OSError):
            os.killpg(self._process.pid, number)


async def start_process(
    launch: ContainerLaunch, guardian: ProcessGuardian, stdio: ProcessStdio
) -> ProcessGroup:
    """Start a process in a group of its own; `ContainerError` if there is no such command."""
    stdin, stdout, stderr = stdio.ends
    try:
        process = await asyncio.create_subprocess_exec(
            *_command(launch, stdio),
            cwd=launch.folder,
            env=_variables(launch, stdio),
            stdin=asyncio.subprocess.DEVNULL if stdin < 0 else stdin,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        stdio.close()
        reason = NO_ROOM if getattr(error, "errno", None) in _TRANSIENT else "RunContainerError"
        raise ContainerError(_start_failure(launch.arguments[0], error), reason) from None
    except asyncio.CancelledError:
        stdio.close()
        raise
    finally:
        stdio.close_ends()
    restore_descriptor_limit(process.pid)
    group = ProcessGroup(process, guardian, stdio.terminal is not None)
    try:
        guardian.add(process.pid)
    except OSError as error:
        stdio.close()
        group.signal(signal.SIGKILL)
        await group.wait()
        raise ContainerError(f"its processes cannot be guarded: {error}", NO_ROOM) from None
    return group


def _start_failure(program: str, error: Exception) -> str:
    if isinstance(error, FileNotFoundError) and "/" not in program:
        return f"{program}: executable file not found in $PATH"
    return f"{program}: {error}"


def _variables(launch: ContainerLaunch, stdio: ProcessStdio) -> dict[str, str]:
    return {**TERMINAL_VARIABLES, **launch.variables} if stdio.terminal is not None else {**launch.variables}


def _command(launch: ContainerLaunch, stdio: ProcessStdio) -> Sequence[str]:
    """The command line; the launcher prepares a terminal or cgroup, and puts back signals that we ignore."""
    ignores = any(
        signal.getsignal(number) is signal.SIG_IGN for number in process_launcher.IGNORED_BY_STARTERS
    )
    if stdio.terminal is None and launch.cgroup is None and not ignores:
        return launch.arguments
    unset = ",".join(name for name in _SET_BY_PYTHON if name not in launch.variables)
    cgroup = "" if launch.cgroup is None else str(launch.cgroup.processes)
    terminal = "" if stdio.terminal is None else "tty"
    launcher = (sys.executable, "-I", "-S", process_launcher.__file__, unset, cgroup, terminal)
    return (*launcher, _program(launch), *launch.arguments)


def _program(launch: ContainerLaunch) -> str:
    """The path of the program, as the system would find it."""
    name = launch.arguments[0]
    folders = [""] if "/" in name else os.get_exec_path(dict(launch.variables))
    paths = [launch.folder / folder / name for folder in folders]
    for path in paths:
        if path.is_file() and os.access(path, os.X_OK):
            return str(path)
    if any(path.exists() for path in paths):
        raise PermissionError(f"[Errno 13] Permission denied: {name!r}")
    raise FileNotFoundError(f"[Errno 2] No such file or directory: {name!r}")
