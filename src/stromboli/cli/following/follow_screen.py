"""What following a job prints: lines of logs on standard output, and on standard error what it waits for."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Callable

from stromboli.cli.cluster.cluster_errors import shown
from stromboli.cli.following.log_lines import coloured
from stromboli.cli.following.log_streams import LogLine
from stromboli.cli.output import has_colours

CLEAR_LINE = "\r\x1b[K"
MOST_HELD = 10_000
"""Lines that wait for an answer of the user; later ones are lost to the screen, not to the log."""


class FollowScreen:
    """On a terminal the sentence why a job waits is one line that is written over; elsewhere each is told once."""

    def __init__(self, quiet: bool = False) -> None:
        """`quiet`: nothing but logs and the end."""
        self._quiet = quiet
        self._is_terminal = sys.stderr.isatty()
        self._colours = has_colours()
        self._waiting = ""
        self._told = ""
        self._held: list[LogLine] | None = None
        """Lines that wait while the user is asked something."""
        self.reader_gone: Callable[[], None] = end_by_sigpipe
        """Called when nobody reads standard output any more, as after `| head`."""

    def hold(self) -> None:
        """Print nothing until `go_on`."""
        self._clear()
        self._held = []

    def go_on(self) -> None:
        """Print what has waited."""
        held, self._held = self._held or [], None
        for line in held:
            self.line(line)

    def line(self, line: LogLine) -> None:
        """Print a line of a log."""
        if self._held is not None:
            if len(self._held) < MOST_HELD:
                self._held.append(line)
            return
        self._clear()
        prefix = coloured(line.prefix, line.rank) if self._colours and line.prefix else line.prefix
        try:
            sys.stdout.write(f"{prefix}{line.text}\n")
            sys.stdout.flush()
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python complains at its end
            self.reader_gone()

    def waits(self, text: str) -> None:
        """Why it waits; nothing once it does not."""
        if self._quiet or text == self._told or self._held is not None:
            return
        self._told = text
        if self._is_terminal:
            width = max(20, shutil.get_terminal_size().columns - 1)
            self._waiting = text
            sys.stderr.write(f"{CLEAR_LINE}{shown(text)[:width]}")
            sys.stderr.flush()
        elif text:
            self._write(text)

    def tell(self, text: str) -> None:
        """A sentence that stays."""
        self._clear()
        self._write(text)

    def _write(self, text: str) -> None:
        sys.stderr.write(f"{shown(text)}\n")
        sys.stderr.flush()

    def _clear(self) -> None:
        if self._waiting:
            sys.stderr.write(CLEAR_LINE)
            sys.stderr.flush()
            self._waiting = self._told = ""

    def close(self) -> None:
        """Leave the terminal as it was."""
        self._clear()


def end_by_sigpipe() -> None:
    """End as programs do that Python has not told to ignore this signal."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGPIPE)
