"""Changes of the model that a session makes when it closes, once all moves that are not committed are undone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from stromboli.model.status import Status

if TYPE_CHECKING:
    from stromboli.model.cluster import Cluster
    from stromboli.model.job import Job, SubJob
    from stromboli.model.queue import Queue
    from stromboli.model.reservations import Reservation
    from stromboli.model.task import Task

_REPORT_ONLY_FIELDS = ("written", "conditions", "condition", "reported")
"""Fields of the model that hold what was reported; no rule reads them."""


class DeferredChanges:
    """Fields, phases and reservations to set."""

    def __init__(self, cluster: Cluster):
        self._cluster = cluster
        self._fields: list[tuple[Job | SubJob | Task | Queue, str, Any]] = []
        self._reservations: dict[Task, Reservation] = {}
        self.phases: dict[Job, str] = {}
        """The phases that jobs will have."""

    def write(self, target: Job | SubJob | Task | Queue, field: str, value: Any) -> None:
        """Set a field of the model when the session closes."""
        self._fields.append((target, field, value))

    def reserve(self, task: Task, reservation: Reservation) -> None:
        """Reserve capacity for a task when the session closes, if it is pending then."""
        self._reservations[task] = reservation

    @property
    def affect_decisions(self) -> bool:
        """Whether they change anything that rules, filters or actions read."""
        wrote = any(field not in _REPORT_ONLY_FIELDS for _, field, _ in self._fields)
        return wrote or bool(self._reservations or self.phases)

    def apply(self) -> None:
        """Make all changes."""
        for target, field, value in self._fields:
            setattr(target, field, value)
        for job, phase in self.phases.items():
            self._cluster.set_phase(job, phase)
        for task, reservation in self._reservations.items():
            if task.status is Status.PENDING:
                self._cluster.reservations.reserve(reservation)

    @contextmanager
    def applied_for_now(self) -> Iterator[None]:
        """Make all changes, and undo them at the end of this context."""
        fields = [(target, field, getattr(target, field)) for target, field, _ in self._fields]
        phases = [(job, job.phase) for job in self.phases]
        reservations = self._cluster.reservations
        reserved = [(task.uid, reservations.of(task.uid)) for task in self._reservations]
        self.apply()
        try:
            yield
        finally:
            for owner, before in reserved:
                reservations.release(owner)
                if before is not None:
                    reservations.reserve(before)
            for job, phase in phases:
                self._cluster.set_phase(job, phase)
            for target, field, value in reversed(fields):
                setattr(target, field, value)
