"""What a pod requests: in the scheduler's own units, and as Kubernetes' node scores count it."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from stromboli.api import names
from stromboli.api.resources.pod_totals import add_amounts, is_pod_level, pod_total, raise_amounts
from stromboli.api.resources.resource_lists import amounts, view_amounts
from stromboli.api.types.meta import Quantity
from stromboli.api.types.pod import ContainerStatus, Pod

Amounts = dict[str, int]
Convert = Callable[[Mapping[str, Quantity], str], Amounts]

UNSTATED = {names.CPU: 100, names.MEMORY: 200 * 1024 * 1024}
"""What a container that states no cpu or memory counts for in the "nonzero" numbers."""


class ViewRequest(NamedTuple):
    """A pod as Kubernetes' node scores count it: milli-CPU, whole units of everything else."""

    requested: Amounts
    nonzero_cpu: int
    nonzero_memory: int
    incoming: Amounts
    incoming_nonzero_cpu: int
    incoming_nonzero_memory: int


def pod_request(pod: Pod) -> Amounts:
    """The pod's request in internal units, with its `pods: 1`; volumes are counted elsewhere."""
    total = _total(pod, amounts, True, _pod_level_request(pod, amounts, resized=False))
    total[names.PODS] = total.get(names.PODS, 0) + 1
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
    init_containers = _init_requests(pod, amounts, resized=False)
    return pod_total(_container_requests(pod, amounts, resized=False), init_containers, {})


def _unstated(pod: Pod, requested: Amounts) -> Amounts:
    if not _has_pod_level(pod):
        return UNSTATED
    return {name: amount for name, amount in UNSTATED.items() if name not in requested}


def _view_total(
    pod: Pod, *, resized: bool, unstated: Amounts | None = None, pod_level: bool = True
) -> Amounts:
    stated = _pod_level_request(pod, view_amounts, resized) if pod_level else {}
    return _total(pod, view_amounts, resized, stated, unstated)


def _total(
    pod: Pod, convert: Convert, resized: bool, pod_level: Amounts, unstated: Amounts | None = None
) -> Amounts:
    containers: Iterable[Amounts] = _container_requests(pod, convert, resized)
    init_containers: Iterable[tuple[bool, Amounts]] = ()
    if pod.spec.init_containers:
        init_containers = _init_requests(pod, convert, resized)
    if unstated:
        containers = [unstated | request for request in containers]
        init_containers = [(is_sidecar, unstated | request) for is_sidecar, request in init_containers]
    total = pod_total(containers, init_containers, pod_level)
    if pod.spec.overhead:
        add_amounts(total, convert(pod.spec.overhead, "spec.overhead"))
    return total


def _container_requests(pod: Pod, convert: Convert, resized: bool) -> Iterator[Amounts]:
    statuses = _statuses(pod.status.container_statuses) if resized else {}
    for index, container in enumerate(pod.spec.containers):
        where = f"spec.containers[{index}].resources.requests"
        request = convert(container.resources.requests, where)
        status = statuses.get(container.name)
        yield _resized(pod, request, status, convert) if status else request


def _init_requests(pod: Pod, convert: Convert, resized: bool) -> Iterator[tuple[bool, Amounts]]:
    statuses = _statuses(pod.status.init_container_statuses) if resized else {}
    for index, container in enumerate(pod.spec.init_containers):
        where = f"spec.initContainers[{index}].resources.requests"
        request = convert(container.resources.requests, where)
        is_sidecar = container.restart_policy == names.RESTART_ALWAYS
        status = statuses.get(container.name) if is_sidecar else None
        yield is_sidecar, _resized(pod, request, status, convert) if status else request


def _statuses(statuses: tuple[ContainerStatus, ...]) -> dict[str, ContainerStatus]:
    return {status.name: status for status in statuses if status.resources is not None}


def _resized(pod: Pod, request: Amounts, status: ContainerStatus, convert: Convert) -> Amounts:
    """The largest of requested, actual and allocated; a resize that is infeasible does not count."""
    actual = status.resources.requests if status.resources else {}
    return _largest(
        pod,
        request,
        convert(actual, f"status.containerStatuses[{status.name}].resources.requests"),
        convert(status.allocated_resources, f"status.containerStatuses[{status.name}].allocatedResources"),
    )


def _largest(pod: Pod, request: Amounts, actual: Amounts, allocated: Amounts) -> Amounts:
    result = {} if _resize_infeasible(pod) else dict(request)
    raise_amounts(result, actual)
    raise_amounts(result, allocated)
    return result


def _resize_infeasible(pod: Pod) -> bool:
    return pod.status.resize == names.RESIZE_INFEASIBLE or any(
        condition.type == names.CONDITION_RESIZE_PENDING and condition.reason == names.RESIZE_INFEASIBLE
        for condition in pod.status.conditions
    )


def _has_pod_level(pod: Pod) -> bool:
    resources = pod.spec.resources
    return resources is not None and any(map(is_pod_level, resources.requests))


def _pod_level_request(pod: Pod, convert: Convert, resized: bool) -> Amounts:
    resources = pod.spec.resources
    if resources is None or not _has_pod_level(pod):
        return {}
    stated = convert(resources.requests, "spec.resources.requests")
    if resized and pod.status.resources is not None:
        actual = convert(pod.status.resources.requests, "status.resources.requests")
        allocated = convert(pod.status.allocated_resources, "status.allocatedResources")
        stated = _largest(pod, stated, actual, allocated)
    return stated
