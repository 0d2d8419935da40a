"""Resource lists in the scheduler's own units: milli-CPU, bytes, whole pods, thousandths of the rest."""

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import lru_cache

from stromboli.api import card_names, names
from stromboli.api.errors import BadObject
from stromboli.api.resources.quantity import (
    QuantityError,
    exact,
    format_bytes,
    format_count,
    format_milli,
    milli,
    whole,
)
from stromboli.api.types.meta import Quantity


def amounts(resource_list: Mapping[str, Quantity], where: str) -> dict[str, int]:
    """A resource list in internal units; names that the scheduler does not count are left out."""
    result = {}
    for name, quantity in resource_list.items():
        read = _internal_unit(name)
        if read is not None:
            result[name] = _amount(read, name, quantity, where)
    return result


def view_amounts(resource_list: Mapping[str, Quantity], where: str) -> dict[str, int]:
    """The same in the units of Kubernetes' own scores: milli-CPU, whole units of everything else."""
    result = {}
    for name, quantity in resource_list.items():
        if _internal_unit(name) is not None:
            read = milli if name == names.CPU else whole
            result[name] = _amount(read, name, quantity, where)
    return result


_FEW = 8
"""Lists of so many resources are remembered, as most pods have equal ones."""


def check_amounts(resource_list: Mapping[str, Quantity], where: str) -> int:
    """The largest amount. Refuses bad, negative or huge values, also of names the scheduler does not count."""
    largest = _largest_amount if len(resource_list) <= _FEW else _largest_amount.__wrapped__
    try:
        return largest(*resource_list.items())
    except BadObject as error:
        raise BadObject(f"{where}.{error.field}", error.problem) from None


@lru_cache(maxsize=256)
def _largest_amount(*resource_list: tuple[str, Quantity]) -> int:
    amounts = [_amount(_internal_unit(name) or whole, name, quantity) for name, quantity in resource_list]
    return max(amounts, default=0)


def resource_list(amounts: Mapping[str, int]) -> dict[str, str]:
    """Internal amounts as quantities, the way a queue's status shows them; cpu and memory always appear."""
    result = {names.CPU: "0", names.MEMORY: "0"}
    for name, amount in amounts.items():
        result[name] = _FORMATS.get(name, format_milli)(amount)
    return result


_FORMATS: dict[str, Callable[[int], str]] = {names.MEMORY: format_bytes, names.PODS: format_count}


def amount_text(name: str, amount: Fraction) -> str:
    """An amount of a resource as a quantity."""
    if name in (names.MEMORY, names.PODS):
        return _FORMATS[name](int(amount))
    return format_milli(int(amount * 1000))


@lru_cache(maxsize=4096)
def _internal_unit(name: str) -> Callable[[Quantity], int] | None:
    if name in (names.MEMORY, names.PODS):
        return whole
    if name in (names.CPU, names.EPHEMERAL_STORAGE) or _is_scalar(name):
        return milli
    return None


def _is_scalar(name: str) -> bool:
    if card_names.is_part_of_npu(name):
        return False  # nodes have none of it, as it is shared out card by card
    if name.startswith((names.HUGE_PAGES_PREFIX, names.ATTACHABLE_VOLUMES_PREFIX)):
        return True
    return "/" in name and not name.startswith((names.COUNT_PREFIX, names.REQUESTS_PREFIX))


def _amount(read: Callable[[Quantity], int], name: str, quantity: Quantity, where: str = "") -> int:
    try:
        amount = read(quantity)
    except QuantityError as error:
        raise BadObject(_path(where, name), str(error)) from None
    if amount < 0 or (amount == 0 and exact(quantity) < 0):
        raise BadObject(_path(where, name), f"must not be negative, got {quantity}")
    return amount


def _path(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name
