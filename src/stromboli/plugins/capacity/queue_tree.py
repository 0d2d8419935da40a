"""The shares of all queues: flat, or in a hierarchy below `root` (spec 03 7.1, 8.1)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

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
from stromboli.plugins.capacity.queue_ancestors import queue_paths
from stromboli.plugins.capacity.queue_share import QueueShare
from stromboli.plugins.capacity.share_warnings import ShareWarning, share_warnings


class QueueTree(NamedTuple):
    """Every queue's share, and why some queues have none."""

    shares: dict[Queue, QueueShare]
    detached: dict[Queue, str]
    """Queues that are not connected to the root, each with what is wrong and how to fix it."""
    warnings: list[ShareWarning]

    def of(self, queue: Queue | None) -> QueueShare | None:
        return self.shares.get(queue) if queue is not None else None

    def sum_up(self, inqueue: InqueueResources) -> None:
        """Sum up, for every inner queue, what the queues below it hold and what is inqueue."""
        shares = self.shares.values()
        for share in shares:
            share.held_below, share.inqueue_below = {}, {}
            share.oldest = (UNLIMITED if share.children else share.queue.created, share.queue.name)
        for share in shares:
            held, inqueue_resources = share.queue.held, inqueue.of(share.queue)
            busy = bool(share.queue.jobs) and not share.children
            for ancestor in share.ancestors:
                shift(ancestor.held_below, held)
                shift(ancestor.inqueue_below, inqueue_resources)
                if busy:
                    ancestor.oldest = min(ancestor.oldest, share.oldest)


def flat_queues(queues: Iterable[Queue], total: Amounts) -> QueueTree:
    """Without a hierarchy: every queue may have what is not guaranteed to others."""
    existing = [queue for queue in queues if queue.exists]
    unguaranteed = excess(total, total_of(queue.guarantee for queue in existing))
    shares = {}
    for queue in existing:
        limit = ceiling(queue, unguaranteed)
        deserved = maximum(minimum_or_unlimited(queue.deserved, limit), queue.guarantee)
        shares[queue] = QueueShare(queue, limit, deserved, queue.guarantee)
    return QueueTree(
        shares, {}, [warning for queue in existing for warning in share_warnings(queue, queue.capability, ())]
    )


def queue_hierarchy(queues: Iterable[Queue], total: Amounts) -> QueueTree:
    """With a hierarchy: a queue may have what its parent may, less what is guaranteed to its siblings."""
    ancestors, detached = queue_paths({queue.name: queue for queue in queues if queue.exists})
    children: dict[Queue, list[Queue]] = {queue: [] for queue in ancestors}
    for queue, above in ancestors.items():
        if above:
            children[above[0]].append(queue)
    shares: dict[Queue, QueueShare] = {}
    capabilities: dict[Queue, Amounts] = {}
    for queue in sorted(ancestors, key=lambda queue: len(ancestors[queue])):
        if not ancestors[queue]:
            capabilities[queue] = limit = _root_capability(queue, total)
            deserved = total_of(_deserved(child) for child in children[queue])
            guarantee = total_of(child.guarantee for child in children[queue])
            shares[queue] = QueueShare(queue, limit, deserved, guarantee)
        unguaranteed = excess(shares[queue].limit, total_of(child.guarantee for child in children[queue]))
        for child in children[queue]:
            capabilities[child] = _inherited(child.capability, capabilities[queue])
            limit = minimum_or_unlimited(plus(unguaranteed, child.guarantee), capabilities[child])
            shares[child] = QueueShare(child, limit, _deserved(child), child.guarantee)
            shares[child].ancestors = (shares[queue], *shares[queue].ancestors)
        shares[queue].children = sorted(child.name for child in children[queue])
    warnings = [
        warning for queue in shares for warning in share_warnings(queue, capabilities[queue], children[queue])
    ]
    return QueueTree(shares, detached, warnings)


def _deserved(queue: Queue) -> Amounts:
    # quirk: spec 03 8.1: not reduced to what the queue may have at most, unlike without a hierarchy
    return maximum(queue.deserved, queue.guarantee)


def _root_capability(root: Queue, total: Amounts) -> Amounts:
    """Without a capability of its own, unlimited in all resources of nodes; otherwise only what it names."""
    # quirk: spec 03 8.1: a partial limit of the root blocks cpu and memory; what no node has is refused
    return dict.fromkeys((CPU, MEMORY, *total), UNLIMITED) if is_empty(root.capability) else root.capability


def _inherited(own: Amounts, parents: Amounts) -> Amounts:
    """A queue's limit, completed by its parent's: cpu and memory where none is set, other resources where not named."""
    return {**parents, **{dim: most for dim, most in own.items() if most > 0 or dim not in (CPU, MEMORY)}}
