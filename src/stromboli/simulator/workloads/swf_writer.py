"""Workloads as traces in the Standard Workload Format, for the tools of others; what it cannot say is told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import ceil, isfinite

from stromboli.api import names
from stromboli.api.resources.quantity import QuantityError, exact
from stromboli.simulator.cluster_notation import Manifest
from stromboli.simulator.count_sentences import count_sentence
from stromboli.simulator.workloads.submitted_jobs import SubmittedJob, Workload
from stromboli.simulator.workloads.workload_summary import allocatable

_UNKNOWN = -1
_SAID = (names.CPU, names.MEMORY)


def write_swf(workload: Workload, path: str) -> list[str]:
    """Write a trace, and say what it leaves out."""
    numbers = _Numbers(workload.jobs)
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(f"; {line}\n" for line in _header(workload, numbers))
        file.writelines(
            " ".join(map(_column, _record(number, job, numbers))) + "\n"
            for number, job in enumerate(workload.jobs, 1)
        )
    return _losses(workload)


class _Numbers:
    """The numbers that stand for users, namespaces and queues, in the order of their appearance."""

    def __init__(self, jobs: Sequence[SubmittedJob]) -> None:
        self.users = _numbered(job.user for job in jobs)
        self.groups = _numbered(job.namespace for job in jobs)
        self.queues = _numbered(job.queue for job in jobs)


def _numbered(texts: Iterator[str]) -> dict[str, int]:
    return {text: number for number, text in enumerate(dict.fromkeys(filter(None, texts)), 1)}


def _header(workload: Workload, numbers: _Numbers) -> Iterator[str]:
    yield "Version: 2.2"
    yield f"Computer: {_one_line(workload.name)}"
    yield f"MaxJobs: {len(workload.jobs)}"
    yield f"MaxRecords: {len(workload.jobs)}"
    if cpus := int(sum(_size(node, names.CPU) for node in workload.nodes)):
        yield f"MaxNodes: {len(workload.nodes)}"
        yield f"MaxProcs: {cpus}"
    yield f"MaxQueues: {len(numbers.queues)}"
    yield from (f"Queue: {number} {name}" for name, number in numbers.queues.items())
    yield from (f"Note: {_one_line(note)}" for note in workload.notes)


def _record(number: int, job: SubmittedJob, numbers: _Numbers) -> tuple[float, ...]:
    cpus = job.pods * _amount(job, names.CPU)
    processors = max(ceil(cpus), 1)
    memory = job.pods * _amount(job, names.MEMORY) / processors / 1024
    run_time = job.run_time if isfinite(job.run_time) else _UNKNOWN
    return (
        number,
        job.submit_time,
        _UNKNOWN,
        run_time,
        processors,
        _UNKNOWN,
        _UNKNOWN,
        processors,
        _UNKNOWN if job.time_limit is None else job.time_limit,
        ceil(memory) or _UNKNOWN,
        1,
        numbers.users.get(job.user, _UNKNOWN),
        numbers.groups.get(job.namespace, _UNKNOWN),
        _UNKNOWN,
        numbers.queues.get(job.queue, _UNKNOWN),
        _UNKNOWN,
        _UNKNOWN,
        _UNKNOWN,
    )


def _losses(workload: Workload) -> list[str]:
    """What is in a workload and not in its trace, each with the number of jobs."""
    counts: Counter[str] = Counter()
    for job in workload.jobs:
        cpus = job.pods * _amount(job, names.CPU)
        lost = {
            "run{s} without end: {its} run time is written as unknown": not isfinite(job.run_time),
            "request{s} other resources than CPU and memory": any(name not in _SAID for name in job.requests),
            "{has} CPUs that are no whole processors: rounded up": cpus != max(ceil(cpus), 1),
            "{has} several pods: only the processors of all together are written": job.pods > 1,
            "may start with a part of {its} pods": job.minimum not in (None, job.pods),
            "{has} a priority": bool(job.priority),
            "{has} labels, annotations or other fields": bool(job.labels or job.annotations or job.spec),
        }
        counts.update(problem for problem, is_lost in lost.items() if is_lost)
    losses = [count_sentence(count, "job", problem) for problem, count in counts.items()]
    if any(job.user or job.namespace != names.DEFAULT_NAMESPACE for job in workload.jobs):
        losses.append("users and namespaces become numbers")
    if len(workload.nodes) > 1:
        losses.append(f"{len(workload.nodes)} nodes become one number of processors")
    return losses


def _amount(job: SubmittedJob, resource: str) -> Fraction:
    try:
        return exact(job.requests.get(resource, 0))
    except QuantityError:
        return Fraction(0)


def _size(node: Manifest, resource: str) -> Fraction:
    try:
        return exact(allocatable(node).get(resource, 0))
    except QuantityError:
        return Fraction(0)


def _column(value: float) -> str:
    return str(int(value)) if value == int(value) else f"{value:.6f}".rstrip("0")


def _one_line(text: str) -> str:
    return " ".join(text.split())
