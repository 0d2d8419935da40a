"""Sets of completion indexes as intervals, as `status.completedIndexes` has them: `1,3-5,7`."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

Interval = tuple[int, int]
_MOST_DIGITS = 10


@dataclass(frozen=True, slots=True)
class IndexIntervals:
    """First and last index of each interval, in order and with a gap between any two."""

    intervals: tuple[Interval, ...] = ()

    @classmethod
    def of(cls, indexes: Iterable[int]) -> IndexIntervals:
        return cls(_merged((index, index) for index in sorted(indexes)))

    @classmethod
    def parse(cls, text: str, completions: int) -> IndexIntervals:
        """Indexes from `completions` on, and parts that are no interval, are left out."""
        return cls(_merged(sorted(_parsed(text, completions))))

    def __str__(self) -> str:
        return ",".join(_text(*interval) for interval in self.intervals)

    def __contains__(self, index: int) -> bool:
        position = bisect_right(self.intervals, index, key=lambda interval: interval[0])
        return position > 0 and index <= self.intervals[position - 1][1]

    def __len__(self) -> int:
        """How many indexes there are."""
        return sum(last - first + 1 for first, last in self.intervals)

    def __or__(self, other: IndexIntervals) -> IndexIntervals:
        return IndexIntervals(_merged(sorted(self.intervals + other.intervals)))

    def count_common(self, other: IndexIntervals) -> int:
        """How many indexes are in both."""
        return len(self) + len(other) - len(self | other)

    def gaps(self, completions: int) -> Iterator[int]:
        """The indexes below `completions` that are not in the set."""
        begin = 0
        for first, last in self.intervals:
            yield from range(begin, min(first, completions))
            begin = last + 1
        yield from range(begin, completions)


NO_INDEXES = IndexIntervals()


def _text(first: int, last: int) -> str:
    if last == first:
        return str(first)
    return f"{first},{last}" if last == first + 1 else f"{first}-{last}"


def _merged(intervals: Iterable[Interval]) -> tuple[Interval, ...]:
    """Intervals that touch or overlap become one; they come in order."""
    merged: list[Interval] = []
    for first, last in intervals:
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = merged[-1][0], max(merged[-1][1], last)
        else:
            merged.append((first, last))
    return tuple(merged)


def _parsed(text: str, completions: int) -> Iterator[Interval]:
    for part in text.split(",") if text else ():
        begin, dash, end = part.partition("-")
        first = read_index(begin)
        last = read_index(end) if dash else first
        if first is not None and last is not None and first <= last and first < completions:
            yield first, min(last, completions - 1)


def read_index(text: str) -> int | None:
    """A whole number from 0 on, or None."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS else None
