"""Who may be taken from: queues above what they deserve, down to that and never below a guarantee (spec 03 7.3)."""

from __future__ import annotations

from collections.abc import Iterable

from stromboli.model.amounts import Amounts, Vector, less_equal, minus, names, shift, some_over
from stromboli.model.dimensions import PODS
from stromboli.model.job import Job
from stromboli.model.status import Status
from stromboli.model.task import Task
from stromboli.plugins.capacity.queue_share import Allotment
from stromboli.plugins.capacity.queue_tree import Tree


class Leftovers:
    """What queues would still hold if all victims chosen so far were gone."""

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held: dict[Allotment, Amounts] = {}

    def of(self, allotment: Allotment) -> Amounts:
        held = self._held.get(allotment)
        if held is None:
            held = self._held[allotment] = dict(allotment.held)
        return held

    def take(self, task: Task, allotments: Iterable[Allotment]) -> None:
        for one in allotments:
            shift(self.of(one), task.request, -1)


def reclaimable(task: Task, mine: Allotment, candidates: list[Task], tree: Tree, levels: int) -> list[Task]:
    """Victims for a task of another queue, first come first; `levels` of ancestors are asked too."""
    left, victims = Leftovers(), []
    wanted = counted(task.request)
    for candidate in candidates:
        theirs = tree.of(candidate.job.queue) if candidate.job else None
        if theirs is None or not counted(candidate.request) & wanted:
            continue
        if not _may_lose(candidate, theirs, left):
            continue
        if _no_claim(task, mine, levels) and _is_bystander(candidate, theirs) and _kin(mine, theirs, levels):
            continue
        above = _ancestors_apart(mine, theirs, levels)
        if all(_owes(candidate, ancestor, left) for ancestor in above):
            left.take(candidate, (theirs, *above))
            victims.append(candidate)
    return victims


def evictable(candidates: list[Task], tree: Tree) -> list[Task]:
    """Victims for a whole gang: no questions about who asks, nor about ancestors."""
    left, victims = Leftovers(), []
    for candidate in candidates:
        theirs = tree.of(candidate.job.queue) if candidate.job else None
        if theirs is not None and _may_lose(candidate, theirs, left):
            left.take(candidate, (theirs,))
            victims.append(candidate)
    return victims


def could_lose(theirs: Allotment, job: Job) -> bool:
    """Whether any task of a job could be a victim; taking from its queue never turns a no into a yes."""
    held = theirs.held
    if not less_equal(theirs.guarantee, held):
        return False
    return some_over(held, theirs.deserved, held) or any(
        _is_bystander(task, theirs) for task in job.by_status[Status.RUNNING]
    )


def counted(request: Vector) -> frozenset[int]:
    """The resources by which two tasks can be rivals: pods aside."""
    return frozenset(names(request)) - {PODS}


def _may_lose(candidate: Task, theirs: Allotment, left: Leftovers) -> bool:
    """Its queue keeps its guarantee, and has more than it deserves."""
    keeps = less_equal(theirs.guarantee, minus(left.of(theirs), candidate.request))
    return keeps and _owes(candidate, theirs, left)


def _owes(candidate: Task, allotment: Allotment, left: Leftovers) -> bool:
    """Whether a queue has more than it deserves of something that the candidate holds, or deserves nothing of it."""
    return _is_bystander(candidate, allotment) or some_over(
        left.of(allotment), allotment.deserved, candidate.request
    )


def _is_bystander(candidate: Task, allotment: Allotment) -> bool:
    """Whether it holds nothing that its queue deserves; pods count here."""
    return not {*names(candidate.request)} & {*names(allotment.deserved)}


def _no_claim(task: Task, mine: Allotment, levels: int) -> bool:
    return levels > 0 and _is_bystander(task, mine)


def _kin(mine: Allotment, theirs: Allotment, levels: int) -> bool:
    """Whether two queues have an ancestor in common within so many levels, the root aside."""
    return bool({*within(mine, levels)} & {*within(theirs, levels)})


def within(allotment: Allotment, levels: int) -> tuple[Allotment, ...]:
    """Its nearest ancestors, the root aside."""
    return tuple(ancestor for ancestor in allotment.ancestors[:levels] if ancestor.ancestors)


def _ancestors_apart(mine: Allotment, theirs: Allotment, levels: int) -> list[Allotment]:
    """The candidate's nearest ancestors that are not, at the same level, those of who asks."""
    # quirk: spec 03 7.3: levels count from the leaf, so that queues of different depth are compared askew
    return [
        ancestor
        for level, ancestor in enumerate(within(theirs, levels))
        if level >= len(mine.ancestors) or mine.ancestors[level] is not ancestor
    ]
