"""Kills whatever we started if we die without doing it ourselves.

A small process of its own reads `+PID` and `-PID` from us. When we are gone, however we went, its input ends, and it
kills the process groups that are left. Run as a script, it is that process.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress


class Guardian:
    """Who watches over our processes; started with the first of them."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def add(self, pid: int) -> None:
        self._say(f"+{pid}\n")

    def remove(self, pid: int) -> None:
        if self._process is not None:
            self._say(f"-{pid}\n")

    def close(self) -> None:
        """Nothing is left to watch over; what is, is killed."""
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

    def _say(self, line: str) -> None:
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", __file__],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                bufsize=0,
            )
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.write(line.encode())


def watch() -> None:
    """Until our input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    left: set[int] = set()
    for line in sys.stdin:
        number = int(line[1:])
        (left.add if line[0] == "+" else left.discard)(number)
    for group in left:
        with suppress(OSError):
            os.killpg(group, signal.SIGKILL)


if __name__ == "__main__":
    watch()
