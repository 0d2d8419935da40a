"""Where waiting pods would have capacity, and what is short there: by groups of like nodes, and by HyperNode."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from stromboli.api import names
from stromboli.api.node_state import is_gpu
from stromboli.engine.explanation.closest_domain import DomainSearch
from stromboli.engine.explanation.quantities import quantities
from stromboli.engine.placement.node_fit import SlotCount, TaskSlots
from stromboli.model.dimensions import PODS
from stromboli.simulator.explain.explanation_document import HyperNodeRoom, NodeGroupRoom

if TYPE_CHECKING:
    from stromboli.engine.session import Session
    from stromboli.model.cluster import Cluster
    from stromboli.model.node_columns import Bools, Node
    from stromboli.model.shape import Shape
    from stromboli.model.task import Task

INSTANCE_TYPES = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")
MAX_GROUPS = 20
MAX_HYPER_NODES = 20
MAX_NODES_WITH_HOLDERS = 256
"""Nodes of a HyperNode for which the holders of what it lacks are shown."""
MAX_KINDS = 20
"""Kinds of pods for which capacity is counted."""


@dataclass(frozen=True, slots=True)
class WaitingKind:
    """Waiting pods of one shape, with the nodes that they may use and the slots for them there."""

    task: Task
    """The first of them."""
    count: int
    usable: Bools
    slots: SlotCount


def waiting_kinds(session: Session, tasks: Sequence[Task]) -> list[WaitingKind]:
    """The kinds of waiting pods, the most frequent first."""
    idle = session.cluster.columns.idle
    counts: Counter[Shape] = Counter(task.shape for task in tasks)
    first = {task.shape: task for task in reversed(tasks)}
    kinds = []
    for shape, count in counts.most_common(MAX_KINDS):
        task = first[shape]
        usable: Bools = np.zeros(len(session.cluster.columns), dtype=bool)
        with session.reporting():
            usable = session.reachable(task, confined=False)
        kinds.append(WaitingKind(task, count, usable, SlotCount(shape.request, idle, usable)))
    return kinds


def slots_for(kinds: Iterable[WaitingKind]) -> TaskSlots:
    """How many of the pods of some kinds fit."""
    return TaskSlots((kind.slots, kind.count) for kind in kinds)


def node_group_rooms(session: Session, kinds: Sequence[WaitingKind]) -> list[NodeGroupRoom]:
    """By groups of like nodes, those with most capacity first."""
    cluster = session.cluster
    rooms = [_room(cluster, name, nodes, kinds) for name, nodes in node_groups(cluster).items()]
    return sorted(rooms, key=lambda room: (-room.fits, -room.usable, room.name))[:MAX_GROUPS]


def node_groups(cluster: Cluster) -> dict[str, list[Node]]:
    """Nodes by their instance type, or else by their size as `stromboli up --nodes` takes it."""
    groups: dict[str, list[Node]] = {}
    by_size: dict[tuple[tuple[int, float], ...], str] = {}
    for node in cluster.columns.nodes:
        name = next((node.labels[label] for label in INSTANCE_TYPES if node.labels.get(label)), "")
        size = tuple(node.allocatable.items())
        if not name and size not in by_size:
            by_size[size] = _size_name(cluster, node)
        groups.setdefault(name or by_size[size], []).append(node)
    return groups


def _size_name(cluster: Cluster, node: Node) -> str:
    sizes = quantities(cluster, node.allocatable)
    parts = [f"{sizes.pop(names.CPU, '0')}cpu", sizes.pop(names.MEMORY, "0")]
    gpus = [f"{amount}gpu" for name, amount in sizes.items() if is_gpu(name) and amount != "0"]
    return ",".join([*parts, *gpus])


def _room(cluster: Cluster, name: str, nodes: Sequence[Node], kinds: Sequence[WaitingKind]) -> NodeGroupRoom:
    rows = np.array([node.row for node in nodes])
    usable = np.zeros(len(rows), dtype=bool)
    for kind in kinds:
        usable |= kind.usable[rows]
    asked = _largest_request(kinds)
    idle = np.maximum(cluster.columns.idle[:, rows[usable]], 0)
    free = {dim: int(idle[dim].sum()) for dim in asked}
    largest = {dim: int(idle[dim].max(initial=0)) for dim in asked}
    lacks = {dim: amount - largest[dim] for dim, amount in asked.items() if amount > largest[dim]}
    return NodeGroupRoom(
        name=name,
        nodes=len(rows),
        usable=int(np.count_nonzero(usable)),
        fits=slots_for(kinds).on(rows),
        free=quantities(cluster, free),
        largest_free=quantities(cluster, largest),
        lacks=quantities(cluster, lacks) if usable.any() else {},
        example=nodes[0].name,
    )


def _largest_request(kinds: Sequence[WaitingKind]) -> dict[int, int]:
    asked: dict[int, int] = {}
    for kind in kinds:
        for dim, amount in kind.task.request.items():
            if amount > 0 and dim != PODS:
                asked[dim] = max(asked.get(dim, 0), int(amount))
    return asked


def hyper_node_rooms(session: Session, tasks: Sequence[Task], needed: int) -> list[HyperNodeRoom]:
    """By HyperNode, those with most capacity first, lower tiers before higher ones."""
    tree = session.cluster.hyper_nodes
    if not tree or not tasks:
        return []
    domains = [domain for domain in tree.domains.values() if len(domain.rows)]
    if not domains:
        return []
    search = DomainSearch(session, tasks)
    fits = search.fits(domains)
    order = sorted(
        range(len(domains)), key=lambda place: (-min(int(fits[place]), needed), domains[place].tier, place)
    )
    rooms = []
    for place in order[:MAX_HYPER_NODES]:
        domain = domains[place]
        lacks = search.lacking(domain) if fits[place] < len(tasks) else {}
        closest = search.closest([domain]) if lacks and len(domain.rows) <= MAX_NODES_WITH_HOLDERS else None
        rooms.append(
            HyperNodeRoom(
                name=domain.name,
                title=domain.title,
                tier=domain.tier,
                nodes=len(domain.rows),
                fits=int(fits[place]),
                needed=needed,
                lacks=quantities(session.cluster, lacks),
                holders=[f"{each.job} ({each.resource} {each.amount})" for each in closest.holders]
                if closest
                else [],
            )
        )
    return rooms
