"""The shares of all queues: flat, or in a hierarchy below `root` (spec 03 7.1, 8.1)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from stromboli.api import names
from stromboli.api.name_cycles import format_cycle
from stromboli.api.object_bounds import MAX_QUEUE_DEPTH
from stromboli.api.resources.resource_lists import resource_list
from stromboli.engine.queue_limits import InqueueResources, ceiling
from stromboli.model.amounts import (
    UNLIMITED,
    Amounts,
    Vector,
    excess,
    is_empty,
    maximum,
    minimum_or_unlimited,
    plus,
    shift,
    total_of,
)
from stromboli.model.dimensions import CPU, MEMORY, Dimensions
from stromboli.model.queue import ROOT, Queue
from stromboli.plugins.capacity.queue_share import QueueShare


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


# -- the ancestors of each queue, and queues that are not connected to the root


class QueuePaths(NamedTuple):
    """Every queue is in one of the two dicts."""

    ancestors: dict[Queue, tuple[Queue, ...]]
    """Of queues connected to the root: the parent first, the root last."""
    detached: dict[Queue, str]
    """Of the others: what is wrong, and how to fix it."""


def queue_paths(queues: dict[str, Queue]) -> QueuePaths:
    """Follow the parents of queues that exist; a bad parent detaches the queues below it, and no others."""
    paths = QueuePaths({}, {})
    causes: dict[Queue, str] = {}
    for name in sorted(queues):
        for queue in reversed(_unknown_ancestors(queues[name], queues, paths)):
            if queue in paths.ancestors or queue in paths.detached:
                continue
            parent = queues[queue.parent]
            if parent in paths.ancestors and len(paths.ancestors[parent]) < MAX_QUEUE_DEPTH:
                paths.ancestors[queue] = (parent, *paths.ancestors[parent])
            elif parent in paths.ancestors:
                text = names.QUEUE_TOO_DEEP.format(queue=queue.name, most=MAX_QUEUE_DEPTH)
                paths.detached[queue] = text
            else:
                causes[queue] = causes.get(parent, paths.detached[parent])
                paths.detached[queue] = names.QUEUE_CUT_OFF.format(queue=queue.name, why=causes[queue])
    return paths


def _unknown_ancestors(queue: Queue, queues: dict[str, Queue], paths: QueuePaths) -> list[Queue]:
    """The queues from this one up to the root, a queue that is known already, or an error."""
    unknown: dict[Queue, None] = {}
    while queue not in paths.ancestors and queue not in paths.detached:
        if queue in unknown:
            members = list(unknown)
            _detach_loop(members[members.index(queue) :], paths)
            break
        unknown[queue] = None
        if queue.name == ROOT:
            paths.ancestors[queue] = ()
        elif queue.parent not in queues:
            paths.detached[queue] = names.QUEUE_PARENT_MISSING.format(queue=queue.name, parent=queue.parent)
        else:
            queue = queues[queue.parent]
    return list(unknown)


def _detach_loop(members: list[Queue], paths: QueuePaths) -> None:
    cycle = [member.name for member in members]
    for index, queue in enumerate(members):
        loop = format_cycle(cycle, index)
        paths.detached[queue] = names.QUEUE_PARENT_LOOP.format(queue=queue.name, loop=loop)


# -- inconsistent shares of queues: logged, and otherwise without effect (spec 03 8.1)


class ShareWarning(NamedTuple):
    """An amount of a queue that exceeds its limit."""

    queue: Queue
    amount_name: str
    amounts: Vector
    limit_name: str
    limit: Vector
    remedy: str

    def text(self, dims: Dimensions) -> str:
        """`queue "eng": its guarantee of cpu 12 exceeds its capability of 8; lower the former or raise the latter`."""
        over = dims.ordered(self.over)
        high = resource_list(dims.named({dim: int(self.amounts[dim]) for dim in over}))
        low = resource_list(dims.named({dim: int(self.limit[dim]) for dim in over}))
        problems = ", ".join(
            f"{self.amount_name} of {name} {high[name]} exceeds {self.limit_name} of {low[name]}"
            for name in (dims.names[dim] for dim in over)
        )
        return f'queue "{self.queue.name}": {problems}; {self.remedy}'

    @property
    def over(self) -> list[int]:
        """Resources that both name, of which the amount is above the limit."""
        return [dim for dim, amount in self.amounts.items() if amount > self.limit.get(dim, amount)]


def share_warnings(queue: Queue, capability: Vector, children: Sequence[Queue]) -> Iterator[ShareWarning]:
    """A guarantee that can never be used, and children that do not fit into their parent."""
    for warning in _possible_warnings(queue, capability, children):
        if warning.over:
            yield warning


def _possible_warnings(queue: Queue, capability: Vector, children: Sequence[Queue]) -> Iterator[ShareWarning]:
    remedy = "lower the former or raise the latter"
    own = {dim: most for dim, most in capability.items() if most > 0}
    yield ShareWarning(queue, "its guarantee", queue.guarantee, "its capability", own, remedy)
    for child in children:
        yield ShareWarning(
            child, "its capability", child.capability, f'that of its parent "{queue.name}"', own, remedy
        )
    if queue.name != ROOT:
        for name, total, own_amount in (
            ("guarantee", total_of(child.guarantee for child in children), queue.guarantee),
            ("deserved", total_of(child.deserved for child in children), queue.deserved),
        ):
            yield ShareWarning(
                queue, f"its children's {name} together", total, f"its own {name}", own_amount, remedy
            )
