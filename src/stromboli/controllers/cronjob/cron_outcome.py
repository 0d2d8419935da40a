"""What reconciling a CronJob comes to, Volcano's or Kubernetes': what both kinds have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from stromboli.api import names
from stromboli.api.types.cronjob import Reference
from stromboli.api.types.meta import Object
from stromboli.controllers.cronjob.schedule_times import ScheduleTimes
from stromboli.controllers.user_event import UserEvent

FORBID, REPLACE = "Forbid", "Replace"
MISSED_LIMIT = 100
"""Missed start times above which an event says so."""
MAX_ACTIVE = 1_000
"""Jobs under way at a time: no other is started, and a status lists no more."""
MAX_NAMES_SHOWN = 5
"""Jobs under way that an event names."""
START_DELAY = 0.1
"""Seconds after the scheduled time at which the CronJob is requeued."""
RESYNC = 600.0
"""Seconds after which it is requeued in any case, as clocks may be set."""

Status = TypeVar("Status")


@dataclass(slots=True)
class CronOutcome(Generic[Status]):
    """What is to be done, and the status last."""

    status: Status
    events: list[UserEvent] = field(default_factory=list)
    start: dict[str, Any] | None = None
    """The manifest of the job to be created."""
    due: float | None = None
    """Its scheduled time."""
    requeue_after: float | None = None

    def warn(self, reason: str, message: str) -> None:
        self.events.append(UserEvent(names.WARNING, reason, message))

    def inform(self, reason: str, message: str) -> None:
        self.events.append(UserEvent(names.NORMAL, reason, message))

    def requeue_for(self, times: ScheduleTimes, now: float) -> None:
        """Look again when the next job is due."""
        following = times.next(now)
        if following is not None:
            self.requeue_after = min(following - now + START_DELAY, RESYNC)

    def has_room(self, active: Sequence[Reference]) -> bool:
        """Whether fewer jobs than allowed are under way; else an event says so."""
        if len(active) < MAX_ACTIVE:
            return True
        self.warn(
            "TooManyActiveJobs",
            f"not starting a job because {MAX_ACTIVE} are under way, the most that are allowed: delete some,"
            f" or set spec.concurrencyPolicy to Forbid or Replace: {first_names(active)}",
        )
        return False


def job_name(cron: Object, due: float) -> str:
    """One name per minute, so that no job is created twice for one time."""
    return f"{cron.name}-{int(due) // 60}"


def first_names(references: Sequence[Reference]) -> str:
    more = len(references) - MAX_NAMES_SHOWN
    names_shown = ", ".join(reference.name for reference in references[:MAX_NAMES_SHOWN])
    return f"{names_shown} and {more} more" if more > 0 else names_shown
