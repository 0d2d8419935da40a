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


def ranked(session: Session, task: Task, verdict: Verdict) -> list[Reason]:
    """The reasons worth telling the way out of, those that tell most first; of equal ones the most frequent first."""
    if not verdict.reasons:
        return []
    waiting_helps = len(verdict.reasons) == 1 or _waiting_helps(session, task, verdict)
    ranks = {reason: _rank(session, task, reason, waiting_helps) for reason in verdict.reasons}
    least = min(ranks.values())
    told = [reason for reason, rank in ranks.items() if rank == least]
    return sorted(told, key=lambda reason: (reason.nodes, reason.text), reverse=True)


def _rank(session: Session, task: Task, reason: Reason, waiting_helps: bool) -> Rank:
    if task.claims and is_mistake(reason.text):
        return Rank.MISTAKE
    if names.CLAIM_IN_USE in reason.text and claim_of_several(session.cluster, task):
        return Rank.MISTAKE
    if reason.text in _ABSENT or is_without_cards(reason.text):
        return Rank.ABSENCE
    return Rank.ABSENCE if reason.plugin == FIT and not waiting_helps else Rank.CAUSE


def _waiting_helps(session: Session, task: Task, verdict: Verdict) -> bool:
    """Whether a node that has too little free would be large enough if it were empty."""
    columns = session.cluster.columns
    large = np.ones(len(columns), dtype=bool)
    for dim, amount in task.request.items():
        if dim != PODS:
            large &= columns.allocatable[dim] >= amount
    refusing = sum(reason.nodes for reason in verdict.reasons if reason.plugin == FIT)
    return verdict.nodes - refusing < int(np.count_nonzero(large))
