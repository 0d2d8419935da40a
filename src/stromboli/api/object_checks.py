"""Checks beyond types: amounts in range, metadata of limited size, queues that form a tree."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import NamedTuple

from stromboli.api import names
from stromboli.api.device_bounds import check_device_object
from stromboli.api.errors import BadObject
from stromboli.api.name_cycles import format_cycle
from stromboli.api.name_rules import qualified_name_errors
from stromboli.api.object_bounds import pod_sizes
from stromboli.api.resources.quantity import INT64_MAX
from stromboli.api.resources.resource_lists import check_amounts
from stromboli.api.types.devices import DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice
from stromboli.api.types.meta import Object
from stromboli.api.types.native_group import NativePodGroup, TopologyConstraint
from stromboli.api.types.node import Node
from stromboli.api.types.pod import Container, Pod, PodSpec, PodStatus, Resources
from stromboli.api.types.scheduling import PodGroup, Queue, ResourceQuota
from stromboli.api.types.storage import PersistentVolume, PersistentVolumeClaim

MAX_LABELS = 1_000
MAX_METADATA = 1024 * 1024


def check_object(obj: Object, size: int = MAX_METADATA + 1) -> None:
    """Raise BadObject if the object cannot be used. A small one (`size` in bytes) cannot have too much metadata."""
    check_metadata(obj, size)
    if isinstance(obj, Pod):
        check_pod_status(obj.status, check_pod_spec(obj.spec))
    elif isinstance(obj, NativePodGroup):
        _check_native_group(obj)
    elif isinstance(obj, DeviceClass | ResourceClaim | ResourceClaimTemplate | ResourceSlice):
        check_device_object(obj)
    elif isinstance(obj, PodGroup):
        check_amounts(obj.spec.min_resources or {}, "spec.minResources")
    else:
        _check_resource_lists(obj)


def _check_resource_lists(obj: Object) -> None:
    for field in _RESOURCE_LISTS.get(type(obj), ()):
        check_amounts(attrgetter(field)(obj), field)


def check_queues(queues: Iterable[Queue]) -> dict[str, BadObject]:
    """The queues that are their own ancestors, each with an error that names the cycle."""
    parents = {queue.name: queue.spec.parent or names.ROOT_QUEUE for queue in queues}
    if parents.get(names.ROOT_QUEUE) == names.ROOT_QUEUE:
        del parents[names.ROOT_QUEUE]
    errors = {}
    for cycle in _cycles(parents):
        text = format_cycle(cycle)
        for name in cycle:
            errors[name] = BadObject("spec.parent", f"queues in a circle: {text}", f"Queue {name}")
    return errors


def _cycles(parents: Mapping[str, str]) -> Iterator[list[str]]:
    done: set[str] = set()
    for start in parents:
        path: list[str] = []
        name = start
        while name in parents and name not in done:
            done.add(name)
            path.append(name)
            name = parents[name]
        if name in path:
            yield path[path.index(name) :]


def check_metadata(obj: Object, size: int) -> None:
    """Raise BadObject if the metadata has no usable name or too much of something."""
    meta = obj.metadata
    if not _is_name(meta.name + meta.namespace):
        field, name = ("namespace", meta.namespace) if _is_name(meta.name) else ("name", meta.name)
        raise BadObject(f"metadata.{field}", f"{name[:64]!r} is not a name")
    if len(meta.labels) > MAX_LABELS or len(meta.annotations) > MAX_LABELS:
        field, entries = (
            ("labels", meta.labels) if len(meta.labels) > MAX_LABELS else ("annotations", meta.annotations)
        )
        raise BadObject(f"metadata.{field}", f"{len(entries)} entries, at most {MAX_LABELS} are allowed")
    if size > MAX_METADATA and _length(meta.labels) + _length(meta.annotations) > MAX_METADATA:
        raise BadObject("metadata", f"labels and annotations of more than {MAX_METADATA} characters")


def _is_name(text: str) -> bool:
    return text.isascii() and text.isprintable() and "/" not in text and " " not in text


def _length(entries: Mapping[str, str]) -> int:
    return sum(len(key) + len(value) for key, value in entries.items())


def _placement_terms(spec: PodSpec) -> int:
    count = len(spec.topology_spread_constraints)
    if spec.affinity is not None:
        for kind in (spec.affinity.pod_affinity, spec.affinity.pod_anti_affinity):
            count += len(kind.required) + len(kind.preferred) if kind is not None else 0
    return count


class SpecAmounts(NamedTuple):
    """The largest amount that a pod's spec names, and the number of its containers."""

    largest: int
    containers: int


