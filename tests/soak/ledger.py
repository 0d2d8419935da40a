"""What the API server has acknowledged, so that a kill cannot lose any of it unnoticed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

Key = tuple[str, str]
"""The path of a collection, and a name in it."""
Serial = str | None
"""The number of the last write of an object, which is a label of it; None if there is no such object."""
SERIAL_LABEL = "soak.stromboli.sh/serial"


class Stored(NamedTuple):
    """An object as the API server lists it."""

    serial: str
    leaving: bool
    """Whether it has a deletion timestamp: it goes once its grace period is over."""


class Ledger:
    """Per object, the last acknowledged write, and the one under way whose outcome nobody has heard."""

    def __init__(self) -> None:
        self._acknowledged: dict[Key, Serial] = {}
        self._under_way: dict[Key, Serial] = {}
        self._resource_version = 0
        self.writes = 0
        """Acknowledged so far."""

    def begin(self, key: Key, serial: Serial) -> None:
        """Before a write is sent."""
        self._under_way[key] = serial

    def acknowledge(self, key: Key, resource_version: int) -> None:
        self._acknowledged[key] = self._under_way.pop(key)
        self._resource_version = max(self._resource_version, resource_version)
        self.writes += 1

    def refuse(self, key: Key) -> None:
        """The write under way has not happened, as the API server has told."""
        del self._under_way[key]

    def known(self, key: Key) -> Serial:
        return self._acknowledged.get(key)

    def settle(self, stored: Mapping[Key, Stored], resource_version: int) -> list[str]:
        """What is lost; from now on, what is stored counts for the writes whose outcome was unknown."""
        problems = []
        if resource_version < self._resource_version:
            problems.append(f"resourceVersion fell from {self._resource_version} to {resource_version}")
        for key in {*self._acknowledged, *self._under_way, *stored}:
            problem = self.settle_object(key, stored.get(key))
            problems += [problem] if problem else []
        return problems

    def settle_object(self, key: Key, found: Stored | None) -> str:
        """The same for one object; empty if nothing is lost."""
        expected = {self._acknowledged.get(key)}
        if key in self._under_way:
            expected.add(self._under_way.pop(key))
        actual = found.serial if found else None
        allowed = expected if not (found and found.leaving and None in expected) else {*expected, actual}
        if found is None:
            self._acknowledged.pop(key, None)
        else:
            self._acknowledged[key] = None if found.leaving else actual
        if actual in allowed:
            return ""
        return f"{'/'.join(key)}: {actual or 'absent'} is stored, but {sorted(map(str, expected))} was acknowledged"
