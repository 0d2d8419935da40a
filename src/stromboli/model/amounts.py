"""Arithmetic over resource amounts: each rule of the specification once, under its name (spec 03 0.1).

An amount vector is a plain dict from dimension to number. A missing dimension is zero; totals drop what becomes zero,
so that a vector updated by moves equals one summed from zero. Whole numbers stay exact; floats appear only in shares.
"""

from collections.abc import Iterable, Mapping
from typing import TypeVar

from stromboli.model.dimensions import CPU, MEMORY, PODS

K = TypeVar("K")
Amounts = dict[int, float]
Vector = Mapping[int, float]

EPSILON = 0.1
UNLIMITED = float("inf")


def add_to(counts: dict[K, int], key: K, amount: int) -> None:
    """Add to one count, in place; a count that becomes zero is dropped."""
    if left := counts.get(key, 0) + amount:
        counts[key] = left
    else:
        counts.pop(key, None)


def shift(total: Amounts, request: Vector, sign: int = 1) -> None:
    """Add (or take off) a request, in place."""
    for dim, amount in request.items():
        if left := total.get(dim, 0) + sign * amount:
            total[dim] = left
        elif dim in total:
            del total[dim]


def plus(left: Vector, right: Vector) -> Amounts:
    """The sum, without amounts that become zero."""
    total = dict(left)
    shift(total, right)
    return total


def minus(left: Vector, right: Vector) -> Amounts:
    """The difference; amounts may become negative."""
    total = dict(left)
    shift(total, right, -1)
    return total


def times(amounts: Vector, ratio: float) -> Amounts:
    """Each amount times a number."""
    return {dim: amount * ratio for dim, amount in amounts.items()}


def total_of(vectors: Iterable[Vector]) -> Amounts:
    """The sum of any number of them."""
    total: Amounts = {}
    for vector in vectors:
        shift(total, vector)
    return total


def le1(left: float, right: float) -> bool:
    return left < right or abs(left - right) < EPSILON


def less_equal(left: Vector, right: Vector) -> bool:
    """LE: cpu, memory and every scalar of the left side, within the tolerance."""
    return all(le1(left.get(dim, 0), right.get(dim, 0)) for dim in {CPU, MEMORY, *left})


def lacking(wanted: Vector, limit: Vector, request: Vector) -> list[int]:
    """The dimensions in which FITS fails: those of the request, never pods, where wanted > limit, exactly."""
    return [
        dim
        for dim, amount in request.items()
        if amount > 0 and dim != PODS and wanted.get(dim, 0) > limit.get(dim, 0)
    ]


def fits(wanted: Vector, limit: Vector, request: Vector) -> bool:
    """FITS: wanted <= limit, exactly, in the dimensions of the request (never pods)."""
    for dim, amount in request.items():
        if amount > 0 and dim != PODS and wanted.get(dim, 0) > limit.get(dim, 0):
            return False
    return True


def fits_added(held: Vector, request: Vector, limit: Vector) -> bool:
    """FITS(held + request, limit, request) without building the sum."""
    for dim, amount in request.items():
        if amount > 0 and dim != PODS and held.get(dim, 0) + amount > limit.get(dim, 0):
            return False
    return True


def some_fits(wanted: Vector, limit: Vector, request: Vector) -> bool:
    """ANYFIT: wanted <= limit in one dimension of the request (never pods) of which there is any amount."""
    return any(
        amount > 0
        and dim != PODS
        and (wanted.get(dim, 0) >= EPSILON or limit.get(dim, 0) >= EPSILON)
        and le1(wanted.get(dim, 0), limit.get(dim, 0))
        for dim, amount in request.items()
    )


def some_over(held: Vector, limit: Vector, request: Vector) -> bool:
    """ANYOVER: held > limit in one dimension of the request (never pods) that the limit names."""
    return any(
        amount > 0
        and dim != PODS
        and (limit.get(dim, 0) >= EPSILON if dim <= MEMORY else dim in limit)
        and held.get(dim, 0) > limit[dim]
        for dim, amount in request.items()
    )


def minimum_or_unlimited(left: Vector, right: Vector) -> Amounts:
    """MINinf: cpu and memory always taken; a scalar that the right side does not name is left alone."""
    return {
        dim: min(amount, right.get(dim, 0)) if dim in right or dim <= MEMORY else amount
        for dim, amount in _with_basics(left).items()
    }


def minimum_or_zero(left: Vector, right: Vector) -> Amounts:
    """MIN0: a dimension of the left side that the right side does not name becomes zero."""
    return {dim: min(amount, right.get(dim, 0)) for dim, amount in _with_basics(left).items()}


def maximum(left: Vector, right: Vector) -> Amounts:
    """MAX over the union of dimensions; negative scalars are dropped."""
    highest = {dim: max(left.get(dim, 0), right.get(dim, 0)) for dim in {**left, **right}}
    return {dim: amount for dim, amount in highest.items() if amount >= 0 or dim <= MEMORY}


def excess(left: Vector, right: Vector) -> Amounts:
    """EXCESS: left minus right, never below zero."""
    return {dim: amount - right.get(dim, 0) for dim, amount in left.items() if amount > right.get(dim, 0)}


def positive_dimensions(amounts: Vector) -> list[int]:
    """The dimensions with an amount above the tolerance."""
    return [dim for dim, amount in amounts.items() if amount >= EPSILON]


def is_empty(amounts: Vector) -> bool:
    """Whether nothing but pods is requested, which makes a task best-effort."""
    return all(amount < EPSILON for dim, amount in amounts.items() if dim != PODS)


def share(part: float, whole: float) -> float:
    """Part of a whole as a ratio; 1 if the whole is zero."""
    if whole == 0:
        return 0.0 if part == 0 else 1.0
    return part / whole


def dominant_share(part: Vector, whole: Vector) -> float:
    """The largest share over the dimensions that the whole has."""
    highest = 0.0
    for dim, amount in whole.items():
        if amount >= EPSILON:
            highest = max(highest, part.get(dim, 0) / amount)
    return highest


def same(left: Vector, right: Vector) -> bool:
    """Exact equality, and the same scalars named."""
    return _with_basics(left) == _with_basics(right)


def _with_basics(amounts: Vector) -> Amounts:
    return {CPU: 0, MEMORY: 0, **amounts}
