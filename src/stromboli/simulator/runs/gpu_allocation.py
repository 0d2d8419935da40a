"""GPU allocation at a load, as the paper on fragmentation gradient descent measures it.

A single moment says little, as pods come in sizes: so allocation is the mean over all arrivals at which the GPUs asked
for so far, as a whole percentage of all GPUs, are the load.
"""

from __future__ import annotations

from collections.abc import Sequence


def gpu_allocation(
    arrived: Sequence[int], allocated: Sequence[int], capacity: int, load: float
) -> float | None:
    """The part of all GPUs that is allocated once so much has arrived, from 0 to 1; none if no arrival is there.

    Both sequences are in thousandths of a GPU, after each arrival; as published, each part is rounded to 0.01 %.
    """
    if not capacity:
        return None
    percent = _rounded(load, 1, 100)
    at_load = [
        _rounded(held, capacity, 10_000) / 10_000
        for asked, held in zip(arrived, allocated, strict=True)
        if _rounded(asked, capacity, 100) == percent
    ]
    return sum(at_load) / len(at_load) if at_load else None


def _rounded(part: float, whole: int, digits: int) -> int:
    """A part in so many parts of the whole, halves upwards."""
    return int(part / whole * digits + 0.5)
