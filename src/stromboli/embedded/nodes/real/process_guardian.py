"""Kills the processes of containers if we die without doing so.

A small process of its own reads `+PID` and `-PID` from us. When we are gone, for whatever reason, its input ends, and
it kills the process groups that are left, and processes that left their group but still have our variable in their
environment. Run as a script, it is that process.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress

ROOT = "STROMBOLI_ROOT"
"""The variable that has the root folder of a container, and marks its processes."""
ROUNDS = 10
"""How often processes are searched, as they may fork while others are killed."""


class ProcessGuardian:
    """The guardian process of our processes; started with the first of them."""

    def __init__(self, folder: str = "") -> None:
        """`folder` is where the roots of all containers are."""
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._watched: set[int] = set()

    def add(self, pid: int) -> None:
        self._watched.add(pid)
        self._send(f"+{pid}\n")

    def remove(self, pid: int) -> None:
        self._watched.discard(pid)
        if self._process is not None:
            self._send(f"-{pid}\n")

    def close(self) -> None:
        """End the guardian, which kills what is left."""
        process, self._process = self._process, None
        if process is not None:
            assert process.stdin is not None
            with suppress(OSError):
                process.stdin.close()
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _send(self, line: str) -> None:
        if self._process is None or self._process.poll() is not None:
            if self._process is not None and self._process.stdin is not None:
                self._process.stdin.close()
            line = "".join(f"+{pid}\n" for pid in self._watched)  # a new guardian gets all
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", __file__, self._folder],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                bufsize=0,
            )
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.write(line.encode())


def kill_marked(root: str) -> None:
    """Kill all processes whose root is this folder or below it, whatever their group; on Linux alone."""
    variables = tuple(f"\0{ROOT}={root.rstrip('/')}{end}".encode() for end in "\0/")

    def is_marked(folder: str) -> bool:
        with open(f"{folder}/environ", "rb") as file:
            environment = b"\0" + file.read()
        return any(variable in environment for variable in variables)

    if root.startswith("/"):
        _kill_all(is_marked)


def kill_session(leader: int) -> None:
    """Kill all processes of a session, whatever their group; on Linux alone."""

    def is_member(folder: str) -> bool:
        with open(f"{folder}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[3]) == leader

    _kill_all(is_member)


def _kill_all(is_wanted: Callable[[str], bool]) -> None:
    for _ in range(ROUNDS):
        pids = _find(is_wanted)
        for pid in pids:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        if not pids:
            return
        time.sleep(0.01)


def _find(is_wanted: Callable[[str], bool]) -> list[int]:
    """Processes by their folder in /proc."""
    if not sys.platform.startswith("linux"):
        return []
    pids = []
    for pid in (int(name) for name in os.listdir("/proc") if name.isdecimal()):
        with suppress(OSError):  # gone, or not ours to read
            if pid != os.getpid() and is_wanted(f"/proc/{pid}"):
                pids.append(pid)
    return pids


def watch(folder: str) -> None:
    """Read process groups until the input ends, then kill those that are left."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    groups: set[int] = set()
    for line in sys.stdin:
        group = int(line[1:])
        (groups.add if line[0] == "+" else groups.discard)(group)
    for group in groups:
        with suppress(OSError):
            os.killpg(group, signal.SIGKILL)
    kill_marked(folder)


if __name__ == "__main__":
    watch(sys.argv[1])
