"""Medians of several runs of the same measurement."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from statistics import median
from typing import Any, TypeVar

from msgspec import Struct, structs

Measured = TypeVar("Measured", bound=Struct)


def median_of(runs: Sequence[Measured]) -> Measured:
    """One measurement whose numbers are the medians; the rest is the same in all runs, or the first that is set."""
    values = {name: _median([getattr(run, name) for run in runs]) for name in runs[0].__struct_fields__}
    return structs.replace(runs[0], **values)


def _median(values: Sequence[Any]) -> Any:
    first = values[0]
    if isinstance(first, dict):
        names = dict.fromkeys(name for value in values for name in value)
        return {name: _median([value.get(name, 0) for value in values]) for name in names}
    if isinstance(first, int | float):
        return median(values)
    return next((value for value in values if value), first)


def median_ratio(
    ours: Iterable[Measured], theirs: Iterable[Measured], value: Callable[[Measured], float]
) -> float | None:
    """The median over all runs of a value over the other's of the same run; None where there is nothing to compare."""
    pairs = [(value(one), value(other)) for one, other in zip(ours, theirs, strict=False)]
    ratios = [one / other for one, other in pairs if other > 0]
    return median(ratios) if ratios else None
