"""Options of evicting actions beyond Volcano's; off unless an action's arguments turn them on, as the presets do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from stromboli.api import names
from stromboli.api.go_scalars import duration, rfc3339
from stromboli.engine.eviction.eviction_commit import (
    no_attempt_before,
    no_eviction_before,
    respects_shares,
    took_lately,
)
from stromboli.engine.transaction import EvictionReason
from stromboli.policy.argument_checks import duration_like
from stromboli.policy.arguments import arg

if TYPE_CHECKING:
    from stromboli.engine.session import Session
    from stromboli.model.job import Job
    from stromboli.model.task import Task


NO_TIME = "0s"
MAX_GROUP_MIN_RUN_TIME = 24 * 3600.0
"""The longest minimum run time that a PodGroup may ask for, in seconds, unless its queue grants more."""


@dataclass(frozen=True, slots=True)
class EvictionOptions:
    """Arguments that all evicting actions share."""

    fewest_victims: bool = arg(
        "fewestVictims",
        False,
        "Use capacity that is free or being freed before evicting any pod, find a legal victim wherever one exists, "
        "and restore every victim that turns out not to be needed.",
    )
    no_harm: bool = arg(
        "doNoHarm",
        False,
        "Never leave a gang below its minimum unless all of it is evicted, nor take a queue below its guarantee.",
    )
    hold_for: str = arg(
        "holdFor",
        NO_TIME,
        "How long capacity that was freed for a task is reserved for it; 0s: not at all.",
        check=duration_like("5m or 0s"),
    )

    min_run_time: str = arg(
        "minRunTime",
        "",
        "How long a task runs before it may be a victim; a PodGroup's or else a queue's annotation "
        "`stromboli.sh/min-run-time` overrules it. Empty: neither counts.",
        check=duration_like("5m or 0s"),
    )

    protect_for: str = arg(
        "protectFor",
        NO_TIME,
        "How long after its start a pod is evicted only for a job of a higher priority; 0s: not protected.",
        check=duration_like("5m or 0s"),
    )
    respect_priority: bool = arg(
        "respectPriority", False, "Never evict a pod for a job of a lower priority, whatever the shares."
    )
    respect_shares: bool = arg(
        "respectShares",
        False,
        "Evict pods of other queues for a queue that would be above its share only if this brings the queues closer "
        "to their shares, so that queues do not evict each other in turn.",
    )
    min_wait_time: str = arg(
        "minWaitTime",
        NO_TIME,
        "How long a pod waits before others are evicted for it, so that jobs that arrive together are compared "
        "once all have arrived.",
        check=duration_like("5m or 0s"),
    )

    @property
    def hold_seconds(self) -> float:
        return duration(self.hold_for) or 0.0

    def serves(self, job: Job) -> bool:
        """Whether pods are evicted for jobs of its kind."""
        return True

    def has_waited(self, session: Session, task: Task) -> bool:
        """Whether a pending task has waited for its minimum wait time, so that others may be evicted for it.

        A task that was created far in the future has: the clock was set back since.
        """
        if self.min_wait_time == NO_TIME:
            return True
        seconds = duration(self.min_wait_time) or 0.0
        if seconds <= 0 or not session.has_come(task.created - seconds):
            return True
        return session.has_come(task.created + seconds)

    def may_evict(self, session: Session) -> Callable[[Task, Task], bool]:
        """Whether a preemptable task may be evicted for another one, by how long it has run and by their priorities."""
        has_run_long_enough = self.run_long_enough(session)
        if not self.respect_priority and not self._protected_seconds:
            return lambda task, victim: victim.preemptable and has_run_long_enough(victim)
        return lambda task, victim: (
            victim.preemptable
            and has_run_long_enough(victim)
            and not self.is_protected(session, task, victim)
        )

    def is_protected(self, session: Session, task: Task, victim: Task) -> bool:
        """Whether the priorities of two tasks protect the victim from eviction for the other, for now or for good."""
        if task.outranks(victim):
            return False
        return (self.respect_priority and victim.outranks(task)) or self.is_young(session, victim)

    def is_young(self, session: Session, victim: Task) -> bool:
        """Whether a task has not run for the protected time."""
        return self._protected_seconds > 0 and not session.has_come(self.protected_until(session, victim))

    def protected_until(self, session: Session, victim: Task) -> float:
        """The time until which a running task is protected; a start that lies in the future does not count."""
        known = (victim.started, victim.scheduled_at)
        starts = (moment for moment in known if moment is not None and session.has_come(moment))
        return next(starts, victim.created) + self._protected_seconds

    def why_protected(self, session: Session, task: Task, victims: Sequence[Task]) -> str:
        """Why none of the victims, all of one job, may be evicted for a task yet; empty if these options allow it."""
        job, holder = task.job, victims[0].job
        if job is None or holder is None:
            return ""
        if (moment := no_eviction_before(session, job, self)) is not None:
            return f"the waiting job was itself evicted and may not evict others before {_time_text(moment)}"
        if holder.queue is not job.queue and (moment := no_attempt_before(session, job)) is not None:
            return f"other jobs took the capacity reclaimed for the waiting job; it retries at {_time_text(moment)}"
        if not self.has_waited(session, task):
            return "the waiting pod was created only just now"
        if holder.queue is not job.queue and took_lately(session, holder, job, self):
            return "its queue recently reclaimed from the waiting job's queue"
        if holder.queue is not job.queue and not self._would_respect_shares(session, task, victims):
            return "that would bring their queues no closer to their shares"
        if not all(self.is_protected(session, task, victim) for victim in victims):
            return ""
        if self.respect_priority and all(victim.outranks(task) for victim in victims):
            return f"its priority {holder.priority} is higher than {job.priority}"
        first = min(self.protected_until(session, victim) for victim in victims)
        return f"its pods are protected until {_time_text(first)}"

    def _would_respect_shares(self, session: Session, task: Task, victims: Sequence[Task]) -> bool:
        """Whether a task may take from victims, by the shares of their queues and its own."""
        node = victims[0].node
        if not self.respect_shares or task.job is None or node is None:
            return True
        with session.statement() as trial:
            for victim in victims:
                trial.evict(victim, EvictionReason(session.action, task.job.key))
            if trial.pipeline(task, node, evicted=True) is not None:
                return True
            return respects_shares(session, trial.evicted(), [task], self, task.job)
        return True

    @property
    def _protected_seconds(self) -> float:
        return duration(self.protect_for) or 0.0

    def run_long_enough(self, session: Session) -> Callable[[Task], bool]:
        """Whether a task has run for its minimum run time, so that it may be a victim; each job is looked at once."""
        minimums: dict[Job, float] = {}

        def has_run_long_enough(victim: Task) -> bool:
            job = victim.job
            if job is None:
                return True
            minimum = minimums.get(job)
            if minimum is None:
                minimum = minimums[job] = self._min_run_seconds(job)
            if minimum <= 0:
                return True
            started = victim.started if victim.started is not None else victim.scheduled_at
            return started is not None and session.has_come(started + minimum)

        return has_run_long_enough if self.min_run_time else lambda victim: True

    def _min_run_seconds(self, job: Job) -> float:
        of_queue = job.queue.annotations.get(names.MIN_RUN_TIME) if job.queue is not None else None
        of_group = job.annotations.get(names.MIN_RUN_TIME)
        granted = duration(of_queue) if of_queue else None
        wanted = duration(of_group) if of_group else None
        if wanted is not None:
            return min(wanted, MAX_GROUP_MIN_RUN_TIME if granted is None else granted)
        return (duration(self.min_run_time) or 0.0) if granted is None else granted


def _time_text(seconds: float) -> str:
    return rfc3339(datetime.fromtimestamp(int(seconds), UTC))
