"""What Kubernetes' ResourceQuota charges for pods; a PodGroup's minResources are in these names (spec 06 2.10)."""

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Protocol

from stromboli.api import names
from stromboli.api.errors import BadObject
from stromboli.api.resources.pod_requests import is_pod_level
from stromboli.api.resources.quantity import (
    Quantity,
    QuantityError,
    exact,
    format_bytes,
    format_count,
    format_milli,
)
from stromboli.api.resources.resource_lists import ResourceList
from stromboli.api.types.pod import Container, Resources

Charges = dict[str, Fraction]

COMPUTE = (names.CPU, names.MEMORY, names.EPHEMERAL_STORAGE)
NATIVE_DOMAIN = "kubernetes.io/"


class Needs(Protocol):
    """What is read of a pod's spec."""

    @property
    def containers(self) -> tuple[Container, ...]: ...

    @property
    def init_containers(self) -> tuple[Container, ...]: ...

    @property
    def overhead(self) -> ResourceList: ...

    @property
    def resources(self) -> Resources | None: ...


def pod_charges(spec: Needs) -> Charges:
    """One pod of this spec, as its namespace is charged for it."""
    charges: Charges = {names.PODS: Fraction(1), names.COUNT_PREFIX + names.PODS: Fraction(1)}
    for name, amount in _effective(spec, "requests").items():
        if name in COMPUTE or name.startswith(names.HUGE_PAGES_PREFIX) or _is_extended(name):
            charges[name] = charges[names.REQUESTS_PREFIX + name] = amount
    for name, amount in _effective(spec, "limits").items():
        if name in COMPUTE:
            charges[names.LIMITS_PREFIX + name] = amount
    return charges


def add_charges(total: Charges, more: Mapping[str, Fraction], times: int = 1) -> None:
    """Add so many pods' charges to a sum."""
    for name, amount in more.items():
        total[name] = total.get(name, Fraction()) + amount * times


def as_resource_list(charges: Mapping[str, Fraction]) -> dict[str, str]:
    """Charges as quantities that an API server takes."""
    return {name: _formatted(name, amount) for name, amount in sorted(charges.items())}


def same_amounts(one: ResourceList, other: ResourceList) -> bool:
    """Whether two lists say the same, however they write it."""
    try:
        return one.keys() == other.keys() and all(exact(one[name]) == exact(other[name]) for name in one)
    except QuantityError:
        return False


def _formatted(name: str, amount: Fraction) -> str:
    plain = name.removeprefix(names.REQUESTS_PREFIX).removeprefix(names.LIMITS_PREFIX)
    if plain in (names.PODS, names.COUNT_PREFIX + names.PODS):
        return format_count(math.ceil(amount))
    if plain in (names.MEMORY, names.EPHEMERAL_STORAGE) or plain.startswith(names.HUGE_PAGES_PREFIX):
        return format_bytes(math.ceil(amount))
    return format_milli(math.ceil(amount * 1000))


def _is_extended(name: str) -> bool:
    domain, slash, _ = name.partition("/")
    return bool(slash) and not f"{domain}/".endswith(NATIVE_DOMAIN)


def _effective(spec: Needs, part: str) -> Charges:
    """Requests, or limits, of the pod as a whole: containers add up, init containers count by their peak."""
    total = _sum(_stated(one.resources, part) for one in spec.containers)
    peak, sidecars = _init_peak(spec.init_containers, part)
    add_charges(total, sidecars)
    for name, amount in peak.items():
        total[name] = max(total.get(name, amount), amount)
    if spec.resources is not None:
        stated = _stated(spec.resources, part)
        total.update((name, amount) for name, amount in stated.items() if is_pod_level(name))
    for name, amount in _exact(spec.overhead).items():
        if part == "requests" or name in total:
            total[name] = total.get(name, Fraction()) + amount
    return total


def _init_peak(containers: Iterable[Container], part: str) -> tuple[Charges, Charges]:
    """The most that init containers need at one time, and what those that stay need together."""
    peak: Charges = {}
    sidecars: Charges = {}
    for container in containers:
        stated = _stated(container.resources, part)
        if container.restart_policy == names.RESTART_ALWAYS:
            add_charges(sidecars, stated)
            stated = dict(sidecars)
        else:
            add_charges(stated, sidecars)
        for name, amount in stated.items():
            peak[name] = max(peak.get(name, amount), amount)
    return peak, sidecars


def _sum(parts: Iterable[Charges]) -> Charges:
    total: Charges = {}
    for part in parts:
        add_charges(total, part)
    return total


def _stated(resources: Resources, part: str) -> Charges:
    return _exact(resources.requests if part == "requests" else resources.limits)


def _exact(amounts: Mapping[str, Quantity]) -> Charges:
    try:
        return {name: exact(quantity) for name, quantity in amounts.items()}
    except QuantityError as error:
        raise BadObject("resources", str(error)) from None
