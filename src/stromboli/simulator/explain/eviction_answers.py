"""Why no pods are evicted for a waiting job: the answers of the policy, the queues and the plugins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from stromboli.engine.eviction.eviction_options import EvictionOptions
from stromboli.model.status import Status

if TYPE_CHECKING:
    from stromboli.engine.catalog import Action
    from stromboli.engine.session import Session
    from stromboli.model.job import Job
    from stromboli.model.task import Task


class EvictionAnswers:
    """Answers for one waiting task."""

    def __init__(self, session: Session, waiting: Task):
        self._session = session
        self._waiting = waiting
        self._actions = [action for action in session.actions if action.evicts_for_jobs]

    @property
    def policy_text(self) -> str:
        """Whether the policy evicts for the job at all."""
        if not self._actions:
            catalog = self._session.catalog
            return f"The policy has no action that evicts: {_names(catalog.preempting + catalog.reclaiming)}."
        if not self._waiting.may_preempt:
            return "It may not preempt: preemptionPolicy is Never."
        return f"The policy can evict for waiting jobs: {_names(self._actions)}."

    def why_not(self, holder: Job, tasks: Sequence[Task]) -> str:
        """Why a job that holds what is short is not evicted."""
        why = ""
        with self._session.reporting():
            why = self._why_not(holder, tasks)
        return why

    def _why_not(self, holder: Job, tasks: Sequence[Task]) -> str:
        leaving = sum(task.status is Status.RELEASING for task in tasks)
        if leaving:
            return (
                "it is already terminating"
                if leaving == len(tasks)
                else f"{leaving} of its pods are terminating"
            )
        if not self._actions:
            return "no evicting action"
        if not self._waiting.may_preempt:
            return "the waiting job may not preempt"
        job = self._waiting.job
        same_queue = job is not None and holder.queue is job.queue
        if not self._evicting(same_queue):
            where = "in the same queue" if same_queue else "in another queue"
            catalog = self._session.catalog
            wanted = catalog.preempting if same_queue else catalog.reclaiming
            return f"it is {where}, and the policy has neither {_names(wanted, ' nor ')}"
        return self._by_queue(holder, same_queue) or self._by_votes(holder, tasks, same_queue)

    def _evicting(self, same_queue: bool) -> list[Action]:
        """The actions of the policy that take from jobs of the same queue, or from those of others."""
        return [action for action in self._actions if (action.preempts if same_queue else action.reclaims)]

    def _by_queue(self, holder: Job, same_queue: bool) -> str:
        job, queue = self._waiting.job, holder.queue
        if not same_queue and queue is not None and not queue.reclaimable:
            return f'its queue "{queue.name}" is not reclaimable'
        if same_queue or job is None or job.queue is None:
            return ""
        if self._session.rules.overused(job.queue):
            return f'queue "{job.queue.name}" has used up its share, so it reclaims nothing'
        if not self._session.rules.preemptive(job.queue, [self._waiting]):
            return f'queue "{job.queue.name}" would exceed its deserved share'
        return ""

    def _by_votes(self, holder: Job, tasks: Sequence[Task], same_queue: bool) -> str:
        rules = self._session.rules
        statuses = (Status.BOUND, Status.RUNNING) if same_queue else (Status.RUNNING,)
        running = [task for task in tasks if task.status in statuses]
        candidates = [task for task in running if task.preemptable]
        if not candidates:
            return "its pods are not preemptable" if running else "its pods are not running yet"
        options = self._session.arguments(self._evicting(same_queue)[0].name)
        if isinstance(options, EvictionOptions):
            protection = options.why_protected(self._session, self._waiting, candidates)
            if protection:
                return protection
        point = "preemptable" if same_queue else "reclaimable"
        choice = (rules.preemptable if same_queue else rules.reclaimable)(self._waiting, candidates)
        if choice.victims:
            return self._by_actions(holder, same_queue) or "it may be evicted, but that would not free enough"
        against = [plugin for plugin, answer in rules.votes(point, self._waiting, candidates) if answer == []]
        known = next(filter(None, (plugin.why_spared(self._waiting, candidates) for plugin in against)), "")
        if known or not against:
            return known or "no plugin selects it as a victim"
        return f"plugins object ({', '.join(plugin.name for plugin in against)})"

    def _by_actions(self, holder: Job, same_queue: bool) -> str:
        """The actions that could evict a job, if none of them takes from it; empty if one does."""
        evicting = self._evicting(same_queue)
        attempts = self._session.attempts
        if not all(attempts.passed_over(action.name, self._waiting, holder) for action in evicting):
            return ""
        if len(evicting) == 1:
            return f'action "{evicting[0].name}" does not take from this job'
        return f"none of the actions {_names(evicting)} takes from this job"


def _names(actions: Sequence[Action], separator: str = ", ") -> str:
    return separator.join(action.name for action in actions)
