"""Writes for a job that the stores do not show yet, so that no pod, group or command is handled twice meanwhile."""

from __future__ import annotations

from collections.abc import Callable

from stromboli.api.types.scheduling import PodGroup
from stromboli.api.types.volcano_job import Command
from stromboli.controllers.job.tracked_pods import TrackedPods
from stromboli.controllers.pending_writes import PendingWrites


class Expectations:
    """The expectations of one job."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.pods = TrackedPods(clock)
        self._groups: PendingWrites[PodGroup] = PendingWrites()
        self._executed: set[str] = set()
        """Commands that were deleted and may still be in the store, by uid."""

    # -- the group

    def group_created(self, group: PodGroup) -> None:
        self._groups.created(group, self._clock())

    def group_deleted(self, group: PodGroup) -> None:
        self._groups.deleted(group, self._clock())

    def group_observed(self, group: PodGroup) -> bool:
        """The store has a new state of the group; whether that is just the one that we created."""
        return self._groups.observed(group)

    def group(self, stored: PodGroup | None) -> PodGroup | None:
        """The stored group with our writes applied."""
        groups = self._groups.apply([] if stored is None else [stored], self._clock())
        return next((group for group in groups if not self._groups.has_deleted(group)), None)

    # -- commands

    def command_executed(self, uid: str) -> None:
        self._executed.add(uid)

    def commands(self, stored: list[Command]) -> list[Command]:
        """The stored commands that are not executed and deleted yet."""
        self._executed &= {command.metadata.uid for command in stored}
        return [command for command in stored if command.metadata.uid not in self._executed]

    @property
    def until(self) -> float | None:
        """When the first write is forgotten."""
        times = [writes.until for writes in (self.pods, self._groups)]
        return min((time for time in times if time is not None), default=None)
