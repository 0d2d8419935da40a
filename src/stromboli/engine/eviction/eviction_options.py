"""Options of evicting actions beyond Volcano's; off unless an action's arguments turn them on, as the presets do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stromboli.api import names
from stromboli.api.go_scalars import duration
from stromboli.policy.argument_checks import duration_like
from stromboli.policy.arguments import arg

if TYPE_CHECKING:
    from stromboli.engine.session import Session
    from stromboli.model.task import Task


MAX_GROUP_MIN_RUN_TIME = 24 * 3600.0
"""The longest minimum run time that a PodGroup may ask for, in seconds, unless its queue grants more."""


@dataclass(frozen=True, slots=True)
class EvictionOptions:
    """Arguments that all evicting actions share."""

    fewest_victims: bool = arg(
        "fewestVictims",
        False,
        "Use room that is free or being freed before evicting anybody else, find a legal victim wherever one exists, "
        "and let every victim stay that turns out not to be needed.",
    )
    no_harm: bool = arg(
        "doNoHarm",
        False,
        "Never leave a gang below its minimum unless all of it goes, nor take a queue below its guarantee.",
    )
    hold_for: str = arg(
        "holdFor",
        "0s",
        "How long room that was cleared for a task is held for it, so that nobody else takes it; 0s: not at all.",
        check=duration_like("5m or 0s"),
    )

    min_run_time: str = arg(
        "minRunTime",
        "",
        "How long a task runs before it may be a victim; a PodGroup's or else a queue's annotation "
        "`stromboli.sh/min-run-time` overrules it. Empty: neither counts.",
        check=duration_like("5m or 0s"),
    )

    @property
    def hold_seconds(self) -> float:
        return duration(self.hold_for) or 0.0

    def has_run_long_enough(self, session: Session, victim: Task) -> bool:
        """Whether a task has run for its minimum run time, so that it may be a victim."""
        minimum = duration(self.min_run_time)
        if minimum is None or victim.job is None:
            return True
        queue = victim.job.queue
        of_queue = duration(queue.annotations.get(names.MIN_RUN_TIME, "")) if queue else None
        of_group = duration(victim.job.annotations.get(names.MIN_RUN_TIME, ""))
        if of_group is not None:
            minimum = min(of_group, MAX_GROUP_MIN_RUN_TIME if of_queue is None else of_queue)
        elif of_queue is not None:
            minimum = of_queue
        started = victim.started if victim.started is not None else victim.scheduled_at
        return minimum <= 0 or (started is not None and session.has_come(started + minimum))
