"""Rigid jobs on identical processors, from the textbook: FCFS, EASY and conservative backfill. No code of ours is used.

After Lifka (1995), Feitelson and Weil (1998), and Mu'alem and Feitelson (2001). Jobs wait in the order of submission.
At every moment at which jobs end or are submitted, all of these happen first, then jobs are started:

* FCFS: the jobs at the head of the queue, as long as they fit.
* EASY: the same; then the first that does not fit has a reservation. By the estimates of what runs, the *shadow time*
  is the earliest at which enough processors are free for it, and the *extra* processors are those it leaves free then.
  A later job starts now if it fits and either ends by the shadow time or takes no more than the extra processors.
* Conservative: every job that waits has a reservation, the earliest that disturbs none before it. When a job ends
  early, reservations are compressed: each in turn, the earliest first, moves forward as far as the others let it.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import count
from math import inf
from pathlib import Path

BOUND = 10.0
"""Of the bounded slowdown: jobs shorter than this count as this long, in seconds."""


@dataclass(eq=False)
class RigidJob:
    """So many processors for so long."""

    number: int
    submit: float
    run: float
    processors: int
    estimate: float
    start: float = -1.0
    promise: float | None = None
    """The start that it was first promised by a reservation, if it ever had one."""

    @property
    def wait(self) -> float:
        return self.start - self.submit

    @property
    def end(self) -> float:
        return self.start + self.run

    @property
    def bounded_slowdown(self) -> float:
        return max(1.0, (self.wait + self.run) / max(self.run, BOUND))


def read_swf(lines: Iterable[str]) -> tuple[list[RigidJob], int]:
    """The usable jobs of a trace in Standard Workload Format, and its number of processors.

    A job needs a run time and processors: those that were requested, else those that it got. Its estimate is the
    requested time, or the run time where none is recorded; the run is cut at the estimate.
    """
    jobs, header = [], {}
    for line in lines:
        if line.startswith(";"):
            key, _, value = line[1:].partition(":")
            header[key.strip()] = value.strip()
        elif fields := [float(text) for text in line.split()]:
            run, processors, estimate = fields[3], int(fields[7] if fields[7] > 0 else fields[4]), fields[8]
            if run > 0 and processors > 0:
                estimate = estimate if estimate > 0 else run
                jobs.append(RigidJob(int(fields[0]), fields[1], min(run, estimate), processors, estimate))
    return jobs, int(header.get("MaxProcs") or header["MaxNodes"])


@dataclass
class Machine:
    """What runs, what waits, and how many processors are free."""

    processors: int
    free: int
    now: float = 0.0
    queue: list[RigidJob] = field(default_factory=list)
    running: list[RigidJob] = field(default_factory=list)

    def start(self, job: RigidJob) -> None:
        job.start = self.now
        self.free -= job.processors
        self.running.append(job)

    def finish(self, job: RigidJob) -> None:
        self.free += job.processors
        self.running.remove(job)

    def start_heads(self) -> None:
        """Start jobs in order, up to the first that does not fit."""
        started = 0
        while started < len(self.queue) and self.queue[started].processors <= self.free:
            self.start(self.queue[started])
            started += 1
        del self.queue[:started]


def fcfs(machine: Machine) -> None:
    """Nobody overtakes."""
    machine.start_heads()


def easy(machine: Machine) -> None:
    """Who does not delay the first in the queue may overtake."""
    machine.start_heads()
    if not machine.queue:
        return
    head, waiting = machine.queue[0], []
    shadow, extra = shadow_time(machine, head)
    head.promise = shadow if head.promise is None else head.promise
    for job in machine.queue[1:]:
        in_time = machine.now + job.estimate <= shadow
        if job.processors <= machine.free and (in_time or job.processors <= extra):
            machine.start(job)
            extra -= 0 if in_time else job.processors
        else:
            waiting.append(job)
    machine.queue[1:] = waiting


def shadow_time(machine: Machine, head: RigidJob) -> tuple[float, int]:
    """When the head of the queue can start, and how many processors it leaves free then."""
    free = machine.free
    ends = sorted((job.start + job.estimate, job.processors) for job in machine.running)
    for place, (end, processors) in enumerate(ends):
        free += processors
        if free >= head.processors:
            free += sum(more for later, more in ends[place + 1 :] if later == end)
            return end, free - head.processors
    raise ValueError(f"job {head.number} asks for {head.processors} of {machine.processors} processors")


class Profile:
    """How many processors are free from each moment on, by what is promised."""

    def __init__(self, processors: int) -> None:
        self.moments = [-inf]
        self.free = [processors]

    def take(self, start: float, end: float, processors: int) -> None:
        """So many fewer are free for a while; more, if the number is negative."""
        for place in range(self._step(start), self._step(end)):
            self.free[place] -= processors

    def _step(self, moment: float) -> int:
        """Where the step that begins at this moment is; there is such a step from now on."""
        place = bisect_left(self.moments, moment)
        if place == len(self.moments) or self.moments[place] != moment:
            self.moments.insert(place, moment)
            self.free.insert(place, self.free[place - 1])
        return place

    def earliest(self, now: float, job: RigidJob) -> float:
        """The first moment from which on enough are free for as long as the job takes."""
        start = now
        for place in range(bisect_right(self.moments, now) - 1, len(self.moments)):
            if self.moments[place] > start and self.moments[place] >= start + job.estimate:
                break
            if self.free[place] < job.processors:
                start = self.moments[place + 1] if place + 1 < len(self.moments) else inf
        return start

    def forget(self, now: float) -> None:
        """Drop what is past."""
        past = bisect_right(self.moments, now) - 1
        del self.moments[:past], self.free[:past]


class Conservative:
    """Nobody is delayed by those who came later."""

    def __init__(self, processors: int) -> None:
        self.profile = Profile(processors)
        self.reserved: dict[int, float] = {}
        self.running: list[RigidJob] = []

    def __call__(self, machine: Machine) -> None:
        self.profile.forget(machine.now)
        early = [job for job in self.running if job not in machine.running and job.run < job.estimate]
        for job in early:
            self.profile.take(machine.now, job.start + job.estimate, -job.processors)
        if early:
            self._compress(machine)
        for job in machine.queue:
            if job.number not in self.reserved:
                self._reserve(machine, job)
                job.promise = self.reserved[job.number]
        for job in machine.queue:
            if self.reserved[job.number] <= machine.now:
                del self.reserved[job.number]
                machine.start(job)
        machine.queue[:] = [job for job in machine.queue if job.number in self.reserved]
        self.running = list(machine.running)

    def _compress(self, machine: Machine) -> None:
        waiting = [job for job in machine.queue if job.number in self.reserved]
        for job in sorted(waiting, key=lambda job: self.reserved[job.number]):
            start = self.reserved.pop(job.number)
            self.profile.take(start, start + job.estimate, -job.processors)
            self._reserve(machine, job)

    def _reserve(self, machine: Machine, job: RigidJob) -> None:
        start = self.reserved[job.number] = self.profile.earliest(machine.now, job)
        self.profile.take(start, start + job.estimate, job.processors)


POLICIES: dict[str, Callable[[int], Callable[[Machine], None]]] = {
    "none": lambda processors: fcfs,
    "easy": lambda processors: easy,
    "conservative": Conservative,
}
"""By the name that `--backfill` has for them."""


def schedule(jobs: Iterable[RigidJob], processors: int, backfill: str) -> list[RigidJob]:
    """Give every job its start."""
    policy = POLICIES[backfill](processors)
    machine = Machine(processors, processors)
    jobs = sorted(jobs, key=lambda job: job.submit)
    order = count()
    events = [(job.submit, next(order), job) for job in jobs]
    heapq.heapify(events)
    while events:
        machine.now = events[0][0]
        while events and events[0][0] == machine.now:
            _, _, job = heapq.heappop(events)
            if job.start < 0:
                machine.queue.append(job)
            else:
                machine.finish(job)
        before = len(machine.running)
        policy(machine)
        for job in machine.running[before:]:
            heapq.heappush(events, (job.end, next(order), job))
    return jobs


@dataclass(frozen=True)
class Measures:
    """What schedules are compared by."""

    jobs: int
    utilisation: float
    """Busy processor seconds by those from the first submission to the last end."""
    mean_wait_s: float
    mean_bounded_slowdown: float
    makespan_s: float


def measures(jobs: list[RigidJob], processors: int) -> Measures:
    makespan = max(job.end for job in jobs) - min(job.submit for job in jobs)
    return Measures(
        len(jobs),
        sum(job.run * job.processors for job in jobs) / (processors * makespan),
        sum(job.wait for job in jobs) / len(jobs),
        sum(job.bounded_slowdown for job in jobs) / len(jobs),
        makespan,
    )


def read_trace(path: Path) -> tuple[list[RigidJob], int]:
    with path.open() as lines:
        return read_swf(lines)
