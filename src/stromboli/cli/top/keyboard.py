"""Single keys from a terminal, without waiting for a return key."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from types import TracebackType

BYTES_AT_ONCE = 1024
MOST_QUEUED = 256
_SEQUENCES = {
    "[A": "up",
    "[B": "down",
    "[C": "right",
    "[D": "left",
    "OA": "up",
    "OB": "down",
    "OC": "right",
    "OD": "left",
    "[5~": "page up",
    "[6~": "page down",
    "[H": "home",
    "[F": "end",
    "[Z": "back tab",
}
_CONTROLS = {"\t": "tab", "\r": "enter", "\n": "enter", "\x7f": "backspace", "\b": "backspace", "\x04": "q"}
_KEY = re.compile(r"\x1b(?:\[[0-9;]*[A-Za-z~]|O[A-Za-z])|.", re.DOTALL)


def keys_in(text: str) -> list[str]:
    """The keys of what a terminal sent: `a`, `tab`, `up`, `escape`; unknown ones are left out."""
    keys = []
    for piece in _KEY.findall(text):
        if piece.startswith("\x1b"):
            key = "escape" if piece == "\x1b" else _SEQUENCES.get(piece[1:], "")
        else:
            key = _CONTROLS.get(piece, piece if piece.isprintable() else "")
        if key:
            keys.append(key)
    return keys


class Keyboard:
    """The keys of a terminal, in a queue; none where standard input is no terminal."""

    def __init__(self) -> None:
        self.pressed: asyncio.Queue[str] = asyncio.Queue(MOST_QUEUED)
        self._file = sys.stdin.fileno() if sys.stdin is not None and sys.stdin.isatty() else -1
        self._before: list[object] = []

    def __enter__(self) -> Keyboard:
        if self._file >= 0:
            import termios
            import tty

            self._before = termios.tcgetattr(self._file)
            tty.setcbreak(self._file, termios.TCSANOW)
            asyncio.get_running_loop().add_reader(self._file, self._read)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file >= 0:
            import termios

            asyncio.get_running_loop().remove_reader(self._file)
            termios.tcsetattr(self._file, termios.TCSADRAIN, self._before)  # type: ignore[arg-type]

    def _read(self) -> None:
        text = os.read(self._file, BYTES_AT_ONCE).decode(errors="ignore")
        for key in keys_in(text) if text else ["q"]:  # a terminal that is gone asks for nothing more
            if not self.pressed.full():
                self.pressed.put_nowait(key)
