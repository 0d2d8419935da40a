"""Kills the processes of containers if we die without doing so.

A small process of its own reads `+PID` and `-PID` from us. When we are gone, for whatever reason, its input ends, and
it kills the process groups that are left, and processes that left their group but are in our cgroups or still have our
variable in their environment. Run as a script, it is that process. It holds a lock as long as it lives, so that whoever
comes after us can wait until it has done its work.
"""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress

ROOT = "STROMBOLI_ROOT"
"""The variable that has the root folder of a container, and marks its processes."""
PAUSE = 0.01
"""Seconds between two searches: processes may fork while others are killed, and take a moment to go."""
END_TIMEOUT = 5.0
"""Seconds for killed processes to go, when we are about to end."""


class ProcessGuardian:
    """The guardian process of our processes; started with the first of them."""

    def __init__(self, folder: str = "") -> None:
        """`folder` is where the roots of all containers are."""
        self._folder = folder
        self.cgroups = ""
        """Where the cgroups of containers are, if they have any; set before the first process starts."""
        self._process: subprocess.Popen[bytes] | None = None
        self._watched: set[int] = set()

    def add(self, pid: int) -> None:
        """`OSError` if there can be no guardian now."""
        self._watched.add(pid)
        try:
            self._send(f"+{pid}\n")
        except OSError:
            self._watched.discard(pid)
            raise

    def remove(self, pid: int) -> None:
        self._watched.discard(pid)
        if self._process is not None:
            with suppress(OSError):  # it has ended, and there can be no other one now
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

    def former_ended(self) -> bool:
        """Whether the guardian of a former run on the same folder has ended, so that it kills nothing of ours."""
        with _lock(self._folder) as lock:
            return lock is not None

    def _send(self, line: str) -> None:
        if self._process is None or self._process.poll() is not None:
            if self._process is not None and self._process.stdin is not None:
                with suppress(OSError):
                    self._process.stdin.close()
            line = "".join(f"+{pid}\n" for pid in self._watched)  # a new guardian gets all
            with _lock(self._folder) as lock:
                self._process = subprocess.Popen(
                    [sys.executable, "-I", "-S", __file__, self._folder, self.cgroups],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                    bufsize=0,
                    pass_fds=(lock,) if lock is not None else (),
                )
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.write(line.encode())


@contextmanager
def _lock(folder: str) -> Iterator[int | None]:
    """The lock of the folder, which a process that inherits it goes on to hold; None if it is taken."""
    lock = os.open(f"{folder}.lock" if folder else os.devnull, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        yield lock if not folder or _is_locked(lock) else None
    finally:
        os.close(lock)


def _is_locked(file: int) -> bool:
    """Lock a file; False if another process has it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def kill_marked(roots: Collection[str], seconds: float = 0.1) -> set[str]:
    """Kill all processes whose root is one of these folders or below it, whatever their group; on Linux alone.

    The folders whose processes are not gone in time.
    """
    wanted = {root.rstrip("/"): root for root in roots if root.startswith("/")}
    left = _kill_all(_marked_root(wanted), seconds) if wanted else set()
    return {wanted[root] for root in left}


def has_marked(root: str) -> bool:
    """Whether there are processes whose root is this folder or below it; on Linux alone."""
    return bool(_find(_marked_root({root})))


def _marked_root(roots: Collection[str]) -> Callable[[int], str]:
    """A function that tells to which of these folders a process belongs; empty for none."""

    def root_of(pid: int) -> str:
        with open(f"/proc/{pid}/environ", "rb") as file:
            _, mark, rest = (b"\0" + file.read()).partition(f"\0{ROOT}=".encode())
        folder = os.fsdecode(rest.partition(b"\0")[0]) if mark else ""
        while folder and folder not in roots:
            folder = folder.rpartition("/")[0]
        return folder

    return root_of


def kill_session(leader: int) -> None:
    """Kill all processes of a session, whatever their group; on Linux alone."""
    _kill_all(lambda pid: "session" if _stat(pid)[_SESSION] == b"%d" % leader else "")


def kill_group(leader: int, seconds: float) -> bool:
    """Kill all processes of a group; whether they are gone in time."""
    try:
        os.killpg(leader, signal.SIGKILL)
    except OSError:
        return True
    return not _kill_all(lambda pid: "group" if _stat(pid)[_GROUP] == b"%d" % leader else "", seconds)


def _kill_all(owner: Callable[[int], str], seconds: float = 0.1) -> set[str]:
    """Kill processes that have an owner; the owners whose processes, and with them whatever they held, are not gone in
    time.
    """
    deadline = time.monotonic() + seconds
    killed: dict[tuple[int, bytes], str] = {}
    while True:
        owners = _find(owner)
        for pid, name in owners.items():
            with suppress(OSError):
                killed[pid, _stat(pid)[_START]] = name
                os.kill(pid, signal.SIGKILL)
        killed = {process: name for process, name in killed.items() if _lives(*process)}
        left = {*owners.values(), *killed.values()}
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(PAUSE)


_STATE, _GROUP, _SESSION, _START = 0, 2, 3, 19
"""Fields of the state of a process, after its name."""


def _stat(pid: int) -> list[bytes]:
    with open(f"/proc/{pid}/stat", "rb") as file:
        return file.read().rpartition(b")")[2].split()


def _lives(pid: int, start: bytes) -> bool:
    """Whether a process is still there; one that waits to be reaped holds nothing any more."""
    with suppress(OSError):
        stat = _stat(pid)
        return stat[_START] == start and stat[_STATE] not in (b"Z", b"X")
    return False


def _find(owner: Callable[[int], str]) -> dict[int, str]:
    """The processes that have an owner."""
    if not sys.platform.startswith("linux"):
        return {}
    owners = {}
    for pid in (int(name) for name in os.listdir("/proc") if name.isdecimal()):
        with suppress(OSError):  # gone, or not ours to read
            if pid != os.getpid() and (name := owner(pid)) and _stat(pid)[_STATE] not in (b"Z", b"X"):
                owners[pid] = name
    return owners


def kill_cgroup(folder: str) -> None:
    """Kill all processes in a cgroup and below it."""
    try:
        with open(f"{folder}/cgroup.kill", "w") as file:
            file.write("1")
    except OSError:  # gone, or a kernel before 5.14
        for path, _, _ in os.walk(folder):
            with suppress(OSError), open(f"{path}/cgroup.procs") as file:
                for pid in file.read().split():
                    os.kill(int(pid), signal.SIGKILL)


def remove_cgroups(root: str, seconds: float) -> bool:
    """Kill whatever is in a cgroup and below it, and remove them; whether they are gone in time."""
    deadline = time.monotonic() + seconds
    while os.path.isdir(root):
        kill_cgroup(root)
        for path, _, _ in os.walk(root, topdown=False):
            with suppress(OSError):  # processes in it take a moment to go
                os.rmdir(path)
        if time.monotonic() > deadline:
            return not os.path.isdir(root)
        time.sleep(PAUSE)
    return True


def watch(folder: str, cgroups: str = "") -> None:
    """Read process groups until the input ends, then kill those that are left."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    groups: set[int] = set()
    for line in sys.stdin:
        group = int(line[1:])
        (groups.add if line[0] == "+" else groups.discard)(group)
    for group in groups:
        with suppress(OSError):
            os.killpg(group, signal.SIGKILL)
    if cgroups:
        remove_cgroups(cgroups, END_TIMEOUT)
    for group in groups:
        kill_group(group, END_TIMEOUT)
    kill_marked([folder], END_TIMEOUT)


if __name__ == "__main__":
    watch(*sys.argv[1:])
