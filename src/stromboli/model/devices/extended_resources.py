"""Extended resources that devices serve: for a pod that requests `nvidia.com/gpu: 2`, a claim is created.

A class names such a resource (`extendedResourceName`), and every class has one by its own name. If a node lists the
resource itself, its device plugin serves it; on other nodes devices of the class do. The claim's requests and its
written form follow Kubernetes, since kubelets read it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from stromboli.api import names
from stromboli.api.device_messages import DEVICE_CLASS_PREFIX
from stromboli.api.resources.quantity import QuantityError, whole
from stromboli.api.types.devices import DeviceRequest, ExactDeviceRequest
from stromboli.api.types.pod import ContainerExtendedResourceRequest
from stromboli.model.amounts import Amounts

if TYPE_CHECKING:
    from stromboli.api.types.devices import DeviceClass
    from stromboli.api.types.pod import Container, PodSpec
    from stromboli.model.cluster import Cluster
    from stromboli.model.node_columns import Node


# -- devices counted as what nodes have of extended resources that they do not list


class ServedResources:
    """Follows devices and nodes; only nodes whose devices changed are counted again."""

    def __init__(self) -> None:
        self._state: tuple[int, ...] = ()
        """The state in which devices were last counted."""
        self._position = 0
        """The number of changes of pools at that time."""

    def update(self, cluster: Cluster) -> None:
        """Count devices of nodes that changed, over columns that are laid out."""
        devices, dims = cluster.devices, cluster.dims
        if not devices.extended and not self._state:
            return
        nodes = self._changed_nodes(cluster)
        searches = {
            dims.index[name]: devices.search_for(name) for name in devices.extended if name in dims.index
        }
        for node in nodes:
            served: Amounts = {
                dim: 1000 * devices.most_served(node, search) for dim, search in searches.items()
            }
            if served != node.served:
                node.served = served
                cluster.resize(node)

    def _changed_nodes(self, cluster: Cluster) -> Iterable[Node]:
        devices = cluster.devices
        state = (cluster.columns.layout, devices.objects_version, len(cluster.dims))
        changed = devices.changes.since(self._position) if state == self._state else None
        self._state, self._position = state, devices.changes.position
        if changed is None or (cluster.dirty.nodes and devices.pools.has_selected):
            return cluster.columns.nodes
        named = (cluster.nodes.get(name) for name in changed if isinstance(name, str))
        return [node for node in named if node is not None and node.row >= 0]


# -- claims for extended resources


class ExtendedRequests(NamedTuple):
    """The requests of a claim for extended resources, and the request for each container."""

    requests: tuple[DeviceRequest, ...]
    mappings: tuple[ContainerExtendedResourceRequest, ...]


def extended_classes(classes: Iterable[DeviceClass]) -> dict[str, str]:
    """The class that serves each extended resource: among several, the youngest, then the first by name."""
    served: dict[str, str] = {}
    ordered = sorted(classes, key=lambda each: each.name)
    for each in sorted(ordered, key=lambda each: each.metadata.created, reverse=True):
        if each.spec.extended_resource_name:
            served.setdefault(each.spec.extended_resource_name, each.name)
        served[DEVICE_CLASS_PREFIX + each.name] = each.name
    return served


def asked_resources(spec: PodSpec, served: Mapping[str, str]) -> list[str]:
    """The resources of a pod that devices may serve, by name."""
    containers = (*spec.init_containers, *spec.containers)
    asked = {name for container in containers for name in container.resources.requests if name in served}
    return sorted(name for name in asked if any(_count(container, name) for container in containers))


def extended_requests(spec: PodSpec, resources: Sequence[str], served: Mapping[str, str]) -> ExtendedRequests:
    """The requests for some resources of a pod: init containers share the devices of later containers."""
    requests: list[DeviceRequest] = []
    mappings: list[ContainerExtendedResourceRequest] = []
    containers = (*spec.init_containers, *spec.containers)
    for resource in resources:
        lasting: list[DeviceRequest | None] = [None] * len(containers)
        passing: list[int] = []
        for place, container in enumerate(containers):
            if place < len(spec.init_containers) and container.restart_policy != names.RESTART_ALWAYS:
                passing.append(place)
            elif count := _count(container, resource):
                lasting[place] = _request(place, container, resource, served[resource], count)
                mappings.append(_mapping(container, resource, _name(place, container, resource)))
        largest: DeviceRequest | None = None
        used: list[tuple[Container, str]] = []
        for place in passing:
            container, left = containers[place], _count(containers[place], resource)
            for reusable in (each for each in lasting[place:] if each is not None and left > 0):
                used.append((container, reusable.name))
                left -= reusable.exactly.count if reusable.exactly is not None else 0
            if left > 0:
                request = _request(place, container, resource, served[resource], left)
                used.append((container, ""))
                if largest is None or _devices(largest) < left:
                    largest = request
        mappings += [
            _mapping(container, resource, name or (largest.name if largest else ""))
            for container, name in used
        ]
        requests += [each for each in (largest, *lasting) if each is not None]
    return ExtendedRequests(tuple(sorted(requests, key=lambda each: each.name)), tuple(mappings))


def _devices(request: DeviceRequest) -> int:
    return request.exactly.count if request.exactly is not None else 0


def _count(container: Container, resource: str) -> int:
    try:
        return max(whole(container.resources.requests.get(resource, 0)), 0)
    except QuantityError:
        return 0


def _name(place: int, container: Container, resource: str) -> str:
    return f"container-{place}-request-{sorted(container.resources.requests).index(resource)}"


def _request(place: int, container: Container, resource: str, name: str, count: int) -> DeviceRequest:
    return DeviceRequest(_name(place, container, resource), ExactDeviceRequest(name, count=count))


def _mapping(container: Container, resource: str, request: str) -> ContainerExtendedResourceRequest:
    return ContainerExtendedResourceRequest(container.name, resource, request)
