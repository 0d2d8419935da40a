"""A cluster in virtual time: bound pods run until their time is up, and evicted pods wait again."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from math import inf, isfinite

from stromboli.engine.decisions import Decision, Evict
from stromboli.model.job import Job
from stromboli.model.status import Status
from stromboli.model.task import Task
from stromboli.simulator.cluster_loading import Loaded
from stromboli.simulator.rehearsal import Rehearsal
from stromboli.simulator.runs.run_record import EVICTED, RUNNING, SUCCEEDED, EvictionRecord, PodRecord
from stromboli.simulator.what_if.run_times import RunTimes

HOLDING = (Status.BOUND, Status.RUNNING)


@dataclass(slots=True)
class JobProgress:
    """What has become of a job so far; times in seconds since 1970."""

    index: int
    job: Job
    started: float | None = None
    first_started: float | None = None
    ended: float | None = None
    evictions: int = 0
    lost_work: float = 0.0


@dataclass(slots=True)
class _RunningPod:
    started: float
    end: float
    pod: str
    node: str
    job: int
    """The place of its job; -1 if it has none."""


class FutureWorld(Rehearsal):
    """The present of a loaded cluster, and what follows from it as time passes."""

    def __init__(self, loaded: Loaded, now: float, run_times: RunTimes) -> None:
        super().__init__(loaded.intake, now)
        self.present = now
        self.jobs: dict[Job, JobProgress] = {}
        self.pods: list[PodRecord] = []
        self.evictions: list[EvictionRecord] = []
        self._run_times = run_times
        self._ends: list[tuple[float, int, Task]] = []
        self._order = count()
        self._running: dict[Task, _RunningPod] = {}
        self._evicting: dict[str, Evict] = {}
        for task in list(self.cluster.tasks.values()):
            if task.status in HOLDING and task.node is not None:
                self._enter(task, now if task.started is None else task.started, run_times.end_of(task, now))
        for job in self.cluster.jobs.values():
            self._progress(job)

    # -- the world as a scheduler sees it

    def execute(self, decisions: Sequence[Decision]) -> None:
        super().execute(decisions)
        for decision in decisions:
            if isinstance(decision, Evict):
                self._evicting[decision.uid] = decision

    def start(self, task: Task) -> None:
        super().start(task)
        self._enter(task, self.now(), self.now() + self._run_times.of(task).seconds)

    def vanish(self, task: Task) -> None:
        """An evicted pod is gone, and a new one waits in its place: under its name, and with all its work to do."""
        self._record_eviction(task)
        self.claims.pod_ended(task, gone=True)
        task.claims = tuple(claim._replace(claim="") if claim.template else claim for claim in task.claims)
        task.terminating, task.assumed, task.started, task.scheduled_at = False, None, None, None
        task.nominated, task.extended_claim = "", ""
        self.cluster.move(task, Status.PENDING, None)

    # -- time

    @property
    def next_end(self) -> float:
        """When the next pod ends; infinite if none does."""
        while self._ends:
            end, _, task = self._ends[0]
            if (running := self._running.get(task)) is not None and running.end == end:
                return end
            heapq.heappop(self._ends)  # it was evicted
        return inf

    def finish_due(self) -> None:
        """All pods end whose time is up."""
        while self.next_end <= self.now():
            _, _, task = heapq.heappop(self._ends)
            self._leave(task, SUCCEEDED)
            self.finish(task)
            self._note_end(task)

    def close(self) -> None:
        """The run is over: what still runs is recorded as running."""
        for task in list(self._running):
            self._leave(task, RUNNING)

    # -- what is recorded

    def _progress(self, job: Job) -> JobProgress:
        progress = self.jobs.get(job)
        if progress is None:
            progress = self.jobs[job] = JobProgress(len(self.jobs), job)
        return progress

    def _enter(self, task: Task, started: float, end: float) -> None:
        assert task.node is not None
        job = self._progress(task.job) if task.job is not None else None
        index = -1 if job is None else job.index
        self._running[task] = _RunningPod(started, end, task.key, task.node.name, index)
        if isfinite(end):
            heapq.heappush(self._ends, (end, next(self._order), task))
        if job is not None and job.started is None and job.job.ready_count >= max(1, job.job.minimum):
            job.started = started
            job.first_started = started if job.first_started is None else job.first_started

    def _leave(self, task: Task, outcome: str) -> _RunningPod | None:
        running = self._running.pop(task, None)
        if running is not None and running.job >= 0:
            started, ended = running.started - self.present, self.now() - self.present
            self.pods.append(PodRecord(running.job, running.pod, running.node, started, ended, outcome))
        return running

    def _record_eviction(self, task: Task) -> None:
        running = self._leave(task, EVICTED)
        decision = self._evicting.pop(task.uid, None)
        if running is None or task.job is None:
            return
        lost = self.now() - running.started
        progress = self._progress(task.job)
        progress.evictions += 1
        progress.lost_work += lost
        if task.job.ready_count - 1 < max(1, task.job.minimum):
            progress.started = None
        self.evictions.append(
            EvictionRecord(
                self.now() - self.present,
                progress.index,
                running.pod,
                running.node,
                lost,
                decision.reason if decision is not None else "",
                decision.beneficiary if decision is not None else "",
            )
        )

    def _note_end(self, task: Task) -> None:
        job = task.job
        if (
            job is not None
            and job.ready_count == job.counts[Status.SUCCEEDED]
            and not job.counts[Status.PENDING]
        ):
            self._progress(job).ended = self.now()
