"""Would a job start if something were otherwise? A cycle is run on the changed cluster, and all is taken back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from stromboli.engine.catalog import Catalog
from stromboli.engine.cycle import Engine, Outcome, RehearsedParts
from stromboli.engine.decisions import Bind, Evict
from stromboli.engine.waiting.room_waits import Waits
from stromboli.model.intake.object_intake import Intake
from stromboli.model.intake.sub_jobs import sub_job_of
from stromboli.model.job import Job, JobId
from stromboli.model.status import Status
from stromboli.model.task import Task
from stromboli.policy.policy import Policy
from stromboli.scheduling_loop import PERIOD
from stromboli.simulator.explain.eviction_answers import EVICTING
from stromboli.simulator.explain.explanation_document import ObjectChange
from stromboli.simulator.explain.model_changes import applied

PLACING = frozenset(("enqueue", "allocate", "backfill"))
"""Actions that evict nobody."""
KNOWN_ACTIONS = PLACING.union(EVICTING, ("shuffle",))
"""Those, and actions that evict none but pods that ran before the cycle."""
MOST_CYCLES = 2
"""The second is for those for whom somebody was evicted in the first."""


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of a trial: whether the job started, after how many cycles, and who had to go for it."""

    starts: bool
    cycles: int = 1
    evicts: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Asked:
    """What is asked of a cycle: whether a job starts in it, under these actions, after cycles that evicted these."""

    job: JobId
    actions: Sequence[str]
    cycle: int = 1
    evicted: list[str] = field(default_factory=list)


class StartTrials:
    """Runs cycles on changed clusters, each time from the same present."""

    def __init__(
        self,
        intake: Intake,
        policy: Policy,
        catalog: Catalog,
        now: float,
        waits: Waits | None = None,
    ) -> None:
        """`waits`: who waits for room at the present, so that only those are tried whom a change may help."""
        self._waits = waits
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
        self._intake.cluster.forget_changes()
        with applied(self._intake, changes):
            return self._cycle(_Asked(job, actions), None if actions else self._waits)

    def _cycle(self, asked: _Asked, waits: Waits | None) -> Trial:
        """One cycle, of which only the decisions matter, unless another follows as somebody was evicted."""
        cluster, now = self._intake.cluster, self._now + (asked.cycle - 1) * PERIOD

        def has_begun(outcome: Outcome) -> bool:
            job = cluster.jobs.get(asked.job)
            return job is not None and has_started(outcome, job)

        def is_followed(outcome: Outcome) -> bool:
            evicts = any(isinstance(decision, Evict) for decision in outcome.decisions)
            return evicts and asked.cycle < MOST_CYCLES and not has_begun(outcome)

        def look(outcome: Outcome) -> Trial:
            if outcome.lost is not None:
                return Trial(False, asked.cycle)
            gone = [decision.key for decision in outcome.decisions if isinstance(decision, Evict)]
            trial = Trial(has_begun(outcome), asked.cycle, [*asked.evicted, *gone])
            if not is_followed(outcome):
                return trial
            with self._come_true(outcome) as possible:
                following = _Asked(asked.job, asked.actions, asked.cycle + 1, trial.evicts)
                return self._cycle(following, outcome.session.waits) if possible else trial

        parts = RehearsedParts(closes=is_followed, waits=waits)
        if self._stays_started(asked):
            parts = replace(parts, enough=has_begun)
        return self.engine(asked.actions).rehearse(cluster, now, look, parts)

    def _stays_started(self, asked: _Asked) -> bool:
        """Whether no action could undo the start of a job in the same cycle: by evicting pods of it that ran before."""
        actions, job = asked.actions or self._policy.actions, self._intake.cluster.jobs.get(asked.job)
        if job is None or not KNOWN_ACTIONS.issuperset(actions):
            return False
        return not job.allocated_count or PLACING.issuperset(actions)

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
    if job.ready_count < max(job.minimum, 1):
        return False
    return any(decision.uid in job.tasks for decision in outcome.decisions if isinstance(decision, Bind))


def _enter_again(intake: Intake, task: Task) -> None:
    if task.job is not None:
        task.sub_job = sub_job_of(task.job, task.label_set.labels)
    intake.cluster.enter(task)
