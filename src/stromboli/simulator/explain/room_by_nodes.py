"""Where waiting pods would have capacity, and what is short there: by groups of like nodes, and by HyperNode."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from stromboli.engine.explanation.closest_domain import DomainSearch
from stromboli.engine.explanation.quantities import NodeGroupNames, quantities
from stromboli.engine.placement.node_fit import SlotCount, TaskSlots
from stromboli.model.dimensions import PODS
from stromboli.simulator.explain.explanation_document import HyperNodeRoom, NodeGroupRoom

if TYPE_CHECKING:
    from stromboli.engine.session import Session
    from stromboli.model.cluster import Cluster
    from stromboli.model.node_columns import Bools, Ints
    from stromboli.model.shape import Shape
    from stromboli.model.task import Task

MOST_GROUPS = 20
MOST_HYPER_NODES = 20
LARGEST_LOOKED_INTO = 256
"""Nodes of a HyperNode, at most, for which the holders of what it lacks are shown."""
MOST_KINDS = 20
"""Kinds of pods that are looked at; other pods of a job have none."""


@dataclass(frozen=True, slots=True)
class WaitingKind:
    """Pods that wait and are alike, with the nodes that they may use and the slots for them there."""

    task: Task
    """The first of them."""
    count: int
    usable: Bools
    slots: SlotCount


def waiting_kinds(session: Session, tasks: Sequence[Task]) -> list[WaitingKind]:
    """The kinds of pods that wait, the most frequent first."""
    idle = session.cluster.columns.idle
    counts: Counter[Shape] = Counter(task.shape for task in tasks)
    first = {task.shape: task for task in reversed(tasks)}
    kinds = []
    for shape, count in counts.most_common(MOST_KINDS):
        task = first[shape]
        usable: Bools = np.zeros(len(session.cluster.columns), dtype=bool)
        with session.reporting():
            usable = session.reachable(task, confined=False)
        kinds.append(WaitingKind(task, count, usable, SlotCount(shape.request, idle, usable)))
    return kinds


def slots_for(kinds: Iterable[WaitingKind]) -> TaskSlots:
    """For how many of the pods of some kinds there is capacity."""
    return TaskSlots((kind.slots, kind.count) for kind in kinds)


def node_group_rooms(session: Session, kinds: Sequence[WaitingKind]) -> list[NodeGroupRoom]:
    """By groups of like nodes, those with most capacity first."""
    cluster = session.cluster
    groups: dict[str, list[int]] = {}
    names = NodeGroupNames(cluster)
    for node in cluster.columns.nodes:
        groups.setdefault(names.of(node), []).append(node.row)
    rooms = [_room(cluster, name, np.array(rows), kinds) for name, rows in groups.items()]
    return sorted(rooms, key=lambda room: (-room.fits, -room.usable, room.name))[:MOST_GROUPS]


def _room(cluster: Cluster, name: str, rows: Ints, kinds: Sequence[WaitingKind]) -> NodeGroupRoom:
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
        example=cluster.columns.nodes[int(rows[0])].name,
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
    for place in order[:MOST_HYPER_NODES]:
        domain = domains[place]
        lacks = search.lacking(domain) if fits[place] < len(tasks) else {}
        closest = search.closest([domain]) if lacks and len(domain.rows) <= LARGEST_LOOKED_INTO else None
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
