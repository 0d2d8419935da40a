"""How nodes and queues, on which others lean, become part of the model (spec 01 5, 6).

Both may be named before they are known: then they stand as empty entries until their objects arrive.
"""

from __future__ import annotations

from stromboli.api import names
from stromboli.api.errors import BadObject
from stromboli.api.resources.quantity import INT64_MAX
from stromboli.api.resources.resource_lists import amounts, view_amounts
from stromboli.api.types.node import Node as NodeObject
from stromboli.api.types.scheduling import Queue as QueueObject
from stromboli.model.cluster import Cluster
from stromboli.model.intake.pod_fields import looks_different, seconds, whole_number
from stromboli.model.node_columns import Node
from stromboli.model.queue import Queue

# -- queues


def queue_named(cluster: Cluster, name: str) -> Queue:
    """The queue of that name, made if nobody has named it yet."""
    queue = cluster.queues.get(name)
    if queue is None:
        queue = cluster.queues[name] = Queue(name)
    return queue


def put_queue(cluster: Cluster, thing: QueueObject) -> None:
    """A queue is there, or is another now."""
    spec = thing.spec
    rows = cluster.dims.rows
    capability = rows(amounts(spec.capability, "spec.capability"))
    deserved = rows(amounts(spec.deserved, "spec.deserved"))
    guarantee = rows(amounts(spec.guarantee.resource, "spec.guarantee.resource"))
    cluster.columns.widen()
    queue = queue_named(cluster, thing.name)
    before, queue.object = queue.object, thing
    queue.created = seconds(thing.metadata.creation_timestamp)
    queue.capability, queue.deserved, queue.guarantee = dict(capability), dict(deserved), dict(guarantee)
    queue.reported = {name: str(amount) for name, amount in thing.status.allocated.items()}
    cluster.dirty.queues[queue] = None
    if before is None or before.spec != thing.spec or before.status.state != thing.status.state:
        _regard(cluster, queue)  # more than the echo of a status or an annotation
        cluster.reservations.update_all()


def drop_queue(cluster: Cluster, thing: QueueObject) -> None:
    """A queue is gone; while jobs name it, its name stays."""
    queue = cluster.queues.get(thing.name)
    if queue is not None:
        queue.object = None
        queue.reported = None
        _regard(cluster, queue)
        if not queue.jobs:
            del cluster.queues[thing.name]
        cluster.reservations.update_all()


def _regard(cluster: Cluster, queue: Queue) -> None:
    """Whoever keeps something about its jobs looks again."""
    cluster.dirty.queues[queue] = None
    for job in queue.jobs:
        cluster.dirty.jobs[job] = None
        cluster.update_worklists(job)


# -- nodes


def node_named(cluster: Cluster, name: str) -> Node:
    """The node of that name, made if no pod has named it yet."""
    node = cluster.nodes.get(name)
    if node is None:
        node = cluster.nodes[name] = Node(name)
    return node


def put_node(cluster: Cluster, thing: NodeObject) -> None:
    """A node is there, or is another now."""
    sizes = amounts(thing.status.allocatable, "status.allocatable")
    for resource, key in (("cpu", names.OVERSUBSCRIPTION_CPU), ("memory", names.OVERSUBSCRIPTION_MEMORY)):
        # quirk: spec 01 5.3: added even on a node without the oversubscription label
        sizes[resource] = sizes.get(resource, 0) + whole_number(thing.metadata.annotations.get(key, ""))
        if sizes[resource] > INT64_MAX:
            raise BadObject(f"metadata.annotations.{key}", "with what is allocatable, more than fits 64 bits")
    allocatable = cluster.dims.rows(sizes)
    seen = view_amounts(thing.status.allocatable, "status.allocatable")
    cpu, memory = seen.get(names.CPU, 0), seen.get(names.MEMORY, 0)
    view = (seen.get(names.PODS, 0), cpu, memory, cpu, memory, seen.get(names.NVIDIA_GPU, 0))
    cluster.columns.widen()
    node = node_named(cluster, thing.name)
    before, created = node.object, node.created
    node.object = thing
    node.created = seconds(thing.metadata.creation_timestamp)
    node.labels = thing.metadata.labels
    node.allocatable = dict(allocatable)
    node.view_allocatable = view
    if before is None or node.created != created:
        cluster.unplaced = True
    if before is not None and looks_different(before, thing):
        cluster.resize(node)


def drop_node(cluster: Cluster, thing: NodeObject) -> None:
    """A node is gone; while pods are on it, its name stays."""
    node = cluster.nodes.get(thing.name)
    if node is not None:
        node.object = None
        node.row = -1
        cluster.unplaced = True
        if not node.tasks:
            del cluster.nodes[thing.name]
