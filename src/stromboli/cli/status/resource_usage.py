"""What queues and groups of nodes have, use and leave free, by the model and the plugins of the policy."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from stromboli.api import names
from stromboli.api.node_state import is_gpu, is_usable
from stromboli.api.resources.resource_lists import resource_list
from stromboli.engine.catalog import Catalog
from stromboli.engine.cycle import Engine
from stromboli.engine.queue_limits import deserved_share, own_capability, own_limits
from stromboli.engine.session import Session
from stromboli.model.amounts import UNLIMITED, Amounts, excess, total_of
from stromboli.model.cluster import Cluster
from stromboli.model.dimensions import CPU, MEMORY, PODS
from stromboli.model.node_columns import Node
from stromboli.model.queue import Queue
from stromboli.policy.policy import Policy

INSTANCE_TYPES = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")
Content = dict[str, Any]


def queue_usage(cluster: Cluster, policy: Policy, catalog: Catalog, now: float) -> list[Content]:
    """Per queue: what it uses, deserves and has free of that, and its limits. Nothing is decided."""
    session = Engine(replace(policy, actions=()), catalog).cycle(cluster, now).session
    queues = [
        queue for queue in sorted(cluster.queues.values(), key=lambda queue: queue.name) if queue.exists
    ]
    inner = _held_by_inner_queues(session, queues)
    return [_queue(session, queue, inner.get(queue, queue.allocated)) for queue in queues]


def _held_by_inner_queues(session: Session, queues: Iterable[Queue]) -> dict[Queue, Amounts]:
    """What queues hold together with those below them, where the policy has a tree of queues."""
    return {
        limit.queue: limit.held
        for queue in queues
        for limit in session.rules.queue_limits(queue)
        if limit.queue is not queue
    }


def _queue(session: Session, queue: Queue, used: Amounts) -> Content:
    limits = own_limits(session, queue)
    deserved = deserved_share(queue, limits)
    usage = {
        "used": used,
        "deserved": deserved,
        "free": excess(deserved, used),
        "capability": {CPU: UNLIMITED, MEMORY: UNLIMITED, **own_capability(queue)},
        "guarantee": queue.guarantee,
        "pending": queue.pending,
    }
    listed = {key: as_resources(session.cluster, amounts) for key, amounts in usage.items()}
    for key in ("used", *(("free",) if listed["deserved"] else ())):
        listed[key] = listed[key] or resource_list({})
    given = {key: amounts for key, amounts in listed.items() if amounts}
    return {"name": queue.name, "parent": queue.parent, "weight": queue.weight, **given}


def node_groups(cluster: Cluster) -> list[Content]:
    """Nodes of one instance type, or else of one size, together; only what usable nodes have free is free."""
    groups: dict[str, list[Node]] = {}
    for node in cluster.columns.nodes:
        groups.setdefault(_group_name(cluster, node), []).append(node)
    return [_node_group(cluster, name, nodes) for name, nodes in sorted(groups.items())]


def _node_group(cluster: Cluster, name: str, nodes: list[Node]) -> Content:
    usable = [node for node in nodes if node.object is not None and is_usable(node.object)]
    amounts = {
        "allocatable": total_of(node.allocatable for node in nodes),
        "used": _columns(cluster, nodes, "used"),
        "free": _columns(cluster, usable, "idle"),
    }
    return {
        "name": name,
        "nodes": len(nodes),
        "usable": len(usable),
        **{key: as_resources(cluster, total) for key, total in amounts.items()},
    }


def _columns(cluster: Cluster, nodes: Iterable[Node], column: str) -> Amounts:
    """The sum of a column; a node that has less than nothing left takes nothing from the others."""
    numbers = getattr(cluster.columns, column)
    rows = [node.row for node in nodes]
    return (
        {dim: int(numbers[dim, rows].clip(min=0).sum()) for dim in range(len(cluster.dims))} if rows else {}
    )


def _group_name(cluster: Cluster, node: Node) -> str:
    """The instance type, or the size as `stromboli up --nodes` takes it."""
    for label in INSTANCE_TYPES:
        if node.labels.get(label):
            return node.labels[label]
    sizes = as_resources(cluster, node.allocatable)
    parts = [f"{sizes.pop(names.CPU, '0')}cpu", sizes.pop(names.MEMORY, "0")]
    gpus = [f"{amount}gpu" for name, amount in sizes.items() if is_gpu(name) and amount != "0"]
    return ",".join([*parts, *gpus])


def as_resources(cluster: Cluster, amounts: Amounts) -> dict[str, str]:
    """Amounts as quantities; what is without limit, and pods, are left out."""
    finite = {dim: int(amount) for dim, amount in amounts.items() if math.isfinite(amount) and dim != PODS}
    listed = resource_list(cluster.dims.named(finite)) if finite else {}
    unlimited = {cluster.dims.names[dim] for dim in amounts if dim not in finite}
    return {name: amount for name, amount in listed.items() if name not in unlimited}
