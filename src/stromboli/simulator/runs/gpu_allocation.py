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


def gpu_allocation(
    arrived: Sequence[int], allocated: Sequence[int], capacity: int, load: float
) -> float | None:
    """The part of all GPUs that is allocated once so much has arrived, from 0 to 1; none if no arrival is there.

    Both sequences are in thousandths of a GPU, after each arrival; as published, each part is rounded to 0.01 %.
    """
    if not capacity:
        return None
    percent = int(100 * load + 0.5)
    at_load = [
        _rounded(held, capacity, 10_000) / 10_000
        for asked, held in zip(arrived, allocated, strict=True)
        if _rounded(asked, capacity, 100) == percent
    ]
    return sum(at_load) / len(at_load) if at_load else None


def _rounded(part: int, whole: int, digits: int) -> int:
    """A part in so many parts of the whole, halves upwards."""
    return (2 * part * digits + whole) // (2 * whole)


def gpu_measures(record: RunRecord, load: float) -> Mapping[str, float]:
    """The GPU allocation at a load, or at as much as has arrived, and the fragmentation at the end.

    Of nodes and pods whose cards have 1,000 units of memory, so that a unit is a thousandth of a GPU.
    """
    measures: dict[str, float] = {}
    capacity = int(record.capacity.get(card_names.VGPU_MEMORY, 0))
    arrived = list(accumulate(_asked(job) for job in record.jobs))
    allocated = list(accumulate(0 if job.started is None else _asked(job) for job in record.jobs))
    if capacity and arrived:
        allocation = gpu_allocation(arrived, allocated, capacity, _reached(arrived, capacity, load))
        if allocation is not None:
            measures["gpu_allocation"] = allocation
    if record.samples and (fragmentation := record.samples[-1].fragmentation) is not None:
        measures["fragmentation"] = fragmentation
    return measures


def _reached(arrived: Sequence[int], capacity: int, load: float) -> float:
    """The load of the last arrival that is not beyond the one asked for, as large pods may step over it."""
    loads = [asked / capacity for asked in arrived]
    return max((each for each in loads if not load or each < load + 0.005), default=loads[0])


def _asked(job: JobRecord) -> int:
    """What a pod asks for, in thousandths of a GPU: of each of its GPUs the same."""
    return int(job.requests.get(card_names.VGPU_NUMBER, 0) * job.requests.get(card_names.VGPU_MEMORY, 0))
