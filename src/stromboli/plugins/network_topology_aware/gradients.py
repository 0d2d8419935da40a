"""Which HyperNodes to try for a job or a sub-group, in which order (spec 04 9, 02 3.4 and 7.1)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stromboli.model.topology.domain import Domain

Gradients = list[list["Domain"]]


def search_root(root: Domain, allocated: Domain | None, highest_tier: int) -> Domain | None:
    """Where to search: in the root, and in the widest domain allowed around what is allocated; none: nowhere."""
    if allocated is None:
        return root
    widest = None
    for ancestor in allocated.ancestors():
        if ancestor.tier > highest_tier:
            break
        widest = ancestor
    if widest is None:
        return None
    if widest.contains(root):
        return root
    return widest if root.contains(widest) else None


def by_tier(root: Domain, eligible: Callable[[Domain], bool]) -> Gradients:
    """The eligible domains at and below a root, grouped by tier, the lowest first; by name within a tier."""
    groups: dict[int, list[Domain]] = {}
    waiting = deque([root])
    while waiting:
        domain = waiting.popleft()
        if eligible(domain):
            groups.setdefault(domain.tier, []).append(domain)
        waiting.extend(domain.children)
    return [sorted(groups[tier], key=lambda domain: domain.name) for tier in sorted(groups)]


def roomiest_first(gradients: Gradients, room: Callable[[Domain], float]) -> Gradients:
    """The same tiers, each in groups of domains with as much room, those with the most first."""
    chosen: Gradients = []
    for group in gradients:
        by_room: dict[float, list[Domain]] = {}
        for domain in group:
            by_room.setdefault(room(domain), []).append(domain)
        chosen += (by_room[size] for size in sorted(by_room, reverse=True))
    return chosen


def widest_first(gradients: Gradients, most: int) -> Gradients:
    """The highest tiers first, with at most so many domains in all; what is cut off is the beginning of a group."""
    chosen: Gradients = []
    for group in reversed(gradients):
        if most <= 0:
            break
        chosen.append(group[-most:])
        most -= len(group)
    return chosen
