"""Would a job start if something were otherwise? A cycle is run on the changed cluster, and all is taken back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial

from stromboli.engine.catalog import Catalog
from stromboli.engine.cycle import Engine, Outcome
from stromboli.engine.decisions import Bind, Evict
from stromboli.engine.explanation.subjects.explanation_document import ObjectChange
from stromboli.model.intake.object_intake import Intake
from stromboli.model.intake.sub_jobs import sub_job_of
from stromboli.model.job import Job, JobId
from stromboli.model.status import Status
from stromboli.model.task import Task
from stromboli.policy.policy import Policy
from stromboli.scheduling_loop import PERIOD
from stromboli.simulator.explain.model_changes import applied

MOST_CYCLES = 2
"""The second is for those for whom somebody was evicted in the first."""


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of a trial: whether the job started, after how many cycles, and who had to go for it."""

    starts: bool
    cycles: int = 1
    evicts: list[str] = field(default_factory=list)
    may_start_later: bool = False
    """Whether somebody was evicted, so that another cycle may come to something else."""


class StartTrials:
    """Runs cycles on changed clusters, each time from the same present."""

    def __init__(self, intake: Intake, policy: Policy, catalog: Catalog, now: float) -> None:
        self._intake = intake
        self._policy = policy
        self._catalog = catalog
        self._now = now

    def engine(self, actions: Sequence[str] = ()) -> Engine:
        """A policy at work, with these actions instead of its own if any are given."""
        policy = replace(self._policy, actions=tuple(actions)) if actions else self._policy
        return Engine(policy, self._catalog, skips=False, tells=False)

    def run(self, job: JobId, changes: Sequence[ObjectChange] = (), actions: Sequence[str] = ()) -> Trial:
        """Whether a job would start with these changes, under these actions."""
        with applied(self._intake, changes):
            return self._cycle(job, actions, 1, [])

    def _cycle(self, id: JobId, actions: Sequence[str], number: int, evicted: list[str]) -> Trial:
        """One cycle, of which only the decisions matter; it is run anew with its end if another follows."""
        cluster, now = self._intake.cluster, self._now + (number - 1) * PERIOD
        trial = self.engine(actions).rehearse(cluster, now, partial(self._trial, id, number, evicted), False)
        if trial.starts or not trial.may_start_later:
            return trial

        def follow(outcome: Outcome) -> Trial:
            with self._come_true(outcome) as possible:
                return self._cycle(id, actions, number + 1, trial.evicts) if possible else trial

        return self.engine(actions).rehearse(cluster, now, follow)

    def _trial(self, id: JobId, number: int, evicted: list[str], outcome: Outcome) -> Trial:
        job = self._intake.cluster.jobs.get(id)
        if job is None or outcome.lost is not None:
            return Trial(False, number)
        gone = [decision.key for decision in outcome.decisions if isinstance(decision, Evict)]
        starts = has_started(outcome, job)
        return Trial(starts, number, [*evicted, *gone], bool(gone) and number < MOST_CYCLES)

    @contextmanager
    def _come_true(self, outcome: Outcome) -> Iterator[bool]:
        """What was decided has come true while this lasts; not possible where claims and volumes change with it."""
        cluster = self._intake.cluster
        started = [cluster.tasks[each.uid] for each in outcome.decisions if isinstance(each, Bind)]
        gone = [cluster.tasks[each.uid] for each in outcome.decisions if isinstance(each, Evict)]
        moved = any(isinstance(each, Evict) and each.destination for each in outcome.decisions)
        if moved or any(task.grants or task.claims or task.extended_claim for task in (*started, *gone)):
            yield False
            return
        before = [(task, task.status, task.scheduled_at, task.started) for task in started]
        for task in started:
            task.scheduled_at = task.started = self._now
            cluster.move(task, Status.RUNNING, task.node)
        for task in gone:
            cluster.leave(task)
        try:
            yield True
        finally:
            for task in reversed(gone):
                _enter_again(self._intake, task)
            for task, status, task.scheduled_at, task.started in before:
                cluster.move(task, status, task.node)


def has_started(outcome: Outcome, job: Job) -> bool:
    """Whether pods of it were bound in the cycle, so that as many run as must start together."""
    bound = any(decision.uid in job.tasks for decision in outcome.decisions if isinstance(decision, Bind))
    return bound and job.ready_count >= max(job.minimum, 1)


def _enter_again(intake: Intake, task: Task) -> None:
    if task.job is not None:
        task.sub_job = sub_job_of(task.job, task.label_set.labels)
    intake.cluster.enter(task)
