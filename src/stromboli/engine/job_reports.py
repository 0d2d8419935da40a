"""What a session found out about jobs: results of attempts, why jobs are left out, and what is reported."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from stromboli.api import names
from stromboli.engine.decisions import Event
from stromboli.model.task import Condition

if TYPE_CHECKING:
    from stromboli.engine.decisions import Decision
    from stromboli.engine.placement.verdict import Verdict
    from stromboli.engine.plugin import HeldBack
    from stromboli.engine.plugin_failures import Failure
    from stromboli.model.amounts import Amounts
    from stromboli.model.job import Job, SubJob
    from stromboli.model.node_columns import Ints, Node
    from stromboli.model.queue import Queue
    from stromboli.model.remedy import Why
    from stromboli.model.status import Status
    from stromboli.model.task import Task


class JobReports:
    """Reports of one session; an event that repeats the last one on the same job is left out."""

    def __init__(self, decisions: list[Decision]):
        """Events are added to `decisions`."""
        self._decisions = decisions
        self._events: dict[tuple[Job, str], tuple[str, str] | None] = {}
        """Reason and summary of the last event by job and topic; None if it is forgotten."""
        self.objections: dict[Job, str] = {}
        self.advice: dict[Job, Why] = {}
        """Why jobs were left out by `Session.leave_out`."""
        self.failed: dict[Job, Failure] = {}
        """Jobs that are not placed because a plugin failed over them in an earlier session."""
        self.refusals: dict[Job, dict[str, Why]] = {}
        """Why jobs were not admitted to their queues, by plugin."""
        self.held_back: dict[Job, HeldBack] = {}
        """Jobs that were not tried because plugins let others start first."""
        self.conditions: dict[Job, dict[str, Condition]] = {}
        """Conditions that plugins set in this session, by type."""
        self.news: dict[Job, None] = {}
        """Unchanged jobs of which plugins have something new to report."""

    def recall(self, earlier: JobReports) -> None:
        """Take over the results of an earlier session."""
        self.objections, self.advice = earlier.objections, earlier.advice
        self.refusals, self.held_back = earlier.refusals, earlier.held_back

    def leave_out(self, job: Job, why: Why) -> None:
        """Record why a job is not placed in this session."""
        self.objections[job] = why.message
        self.advice[job] = why

    def refuse(self, job: Job, plugin: str, why: Why) -> None:
        """Record that a plugin does not admit a job to its queue, with an event."""
        self.refusals.setdefault(job, {})[plugin] = why
        self.record_event(
            job, f"gate:{plugin}", "Normal", names.EVENT_UNSCHEDULABLE, why.message, why.summary
        )

    def retract_refusals(self, job: Job, start: int) -> None:
        """Forget the refusals of a job that is admitted after all, with their events since decision `start`."""
        for plugin in self.refusals.pop(job, {}):
            self._events.pop((job, f"gate:{plugin}"), None)
        self._decisions[start:] = [
            decision for decision in self._decisions[start:] if not _is_refusal(decision, job)
        ]

    def record_event(
        self, job: Job, topic: str, type: str, reason: str, message: str, summary: str = ""
    ) -> None:
        """Add an event about a job unless the last one on this topic was the same."""
        if self._is_new(job, topic, reason, summary or message):
            self._decisions.append(Event(*job.id, type, reason, message, topic=topic, job=job.id))

    def record_owner_event(self, job: Job, type: str, reason: str, message: str) -> None:
        """Add an event about the object that a PodGroup was made for, such as a Job, unless the last was the same."""
        owner = job.owner
        if owner is not None and self._is_new(job, "owner", reason, message):
            subject = (owner.kind, job.namespace, owner.name)
            identity = (owner.api_version, owner.uid)
            event = Event(*subject, type, reason, message, *identity, topic="owner", job=job.id)
            self._decisions.append(event)

    def forget_events(self, job: Job, reason: str) -> None:
        """Let events with this reason be reported again: they are no longer true, and may never have been written."""
        for topic, (last, _) in job.reported.items():
            if last == reason:
                self._events.setdefault((job, topic), None)

    def _is_new(self, job: Job, topic: str, reason: str, summary: str) -> bool:
        if self._events.get((job, topic), job.reported.get(topic)) == (reason, summary):
            return False
        self._events[job, topic] = (reason, summary)
        return True

    def note_reported(self) -> None:
        """Note on the jobs what was reported, so that later sessions do not repeat it."""
        for (job, topic), event in self._events.items():
            if event is None:
                job.reported.pop(topic, None)
            else:
                job.reported[topic] = event


def _is_refusal(decision: Decision, job: Job) -> bool:
    """Whether a decision is an event about a job that a plugin did not admit."""
    return isinstance(decision, Event) and decision.job == job.id and decision.topic.startswith("gate:")


# -- results of attempts


class TentativePlacement(NamedTuple):
    """Where a task was when its last statement was undone."""

    status: Status
    node: Node
    nominated: bool


class Uncommitted(NamedTuple):
    """What tasks held without being bound when the actions had run, before it was undone."""

    pipelined: Mapping[str, str] = {}
    """Pods that were assigned to a node that is still being freed, with the node."""
    idle: Ints | None = None
    """What was free on each node, without what waiting gangs held."""
    promised: Mapping[Job, int] = {}
    """How many tasks of a job were allocated or pipelined."""
    held: Mapping[Queue, Amounts] = {}
    """What the queues of those jobs held."""


class Attempts:
    """The result of the last attempt for each job and task of a session."""

    def __init__(self) -> None:
        self.verdicts: dict[Job, dict[Task, Verdict]] = {}
        """Why tasks were not placed."""
        self.tentative: dict[Task, TentativePlacement] = {}
        """Where tasks were before they were undone."""
        self.without_domain: dict[Job, Job | SubJob] = {}
        """Jobs without a domain with enough capacity: the job itself, or its first such sub-group."""
        self.allocated_at_once: dict[Job, int] = {}
        """How many tasks of a job were allocated at once in the last statement that allocated any and was undone."""
        self.uncommitted = Uncommitted()
        self.victims_of: dict[str, list[Callable[[Task, Job], Sequence[Task]]]] = {}
        """By evicting action, the tasks of a job that it considers as victims for a task; of actions that ran."""
        self._failed_roles: dict[SubJob, set[str]] = {}

    def explain(self, task: Task, verdict: Verdict) -> None:
        """Record why a task was not placed; its role counts as failed in its sub-group."""
        if task.job is not None:
            self.verdicts.setdefault(task.job, {})[task] = verdict
        if task.sub_job is not None:
            self._failed_roles.setdefault(task.sub_job, set()).add(task.role)

    def consider(self, action: str, victims_of: Callable[[Task, Job], Sequence[Task]]) -> None:
        """Record which tasks of a job an action considers as victims for a task."""
        self.victims_of.setdefault(action, []).append(victims_of)

    def passed_over(self, action: str, task: Task, job: Job) -> bool:
        """Whether an action that evicts considers no task of a job as a victim for a task, whatever plugins allow."""
        known = self.victims_of.get(action, [])
        return bool(known) and not any(victims_of(task, job) for victims_of in known)

    def failed_roles(self, sub_job: SubJob) -> set[str]:
        """Roles with a task for which no node was found."""
        return self._failed_roles.get(sub_job, set())

    def clear_failed_roles(self, sub_job: SubJob) -> None:
        """Before another attempt, clear the failed roles of a sub-group."""
        self._failed_roles.pop(sub_job, None)

    def forget_verdicts(self, job: Job) -> None:
        """Before an attempt in another domain, forget why tasks of a job were not placed."""
        self.verdicts.pop(job, None)
        for sub_job in job.sub_jobs.values():
            self.clear_failed_roles(sub_job)

    @contextmanager
    def set_aside(self) -> Iterator[None]:
        """Within this context earlier results are hidden; results of the context are dropped at its end."""
        kept = self.verdicts, self.tentative, self.without_domain, self.allocated_at_once, self._failed_roles
        self.verdicts, self.tentative, self.without_domain = {}, {}, {}
        self.allocated_at_once, self._failed_roles = {}, {}
        try:
            yield
        finally:
            self.verdicts, self.tentative, self.without_domain, self.allocated_at_once, self._failed_roles = (
                kept
            )
