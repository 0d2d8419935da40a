"""Where pods are drawn within the row of their node: side by side, each as high as its share of the node."""

from __future__ import annotations

import heapq
from collections.abc import Iterator

Span = tuple[float, float]
EPSILON = 1e-9


class FreeSpans:
    """What is free of the height of a row, from 0 to 1, in ascending order."""

    def __init__(self) -> None:
        self._free: list[Span] = [(0.0, 1.0)]

    def take(self, height: float, most: int) -> list[Span]:
        """The lowest free span that holds it, else pieces, but not more than `most`."""
        for place, (low, high) in enumerate(self._free):
            if high - low >= height - EPSILON:
                self._free[place : place + 1] = (
                    [(low + height, high)] if high - low > height + EPSILON else []
                )
                return [(low, low + height)]
        return self._take_pieces(height, most)

    def _take_pieces(self, height: float, most: int) -> list[Span]:
        taken: list[Span] = []
        while height > EPSILON and self._free and len(taken) < most:
            low, high = self._free.pop(0)
            if high - low > height:
                self._free.insert(0, (low + height, high))
                high = low + height
            taken.append((low, high))
            height -= high - low
        return taken

    def give_back(self, spans: list[Span]) -> None:
        joined: list[Span] = []
        for low, high in sorted(self._free + spans):
            if joined and low <= joined[-1][1] + EPSILON:
                joined[-1] = (joined[-1][0], max(high, joined[-1][1]))
            else:
                joined.append((low, high))
        self._free = joined


def lanes(pods: list[tuple[float, float, float]], most: int = 4) -> Iterator[tuple[int, list[Span]]]:
    """The spans of each pod, given as start, end and share, in the order of starts; pods beyond 1 are squeezed."""
    scale = max(1.0, _peak(pods))
    spans = FreeSpans()
    ends: list[tuple[float, int, list[Span]]] = []
    for place in sorted(range(len(pods)), key=lambda place: pods[place][0]):
        start, end, share = pods[place]
        while ends and ends[0][0] <= start:
            spans.give_back(heapq.heappop(ends)[2])
        taken = spans.take(share / scale, most)
        heapq.heappush(ends, (end, place, taken))
        yield place, taken


def _peak(pods: list[tuple[float, float, float]]) -> float:
    """The highest sum of shares at a moment."""
    changes = sorted(
        [(start, 1, share) for start, _, share in pods] + [(end, 0, -share) for _, end, share in pods]
    )
    peak = level = 0.0
    for _, _, change in changes:
        level += change
        peak = max(peak, level)
    return peak
