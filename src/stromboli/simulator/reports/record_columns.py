"""A record as arrays: a column per fact of its jobs, and the intervals in which they held resources."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from stromboli.api import names
from stromboli.api.card_names import VGPU_CORES, VGPU_MEMORY, VGPU_NUMBER
from stromboli.api.node_state import is_gpu
from stromboli.simulator.runs.run_record import EVICTED, FAILED, NODE_FAILED, RunRecord

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]

SLOTS = ("pods", VGPU_NUMBER)
"""Resources that count how many pods may share, not how much there is."""
BY_CARD = (VGPU_MEMORY, VGPU_CORES)

BOUND = 10.0
"""Seconds: a run that is shorter counts as this long in the bounded slowdown."""


@dataclass(frozen=True, slots=True)
class Intervals:
    """Pods on nodes, or whole jobs where a record has no pods: from when to when, and of which job."""

    job: Integers
    start: Floats
    end: Floats
    pods: Floats
    """How many pods of the job each interval stands for."""
    in_vain: Booleans
    """Whether the work was lost: the pod was evicted or failed."""


class RecordColumns:
    """The columns of a record. Times that are not known are NaN."""

    def __init__(self, record: RunRecord) -> None:
        self.record = record
        jobs = record.jobs
        self.submitted = _floats(job.submitted for job in jobs)
        self.started = _times(job.started for job in jobs)
        self.first_started = _times(
            job.started if job.first_started is None else job.first_started for job in jobs
        )
        self.ended = _times(job.ended for job in jobs)
        self.pods = _floats(max(job.pods, 1) for job in jobs)
        self.dropped = np.fromiter((job.dropped for job in jobs), np.bool_, len(jobs))
        self.wait = np.maximum(self.started - self.submitted, 0.0)
        """Until the run that counts began: a job that was evicted begins anew."""
        self.first_wait = np.maximum(self.first_started - self.submitted, 0.0)
        self.run = self._run_times()

    def _run_times(self) -> Floats:
        """How long jobs ran, or will run; NaN for those without end."""
        planned = _floats(job.run_time for job in self.record.jobs)
        ran = np.maximum(self.ended - self.started, 0.0)
        return np.where(np.isnan(ran), np.where(planned > 0, planned, np.nan), ran)

    @cached_property
    def response(self) -> Floats:
        """Seconds from submission to the end."""
        return self.wait + self.run

    @cached_property
    def bounded_slowdown(self) -> Floats:
        return np.maximum(self.response / np.maximum(self.run, BOUND), 1.0)

    @cached_property
    def slowdown(self) -> Floats:
        """Without the bound: NaN for a run of no time."""
        return self.response / np.where(self.run > 0, self.run, np.nan)

    @cached_property
    def begin(self) -> float:
        """The first submission: the measured time begins with it."""
        return float(self.submitted.min()) if self.submitted.size else 0.0

    @cached_property
    def end(self) -> float:
        """The last end, or the end of the simulation where a job has none."""
        ends = [self.ended, self.intervals.end]
        latest = max((float(np.nanmax(column)) for column in ends if _any_number(column)), default=self.begin)
        unfinished = np.isnan(self.ended) & ~self.dropped
        return max(latest, self.record.end if unfinished.any() else latest, self.begin)

    @property
    def makespan(self) -> float:
        return self.end - self.begin

    @cached_property
    def intervals(self) -> Intervals:
        """When jobs held resources; what has no end lasts until the simulation's."""
        return self._pod_intervals() if self.record.pods else self._job_intervals()

    def _pod_intervals(self) -> Intervals:
        pods = self.record.pods
        start = _floats(pod.started for pod in pods)
        lost = (EVICTED, FAILED, NODE_FAILED)
        return Intervals(
            np.fromiter((pod.job for pod in pods), np.int64, len(pods)),
            start,
            np.maximum(_floats(pod.ended for pod in pods), start),
            np.ones(len(pods)),
            np.fromiter((pod.outcome in lost for pod in pods), np.bool_, len(pods)),
        )

    def _job_intervals(self) -> Intervals:
        index = np.flatnonzero(~np.isnan(self.started))
        start, end = self.started[index], self.ended[index]
        end = np.where(np.isnan(end), max(self.record.end, 0.0), end)
        return Intervals(
            index, start, np.maximum(end, start), self.pods[index], np.zeros(index.size, np.bool_)
        )

    @cached_property
    def resources(self) -> list[str]:
        """What the cluster has of, the resource that matters most first: GPUs where jobs ask for them, else CPUs."""
        requested = {name for job in self.record.jobs for name, amount in job.requests.items() if amount > 0}
        offered = [name for name, amount in self.record.capacity.items() if amount > 0]
        return sorted(offered, key=lambda name: (name not in requested, _rank(name), name))

    @property
    def drawn_resources(self) -> list[str]:
        """Those that say how full the cluster is: no counts of slots, which are made ample."""
        return [name for name in self.resources if name not in SLOTS and self.amount(name).any()]

    def amount(self, resource: str) -> Floats:
        """What each job asks for of a resource, all pods together, as a share of the cluster.

        Memory and cores of shared cards are asked for by card.
        """
        jobs, capacity = self.record.jobs, self.record.capacity.get(resource, 0.0)
        if capacity <= 0:
            return np.zeros(len(jobs))
        amounts = _floats(job.requests.get(resource, 0.0) for job in jobs)
        if resource in BY_CARD:
            cards = _floats(job.requests.get(VGPU_NUMBER, 0.0) for job in jobs)
            amounts = amounts * np.maximum(cards / self.pods, 1.0)
        return np.maximum(amounts, 0.0) / capacity

    def held(self, resource: str) -> Floats:
        """What each interval held of a resource, as a share of the cluster."""
        rows = self.intervals
        return (self.amount(resource) / self.pods)[rows.job] * rows.pods

    def resource_time(self, resource: str) -> Floats:
        """Share of the cluster times seconds that each interval held."""
        return self.held(resource) * (self.intervals.end - self.intervals.start)


def _rank(resource: str) -> int:
    """Whole GPUs, parts of GPUs, CPUs, the others, counts of slots."""
    if resource in SLOTS:
        return 4
    return 0 if is_gpu(resource) else 1 if "gpu" in resource else 2 if resource == names.CPU else 3


def _floats(values: Iterable[float]) -> Floats:
    return np.fromiter(values, np.float64)


def _times(values: Iterable[float | None]) -> Floats:
    return np.fromiter((np.nan if value is None else value for value in values), np.float64)


def _any_number(column: Floats) -> bool:
    return bool(column.size) and not bool(np.isnan(column).all())


def sums(group: Integers, values: Floats, groups: int) -> Floats:
    """The sum of values by group."""
    return np.bincount(group, values, groups).astype(np.float64)


def codes(labels: Sequence[str]) -> tuple[list[str], Integers]:
    """The distinct labels in the order in which they appear, and for each label its place among them."""
    places: dict[str, int] = {}
    column = np.fromiter((places.setdefault(label, len(places)) for label in labels), np.int64, len(labels))
    return list(places), column
