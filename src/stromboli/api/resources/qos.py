"""A pod's quality of service class, as ComputePodQOS of Kubernetes determines it."""

from fractions import Fraction

from stromboli.api import names
from stromboli.api.resources.pod_totals import add_amounts
from stromboli.api.resources.quantity import exact
from stromboli.api.types.meta import ResourceList
from stromboli.api.types.pod import PodResources

BEST_EFFORT, BURSTABLE, GUARANTEED = "BestEffort", "Burstable", "Guaranteed"


def qos_class(spec: PodResources) -> str:
    """Guaranteed if cpu and memory are limited everywhere to what is requested, BestEffort if neither is stated."""
    if spec.resources is not None:
        stated = [spec.resources]
    else:
        stated = [container.resources for container in (*spec.containers, *spec.init_containers)]
    requests: dict[str, Fraction] = {}
    limits: dict[str, Fraction] = {}
    all_limited = True
    for resources in stated:
        add_amounts(requests, _positive(resources.requests))
        limited = _positive(resources.limits)
        add_amounts(limits, limited)
        all_limited = all_limited and len(limited) == len(_COUNTED)
    if not requests and not limits:
        return BEST_EFFORT
    return GUARANTEED if all_limited and requests == limits else BURSTABLE


_COUNTED = (names.CPU, names.MEMORY)


def _positive(resources: ResourceList) -> dict[str, Fraction]:
    amounts = {name: exact(resources[name]) for name in _COUNTED if name in resources}
    return {name: amount for name, amount in amounts.items() if amount > 0}
