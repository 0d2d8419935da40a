"""Defaults that an API server, admission and controllers would have set."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from stromboli.api import names
from stromboli.api.resources.pod_requests import container_total
from stromboli.api.resources.pod_totals import is_pod_level
from stromboli.api.resources.resource_lists import resource_list
from stromboli.api.types.kinds import CLUSTER_SCOPED
from stromboli.api.types.meta import Object, ObjectMeta
from stromboli.api.types.node import Node
from stromboli.api.types.pod import Pod, Resources
from stromboli.api.types.scheduling import (
    PodGroup,
    PriorityClass,
    Queue,
    QueueSpec,
    QueueStatus,
    ResourceQuota,
)
from stromboli.api.types.storage import PersistentVolume, PersistentVolumeClaim, StorageClass

FIRST_CREATION = datetime(2026, 1, 1, tzinfo=UTC)
_SYSTEM_CLASSES = {names.SYSTEM_CLUSTER_CRITICAL: 2_000_000_000, names.SYSTEM_NODE_CRITICAL: 2_000_001_000}


class Priorities:
    """The priority classes of the input, for pods that state no priority."""

    __slots__ = ("default", "policies", "values")

    def __init__(self, classes: Iterable[PriorityClass] = ()) -> None:
        self.values = dict(_SYSTEM_CLASSES)
        self.policies: dict[str, str] = {}
        self.default = 0
        for priority in classes:
            self.values[priority.name] = priority.value
            self.policies[priority.name] = priority.preemption_policy
            if priority.global_default:
                self.default = priority.value


def apiserver_defaults(obj: Object, index: int, priorities: Priorities) -> None:
    """Set an API server's defaults; the index-th object counts as created `index` seconds after the first."""
    _fill_metadata(obj, index)
    match obj:
        case Pod():
            _fill_pod(obj, priorities)
        case Node():
            obj.status.allocatable = obj.status.allocatable or dict(obj.status.capacity)
            obj.status.capacity = obj.status.capacity or dict(obj.status.allocatable)
        case PodGroup():
            obj.spec.queue = obj.spec.queue or names.DEFAULT_QUEUE
        case Queue():
            _fill_queue(obj)
        case ResourceQuota():
            obj.status.hard = obj.status.hard or dict(obj.spec.hard)
        case PersistentVolume():
            obj.spec.volume_mode = obj.spec.volume_mode or "Filesystem"
            obj.status.phase = obj.status.phase or ("Bound" if obj.spec.claim_ref else "Available")
        case PersistentVolumeClaim():
            obj.spec.volume_mode = obj.spec.volume_mode or "Filesystem"
            obj.status.phase = obj.status.phase or "Pending"
        case StorageClass():
            obj.volume_binding_mode = obj.volume_binding_mode or names.IMMEDIATE


def default_storage_class(classes: Iterable[StorageClass]) -> str | None:
    """The class of claims that name none: of several that are marked so, the youngest, then the first by name."""
    marks = (names.DEFAULT_STORAGE_CLASS, names.OLD_DEFAULT_STORAGE_CLASS)
    marked = [
        each for each in classes if any(each.metadata.annotations.get(mark) == "true" for mark in marks)
    ]
    ordered = sorted(marked, key=lambda each: each.name)
    youngest = max(ordered, key=lambda each: each.metadata.creation_timestamp or FIRST_CREATION, default=None)
    return youngest.name if youngest is not None else None


def fill_storage_class(claim: PersistentVolumeClaim, default: str | None) -> None:
    """A claim that names no class gets the default one, unless it is bound: then it needs none any more."""
    named = claim.spec.storage_class_name is not None or names.STORAGE_CLASS in claim.metadata.annotations
    if not named and claim.status.phase != "Bound":
        claim.spec.storage_class_name = default


def case_defaults(obj: Object, index: int, priorities: Priorities) -> None:
    """The same for an object of a case file, whose pods name our scheduler unless they name another."""
    if isinstance(obj, Pod) and not obj.spec.scheduler_name:
        obj.spec.scheduler_name = names.SCHEDULER_NAME
    apiserver_defaults(obj, index, priorities)


def implied_queues(known: Iterable[str]) -> list[Queue]:
    """The queues that always exist, `root` and `default`, unless the input defines them."""
    present = set(known)
    queues = []
    for name, reclaimable in ((names.ROOT_QUEUE, False), (names.DEFAULT_QUEUE, True)):
        if name not in present:
            queue = Queue(
                metadata=ObjectMeta(name=name),
                spec=QueueSpec(reclaimable=reclaimable),
                status=QueueStatus(state="Open"),
            )
            apiserver_defaults(queue, 0, Priorities())
            queues.append(queue)
    return queues


def fill_requests_from_limits(resources: Resources) -> None:
    """Where only a limit is stated, it is requested, too."""
    for name, limit in resources.limits.items():
        resources.requests.setdefault(name, limit)


def _fill_metadata(obj: Object, index: int) -> None:
    meta = obj.metadata
    kind = type(obj)
    if kind in CLUSTER_SCOPED:
        meta.namespace = ""
    elif not meta.namespace:
        meta.namespace = names.DEFAULT_NAMESPACE
    if not meta.uid:
        meta.uid = f"{kind.__name__}/{obj.key}"
    if meta.creation_timestamp is None:
        meta.creation_timestamp = FIRST_CREATION + timedelta(seconds=index)


def _fill_pod(pod: Pod, priorities: Priorities) -> None:
    spec = pod.spec
    if not spec.scheduler_name:
        spec.scheduler_name = names.OTHER_SCHEDULER_NAME
    if spec.priority is None:
        spec.priority = priorities.values.get(spec.priority_class_name, priorities.default)
    if not spec.preemption_policy:
        never = priorities.policies.get(spec.priority_class_name) == names.PREEMPT_NEVER
        spec.preemption_policy = "Never" if never else "PreemptLowerPriority"
    if not pod.status.phase:
        pod.status.phase = names.POD_PENDING
    for container in (*spec.containers, *spec.init_containers):
        if container.resources.limits:
            fill_requests_from_limits(container.resources)
    if spec.resources is not None and spec.resources.limits:
        _fill_pod_level_requests(pod, spec.resources)


def _fill_pod_level_requests(pod: Pod, resources: Resources) -> None:
    """A pod-level limit without a request: what the containers request together, else the limit itself."""
    stated = {name: amount for name, amount in container_total(pod).items() if is_pod_level(name)}
    for name, text in resource_list(stated).items():
        if name in stated:
            resources.requests.setdefault(name, text)
    for name, limit in resources.limits.items():
        if is_pod_level(name):
            resources.requests.setdefault(name, limit)


def _fill_queue(queue: Queue) -> None:
    spec = queue.spec
    if spec.reclaimable is None:
        spec.reclaimable = queue.name != names.ROOT_QUEUE
    if queue.name == names.ROOT_QUEUE:
        spec.parent = ""
    elif not spec.parent:
        spec.parent = names.ROOT_QUEUE
    if not queue.status.state:
        queue.status.state = "Open"
