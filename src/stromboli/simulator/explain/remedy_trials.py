"""Remedies for one job, tried within bounds: a cycle runs on the changed cluster, and everything is undone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from stromboli.engine.catalog import Catalog
from stromboli.engine.cycle import Engine, Outcome, RehearsedParts
from stromboli.engine.decisions import Bind, Evict
from stromboli.engine.waiting.capacity_waits import Waits
from stromboli.model.intake.object_intake import Intake
from stromboli.model.job import Job, JobId
from stromboli.model.shape import Shape
from stromboli.model.status import Status
from stromboli.model.task import Task
from stromboli.policy.policy import Policy
from stromboli.scheduling_loop import PERIOD
from stromboli.simulator.explain.explanation_document import ObjectChange, Remedy
from stromboli.simulator.explain.object_changes import applied, exchange_tasks
from stromboli.simulator.explain.room_by_nodes import slots_for
from stromboli.simulator.explain.wait_clues import WaitClues

MAX_TRIALS = 24
MIN_TRIALS = 3
TRIAL_WORK = 50_000
"""What all trials together may look at: nodes, jobs, and four times the waiting pods; about a quarter of a second."""
MAX_WORK = 100_000
"""What the first `MIN_TRIALS` trials may look at; one trial runs whatever it looks at."""
MAX_CYCLES = 2
"""Cycles of a trial; the second one runs only if the first one evicts pods."""


@dataclass(slots=True)
class Remedies:
    """What helps, what was tried and did not help, and how many remedies were not tried."""

    helpful: list[Remedy] = field(default_factory=list)
    in_vain: list[str] = field(default_factory=list)
    untried: int = 0


class RemedyTrials:
    """Tries remedies for one job."""

    def __init__(
        self, intake: Intake, policy: Policy, catalog: Catalog, clues: WaitClues, now: float
    ) -> None:
        self.cluster = cluster = intake.cluster
        self.now = now
        self.policy = policy
        self.clues = clues
        self.remedies = Remedies()
        self._trials = StartTrials(intake, policy, catalog, now, clues.waits)
        waiting = sum(job.counts[Status.PENDING] for job in cluster.backlog)
        self._cost = max(len(cluster.nodes) + len(cluster.jobs) + 4 * waiting, 1)
        self.catalog = catalog
        self.evicts = any(catalog.actions[name].evicts_for_jobs for name in policy.actions)
        """Whether the policy evicts pods for waiting jobs."""
        if self.evicts:
            self._cost *= 2  # its actions look for victims
        self._work = max(TRIAL_WORK, min(MIN_TRIALS * self._cost, MAX_WORK), self._cost)
        self._left = MAX_TRIALS
        self._left_of_family = MAX_TRIALS

    @property
    def job(self) -> Job:
        return self.cluster.jobs[self.clues.id]

    def start_family(self, families: int) -> None:
        """Start with remedies of another kind: each kind has one trial if fewer trials are left than kinds."""
        left = min(self._left, self._work // self._cost)
        self._left_of_family = 1 if left < families else left

    def attempt(self, remedy: Remedy, in_vain: str = "") -> bool:
        """Whether the job starts with a remedy, which is kept then; `in_vain` names a remedy that does not help."""
        cost = self._cost + (
            len(self.cluster.tasks) if remedy.actions else 0
        )  # an added action looks at all pods
        if min(self._left, self._left_of_family) <= 0 or cost > self._work:
            self.remedies.untried += 1
            return False
        self._left -= 1
        self._left_of_family -= 1
        self._work -= cost
        trial = self._trials.run(self.clues.id, remedy.changes, remedy.actions)
        if trial.starts:
            remedy.cycles, remedy.evicts = trial.cycles, trial.evicts
            self.remedies.helpful.append(remedy)
        elif in_vain:
            self.remedies.in_vain.append(in_vain)
        return trial.starts

    def leave_out(self) -> None:
        """Count a remedy that is too large to be tried."""
        self.remedies.untried += 1

    @property
    def exhausted(self) -> bool:
        """Whether some remedies were not tried."""
        return self.remedies.untried > 0

    def tasks_by_shape(self) -> list[list[Task]]:
        """The waiting tasks, equal ones together."""
        by_shape: dict[Shape, list[Task]] = {}
        for task in self.clues.tasks:
            by_shape.setdefault(task.shape, []).append(task)
        return list(by_shape.values())

    def pods_that_fit(self) -> int:
        """How many of the waiting pods fit, each kind by itself."""
        return slots_for(self.clues.kinds).total


# -- whether a job would start after a change


@dataclass(frozen=True, slots=True)
class Trial:
    """The result of a trial: whether the job starts, after how many cycles, and which pods are evicted."""

    starts: bool
    cycles: int = 1
    evicts: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Asked:
    """Whether a job starts in a cycle with these actions, after cycles that evicted these pods."""

    job: JobId
    actions: Sequence[str]
    cycle: int = 1
    evicted: list[str] = field(default_factory=list)


class StartTrials:
    """Runs cycles on changed clusters; each trial starts from the same cluster."""

    def __init__(
        self,
        intake: Intake,
        policy: Policy,
        catalog: Catalog,
        now: float,
        waits: Waits | None = None,
    ) -> None:
        """`waits`: the jobs that lack capacity now, so that trials skip those that a change cannot help."""
        self._waits = waits
        self._intake = intake
        self._policy = policy
        self._catalog = catalog
        self._now = now

    def run(self, job: JobId, changes: Sequence[ObjectChange] = (), actions: Sequence[str] = ()) -> Trial:
        """Whether a job would start with these changes, under these actions instead of those of the policy."""
        self._intake.cluster.forget_changes()
        policy = replace(self._policy, actions=tuple(actions)) if actions else self._policy
        engine = Engine(policy, self._catalog, skips=False, reports=False)
        with applied(self._intake, changes):
            return self._cycle(_Asked(job, actions), engine, None if actions else self._waits)

    def _cycle(self, asked: _Asked, engine: Engine, waits: Waits | None) -> Trial:
        """Run one cycle, and another one if it evicts pods and the job does not start."""
        cluster, now = self._intake.cluster, self._now + (asked.cycle - 1) * PERIOD

        def starts(outcome: Outcome) -> bool:
            job = cluster.jobs.get(asked.job)
            return job is not None and has_started(outcome, job)

        def is_followed(outcome: Outcome) -> bool:
            evicts = any(isinstance(decision, Evict) for decision in outcome.decisions)
            return evicts and asked.cycle < MAX_CYCLES and not starts(outcome)

        def look(outcome: Outcome) -> Trial:
            if outcome.lost is not None:
                return Trial(False, asked.cycle)
            evicted = [decision.key for decision in outcome.decisions if isinstance(decision, Evict)]
            trial = Trial(starts(outcome), asked.cycle, [*asked.evicted, *evicted])
            if not is_followed(outcome):
                return trial
            with self._carried_out(outcome) as possible:
                following = _Asked(asked.job, asked.actions, asked.cycle + 1, trial.evicts)
                return self._cycle(following, engine, outcome.session.waits) if possible else trial

        parts = RehearsedParts(closes=is_followed, waits=waits)
        if self._stays_started(asked):
            parts = replace(parts, enough=starts)
        return engine.rehearse(cluster, now, look, parts)

    def _stays_started(self, asked: _Asked) -> bool:
        """Whether no action could undo the start in the same cycle by evicting pods of the job that ran before."""
        names, job = asked.actions or self._policy.actions, self._intake.cluster.jobs.get(asked.job)
        if job is None:
            return False
        return not job.allocated_count or not any(self._catalog.actions[name].evicts_by for name in names)

    @contextmanager
    def _carried_out(self, outcome: Outcome) -> Iterator[bool]:
        """Within this context bound pods run and evicted pods are deleted; False if claims or volumes would change."""
        cluster = self._intake.cluster
        started = [cluster.tasks[each.uid] for each in outcome.decisions if isinstance(each, Bind)]
        evicted = [cluster.tasks[each.uid] for each in outcome.decisions if isinstance(each, Evict)]
        moved = any(isinstance(each, Evict) and each.destination for each in outcome.decisions)
        if moved or any(task.grants or task.claims or task.extended_claim for task in (*started, *evicted)):
            yield False
            return
        before = [(task, task.status, task.scheduled_at, task.started) for task in started]
        for task in started:
            task.scheduled_at = task.started = self._now
            cluster.move(task, Status.RUNNING, task.node)
        exchange_tasks(self._intake, evicted, ())
        try:
            yield True
        finally:
            exchange_tasks(self._intake, (), evicted[::-1])
            for task, status, task.scheduled_at, task.started in before:
                cluster.move(task, status, task.node)


def has_started(outcome: Outcome, job: Job) -> bool:
    """Whether the cycle bound pods of the job, and as many hold resources as must start together."""
    if job.ready_count < max(job.minimum, 1):
        return False
    return any(decision.uid in job.tasks for decision in outcome.decisions if isinstance(decision, Bind))
