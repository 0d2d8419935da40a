"""The shares of all queues, flat or below `root`, and the victims that they allow (spec 03 7.1-7.3, 8.1)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
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
    dominant_share,
    excess,
    is_empty,
    less_equal,
    maximum,
    minimum_or_unlimited,
    minus,
    plus,
    positive_dimensions,
    shift,
    some_over,
    total_of,
)
from stromboli.model.dimensions import CPU, MEMORY, PODS, Dimensions
from stromboli.model.job import Job
from stromboli.model.queue import ROOT, Queue
from stromboli.model.status import Status
from stromboli.model.task import Task

NOTHING: Vector = {}
OrderKey = tuple[float, bool]
"""The order of queues: the smaller share first, then queues that deserve anything."""


# -- one queue: its share, and what it holds together with the queues below it


@dataclass(slots=True, eq=False, repr=False)
class QueueShare:
    """A queue's shares, its ancestors (the parent first), and the sums over the queues below it.

    Quota on devices (keys `deviceclass/<class>` and `<dim>.deviceclass/<class>`, spec 03 9) is kept in these amounts
    as plain resources that no task requests, quirks included; claims are counted against it in `device_quota`.
    """

    queue: Queue
    limit: Amounts
    """What it may have at most."""
    deserved: Amounts
    """What it may have without being reclaimed from."""
    guarantee: Amounts
    """What is reserved for it."""
    ancestors: tuple[QueueShare, ...] = ()
    children: list[str] = field(default_factory=list)
    held_below: Amounts = field(default_factory=dict)
    inqueue_below: Amounts = field(default_factory=dict)
    oldest: tuple[float, str] = field(init=False)
    """Creation time and name of the oldest queue with jobs at or below it, to break ties between branches."""

    def __post_init__(self) -> None:
        self.oldest = (self.queue.created, self.queue.name)

    @property
    def lineage(self) -> tuple[QueueShare, ...]:
        """It and its ancestors."""
        return (self, *self.ancestors)

    @property
    def branch(self) -> QueueShare:
        """Its topmost ancestor below the root, or itself."""
        return self.ancestors[-2] if len(self.ancestors) > 1 else self

    @property
    def held(self) -> Amounts:
        return plus(self.queue.held, self.held_below) if self.held_below else self.queue.held

    @property
    def order_key(self) -> OrderKey:
        if is_empty(self.deserved):
            return (1.0, True)
        return (dominant_share(self.held, self.deserved), False)

    def reserved_beside(self, job: Job | None) -> Vector:
        """What is reserved for other jobs of this queue, or of those below it where it has children."""
        return self.queue.reserved_beside(job, below=bool(self.children))

    def allows(self, request: Vector, reserved: Vector = NOTHING) -> bool:
        """Whether a request fits below its limit (FITS, without building sums), beside what is reserved for others."""
        limit, below = self.limit, self.held_below
        allocated, pipelined = self.queue.allocated, self.queue.pipelined
        for dim, amount in request.items():
            if amount > 0 and dim != PODS:
                held = allocated.get(dim, 0) + pipelined.get(dim, 0) + below.get(dim, 0)
                if held + reserved.get(dim, 0) + amount > limit.get(dim, 0):
                    return False
        return True

    def __repr__(self) -> str:
        return f"QueueShare({self.queue.name})"


# -- all queues


class QueueTree(NamedTuple):
    """Every queue's share, and why some queues have none."""

    shares: dict[Queue, QueueShare]
    detached: dict[Queue, QueueFault]
    """Queues that are not connected to the root, each with the problem and its remedy."""
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


class QueueFault(NamedTuple):
    """Why a queue takes no jobs, and what would help."""

    problem: str
    remedy: str
    joint: str = ": "

    @property
    def text(self) -> str:
        return f"{self.problem}{self.joint}{self.remedy}"

    def below(self, queue: Queue) -> QueueFault:
        """The fault of a queue that this one cuts off from the root."""
        return self._replace(problem=names.QUEUE_CUT_OFF.format(queue=queue.name, why=self.problem))


class QueuePaths(NamedTuple):
    """Every queue is in one of the two dicts."""

    ancestors: dict[Queue, tuple[Queue, ...]]
    """Of queues connected to the root: the parent first, the root last."""
    detached: dict[Queue, QueueFault]
    """Of the others: the problem and its remedy."""


def queue_paths(queues: dict[str, Queue]) -> QueuePaths:
    """Follow the parents of queues that exist; a bad parent detaches the queues below it, and no others."""
    paths = QueuePaths({}, {})
    causes: dict[Queue, QueueFault] = {}
    for name in sorted(queues):
        for queue in reversed(_unknown_ancestors(queues[name], queues, paths)):
            if queue in paths.ancestors or queue in paths.detached:
                continue
            parent = queues[queue.parent]
            if parent in paths.ancestors and len(paths.ancestors[parent]) < MAX_QUEUE_DEPTH:
                paths.ancestors[queue] = (parent, *paths.ancestors[parent])
            elif parent in paths.ancestors:
                problem = names.QUEUE_TOO_DEEP.format(queue=queue.name, most=MAX_QUEUE_DEPTH)
                paths.detached[queue] = QueueFault(problem, names.SET_HIGHER_PARENT)
            else:
                causes[queue] = causes.get(parent, paths.detached[parent])
                paths.detached[queue] = causes[queue].below(queue)
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
            remedy = names.CREATE_PARENT.format(queue=queue.name, parent=queue.parent)
            paths.detached[queue] = QueueFault(names.QUEUE_PARENT_MISSING.format(queue=queue.name), remedy)
        else:
            queue = queues[queue.parent]
    return list(unknown)


