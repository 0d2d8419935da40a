"""How queues are laid out: side by side, or in a tree with `root` on top (spec 03 7.1, 8.1)."""

from __future__ import annotations

from collections.abc import Iterable

from stromboli.engine.queue_limits import InqueueResources, ceiling
from stromboli.model.amounts import (
    UNLIMITED,
    Amounts,
    excess,
    is_empty,
    maximum,
    minimum_or_unlimited,
    plus,
    shift,
    total_of,
)
from stromboli.model.dimensions import CPU, MEMORY
from stromboli.model.queue import Queue
from stromboli.plugins.capacity.queue_share import Allotment
from stromboli.plugins.capacity.queue_ancestors import trace
from stromboli.plugins.capacity.share_warnings import Oddity, oddities_of


class Tree:
    """Every queue's allotment, and why some queues have none."""

    __slots__ = ("_allotments", "oddities", "strays")

    def __init__(self, allotments: dict[Queue, Allotment], strays: dict[Queue, str], oddities: list[Oddity]):
        self._allotments = allotments
        self.strays = strays
        """Queues that no path of parents joins to the root, each with what is wrong and how to mend it."""
        self.oddities = oddities

    def of(self, queue: Queue | None) -> Allotment | None:
        return self._allotments.get(queue) if queue is not None else None

    def gather(self, pledges: InqueueResources) -> None:
        """Sum up, for every inner queue, what lies below it."""
        everybody = self._allotments.values()
        for one in everybody:
            one.held_below, one.pledged_below = {}, {}
            one.eldest = (UNLIMITED if one.children else one.queue.created, one.queue.name)
        for one in everybody:
            held, pledged = one.queue.held, pledges.of(one.queue)
            busy = bool(one.queue.jobs) and not one.children
            for ancestor in one.ancestors:
                shift(ancestor.held_below, held)
                shift(ancestor.pledged_below, pledged)
                if busy:
                    ancestor.eldest = min(ancestor.eldest, one.eldest)


def side_by_side(queues: Iterable[Queue], total: Amounts) -> Tree:
    """Without a hierarchy: every queue may have what is not guaranteed to others."""
    existing = [queue for queue in queues if queue.exists]
    unpromised = excess(total, total_of(queue.guarantee for queue in existing))
    made = {}
    for queue in existing:
        limit = ceiling(queue, unpromised)
        deserved = maximum(minimum_or_unlimited(queue.deserved, limit), queue.guarantee)
        made[queue] = Allotment(queue, limit, deserved, queue.guarantee)
    return Tree(made, {}, [odd for queue in existing for odd in oddities_of(queue, queue.capability, ())])


def below_root(queues: Iterable[Queue], total: Amounts) -> Tree:
    """With a hierarchy: a queue may have what its parent may, less what is guaranteed to its siblings."""
    ancestors, strays = trace({queue.name: queue for queue in queues if queue.exists})
    children: dict[Queue, list[Queue]] = {queue: [] for queue in ancestors}
    for queue, above in ancestors.items():
        if above:
            children[above[0]].append(queue)
    made: dict[Queue, Allotment] = {}
    capabilities: dict[Queue, Amounts] = {}
    for queue in sorted(ancestors, key=lambda queue: len(ancestors[queue])):
        if not ancestors[queue]:
            capabilities[queue] = limit = _root_capability(queue, total)
            deserved = total_of(_deserved(child) for child in children[queue])
            guarantee = total_of(child.guarantee for child in children[queue])
            made[queue] = Allotment(queue, limit, deserved, guarantee)
        unpromised = excess(made[queue].limit, total_of(child.guarantee for child in children[queue]))
        for child in children[queue]:
            capabilities[child] = _inherited(child.capability, capabilities[queue])
            limit = minimum_or_unlimited(plus(unpromised, child.guarantee), capabilities[child])
            made[child] = Allotment(child, limit, _deserved(child), child.guarantee)
            made[child].ancestors = (made[queue], *made[queue].ancestors)
        made[queue].children = sorted(child.name for child in children[queue])
    odd = [odd for queue in made for odd in oddities_of(queue, capabilities[queue], children[queue])]
    return Tree(made, strays, odd)


def _deserved(queue: Queue) -> Amounts:
    # quirk: spec 03 8.1: not held down to what the queue may have at most, unlike side by side
    return maximum(queue.deserved, queue.guarantee)


def _root_capability(root: Queue, total: Amounts) -> Amounts:
    """Without a limit of its own, endless in all that any node has; one that names only some leaves nothing else."""
    # quirk: spec 03 8.1: a partial limit of the root blocks cpu and memory; what no node has is refused
    return dict.fromkeys((CPU, MEMORY, *total), UNLIMITED) if is_empty(root.capability) else root.capability


def _inherited(own: Amounts, parents: Amounts) -> Amounts:
    """A queue's limit, completed by its parent's: cpu and memory where none is set, other resources where not named."""
    return {**parents, **{dim: most for dim, most in own.items() if most > 0 or dim not in (CPU, MEMORY)}}
