"""Victims from queues above what they deserve, down to that and never below a guarantee (spec 03 7.3)."""

from __future__ import annotations

from collections.abc import Iterable

from stromboli.model.amounts import Amounts, Vector, less_equal, minus, positive_dimensions, shift, some_over
from stromboli.model.dimensions import PODS
from stromboli.model.job import Job
from stromboli.model.status import Status
from stromboli.model.task import Task
from stromboli.plugins.capacity.queue_share import QueueShare
from stromboli.plugins.capacity.queue_tree import QueueTree


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
    held = other.held
    if not less_equal(other.guarantee, held):
        return False
    return some_over(held, other.deserved, held) or any(
        _uses_nothing_deserved(task, other) for task in job.by_status[Status.RUNNING]
    )


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
