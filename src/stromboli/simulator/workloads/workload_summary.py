"""A workload in numbers: jobs, span, what is requested for how long, and how much of the nodes that is."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from math import isfinite
from statistics import median
from typing import Any

from stromboli.api import names
from stromboli.api.resources.quantity import QuantityError, exact
from stromboli.simulator.cluster_notation import Manifest
from stromboli.simulator.workloads.submitted_jobs import Workload


@dataclass(frozen=True, slots=True)
class Spread:
    """The least, the middle, the average and the most of some numbers."""

    min: float
    median: float
    mean: float
    max: float


@dataclass(frozen=True, slots=True)
class WorkloadSummary:
    """What `stromboli workload show` tells."""

    name: str
    jobs: int
    pods: int
    span_s: float
    """From the first submission to the last."""
    without_end: int
    """Jobs that never end."""
    with_time_limit: int
    nodes: int
    capacity: dict[str, float]
    requested: dict[str, float]
    """By resource, all pods together, as if they ran at the same time."""
    load: dict[str, float]
    """Requested amount times run time over capacity times span, by resource: what would be used if nobody waited.
    Only of jobs that end."""
    pods_per_job: Spread | None
    run_time_s: Spread | None
    queues: dict[str, int]
    users: dict[str, int]
    namespaces: dict[str, int]
    notes: tuple[str, ...]

    def as_document(self) -> dict[str, Any]:
        """The same as a JSON object, with a schema version."""
        fields = {field: getattr(self, field) for field in self.__dataclass_fields__}
        spreads = {
            key: {part: getattr(value, part) for part in Spread.__dataclass_fields__} if value else None
            for key, value in fields.items()
            if key in ("pods_per_job", "run_time_s")
        }
        return {"schema": 1, **fields, **spreads, "notes": list(self.notes)}


def summarised(workload: Workload) -> WorkloadSummary:
    """The numbers of a workload."""
    jobs = workload.jobs
    span = jobs[-1].submit_time - jobs[0].submit_time if jobs else 0.0
    requested: defaultdict[str, float] = defaultdict(float)
    work: defaultdict[str, float] = defaultdict(float)
    for job in jobs:
        for name, amount in job.requests.items():
            total = job.pods * _amount(amount)
            requested[name] += total
            if isfinite(job.run_time):
                work[name] += total * job.run_time
    capacity: defaultdict[str, float] = defaultdict(float)
    for node in workload.nodes:
        for name, amount in allocatable(node).items():
            capacity[name] += _amount(amount)
    return WorkloadSummary(
        workload.name,
        len(jobs),
        sum(job.pods for job in jobs),
        span,
        sum(not isfinite(job.run_time) for job in jobs),
        sum(job.time_limit is not None for job in jobs),
        len(workload.nodes),
        dict(capacity),
        dict(requested),
        {name: work[name] / capacity[name] / span for name in work if span and capacity.get(name)},
        _spread(float(job.pods) for job in jobs),
        _spread(job.run_time for job in jobs if isfinite(job.run_time)),
        _counted(job.queue or names.DEFAULT_QUEUE for job in jobs),
        _counted(job.user for job in jobs if job.user),
        _counted(job.namespace for job in jobs),
        workload.notes,
    )


def _spread(values: Iterable[float]) -> Spread | None:
    numbers = list(values)
    if not numbers:
        return None
    return Spread(min(numbers), median(numbers), sum(numbers) / len(numbers), max(numbers))


def _counted(texts: Iterable[str]) -> dict[str, int]:
    """How often each occurs, the most frequent first, equal ones by name."""
    counts = Counter(texts)
    return {text: counts[text] for text in sorted(counts, key=lambda text: (-counts[text], text))}


def allocatable(node: Manifest) -> dict[str, Any]:
    """What a node offers; nothing where its manifest, which anybody may have written, does not say it as it should."""
    status = node.get("status")
    amounts = status.get("allocatable") if isinstance(status, dict) else None
    return amounts if isinstance(amounts, dict) else {}


def _amount(quantity: int | str) -> float:
    try:
        return float(exact(quantity))
    except (QuantityError, OverflowError):
        return 0.0
