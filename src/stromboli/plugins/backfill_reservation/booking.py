"""What is promised to a job in conservative backfill."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from stromboli.model.status import Status

if TYPE_CHECKING:
    from stromboli.engine.plugin import Promise
    from stromboli.model.job import Job
    from stromboli.model.ledgers import Ledger
    from stromboli.model.node_columns import Ints, Node
    from stromboli.model.shape import Shape
    from stromboli.plugins.backfill_reservation.availability_profile import AvailabilityProfile


@dataclass(slots=True, eq=False)
class Booking:
    """What is promised to a job: from when on, until when, and what of which nodes."""

    job: Job
    start: float
    end: float
    nodes: tuple[Node, ...]
    rows: Ints
    amounts: Ints
    """What it takes of them: (resource, place in `rows`)."""
    kinds: dict[Shape, int]
    """How many tasks of each shape waited when it was made."""
    needed: int
    """How many of them must start together."""
    usable: Ints | None = None
    """The nodes that its tasks may use, if they are alike and go by amounts; else a search found its places."""
    ledgers: frozenset[Ledger] = field(default=frozenset())
    """What its tasks need besides amounts: no other that needs the same may be on its nodes meanwhile."""
    frees: int = -1
    """How often room had come when an earlier start was last searched for (`AvailabilityProfile.frees`)."""
    promise: Promise | None = None
    is_told: bool = False

    def is_within(self, start: float, end: float) -> bool:
        """Whether it takes anything at some time of a while."""
        return self.start < end and start < self.end

    def holds(self, profile: AvailabilityProfile) -> bool:
        """Whether what it takes is free, besides what is booked already."""
        return bool((profile.least(self.start, self.end, self.rows) >= self.amounts).all())

    def may_improve(self, profile: AvailabilityProfile, usable: Ints) -> bool:
        """Whether nodes on which room came could take any of its tasks before its start; others alone cannot."""
        freed = np.intersect1d(profile.freed_since(self.frees), usable, assume_unique=True)
        if 2 * len(freed) > len(usable) or np.isin(self.rows, freed).any():
            return True
        (shape,) = self.kinds
        limit = self.end - self.start
        return len(freed) > 0 and profile.earliest(shape, 1, limit, freed, self.start) is not None

    def is_there(self, dims: int) -> bool:
        """Whether its nodes are still there, with as many resources; they may have other rows than before."""
        rows = [node.row for node in self.nodes]
        if min(rows) < 0 or len(self.amounts) != dims:
            return False
        self.rows = np.array(rows, dtype=np.int64)
        return True


def kinds_of(job: Job) -> dict[Shape, int]:
    """How many tasks of each shape wait in a job."""
    return Counter(task.shape for task in job.by_status[Status.PENDING])
