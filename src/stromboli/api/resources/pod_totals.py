"""What a pod needs as a whole, as PodRequests and PodLimits of k8s.io/component-helpers/resource compute it."""

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import TypeVar

from stromboli.api import names
from stromboli.api.types.pod import PodResources, Resources

Number = TypeVar("Number", int, Fraction)


def pod_total(
    containers: Iterable[Mapping[str, Number]],
    init_containers: Iterable[tuple[bool, Mapping[str, Number]]],
    pod_level: Mapping[str, Number],
) -> dict[str, Number]:
    """The total without the pod's overhead. Init containers come in order, with whether they are sidecars.

    Containers and sidecars (restartable init containers) add up. Any other init container runs next to the
    sidecars that were started before it. The larger of the two counts, unless the pod as a whole states an amount.
    """
    total: dict[str, Number] = {}
    for amounts in containers:
        add_amounts(total, amounts)
    sidecars: dict[str, Number] = {}
    peak: dict[str, Number] = {}
    for is_sidecar, amounts in init_containers:
        if is_sidecar:
            add_amounts(total, amounts)
            add_amounts(sidecars, amounts)
            raise_amounts(peak, sidecars)
        else:
            concurrent = dict(sidecars)
            add_amounts(concurrent, amounts)
            raise_amounts(peak, concurrent)
    raise_amounts(total, peak)
    for name, amount in pod_level.items():
        if is_pod_level(name):
            total[name] = amount
    return total


def spec_total(spec: PodResources, stated: Callable[[Resources], Mapping[str, Number]]) -> dict[str, Number]:
    """The total of what a function reads from the resources of each container, and of the pod as a whole."""
    return pod_total(
        [stated(container.resources) for container in spec.containers],
        [
            (container.restart_policy == names.RESTART_ALWAYS, stated(container.resources))
            for container in spec.init_containers
        ],
        stated(spec.resources) if spec.resources is not None else {},
    )


def is_pod_level(name: str) -> bool:
    """Whether a pod as a whole may state this resource."""
    return name in (names.CPU, names.MEMORY) or name.startswith(names.HUGE_PAGES_PREFIX)


def add_amounts(total: dict[str, Number], amounts: Mapping[str, Number]) -> None:
    """Add the amounts to the total."""
    for name, amount in amounts.items():
        total[name] = total[name] + amount if name in total else amount


def raise_amounts(total: dict[str, Number], minimum: Mapping[str, Number]) -> None:
    """Raise the total to the minimum where it is below it."""
    for name, amount in minimum.items():
        if name not in total or total[name] < amount:
            total[name] = amount
