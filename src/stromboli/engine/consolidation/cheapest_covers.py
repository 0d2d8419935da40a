"""Which units to move off a node so that enough is free there: sets in order of their cost, the cheapest first."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from stromboli.engine.consolidation.movable_tasks import Cost
from stromboli.model.amounts import Amounts, total_of

if TYPE_CHECKING:
    from collections.abc import Hashable

    from stromboli.engine.consolidation.movable_tasks import MoveUnit
    from stromboli.model.amounts import Vector
    from stromboli.model.node_columns import Node

MAX_SETS = 500
"""How many sets of units are looked at on one node."""

Cover = tuple["MoveUnit", ...]


def covers(lack: Amounts, units: Sequence[MoveUnit], node: Node) -> Iterator[tuple[Cost, Cover]]:
    """The sets of units that free what is lacking on a node, by cost; none of them has a unit too many.

    Units that free the same are taken in the order of their cost, so of equal sets only the cheapest is tried. Where
    nothing is lacking (a filter keeps the task out), each unit is tried by itself.
    """
    groups = _alike(units, node, lack)
    if not lack:
        singles = [(unit.cost, (unit,)) for members in groups for unit in members[:1]]
        yield from sorted(singles, key=lambda cover: cover[0])
        return
    frees = [_freed(members[0], node) for members in groups]
    start = (0,) * len(groups)
    heap: list[tuple[Cost, int, tuple[int, ...], int]] = [(Cost(), 0, start, 0)]
    for serial in range(1, MAX_SETS + 1):
        if not heap:
            return
        cost, _, counts, first = heapq.heappop(heap)
        if _covers(lack, frees, counts):
            yield (
                cost,
                tuple(
                    unit for members, count in zip(groups, counts, strict=True) for unit in members[:count]
                ),
            )
            continue
        for index in range(first, len(groups)):
            if counts[index] < len(groups[index]):
                more = groups[index][counts[index]].cost
                taken = (*counts[:index], counts[index] + 1, *counts[index + 1 :])
                heapq.heappush(heap, (cost.plus(more), -serial, taken, index))


def _alike(units: Sequence[MoveUnit], node: Node, lack: Amounts) -> list[list[MoveUnit]]:
    """Units in groups that free the same on a node, without those that free nothing that is lacking."""
    groups: dict[Hashable, list[MoveUnit]] = {}
    for unit in units:
        freed = _freed(unit, node)
        if not lack or any(freed.get(dim, 0) > 0 for dim in lack):
            key = unit.job.id if unit.whole else (unit.tasks[0].shape.id, unit.tasks[0].label_set)
            groups.setdefault(key, []).append(unit)
    for members in groups.values():
        members.sort(key=_order)
    return sorted(groups.values(), key=lambda members: _order(members[0]))


def _order(unit: MoveUnit) -> tuple[Cost, str, str]:
    return (unit.cost, unit.tasks[0].key, unit.tasks[0].uid)


def _freed(unit: MoveUnit, node: Node) -> Amounts:
    return total_of(task.request for task in unit.tasks if task.node is node)


def _covers(lack: Vector, frees: list[Amounts], counts: tuple[int, ...]) -> bool:
    return all(
        sum(freed.get(dim, 0) * count for freed, count in zip(frees, counts, strict=True)) >= amount
        for dim, amount in lack.items()
    )
