"""When would it start, whom would it delay, who would be evicted, and what keeps it waiting until then."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from stromboli.api.manifests.manifest_sources import Source
from stromboli.engine.catalog import Catalog
from stromboli.model.cluster import Cluster
from stromboli.model.job import Job
from stromboli.model.status import Status
from stromboli.policy.policy import Policy
from stromboli.simulator.cluster_loading import Loaded
from stromboli.simulator.runs.run_record import RUNNING, JobRecord
from stromboli.simulator.what_if.assumptions import Assumptions, assumptions
from stromboli.simulator.what_if.future_run import Future, FutureRun, Progress, Wait
from stromboli.simulator.what_if.present_cluster import PresentCluster
from stromboli.simulator.what_if.run_differences import (
    Differences,
    complete_starts,
    differences,
    ends_before,
    placement,
)
from stromboli.simulator.what_if.run_times import RunTime, RunTimes
from stromboli.simulator.what_if.submitted_objects import Refused

MOST_BLOCKERS = 20
"""Jobs without a limit that are named as standing in the way."""
ChoosePolicy = Callable[[Loaded], tuple[Policy, str]]
"""The policy for a cluster, and where it comes from."""


@dataclass(frozen=True, slots=True)
class SubmittedJobAnswer:
    """What becomes of a job that is submitted; times in seconds from the present, None for never."""

    name: str
    queue: str
    pods: int
    minimum: int
    run_time: RunTime
    started: float | None
    ended: float | None
    complete: float | None
    """When all its pods have started, also those beyond its minimum."""
    placement: dict[str, str]
    """Pod to node."""
    waits: list[Wait]
    """Why it waits, each reason from its moment on."""
    after: dict[str, float]
    """The jobs that end on its nodes while it waits, with their ends."""
    ahead: int
    """How many other jobs start while it waits."""
    not_before: float | None = None
    """Of a job that does not start: when it could if jobs without a limit ended now; None: not even then."""
    blockers: list[str] = field(default_factory=list)
    """Running jobs without a limit, or over it, that stand in its way; those that hold most come first."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to the question what would happen if this were submitted now."""

    cluster: str
    now: float
    policy: str
    jobs: list[SubmittedJobAnswer]
    others: Differences
    undetermined: list[str]
    """Jobs that start in neither run, and would if those without a limit ended: whether they are delayed is unknown."""
    assumptions: Assumptions
    warnings: list[str]
    failures: list[str]
    partial: bool
    """It was interrupted: what comes after is not known."""

    @property
    def starts(self) -> bool:
        """Whether all that is submitted would start."""
        return all(job.started is not None for job in self.jobs)

    @property
    def never(self) -> list[str]:
        """Jobs that start neither with it nor without it, whoever ends."""
        return [name for name in self.others.unstarted if name not in self.undetermined]

    @property
    def tells_never(self) -> bool:
        """Whether what does not happen in the run never happens, rather than nobody knows when."""
        return not (self.partial or self.assumptions.lacks_limits)


@dataclass(frozen=True, slots=True)
class WhatIf:
    """A question: what if these objects were submitted to that cluster now?"""

    present: PresentCluster
    submitted: Sequence[Source]
    choose_policy: ChoosePolicy
    catalog: Catalog
    assumed_run_time: float | None = None
    progress: Callable[[str], Progress | None] = lambda title: None
    """Makes a progress bar for a run of that title."""

    def answer(self) -> Answer:
        """Run both futures, and a third one if it takes that to tell what stands in the way."""
        before = self.present.load()
        after = self.present.load_with(self.submitted, before)
        policy, origin = self.choose_policy(before)
        names = _new_jobs(before, after)
        rests_on = assumptions(after.intake.cluster, self.present.now, self.assumed_run_time)
        waiting = {job.key for job in after.intake.cluster.waiting if not job.ready_count} - set(names)
        ended = [job.key for job in after.intake.cluster.jobs.values() if _has_ended(job)]
        jobs = [job for job in after.intake.cluster.jobs.values() if job.key in names]
        known = RunTimes(after.intake.cluster.queues, self.assumed_run_time)
        run_times = [max(map(known.of, job.tasks.values())) for job in jobs]
        with_it = self._run("With it", after, policy, self.assumed_run_time, names)
        without = self._run("Without it", before, policy, self.assumed_run_time)
        others = differences(without.record, with_it.record, {*names, *ended})
        stuck = any(_record_of(with_it, name).started is None for name in names)
        needs_bound = rests_on.lacks_limits and (stuck or others.unstarted)
        bound = self._bound(before, policy, names) if needs_bound else None
        records = [future.record for future in (with_it, without, bound) if future is not None]
        return Answer(
            self.present.name,
            self.present.now,
            origin,
            [
                _job_answer(job, run_time, after.intake.cluster, with_it, bound, waiting)
                for job, run_time in zip(jobs, run_times, strict=True)
            ],
            others,
            [] if bound is None else _startable(bound, others.unstarted),
            rests_on,
            [*self.present.notes, *policy.warnings, *_odd(after)],
            [*dict.fromkeys(record.failed for record in records if record.failed)],
            any(record.partial for record in records),
        )

    def _run(
        self, title: str, loaded: Loaded, policy: Policy, assumed: float | None, watched: Collection[str] = ()
    ) -> Future:
        run = FutureRun(loaded, policy, self.catalog, self.present.now, assumed, watched)
        return run.run(self.progress(title))

    def _bound(self, before: Loaded, policy: Policy, names: Collection[str]) -> Future:
        """The future in which jobs without a limit end at once: nothing can be earlier if the others use theirs up."""
        loaded = self.present.load_with(self.submitted, before)
        return self._run("Without those that have no limit", loaded, policy, 0.0, names)


