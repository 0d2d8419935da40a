"""Searches that failed: not repeated for a gang while nothing changed that could make a difference."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stromboli.engine.session import Session
    from stromboli.model.job import Job

MEMORY = "consolidate"
"""The key of the cluster's memory under which failed searches are kept."""
RETRY_AFTER = 60.0
"""Seconds after which a search is repeated though no number changed: run times and rests may be over by then."""


class FailedSearches:
    """What nodes held when the search for each gang last failed, and when that was."""

    def __init__(self, session: Session):
        self._session = session
        self._before: dict[str, tuple[int, float]] = session.cluster.memory.get(MEMORY, {})
        self._failed: dict[str, tuple[int, float]] = {}
        columns = session.cluster.columns
        self._state = hash((columns.layout, columns.objects, columns.amounts.tobytes()))

    def untried_first(self, jobs: Iterable[Job]) -> tuple[list[Job], list[Job]]:
        """The jobs worth a search in two parts: those for which none failed before, then the others."""
        fresh: list[Job] = []
        again: list[Job] = []
        for job in jobs:
            key = job.key
            if key not in self._before:
                fresh.append(job)
            elif self._is_current(job):
                self._failed[key] = self._before[key]
            else:
                again.append(job)
        return fresh, again

    def _is_current(self, job: Job) -> bool:
        state, when = self._before[job.key]
        return state == self._state_for(job) and not self._session.has_come(when + RETRY_AFTER)

    def _state_for(self, job: Job) -> int:
        return hash((self._state, tuple(job.counts), job.priority))

    def add(self, job: Job) -> None:
        """The search for a job failed."""
        self._failed[job.key] = (self._state_for(job), self._session.now)

    def remember(self) -> None:
        """Keep what failed for the next cycle."""
        memory = self._session.cluster.memory
        if self._failed != self._before:
            self._session.restore_if_lost(memory, MEMORY, self._before or None)
            memory[MEMORY] = self._failed