def _detach_loop(members: list[Queue], paths: QueuePaths) -> None:
    cycle = [member.name for member in members]
    for index, queue in enumerate(members):
        loop = format_cycle(cycle, index)
        problem = names.QUEUE_PARENT_LOOP.format(queue=queue.name, loop=loop)
        paths.detached[queue] = QueueFault(problem, names.BREAK_LOOP, "; ")


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


# -- victims from queues above their deserved share, down to that and never below a guarantee


class RemainingAllocations(dict[QueueShare, Amounts]):
    """What queues would still hold without the victims chosen so far."""

    def __missing__(self, share: QueueShare) -> Amounts:
        held = self[share] = dict(share.held)
        return held

    def evict(self, task: Task, shares: Iterable[QueueShare]) -> None:
        for share in shares:
            shift(self[share], task.request, -1)


def reclaim_victims(
    task: Task, own: QueueShare, candidates: list[Task], tree: QueueTree, levels: int
) -> list[Task]:
    """Victims for a task of another queue, in order; `levels` of ancestors must be above their share too."""
    left, victims = RemainingAllocations(), []
    requested = rival_dimensions(task.request)
    for candidate in candidates:
        other = tree.of(candidate.job.queue) if candidate.job else None
        if other is None or not rival_dimensions(candidate.request) & requested:
            continue
        if not _may_lose(candidate, other, left):
            continue
        if (
            _cannot_claim(task, own, levels)
            and _uses_nothing_deserved(candidate, other)
            and _have_common_ancestor(own, other, levels)
        ):
            continue
        ancestors = _other_ancestors(own, other, levels)
        if all(_exceeds_deserved(candidate, ancestor, left) for ancestor in ancestors):
            left.evict(candidate, (other, *ancestors))
            victims.append(candidate)
    return victims


def gang_victims(candidates: list[Task], tree: QueueTree) -> list[Task]:
    """Victims for a whole gang, whatever the queue that reclaims and the ancestors."""
    left, victims = RemainingAllocations(), []
    for candidate in candidates:
        other = tree.of(candidate.job.queue) if candidate.job else None
        if other is not None and _may_lose(candidate, other, left):
            left.evict(candidate, (other,))
            victims.append(candidate)
    return victims


def has_victims(other: QueueShare, job: Job) -> bool:
    """Whether any task of a job could be a victim; evictions from its queue never turn a no into a yes."""
    has_guaranteed, is_over = victim_limits(other)
    if not has_guaranteed:
        return False
    return is_over or any(_uses_nothing_deserved(task, other) for task in job.by_status[Status.RUNNING])


def victim_limits(share: QueueShare) -> tuple[bool, bool]:
    """Whether a queue has what is guaranteed to it, and whether it has more than it deserves of anything."""
    held = share.held
    return less_equal(share.guarantee, held), some_over(held, share.deserved, held)


def rival_dimensions(request: Vector) -> frozenset[int]:
    """The resources that a victim can free for a task: all but pods."""
    return frozenset(positive_dimensions(request)) - {PODS}


def _may_lose(candidate: Task, other: QueueShare, left: RemainingAllocations) -> bool:
    """Whether its queue keeps its guarantee without it, and has more than it deserves."""
    keeps = less_equal(other.guarantee, minus(left[other], candidate.request))
    return keeps and _exceeds_deserved(candidate, other, left)


def _exceeds_deserved(candidate: Task, share: QueueShare, left: RemainingAllocations) -> bool:
    """Whether a queue has more than it deserves of something the candidate uses, or deserves nothing of that."""
    return _uses_nothing_deserved(candidate, share) or some_over(
        left[share], share.deserved, candidate.request
    )


def _uses_nothing_deserved(candidate: Task, share: QueueShare) -> bool:
    """Whether it uses nothing that its queue deserves; pods count here."""
    return not {*positive_dimensions(candidate.request)} & {*positive_dimensions(share.deserved)}


def _cannot_claim(task: Task, own: QueueShare, levels: int) -> bool:
    return levels > 0 and _uses_nothing_deserved(task, own)


def _have_common_ancestor(own: QueueShare, other: QueueShare, levels: int) -> bool:
    """Whether two queues have a common ancestor within so many levels, except the root."""
    return bool({*nearest_ancestors(own, levels)} & {*nearest_ancestors(other, levels)})


def nearest_ancestors(share: QueueShare, levels: int) -> tuple[QueueShare, ...]:
    """Its nearest ancestors, except the root."""
    return tuple(ancestor for ancestor in share.ancestors[:levels] if ancestor.ancestors)


def _other_ancestors(own: QueueShare, other: QueueShare, levels: int) -> list[QueueShare]:
    """The candidate's nearest ancestors that are not, at the same level, ancestors of the reclaiming queue."""
    # quirk: spec 03 7.3: levels count from the leaf, so that queues of different depth are compared at different levels
    return [
        ancestor
        for level, ancestor in enumerate(nearest_ancestors(other, levels))
        if level >= len(own.ancestors) or own.ancestors[level] is not ancestor
    ]
