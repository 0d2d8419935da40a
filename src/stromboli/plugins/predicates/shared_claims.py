"""Pods of a job that share a claim without devices: the node that the first one takes has to serve them all.

Once the first pod has a node, the others can only go where its devices can be used, which mostly is that node. So it
goes to the node with room and devices for the most of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from stromboli.engine.placement.node_fit import fits_amounts
from stromboli.model.devices.task_claims import task_claims
from stromboli.model.status import Status

if TYPE_CHECKING:
    from stromboli.engine.placement.node_functions import Column, Nodes
    from stromboli.model.devices.claim_use import ClaimContent, ClaimUse
    from stromboli.model.devices.device_ledger import DeviceLedger
    from stromboli.model.job import Job
    from stromboli.model.shape import Shape
    from stromboli.model.task import Task

MOST_SHARERS = 64
"""Pods beside the first for which room is looked for; a gang that shares a claim is rarely larger than a node."""
WEIGHT = 1e6
"""What room for one more of them is worth: more than all that other scores may say."""


class Sharers(NamedTuple):
    """Tasks that wait beside a task for the same claim."""

    shapes: tuple[Shape, ...]
    """What they ask for."""
    contents: tuple[ClaimContent, ...]
    """What all claims of the task and of theirs ask for that have no devices yet."""

    def room(self, task: Task, nodes: Nodes) -> Column:
        """How many of them a node has room for, together with the task."""
        needed = dict(task.request)
        count = nodes.zeros()
        for shape in self.shapes:
            for dim, amount in shape.request.items():
                needed[dim] = needed.get(dim, 0) + amount
            count += fits_amounts(needed, nodes.future_idle)
        return count


class SharedClaims:
    """Who shares claims with whom, within jobs."""

    def __init__(self, ledger: DeviceLedger):
        self._ledger = ledger
        self._users: dict[Job, dict[str, list[Task]]] = {}
        """The tasks of a job that name a claim, by its key."""

    def of(self, task: Task, new: list[ClaimUse]) -> Sharers | None:
        """The tasks that wait for one of these claims beside a task; none if there are none."""
        if task.job is None or len(task.job.tasks) < 2:
            return None
        users = self._users_of(task.job)
        others = (
            other
            for use in new
            for other in users.get(use.key, ())
            if other is not task and other.status is Status.PENDING
        )
        waiting = list(dict.fromkeys(islice(others, MOST_SHARERS)))
        if not waiting:
            return None
        claims = {use: None for each in (task, *waiting) for use in self._new(each)}
        return Sharers(
            tuple(other.shape for other in waiting),
            tuple(use.content for use in claims if use.content is not None),
        )

    def _users_of(self, job: Job) -> dict[str, list[Task]]:
        users = self._users.get(job)
        if users is None:
            users = self._users[job] = {}
            for task in job.tasks.values():
                for claim in task.claims:
                    users.setdefault(f"{task.namespace}/{claim.claim}", []).append(task)
        return users

    def _new(self, task: Task) -> Iterator[ClaimUse]:
        return (use for use in task_claims(self._ledger, task) if use.allocation is None)
