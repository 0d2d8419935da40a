"""GPU allocation at a load, as the paper on fragmentation gradient descent measures it.

A single moment says little, as pods come in sizes: so allocation is the mean over all arrivals at which the GPUs asked
for so far, as a whole percentage of all GPUs, are the load.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from stromboli.api import card_names

if TYPE_CHECKING:
    from stromboli.simulator.runs.run_record import JobRecord, RunRecord


def gpu_allocation(arrived: Sequence[int], allocated: Sequence[int], capacity: int, load: float) -> float:
    """The part of all GPUs that is allocated once so much has arrived, from 0 to 1; a load of 0 means all of it.

    Where no arrival is at the load, as large pods may step over it, it is that of the last before. Both sequences are
    in thousandths of a GPU, after each arrival; as published, each part is rounded to 0.01 %.
    """
    if not capacity or not arrived:
        return 0.0
    percents = [_rounded(asked, capacity, 100) for asked in arrived]
    most = int(100 * load + 0.5) if load else percents[-1]
    reached = max((percent for percent in percents if percent <= most), default=percents[0])
    at_load = [
        _rounded(held, capacity, 10_000) / 10_000
        for percent, held in zip(percents, allocated, strict=True)
        if percent == reached
    ]
    return sum(at_load) / len(at_load)


def _rounded(part: int, whole: int, digits: int) -> int:
    """A part in so many parts of the whole, halves upwards."""
    return (2 * part * digits + whole) // (2 * whole)


def gpu_measures(record: RunRecord, load: float) -> Mapping[str, float]:
    """The GPU allocation at a load, or at as much as has arrived, and the fragmentation at the end.

    Of nodes and pods whose cards have 1,000 units of memory, so that a unit is a thousandth of a GPU.
    """
    capacity = int(record.capacity.get(card_names.VGPU_MEMORY, 0))
    arrived = list(accumulate(_asked(job) for job in record.jobs))
    allocated = list(accumulate(0 if job.started is None else _asked(job) for job in record.jobs))
    measures = {"gpu_allocation": gpu_allocation(arrived, allocated, capacity, load)}
    if record.samples and (fragmentation := record.samples[-1].fragmentation) is not None:
        measures["fragmentation"] = fragmentation
    return measures


def _asked(job: JobRecord) -> int:
    """What a pod asks for, in thousandths of a GPU: of each of its GPUs the same."""
    return int(job.requests.get(card_names.VGPU_NUMBER, 0) * job.requests.get(card_names.VGPU_MEMORY, 0))
