"""Which of the reasons of nodes to tell the way out of first: mistakes before what never fits, that before absences."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np

from stromboli.api import names
from stromboli.api.card_reasons import is_without_cards
from stromboli.engine.explanation.device_shortages import is_mistake
from stromboli.engine.explanation.volume_shortages import claim_of_several
from stromboli.engine.placement.verdict import FIT
from stromboli.model.dimensions import PODS

if TYPE_CHECKING:
    from stromboli.engine.placement.verdict import Reason, Verdict
    from stromboli.engine.session import Session
    from stromboli.model.shape import Shape
    from stromboli.model.task import Task


class Rank(IntEnum):
    """How much a reason tells, the most first."""

    MISTAKE = 0
    """The pod or its claims are wrong: nothing else is worth telling."""
    CAUSE = 1
    """The node could serve such pods in principle."""
    ABSENCE = 2
    """The node has nothing of what is asked for, or is too small."""


_ABSENT = (names.NUMA_INFO_EMPTY, names.CPU_MANAGER_NOT_STATIC)


class ReasonRanks:
    """Ranks the reasons of verdicts of one cycle; what nodes have at most is looked up once for tasks of one shape."""

    def __init__(self, session: Session):
        self._session = session
        self._large_nodes: dict[Shape, int] = {}

    def ranked(self, task: Task, verdict: Verdict) -> list[Reason]:
        """The reasons worth telling the way out of: those that tell most, of equal ones the most frequent first."""
        if not verdict.reasons:
            return []
        by_rank: dict[Rank, list[Reason]] = {}
        for reason in verdict.reasons:
            by_rank.setdefault(self._rank(task, verdict, reason), []).append(reason)
        told = by_rank[min(by_rank)]
        return sorted(told, key=lambda reason: (reason.nodes, reason.text), reverse=True)

    def _rank(self, task: Task, verdict: Verdict, reason: Reason) -> Rank:
        if reason.plugin == FIT:
            return Rank.CAUSE if self._waiting_helps(task, verdict) else Rank.ABSENCE
        if task.claims and is_mistake(reason.text):
            return Rank.MISTAKE
        if names.CLAIM_IN_USE in reason.text and claim_of_several(self._session.cluster, task):
            return Rank.MISTAKE
        is_absence = reason.text in _ABSENT or is_without_cards(reason.text)
        return Rank.ABSENCE if is_absence else Rank.CAUSE

    def _waiting_helps(self, task: Task, verdict: Verdict) -> bool:
        """Whether a node that has too little free would be large enough if it were empty."""
        refusing = sum(reason.nodes for reason in verdict.reasons if reason.plugin == FIT)
        passing = verdict.nodes - refusing  # each of them is large enough
        return not passing or passing < self._count_large_nodes(task)

    def _count_large_nodes(self, task: Task) -> int:
        """How many nodes would be large enough for a task if they were empty."""
        count = self._large_nodes.get(task.shape)
        if count is None:
            columns = self._session.cluster.columns
            large = np.ones(len(columns), dtype=bool)
            for dim, amount in task.request.items():
                if dim != PODS:
                    large &= columns.allocatable[dim] >= amount
            count = self._large_nodes[task.shape] = int(np.count_nonzero(large))
        return count
