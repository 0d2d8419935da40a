"""Nodes and queues: from API objects to the model (spec 01 5, 6).

Both may be named by other objects first: then they are empty entries until their own objects arrive.
"""

from __future__ import annotations

from stromboli.api import names
from stromboli.api.errors import BadObject
from stromboli.api.resources.quantity import INT64_MAX
from stromboli.api.resources.resource_lists import amounts, view_amounts
from stromboli.api.types.node import Node as NodeObject
from stromboli.api.types.scheduling import Queue as QueueObject
from stromboli.model.cluster import Cluster
from stromboli.model.intake.pod_fields import scheduling_properties_changed, whole_number
from stromboli.model.node_columns import Node
from stromboli.model.queue import Queue, lineage
from stromboli.model.requirements.group_demands import queue_demands

MAX_OF_A_NODE = 2**56
"""The maximum amount of a resource on a node: a hundred times as much, and many pods as large, still fit 64 bits."""

# -- queues


def queue_named(cluster: Cluster, name: str) -> Queue:
    """The queue of that name, created on first use."""
    queue = cluster.queues.get(name)
    if queue is None:
        queue = cluster.queues[name] = Queue(name)
    return queue


def put_queue(cluster: Cluster, obj: QueueObject) -> None:
    """A queue was added or changed."""
    spec = obj.spec
    rows = cluster.dims.rows
    capability = rows(amounts(spec.capability, "spec.capability"))
    deserved = rows(amounts(spec.deserved, "spec.deserved"))
    guarantee = rows(amounts(spec.guarantee.resource, "spec.guarantee.resource"))
    cluster.columns.widen()
    queue = queue_named(cluster, obj.name)
    before, queue.object = queue.object, obj
    limit_before, parent_before = queue.capability, before.spec.parent if before is not None else None
    queue.created = obj.metadata.created
    queue.capability, queue.deserved, queue.guarantee = dict(capability), dict(deserved), dict(guarantee)
    queue.demands = queue_demands(spec)
    queue.reported = {name: str(amount) for name, amount in obj.status.allocated.items()}
    cluster.feed.note_queue(queue)
    if before is None or before.spec != obj.spec or before.status.state != obj.status.state:
        _mark_jobs_dirty(cluster, queue)  # more than a status or an annotation changed
        if queue.capability != limit_before or spec.parent != parent_before:
            _mark_jobs_below_dirty(cluster, queue)
        cluster.reservations.update_all()


def drop_queue(cluster: Cluster, obj: QueueObject) -> None:
    """A queue was deleted; its entry stays while jobs name it."""
    queue = cluster.queues.get(obj.name)
    if queue is not None:
        _mark_jobs_below_dirty(cluster, queue)
        queue.object = None
        queue.reported, queue.demands = None, ()
        _mark_jobs_dirty(cluster, queue)
        if not queue.jobs:
            del cluster.queues[obj.name]
        cluster.reservations.update_all()


def _mark_jobs_dirty(cluster: Cluster, queue: Queue) -> None:
    """Invalidate what is cached about a queue and its jobs."""
    cluster.feed.note_queue(queue)
    for job in queue.jobs:
        cluster.mark_dirty(job)


def _mark_jobs_below_dirty(cluster: Cluster, queue: Queue) -> None:
    """Invalidate what is cached about jobs of the queues below a queue: its capability limits them too."""
    if cluster.dirty.everything:
        return
    queues = cluster.queues
    for other in queues.values():
        if other is not queue and other.jobs and queue in lineage(other, queues):
            _mark_jobs_dirty(cluster, other)


# -- nodes


def node_named(cluster: Cluster, name: str) -> Node:
    """The node of that name, created on first use."""
    node = cluster.nodes.get(name)
    if node is None:
        node = cluster.nodes[name] = Node(name)
    return node


def put_node(cluster: Cluster, obj: NodeObject) -> None:
    """A node was added or changed."""
    sizes = amounts(obj.status.allocatable, "status.allocatable")
    for resource, key in (("cpu", names.OVERSUBSCRIPTION_CPU), ("memory", names.OVERSUBSCRIPTION_MEMORY)):
        # quirk: spec 01 5.3: added even on a node without the oversubscription label
        sizes[resource] = sizes.get(resource, 0) + whole_number(obj.metadata.annotations.get(key, ""))
        if sizes[resource] > INT64_MAX:
            raise BadObject(f"metadata.annotations.{key}", "with what is allocatable, more than fits 64 bits")
    allocatable = cluster.dims.rows(_saturated(sizes))
    status = _saturated(view_amounts(obj.status.allocatable, "status.allocatable"))
    cpu, memory = status.get(names.CPU, 0), status.get(names.MEMORY, 0)
    view = (status.get(names.PODS, 0), cpu, memory, cpu, memory, status.get(names.NVIDIA_GPU, 0))
    cluster.columns.widen()
    node = node_named(cluster, obj.name)
    before, created = node.object, node.created
    node.object = obj
    node.created = obj.metadata.created
    node.labels = obj.metadata.labels
    node.allocatable = dict(allocatable)
    node.view_allocatable = view
    if before is None or node.created != created:
        cluster.layout_stale = True
    if before is not None:
        cluster.hyper_nodes.membership.note_labels(before.metadata.labels, node.labels)
    if before is not None and scheduling_properties_changed(before, obj):
        cluster.resize(node)
    for ledger in cluster.ledgers:
        ledger.node_changed(node, before)


def _saturated(sizes: dict[str, int]) -> dict[str, int]:
    return {resource: min(size, MAX_OF_A_NODE) for resource, size in sizes.items()}


def drop_node(cluster: Cluster, obj: NodeObject) -> None:
    """A node was deleted; its entry stays while pods are on it."""
    node = cluster.nodes.get(obj.name)
    if node is not None:
        node.object = None
        if node.row >= 0:
            node.row = -1
            cluster.note_rowless(node)
        for ledger in cluster.ledgers:
            ledger.node_changed(node, obj)
        cluster.layout_stale = True
        forget_if_gone(cluster, node)


def forget_if_gone(cluster: Cluster, node: Node | None) -> None:
    """Drop the entry of a deleted node once no pod is on it."""
    if node is not None and node.object is None and not node.tasks:
        cluster.nodes.pop(node.name, None)
