"""Jobs that were moved aside for a gang and wait for the pods that their controllers make anew."""

from __future__ import annotations

from functools import cached_property, partial
from typing import TYPE_CHECKING

from stromboli.engine.explanation.closest_domain import pods
from stromboli.engine.explanation.wait_cause import Cause, Details
from stromboli.model.reservations import RoleOwner

if TYPE_CHECKING:
    from stromboli.engine.session import Session
    from stromboli.model.job import Job, JobId

MOST_NODES = 5


class MovedPods:
    """Causes of jobs that lack pods because these were moved: room is held for the new ones."""

    def __init__(self, session: Session):
        self._session = session

    def of_job(self, job: Job) -> Cause | None:
        """None unless room is held for its pods to come, and without them it cannot start."""
        nodes = self._nodes.get(job.id) if len(job.tasks) < job.minimum else None
        if not nodes:
            return None
        summary, way_out = (
            "its pods were moved and their replacements do not exist yet",
            "its controller creates them",
        )
        some = sorted(set(nodes))
        where = ", ".join(some[:MOST_NODES]) + (", ..." if len(some) > MOST_NODES else "")
        text = f"{summary}: capacity is held for {pods(len(nodes))} on {where}"
        return Cause("gang", summary, way_out, partial(Details, "Moved", text, way_out))

    @cached_property
    def _nodes(self) -> dict[JobId, list[str]]:
        """The nodes where room is held for pods to come, by job."""
        nodes: dict[JobId, list[str]] = {}
        for reservation in self._session.cluster.reservations:
            if isinstance(reservation.owner, RoleOwner):
                nodes.setdefault(reservation.owner.job, []).append(reservation.node.name)
        return nodes
