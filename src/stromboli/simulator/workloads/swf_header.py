"""The header notes of the Standard Workload Format: `; MaxProcs: 256`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from stromboli.api import names
from stromboli.api.name_rules import MAX_LABEL

MAX_NOTES = 10_000
"""Header notes that are kept of a trace."""
_NUMBER = re.compile(r"(?:\d{1,3}(?:,\d{3}){1,4}|\d{1,15})(?!\d|\.\d)", re.ASCII)
_NUMBERED = re.compile(r"(\d{1,9})\W+([A-Za-z0-9][\w.-]*)", re.ASCII)


@dataclass(slots=True)
class SwfHeader:
    """What the notes of a trace say about it and about the machine that it was recorded on."""

    values: dict[str, str] = field(default_factory=dict)
    """The first value of each note, by its name in lower case."""
    queues: dict[int, str] = field(default_factory=dict)
    """Names of queues by their numbers."""
    partitions: dict[int, str] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)
    """What stands in `Note`."""
    _lines: int = 0

    def read(self, line: str) -> None:
        """Take in a line that begins with a semicolon; what is no note is a comment."""
        name, colon, value = line.lstrip("; \t").partition(":")
        name, value = name.strip().lower(), value.strip()
        self._lines += 1
        if not colon or self._lines > MAX_NOTES:
            return
        if name == "queue":
            _read_name(self.queues, value)
        elif name == "partition":
            _read_name(self.partitions, value)
        elif name == "note":
            self.remarks.append(value)
        else:
            self.values.setdefault(name, value)

    def number(self, name: str) -> int | None:
        """The whole number above zero that a note begins with; None where the trace does not say it."""
        match = _NUMBER.match(self.values.get(name.lower(), ""))
        return (int(match[0].replace(",", "")) or None) if match else None


def kubernetes_name(text: str) -> str:
    """The text as a name that Kubernetes takes; empty if nothing is left of it."""
    return re.sub("[^a-z0-9]+", "-", text.lower())[:MAX_LABEL].strip("-")


def _read_name(known: dict[int, str], text: str) -> None:
    """`1 batch for long jobs`, `1 [fque:1]`: a number, and the first word of what follows as a name."""
    match = _NUMBERED.match(text)
    if match and (name := kubernetes_name(match[2])) and name != names.ROOT_QUEUE:
        known.setdefault(int(match[1]), name)
