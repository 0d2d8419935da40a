"""What Kubernetes' ResourceQuota charges for pods; a PodGroup's minResources are in these names (spec 06 2.10)."""

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Literal

from stromboli.api import names
from stromboli.api.errors import BadObject
from stromboli.api.resources.pod_totals import add_amounts, spec_total
from stromboli.api.resources.quantity import QuantityError, exact, format_bytes, format_milli
from stromboli.api.types.meta import Quantity, ResourceList
from stromboli.api.types.pod import PodResources

Charges = dict[str, Fraction]

COMPUTE = (names.CPU, names.MEMORY, names.EPHEMERAL_STORAGE)
NATIVE_DOMAIN = "kubernetes.io/"
_IN_BYTES = (names.MEMORY, names.EPHEMERAL_STORAGE, "storage")


def pod_charges(spec: PodResources) -> Charges:
    """One pod of this spec, as its namespace is charged for it."""
    charges: Charges = {names.PODS: Fraction(1), names.COUNT_PREFIX + names.PODS: Fraction(1)}
    for name, amount in _effective(spec, "requests").items():
        if name in COMPUTE or name.startswith(names.HUGE_PAGES_PREFIX) or _is_extended(name):
            charges[name] = charges[names.REQUESTS_PREFIX + name] = amount
    for name, amount in _effective(spec, "limits").items():
        if name in COMPUTE:
            charges[names.LIMITS_PREFIX + name] = amount
    return charges


def add_charges(total: Charges, charges: Mapping[str, Fraction], times: int = 1) -> None:
    """Add `times` the charges to the total."""
    add_amounts(total, {name: amount * times for name, amount in charges.items()})


def as_resource_list(charges: Mapping[str, Fraction]) -> dict[str, str]:
    """Charges as quantities that an API server takes."""
    return {name: format_charge(name, amount) for name, amount in sorted(charges.items())}


def same_amounts(left: ResourceList, right: ResourceList) -> bool:
    """Whether two lists say the same, however they write it."""
    try:
        return _fractions(left) == _fractions(right)
    except QuantityError:
        return False


def format_charge(name: str, amount: Fraction) -> str:
    """One charge as a quantity: bytes with binary suffixes, everything else (also counts) with decimal ones."""
    resource = name.removeprefix(names.REQUESTS_PREFIX).removeprefix(names.LIMITS_PREFIX)
    if resource in _IN_BYTES or resource.startswith(names.HUGE_PAGES_PREFIX):
        return format_bytes(math.ceil(amount))
    return format_milli(math.ceil(amount * 1000))


def _is_extended(name: str) -> bool:
    domain, slash, _ = name.partition("/")
    return bool(slash) and not f"{domain}/".endswith(NATIVE_DOMAIN)


def _effective(spec: PodResources, part: Literal["requests", "limits"]) -> Charges:
    """Requests, or limits, of the pod as a whole. Overhead adds only to limits that exist."""
    total = spec_total(spec, lambda resources: _exact(getattr(resources, part)))
    overhead = _exact(spec.overhead)
    add_amounts(
        total, {name: amount for name, amount in overhead.items() if part == "requests" or name in total}
    )
    return total


def _exact(amounts: Mapping[str, Quantity]) -> Charges:
    try:
        return _fractions(amounts)
    except QuantityError as error:
        raise BadObject("resources", str(error)) from None


def _fractions(amounts: Mapping[str, Quantity]) -> Charges:
    return {name: exact(quantity) for name, quantity in amounts.items()}