def check_pod_spec(spec: PodSpec) -> SpecAmounts:
    """Raise BadObject if the spec of a pod cannot be used."""
    count = len(spec.containers) + len(spec.init_containers)
    if not spec.node_name:  # a pod that has a node counts there, however large it is
        for size in pod_sizes(count, _placement_terms(spec)):
            raise BadObject("spec", f"{size}: {size.remedy}")
    largest = _check_containers(spec.containers, "spec.containers")
    if spec.init_containers:
        largest = max(largest, _check_containers(spec.init_containers, "spec.initContainers"))
    if spec.resources is not None:
        largest = max(largest, _check_resources(spec.resources, "spec.resources"))
    if spec.overhead:
        largest = max(largest, check_amounts(spec.overhead, "spec.overhead"))
    return SpecAmounts(largest, count)


def check_pod_status(status: PodStatus, amounts: SpecAmounts) -> None:
    """Raise BadObject if the status of a pod, or what it names together with the spec, cannot be used."""
    largest, of_status = amounts.largest, _largest_of_status(status)
    largest = max(largest, of_status)
    if largest * (amounts.containers + 1) > INT64_MAX:
        raise BadObject("spec.containers", "the requests add up to more than fits 64 bits")


def _check_containers(containers: Sequence[Container], where: str) -> int:
    return max(
        [
            _check_resources(container.resources, f"{where}[{index}].resources")
            for index, container in enumerate(containers)
        ],
        default=0,
    )


def _largest_of_status(status: PodStatus) -> int:
    largest = 0
    if status.allocated_resources:
        largest = check_amounts(status.allocated_resources, "status.allocatedResources")
    if status.resources is not None:
        largest = max(largest, check_amounts(status.resources.requests, "status.resources.requests"))
    if not (status.container_statuses or status.init_container_statuses):
        return largest
    for container in (*status.container_statuses, *status.init_container_statuses):
        where = f"status.containerStatuses[{container.name}]"
        largest = max(largest, check_amounts(container.allocated_resources, f"{where}.allocatedResources"))
        if container.resources is not None:
            largest = max(largest, check_amounts(container.resources.requests, f"{where}.resources.requests"))
    return largest


def _check_resources(resources: Resources, where: str) -> int:
    largest = check_amounts(resources.requests, f"{where}.requests") if resources.requests else 0
    if resources.limits:
        largest = max(largest, check_amounts(resources.limits, f"{where}.limits"))
    return largest


def _check_native_group(group: NativePodGroup) -> None:
    """Refuse what we do not support and must not ignore."""
    spec = group.spec
    if spec.scheduling_policy.basic is None and spec.scheduling_policy.gang is None:
        raise BadObject("spec.schedulingPolicy", "is neither basic nor gang")
    _check_topology_constraints(spec.scheduling_constraints.topology)
    if spec.parent_composite_pod_group_name:
        raise BadObject(
            "spec.parentCompositePodGroupName", "groups of groups are not supported by this scheduler"
        )


def _check_topology_constraints(constraints: Sequence[TopologyConstraint]) -> None:
    """As the API servers of 1.36 and 1.37: one constraint at most, with the key of a label."""
    where = "spec.schedulingConstraints.topology"
    if len(constraints) > 1:
        raise BadObject(
            where, f"has {len(constraints)} constraints, this scheduler honours one: leave one of them"
        )
    for constraint in constraints:
        for error in qualified_name_errors(constraint.key):
            raise BadObject(f"{where}[0].key", f"{constraint.key[:64]!r} is not a label key: {error}")


_RESOURCE_LISTS: dict[type[Object], tuple[str, ...]] = {
    Node: ("status.allocatable", "status.capacity"),
    PersistentVolume: ("spec.capacity",),
    PersistentVolumeClaim: ("spec.resources.requests", "spec.resources.limits"),
    Queue: ("spec.capability", "spec.deserved", "spec.guarantee.resource"),
    ResourceQuota: ("spec.hard", "status.hard", "status.used"),
}