def _job_answer(
    job: Job,
    run_time: RunTime,
    cluster: Cluster,
    with_it: Future,
    bound: Future | None,
    waiting: Collection[str],
) -> SubmittedJobAnswer:
    record = _record_of(with_it, job.key)
    started, nodes = record.started, placement(with_it.record, job.key)
    starts = [other.started for other in with_it.record.jobs if other.name in waiting]
    earliest = _record_of(bound, job.key).started if started is None and bound is not None else None
    return SubmittedJobAnswer(
        job.key,
        record.queue,
        record.pods,
        job.minimum,
        run_time,
        started,
        record.ended,
        complete_starts(with_it.record).get(job.key),
        nodes if started is not None else {},
        _lasting(with_it.waits.get(job.key, []), started),
        ends_before(with_it.record, record, set(nodes.values())),
        sum(start < started for start in starts if start is not None) if started is not None else 0,
        earliest,
        [] if earliest is None else _blockers(with_it, cluster, job),
    )


def _lasting(waits: list[Wait], started: float | None) -> list[Wait]:
    """The waits that take time: not those within a moment, as while others are being evicted."""
    ends = [*(wait.since for wait in waits[1:]), started]
    return [wait for wait, end in zip(waits, ends, strict=False) if end is None or end > wait.since]


def _new_jobs(before: Loaded, after: Loaded) -> list[str]:
    """The jobs that come of what is submitted."""
    known = before.intake.cluster.jobs
    new = [job for id, job in after.intake.cluster.jobs.items() if id not in known and job.group is not None]
    names = [job.key for job in new if job.tasks]
    if names:
        return names
    if foreign := {name for name, count in after.foreign.items() if count > before.foreign.get(name, 0)}:
        raise Refused(
            [
                f"what is submitted is for scheduler {', '.join(sorted(foreign))}:"
                " only pods with spec.schedulerName: volcano are placed by this one"
            ]
        )
    why = [note for note in after.notes if note not in before.notes]
    reasons = f": {'; '.join(why)}" if why else ": it holds neither a job nor a pod with a PodGroup"
    raise Refused([f"nothing that is submitted would run{reasons}"])


def _has_ended(job: Job) -> bool:
    """Whether all its pods had succeeded or failed before."""
    over = job.counts[Status.SUCCEEDED] + job.counts[Status.FAILED]
    return 0 < len(job.tasks) == over


def _record_of(future: Future, name: str) -> JobRecord:
    return next(job for job in future.record.jobs if job.name == name)


def _startable(future: Future, names: Collection[str]) -> list[str]:
    """Those of these jobs that start in a run."""
    started = {job.name for job in future.record.jobs if job.started is not None}
    return [name for name in names if name in started]


def _blockers(future: Future, cluster: Cluster, job: Job) -> list[str]:
    """The jobs that run to the end of the run, those first that hold most of what a job asks for."""
    running = {future.record.jobs[pod.job].name for pod in future.record.pods if pod.outcome == RUNNING}

    def share(other: Job) -> float:
        return sum(
            other.allocated.get(dim, 0) / cluster.total[dim] for dim in job.total if cluster.total.get(dim)
        )

    others = [other for other in cluster.jobs.values() if other.key in running and other is not job]
    others.sort(key=lambda other: (-share(other), other.key))
    return [other.key for other in others if share(other) > 0][:MOST_BLOCKERS]


def _odd(loaded: Loaded) -> list[str]:
    """What is odd about the objects, what could not be used, and what controllers do not make."""
    return [*loaded.warnings, *(f"left out: {problem}" for problem in loaded.problems), *loaded.notes]
