"""Everything in turn: bursts, streams, jobs, a standing cluster; each scheduler on a fresh control plane."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from msgspec import Struct, field

from bench import jobs
from bench.jobs import Arrival
from bench.kubernetes.bench_cluster import fresh_cluster
from bench.kubernetes.burst import Burst, burst
from bench.kubernetes.medians import median_ratio
from bench.kubernetes.shapes import BARE, OURS, PLAIN, THEIRS, Shape
from bench.kubernetes.standing import Standing, standing
from bench.kubernetes.stream import Stream, stream
from tests.kubernetes.controlplane import ControlPlane

Result = TypeVar("Result")
PARTS = ("burst", "stream", "jobs", "standing")


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
    jobs: int
    standing_nodes: int
    standing_pods: int
    quiet: float
    """Seconds that the standing cluster is watched."""

    @property
    def arriving(self) -> list[Shape]:
        return [Shape(max(1, round(self.rate * self.lasts / size)), size) for size in self.streams]

    def scaled(self, scale: float) -> Sizes:
        """With so many times the nodes, and as many times the pods of bursts and the jobs."""
        return self._replace(
            nodes=max(1, round(self.nodes * scale)),
            bursts=tuple(shape.scaled(scale) for shape in self.bursts),
            jobs=max(1, round(self.jobs * scale)),
        )


FULL = Sizes(
    nodes=1000,
    bursts=(Shape(1, 10_000), Shape(500, 20), Shape(10_000, 1)),
    streams=(1, 20),
    rate=50.0,
    lasts=30.0,
    jobs=1000,
    standing_nodes=5000,
    standing_pods=50_000,
    quiet=60.0,
)
QUICK = Sizes(
    nodes=20,
    bursts=(Shape(1, 100), Shape(5, 20), Shape(100, 1)),
    streams=(1, 20),
    rate=50.0,
    lasts=2.0,
    jobs=20,
    standing_nodes=50,
    standing_pods=500,
    quiet=5.0,
)


class Results(Struct):
    """All that was measured, run by run."""

    sizes: Sizes
    bursts: list[Burst] = field(default_factory=list)
    streams: list[Stream] = field(default_factory=list)
    jobs: list[Arrival] = field(default_factory=list)
    standing: Standing | None = None

    @property
    def problems(self) -> list[str]:
        """Why figures mean nothing: a scheduler did not do its work."""
        every = [*self.bursts, *self.streams, *([self.standing] if self.standing else [])]
        return [result.problem for result in every if result.problem]

    def bursts_of(self, scheduler: str, shape: str) -> list[Burst]:
        return [burst for burst in self.bursts if (burst.scheduler, burst.shape) == (scheduler, shape)]

    def streams_of(self, scheduler: str, shape: str) -> list[Stream]:
        return [stream for stream in self.streams if (stream.scheduler, stream.shape) == (scheduler, shape)]

    def burst_ratio(self, shape: str, other: str, value: Callable[[Burst], float]) -> float | None:
        """A value of ours over that of another scheduler in the same run, the median of all runs."""
        return median_ratio(self.bursts_of(OURS, shape), self.bursts_of(other, shape), value)


class Step(NamedTuple):
    """One measurement, and what becomes of it."""

    title: str
    work: Callable[[], None]


def run(
    sizes: Sizes,
    parts: Sequence[str] = PARTS,
    repeat: int = 1,
    schedulers: Sequence[str] = (THEIRS, OURS, BARE, PLAIN),
) -> Results:
    """One after the other, so that measurements do not compete for processor time."""
    results = Results(sizes)
    steps = [
        *(step for _ in range(repeat) for step in _repeated_steps(results, parts, schedulers)),
        *(_standing_steps(results) if "standing" in parts else ()),
    ]
    for number, step in enumerate(steps, 1):
        print(f"[{number}/{len(steps)}] {step.title} ... ", end="", file=sys.stderr, flush=True)
        begin = time.monotonic()
        step.work()
        print(f"{time.monotonic() - begin:.0f} s", file=sys.stderr, flush=True)
    return results


def _repeated_steps(results: Results, parts: Sequence[str], schedulers: Sequence[str]) -> Iterator[Step]:
    if "burst" in parts:
        for shape in results.sizes.bursts:
            for scheduler in schedulers:
                if scheduler != PLAIN:
                    yield _burst_step(results, scheduler, shape)
    if "stream" in parts:
        for shape in results.sizes.arriving:
            for scheduler in schedulers:
                if scheduler != BARE and (scheduler != PLAIN or shape.size == 1):
                    yield _stream_step(results, scheduler, shape)
    if "jobs" in parts:
        yield _jobs_step(results)


def _burst_step(results: Results, scheduler: str, shape: Shape) -> Step:
    def work() -> None:
        with fresh_cluster() as cluster:
            results.bursts.append(burst(cluster, scheduler, shape, results.sizes.nodes))

    return Step(f"{shape.name}, {scheduler}", work)


def _stream_step(results: Results, scheduler: str, shape: Shape) -> Step:
    sizes = results.sizes

    def work() -> None:
        with fresh_cluster() as cluster:
            results.streams.append(stream(cluster, scheduler, shape, sizes.nodes, sizes.rate))

    return Step(f"{shape.name} arriving, {scheduler}", work)


def _jobs_step(results: Results) -> Step:
    count = results.sizes.jobs

    def work() -> None:
        results.jobs.append(jobs.measure("real", ControlPlane, count))

    return Step(f"{count} jobs of {jobs.EACH} pods", work)


def _standing_steps(results: Results) -> Iterator[Step]:
    nodes, pods = results.sizes.standing_nodes, results.sizes.standing_pods

    def work() -> None:
        with fresh_cluster() as cluster:
            results.standing = standing(cluster, nodes, pods, results.sizes.quiet)

    yield Step(f"{nodes} nodes, {pods} pods, quiet", work)
