"""Sets of CPUs as the bits of a whole number, and their text as in `/sys`: `0-3,8`."""

from __future__ import annotations

import re
from collections.abc import Iterator

MOST_CPUS = 8192
"""CPUs of a node have smaller numbers than this; no kernel is built for more."""
LONGEST_CPU_SET = 65_536
"""The longest text that is read as a set of CPUs, in characters."""

_RANGE = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")


def parse_cpu_set(text: str) -> int:
    """The set that a text such as `0-3,8` stands for; `ValueError` says what is wrong with it."""
    if len(text) > LONGEST_CPU_SET:
        raise ValueError(f"is longer than {LONGEST_CPU_SET} characters")
    bits = 0
    for part in text.split(",") if text else ():
        match = _RANGE.fullmatch(part)
        if match is None:
            raise ValueError(f"{part[:63]!r} is no CPU number and no range of them, such as 0-3")
        first, last = int(match[1]), int(match[2] or match[1])
        if last >= MOST_CPUS:
            raise ValueError(f"{last} is above {MOST_CPUS - 1}, the highest number that a CPU may have")
        if first > last:
            raise ValueError(f"the range {part} ends before it begins")
        bits |= (1 << last + 1) - (1 << first)
    return bits


def format_cpu_set(bits: int) -> str:
    """The text of a set, with ranges where numbers follow one another."""
    ranges: list[str] = []
    while bits:
        first = (bits & -bits).bit_length() - 1
        rest = bits >> first
        length = (~rest & rest + 1).bit_length() - 1
        ranges.append(str(first) if length == 1 else f"{first}-{first + length - 1}")
        bits = rest >> length << first + length
    return ",".join(ranges)


def cpu_numbers(bits: int) -> Iterator[int]:
    """The numbers of the CPUs of a set, ascending."""
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest
