"""What comes of a cluster as virtual time passes: the real scheduler under its policy, from event to event."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from math import inf, isfinite

from stromboli.engine.catalog import Catalog
from stromboli.engine.cycle import Outcome
from stromboli.engine.decisions import Bind, Evict
from stromboli.engine.explanation.wait_explanation import WaitExplanation
from stromboli.policy.policy import Policy
from stromboli.scheduling_loop import PERIOD, Scheduler
from stromboli.simulator.cluster_loading import Loaded
from stromboli.simulator.ephemeral_claims import make_ephemeral_claims
from stromboli.simulator.runs.run_record import JobRecord, RunRecord
from stromboli.simulator.what_if.future_world import FutureWorld, JobProgress
from stromboli.simulator.what_if.run_times import RunTimes, time_limit

MOST_CYCLES = 100_000
"""Cycles of a run, at most: jobs that evict each other in turn would never come to an end."""
QUIET_CYCLES = 3
"""Cycles in a row that place and evict nobody, after which the next event is awaited."""
LONGEST_PATIENCE = 7 * 86_400.0
"""Seconds after the last event for which plugins that read the clock are asked again, less and less often."""

Progress = Callable[[float, int], None]
"""Called now and then with the virtual seconds that have passed, and the jobs that wait."""


@dataclass(slots=True)
class Wait:
    """Why a job waited, and since when; times in seconds from the present."""

    since: float
    explanation: WaitExplanation


@dataclass(slots=True)
class Future:
    """The record of a run, and why the jobs waited that were to be watched."""

    record: RunRecord
    waits: dict[str, list[Wait]] = field(default_factory=dict)
    """By the job; only where the reason changes."""
    failures: list[str] = field(default_factory=list)
    """Plugins that raised, and cycles that were lost."""


class FutureRun:
    """A run from the present to the last event."""

    def __init__(
        self,
        loaded: Loaded,
        policy: Policy,
        catalog: Catalog,
        now: float,
        run_times: RunTimes,
        watched: Collection[str] = (),
        progress: Progress | None = None,
    ) -> None:
        """`watched` are the jobs, by name, whose reasons to wait are kept."""
        self._loaded = loaded
        self._world = FutureWorld(loaded, now, run_times)
        self._scheduler = Scheduler(self._world, policy, catalog)
        self._watched = [job for job in self._world.cluster.jobs.values() if job.key in watched]
        self._progress = progress
        self._now = now
        self._quiet = 0
        self._until = inf
        self._patience = PERIOD
        self.future = Future(RunRecord("", {}, {}, []))

    def run(self) -> Future:
        """Let time pass until nothing happens any more; an interrupt leaves a partial record."""
        record, begin = self.future.record, time.perf_counter()
        try:
            self._run()
        except KeyboardInterrupt:
            record.partial = True
        self._world.close()
        record.seconds = time.perf_counter() - begin
        record.end = self._world.now() - self._now
        record.jobs = [self._job_record(progress) for progress in self._world.jobs.values()]
        record.pods, record.evictions = self._world.pods, self._world.evictions
        return self.future

    def _run(self) -> None:
        world = self._world
        while self.future.record.cycles < MOST_CYCLES:
            self._make_due_objects()
            outcome = self._scheduler.cycle()
            self._note(outcome)
            world.sync()
            moment = self._next_moment(outcome)
            if not isfinite(moment):
                return
            world.sleep(moment - world.now())
            world.finish_due()
        self.future.failures.append(
            f"the run was given up after {MOST_CYCLES} cycles, at {world.now() - self._now:.0f} seconds from now:"
            " jobs may be evicting each other in turn"
        )

    def _make_due_objects(self) -> None:
        """Pods and claims that controllers make by now."""
        expansion = self._loaded.expansion
        if expansion is not None and expansion.unfinished:
            self._loaded.advance()
        self._world.claims.make_from_templates()
        make_ephemeral_claims(self._loaded.intake)

    def _note(self, outcome: Outcome) -> None:
        """Count the cycle, keep why the watched jobs wait, and what failed."""
        record = self.future.record
        record.cycles += 1
        if self._progress is not None and record.cycles % 16 == 1:
            self._progress(self._world.now() - self._now, len(self._world.cluster.backlog))
        if outcome.repeated:
            return
        for failure in (*outcome.session.failures, *((outcome.lost,) if outcome.lost else ())):
            if failure.message not in self.future.failures:
                self.future.failures.append(failure.message)
        for job in self._watched:
            explanation = outcome.explain(job)
            waits = self.future.waits.setdefault(job.key, [])
            if explanation is not None and (
                not waits or waits[-1].explanation.summary != explanation.summary
            ):
                waits.append(Wait(self._world.now() - self._now, explanation))

    def _next_moment(self, outcome: Outcome) -> float:
        """When the next cycle is due; infinite if nothing will happen any more."""
        world, now = self._world, self._world.now()
        if any(isinstance(decision, Bind | Evict) for decision in outcome.decisions):
            self._quiet, self._patience = 0, PERIOD
            return min(now + PERIOD, world.next_end)
        self._quiet += 1
        if not outcome.repeated:
            reads = outcome.session.reads
            self._until = min(reads.until, world.cluster.reservations.next_moment)
            if self._quiet < QUIET_CYCLES:
                return min(now + PERIOD, world.next_end)
            if reads.any and world.cluster.backlog:
                return self._ask_again(now)
        self._patience = PERIOD
        return self._event(now)

    def _event(self, now: float) -> float:
        """The next end, or the moment that somebody waits for."""
        moment = min(self._world.next_end, self._until if self._until > now else inf)
        self._quiet = 0
        return moment

    def _ask_again(self, now: float) -> float:
        """Somebody read the clock: he is asked again after a while, each time after twice as long."""
        moment = self._event(now)
        if isfinite(moment) or self._patience < LONGEST_PATIENCE:
            moment = min(moment, now + self._patience)
        self._patience *= 2
        self._quiet = QUIET_CYCLES
        return moment

    def _job_record(self, progress: JobProgress) -> JobRecord:
        job, present = progress.job, self._now

        def since_present(moment: float | None) -> float | None:
            return None if moment is None else moment - present

        return JobRecord(
            job.key,
            job.created - present,
            len(job.tasks),
            {},
            since_present(progress.started),
            since_present(progress.ended),
            since_present(progress.first_started),
            queue=job.queue.name if job.queue is not None else "",
            time_limit=time_limit(job),
            evictions=progress.evictions,
            lost_work=progress.lost_work,
        )
