"""The indexes of pods that succeeded, by task, in the status of their job: deleted pods stay succeeded.

A set of indexes is an integer with their bits set, since a job may have 100,000 pods. The status has one entry per task
in `controlledResources`, which every version of the CRD keeps, as Kubernetes writes `completedIndexes`: `0-2,5`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from stromboli.api.object_bounds import MAX_PODS
from stromboli.api.types.volcano_job import Job

PREFIX = "succeeded-"
_RANGE = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?", re.ASCII)
_RUN = re.compile("1+")


def recorded_indexes(job: Job) -> list[int]:
    """Return the indexes in the status, by position of the task."""
    resources = job.status.controlled_resources
    return [
        _bits(resources.get(PREFIX + task.name, ""), min(task.replicas, MAX_PODS)) for task in job.spec.tasks
    ]


def resource_entries(job: Job, indexes: Sequence[int]) -> dict[str, str]:
    """Return the entries of `controlledResources` that record these indexes, given by position of the task."""
    tasks = zip(job.spec.tasks, indexes, strict=True)
    return {PREFIX + task.name: ",".join(_ranges(bits)) for task, bits in tasks if bits}


def indexes_in(bits: int) -> Iterator[int]:
    """Yield the indexes whose bits are set, in ascending order."""
    for run in _RUN.finditer(bin(bits)[:1:-1]):
        yield from range(*run.span())


def _bits(text: str, replicas: int) -> int:
    """Read ranges below `replicas`; anything else in the text counts for nothing."""
    if not text or not replicas:
        return 0
    digits = bytearray(b"0" * replicas)
    for part in filter(None, map(_RANGE.fullmatch, islice(text.split(","), replicas))):
        first, last = int(part[1]), min(int(part[2] or part[1]), replicas - 1)
        if first <= last:
            digits[first : last + 1] = b"1" * (last + 1 - first)
    digits.reverse()
    return int(digits, 2)


def _ranges(bits: int) -> Iterator[str]:
    for run in _RUN.finditer(bin(bits)[:1:-1]):
        first, last = run.start(), run.end() - 1
        yield f"{first}-{last}" if first < last else str(first)
