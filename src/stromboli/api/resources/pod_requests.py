"""What a pod asks for: for the scheduler's own books, and the way Kubernetes' scores see it.

Containers add up, init containers count by their peak, sidecars (restartable ones) stay on top of both.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from stromboli.api import names
from stromboli.api.resources.quantity import Quantity
from stromboli.api.resources.resource_lists import amounts, view_amounts
from stromboli.api.types.pod import Container, ContainerStatus, Pod

Amounts = dict[str, int]
Convert = Callable[[Mapping[str, Quantity], str], Amounts]

UNSTATED = {names.CPU: 100, names.MEMORY: 200 * 1024 * 1024}
"""What a container that states no cpu or memory counts for in the "nonzero" numbers."""


class ViewRequest(NamedTuple):
    """A pod in the eyes of Kubernetes' node scores: milli-CPU, whole units of everything else."""

    requested: Amounts
    nonzero_cpu: int
    nonzero_memory: int
    incoming: Amounts
    incoming_nonzero_cpu: int
    incoming_nonzero_memory: int


def pod_request(pod: Pod) -> Amounts:
    """The pod's request in internal units, with its `pods: 1`; volumes are counted elsewhere."""
    total = _container_total(pod, amounts, resized=True)
    total[names.PODS] = total.get(names.PODS, 0) + 1
    _apply_pod_level(total, pod, amounts, resized=False)
    _add(total, amounts(pod.spec.overhead, "spec.overhead"))
    return total


def view_request(pod: Pod) -> ViewRequest:
    """The pod as the scores count it: once as one that exists, once as one that is to be placed."""
    requested = _view_total(pod, resized=True)
    unstated = _unstated(pod, requested)
    nonzero = _view_total(pod, resized=True, unstated=unstated) if unstated else requested
    # quirk: spec 04 3.2, the incoming pod's nonzero numbers ignore pod-level requests
    arriving = _view_total(pod, resized=False, unstated=UNSTATED, pod_level=False)
    return ViewRequest(
        requested=requested,
        nonzero_cpu=nonzero.get(names.CPU, 0),
        nonzero_memory=nonzero.get(names.MEMORY, 0),
        incoming=_view_total(pod, resized=False),
        incoming_nonzero_cpu=arriving.get(names.CPU, 0),
        incoming_nonzero_memory=arriving.get(names.MEMORY, 0),
    )


def container_total(pod: Pod) -> Amounts:
    """What the containers alone ask for, as written in the spec."""
    return _container_total(pod, amounts, resized=False)


def _unstated(pod: Pod, requested: Amounts) -> Amounts:
    if not _has_pod_level(pod):
        return UNSTATED
    return {name: amount for name, amount in UNSTATED.items() if name not in requested}


def _view_total(
    pod: Pod, *, resized: bool, unstated: Amounts | None = None, pod_level: bool = True
) -> Amounts:
    total = _container_total(pod, view_amounts, resized, unstated)
    if pod_level:
        _apply_pod_level(total, pod, view_amounts, resized)
    _add(total, view_amounts(pod.spec.overhead, "spec.overhead"))
    return total


def _container_total(pod: Pod, convert: Convert, resized: bool, unstated: Amounts | None = None) -> Amounts:
    total: Amounts = {}
    for request in _container_requests(pod, convert, resized):
        _add(total, _stated(request, unstated))
    if not pod.spec.init_containers:
        return total
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container, stated in _init_requests(pod, convert, resized):
        request = _stated(stated, unstated)
        if container.restart_policy == names.RESTART_ALWAYS:
            _add(total, request)
            _add(sidecars, request)
            _raise_to(peak, sidecars)
        else:
            _add(request, sidecars)
            _raise_to(peak, request)
    _raise_to(total, peak)
    return total


def _container_requests(pod: Pod, convert: Convert, resized: bool) -> Iterator[Amounts]:
    statuses = _statuses(pod.status.container_statuses) if resized else {}
    for index, container in enumerate(pod.spec.containers):
        where = f"spec.containers[{index}].resources.requests"
        request = convert(container.resources.requests, where)
        status = statuses.get(container.name)
        yield _resized(pod, request, status, convert) if status else request


def _init_requests(pod: Pod, convert: Convert, resized: bool) -> Iterator[tuple[Container, Amounts]]:
    statuses = _statuses(pod.status.init_container_statuses) if resized else {}
    for index, container in enumerate(pod.spec.init_containers):
        where = f"spec.initContainers[{index}].resources.requests"
        request = convert(container.resources.requests, where)
        status = statuses.get(container.name) if container.restart_policy == names.RESTART_ALWAYS else None
        yield container, _resized(pod, request, status, convert) if status else request


def _statuses(statuses: tuple[ContainerStatus, ...]) -> dict[str, ContainerStatus]:
    return {status.name: status for status in statuses if status.resources is not None}


def _resized(pod: Pod, request: Amounts, status: ContainerStatus, convert: Convert) -> Amounts:
    """The largest of what is asked, given and promised; an infeasible wish does not count."""
    actual = status.resources.requests if status.resources else {}
    return _largest(
        pod,
        request,
        convert(actual, f"status.containerStatuses[{status.name}].resources.requests"),
        convert(status.allocated_resources, f"status.containerStatuses[{status.name}].allocatedResources"),
    )


def _largest(pod: Pod, request: Amounts, actual: Amounts, allocated: Amounts) -> Amounts:
    result = {} if _resize_infeasible(pod) else dict(request)
    _raise_to(result, actual)
    _raise_to(result, allocated)
    return result


def _resize_infeasible(pod: Pod) -> bool:
    return pod.status.resize == names.RESIZE_INFEASIBLE or any(
        condition.type == names.CONDITION_RESIZE_PENDING and condition.reason == names.RESIZE_INFEASIBLE
        for condition in pod.status.conditions
    )


def is_pod_level(name: str) -> bool:
    """Whether a pod as a whole may state this resource."""
    return name in (names.CPU, names.MEMORY) or name.startswith(names.HUGE_PAGES_PREFIX)


def _has_pod_level(pod: Pod) -> bool:
    resources = pod.spec.resources
    return resources is not None and any(map(is_pod_level, resources.requests))


def _apply_pod_level(total: Amounts, pod: Pod, convert: Convert, resized: bool) -> None:
    resources = pod.spec.resources
    if resources is None or not _has_pod_level(pod):
        return
    stated = convert(resources.requests, "spec.resources.requests")
    if resized and pod.status.resources is not None:
        actual = convert(pod.status.resources.requests, "status.resources.requests")
        allocated = convert(pod.status.allocated_resources, "status.allocatedResources")
        stated = _largest(pod, stated, actual, allocated)
    total.update((name, amount) for name, amount in stated.items() if is_pod_level(name))


def _stated(request: Amounts, unstated: Amounts | None) -> Amounts:
    return {**unstated, **request} if unstated else request


def _add(total: Amounts, more: Amounts) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _raise_to(total: Amounts, least: Amounts) -> None:
    for name, amount in least.items():
        total[name] = max(total.get(name, amount), amount)
