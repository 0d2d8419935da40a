"""Indexes of an array of equal pods, written as Slurm has them: `0-9`, `1,3,5`, `0-15:4`, `0-99%5`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from stromboli.submission.bad_request import BadRequest

MAX_ELEMENTS = 10_000
MAX_INDEX = 4_000_000
_PART = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9})(?::([0-9]{1,9}))?)?")
_EXAMPLE = "write 0-9, 1,3,5, 0-15:4, or 0-99%5 for five at a time"
MAX_LISTED = 1000
"""Indexes that do not follow each other evenly, which travel in the command of every pod."""


@dataclass(frozen=True, slots=True)
class JobArray:
    """The indexes in order, and how many may run at a time (0: all)."""

    indexes: tuple[int, ...]
    at_once: int = 0

    @property
    def step(self) -> int:
        """From each index to the next; 0 if that differs."""
        steps = {after - before for before, after in zip(self.indexes, self.indexes[1:], strict=False)}
        return 1 if not steps else steps.pop() if len(steps) == 1 else 0

    @property
    def counts_from_zero(self) -> bool:
        """Whether an index is that of its pod."""
        return self.indexes[0] == 0 and self.step == 1


def parse_array(text: str) -> JobArray:
    """`BadRequest` for what is no array, or a larger one than can be."""
    listed, percent, limit = text.strip().partition("%")
    if percent and not (limit.isascii() and limit.isdecimal() and int(limit[:9]) > 0 and len(limit) < 10):
        raise BadRequest("--array", text, f"after % stands how many run at a time; {_EXAMPLE}")
    indexes: set[int] = set()
    for part in listed.split(","):
        indexes |= set(_indexes(part.strip(), text))
        if len(indexes) > MAX_ELEMENTS:
            raise BadRequest("--array", text, f"more than {MAX_ELEMENTS} indexes; split it into several jobs")
    array = JobArray(tuple(sorted(indexes)), int(limit) if limit else 0)
    if not array.step and len(indexes) > MAX_LISTED:
        raise BadRequest(
            "--array", text, f"more than {MAX_LISTED} indexes that do not follow evenly; use a range"
        )
    return array


def _indexes(part: str, text: str) -> range:
    match = _PART.fullmatch(part)
    if match is None:
        raise BadRequest("--array", text, f"no list of indexes; {_EXAMPLE}")
    first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
    if last < first or step < 1 or last > MAX_INDEX:
        raise BadRequest("--array", text, f"a range goes up, in steps, to {MAX_INDEX} at most; {_EXAMPLE}")
    if (last - first) // step >= MAX_ELEMENTS:
        raise BadRequest("--array", text, f"more than {MAX_ELEMENTS} indexes; split it into several jobs")
    return range(first, last + 1, step)
