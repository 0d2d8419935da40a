"""Lines of a log as they come in pieces: bounded, harmless on a terminal, each with what it begins with."""

from __future__ import annotations

import re
from collections.abc import Iterator

LONGEST_LINE = 16 * 1024
"""Bytes of a line that are shown; the rest is counted."""
_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\|$)|[ -/]*[0-~])")
"""Commands to a terminal: colours and the cursor, titles, and the rest."""
_COLOURS = (36, 33, 32, 35, 34, 91)
_FIRST_FRACTION = "0" * 9


class LineCutter:
    """Cuts pieces of a log into lines, of which none is longer than the bound."""

    def __init__(self, longest: int = LONGEST_LINE) -> None:
        self._longest = longest
        self._line = bytearray()
        self._left_out = 0

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """The lines that are complete with this piece."""
        first, *others = piece.split(b"\n")
        self._add(first)
        for part in others:
            yield self._cut()
            self._add(part)

    def end(self) -> Iterator[bytes]:
        """What is left after the last piece, if anything."""
        if self._line or self._left_out:
            yield self._cut()

    def _add(self, part: bytes) -> None:
        room = self._longest - len(self._line)
        self._line += part[:room]
        self._left_out += max(0, len(part) - room)

    def _cut(self) -> bytes:
        line = bytes(self._line)
        if self._left_out:
            line += f" ... ({self._left_out} bytes more)".encode()
        self._line.clear()
        self._left_out = 0
        return line


def harmless(line: bytes) -> str:
    """A line of a log without commands to a terminal. Of a line that overwrites itself, what stands there at last."""
    text = line.decode(errors="replace")
    if text.isprintable():
        return text
    text = _ESCAPE.sub("", text)
    kept = text.rstrip("\r").rpartition("\r")[2]
    return "".join(
        char if char.isprintable() or char == "\t" else char.encode("unicode_escape").decode()
        for char in kept
    )


def coloured(prefix: str, number: int) -> str:
    """A prefix in the colour of its number, for a terminal."""
    return f"\x1b[{_COLOURS[number % len(_COLOURS)]}m{prefix}\x1b[0m"


def split_timestamp(line: bytes) -> tuple[str, bytes]:
    """The time that an API server puts in front of a line, and the line; no time if there is none."""
    stamp, _, rest = line.partition(b" ")
    text = stamp.decode(errors="replace")
    return (text, rest) if len(text) >= 20 and text[4:5] == "-" and text[10:11] == "T" else ("", line)


def time_key(stamp: str) -> tuple[str, str]:
    """By which times can be compared, as Go leaves out zeros at the end of a fraction."""
    seconds, fraction = stamp[:19], stamp[19:]
    digits = "".join(char for char in fraction[1:] if char.isdigit()) if fraction.startswith(".") else ""
    return seconds, (digits + _FIRST_FRACTION)[:9]
