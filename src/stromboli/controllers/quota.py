"""What a pod is charged by a ResourceQuota, which is what Volcano writes as a group's minResources (spec 06 2.10).

Amounts are exact fractions until they are written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from math import ceil
from typing import Protocol

from stromboli.api import names
from stromboli.api.errors import BadObject
from stromboli.api.pod import Container, Resources
from stromboli.api.quantity import QuantityError, exact, format_bytes, format_milli
from stromboli.api.requests import is_pod_level
from stromboli.api.resources import ResourceList

Amounts = dict[str, Fraction]
_COMPUTE = (names.CPU, names.MEMORY, names.EPHEMERAL_STORAGE)
_ONE = {names.PODS: Fraction(1), names.COUNT_PREFIX + names.PODS: Fraction(1)}


class PodNeeds(Protocol):
    """What is read of a pod's spec, or of a template's."""

    @property
    def containers(self) -> tuple[Container, ...]: ...

    @property
    def init_containers(self) -> tuple[Container, ...]: ...

    @property
    def overhead(self) -> ResourceList: ...

    @property
    def resources(self) -> Resources | None: ...


def pod_usage(pod: PodNeeds) -> Amounts:
    """What one such pod is charged; what it does not state is absent. `BadObject` for what is no quantity."""
    requests = _effective(pod, _requests)
    limits = _effective(pod, _limits)
    usage = dict(_ONE)
    for name, amount in requests.items():
        if name in _COMPUTE or name.startswith(names.HUGE_PAGES_PREFIX) or _is_extended(name):
            usage[name] = usage[names.REQUESTS_PREFIX + name] = amount
    for name in _COMPUTE:
        if name in limits:
            usage[names.LIMITS_PREFIX + name] = limits[name]
    return usage


def plus(one: Mapping[str, Fraction], other: Mapping[str, Fraction], times: int = 1) -> Amounts:
    """The sum of one and so many of the other."""
    total = dict(one)
    for name, amount in other.items():
        total[name] = total.get(name, Fraction(0)) + times * amount
    return total


def written(amounts: Mapping[str, Fraction]) -> dict[str, str]:
    """As quantities, the way Kubernetes writes them."""
    return {name: _quantity(name, amount) for name, amount in sorted(amounts.items())}


def _quantity(name: str, amount: Fraction) -> str:
    bare = name.removeprefix(names.REQUESTS_PREFIX).removeprefix(names.LIMITS_PREFIX)
    in_bytes = bare in (names.MEMORY, names.EPHEMERAL_STORAGE) or bare.startswith(names.HUGE_PAGES_PREFIX)
    return format_bytes(ceil(amount)) if in_bytes else format_milli(ceil(amount * 1000))


def _is_extended(name: str) -> bool:
    domain, slash, _ = name.rpartition("/")
    ours = domain == "kubernetes.io" or domain.endswith(".kubernetes.io")
    return bool(slash) and not ours and not name.startswith(names.REQUESTS_PREFIX)


def _effective(pod: PodNeeds, pick: Callable[[Resources], ResourceList]) -> Amounts:
    """Containers add up, init containers count by their peak, sidecars stay on top of both."""
    total: Amounts = {}
    for container in pod.containers:
        total = plus(total, _amounts(pick(container.resources)))
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in pod.init_containers:
        amounts = _amounts(pick(container.resources))
        if container.restart_policy == names.RESTART_ALWAYS:
            total, sidecars = plus(total, amounts), plus(sidecars, amounts)
            amounts = sidecars
        else:
            amounts = plus(amounts, sidecars)
        peak = _largest(peak, amounts)
    total = _largest(total, peak)
    if pod.resources is not None:
        stated = _amounts(pick(pod.resources))
        total.update((name, amount) for name, amount in stated.items() if is_pod_level(name))
    for name, amount in _amounts(pod.overhead).items():
        if name in total or pick is not _limits:
            total[name] = total.get(name, Fraction(0)) + amount
    return total


def _amounts(stated: ResourceList) -> Amounts:
    try:
        return {name: exact(quantity) for name, quantity in stated.items()}
    except QuantityError as error:
        raise BadObject("resources", str(error)) from None


def _largest(one: Amounts, other: Amounts) -> Amounts:
    return {name: max(one.get(name, Fraction(0)), other.get(name, Fraction(0))) for name in {**one, **other}}


def _requests(one: Resources) -> ResourceList:
    return one.requests


def _limits(one: Resources) -> ResourceList:
    return one.limits
