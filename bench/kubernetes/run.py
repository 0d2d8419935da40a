"""Everything in turn: each shape by both schedulers, a stream of arrivals, a standing cluster."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

from msgspec import Struct, field

from bench.kubernetes.burst import Burst, burst
from bench.kubernetes.shapes import OURS, THEIRS, Shape
from bench.kubernetes.standing import Standing, standing
from bench.kubernetes.stream import Stream, stream

Result = TypeVar("Result")
GANGS, SINGLES = 3.0, 1.2
"""How many times kube-scheduler's binds a second we want to reach."""
EAGER = ("--schedule-period=100ms",)
PARTS = ("burst", "stream", "standing")


class Sizes(NamedTuple):
    """The sizes of all measurements."""

    nodes: int
    bursts: tuple[Shape, ...]
    streams: tuple[int, ...]
    """Sizes of the gangs in which pods arrive."""
    rate: float
    """Pods that arrive a second."""
    lasts: float
    """Seconds for which they do."""
    standing_nodes: int
    standing_pods: int
    quiet: float
    """Seconds that the standing cluster is watched."""

    @property
    def arriving(self) -> list[Shape]:
        return [Shape(max(1, round(self.rate * self.lasts / size)), size) for size in self.streams]


FULL = Sizes(
    nodes=1000,
    bursts=(Shape(1, 10_000), Shape(500, 20), Shape(10_000, 1)),
    streams=(20, 1),
    rate=100.0,
    lasts=30.0,
    standing_nodes=5000,
    standing_pods=50_000,
    quiet=60.0,
)
QUICK = Sizes(
    nodes=20,
    bursts=(Shape(1, 100), Shape(5, 20), Shape(100, 1)),
    streams=(20, 1),
    rate=50.0,
    lasts=2.0,
    standing_nodes=50,
    standing_pods=500,
    quiet=5.0,
)


class Results(Struct):
    """All that was measured."""

    sizes: Sizes
    bursts: list[Burst] = field(default_factory=list)
    streams: list[Stream] = field(default_factory=list)
    standing: Standing | None = None

    @property
    def problems(self) -> list[str]:
        """Why figures mean nothing: a scheduler did not do its work."""
        every = [*self.bursts, *self.streams, *([self.standing] if self.standing else [])]
        return [result.problem for result in every if result.problem]

    def ratio(self, ours: Burst) -> float | None:
        """Our binds a second over kube-scheduler's for the same shape."""
        theirs = self._theirs(ours)
        return ours.binds_per_second / theirs.binds_per_second if theirs and theirs.binds_per_second else None

    def cpu_ratio(self, ours: Burst) -> float | None:
        """How many times our processor time kube-scheduler and its API server take for a bind."""
        theirs = self._theirs(ours)
        return theirs.cpu_binding / ours.cpu_binding if theirs and ours.cpu_binding else None

    def _theirs(self, ours: Burst) -> Burst | None:
        same = [burst for burst in self.bursts if burst.scheduler == THEIRS and burst.shape == ours.shape]
        return same[0] if same and ours.scheduler == OURS else None


def wanted(shape: str) -> float:
    """The ratio to reach for a shape."""
    return SINGLES if shape.endswith("x1") else GANGS


def run(sizes: Sizes, parts: Sequence[str] = PARTS) -> Results:
    """One after the other, so that measurements do not compete for processor time."""
    results, step = Results(sizes), Progress(_steps(sizes, parts))
    if "burst" in parts:
        for shape in sizes.bursts:
            for scheduler in (THEIRS, OURS):
                work = partial(burst, scheduler, shape, sizes.nodes)
                results.bursts.append(step(f"{shape.name}, {scheduler}", work))
    if "stream" in parts:
        for shape in sizes.arriving:
            for scheduler, flags in ((THEIRS, ()), (OURS, ()), (OURS, EAGER)):
                title = " ".join((f"{shape.name} arriving, {scheduler}", *flags))
                results.streams.append(
                    step(title, partial(stream, scheduler, shape, sizes.nodes, sizes.rate, flags))
                )
    if "standing" in parts:
        nodes, pods = sizes.standing_nodes, sizes.standing_pods
        title = f"{nodes} nodes, {pods} pods, quiet"
        results.standing = step(title, partial(standing, nodes, pods, sizes.quiet))
    return results


def _steps(sizes: Sizes, parts: Sequence[str]) -> int:
    return (
        2 * len(sizes.bursts) * ("burst" in parts)
        + 3 * len(sizes.streams) * ("stream" in parts)
        + ("standing" in parts)
    )


class Progress:
    """Says on stderr what is being done, and how long it took."""

    def __init__(self, steps: int) -> None:
        self._steps = steps
        self._step = 0

    def __call__(self, title: str, work: Callable[[], Result]) -> Result:
        self._step += 1
        print(f"[{self._step}/{self._steps}] {title} ... ", end="", file=sys.stderr, flush=True)
        begin = time.monotonic()
        result = work()
        print(f"{time.monotonic() - begin:.0f} s", file=sys.stderr, flush=True)
        return result
