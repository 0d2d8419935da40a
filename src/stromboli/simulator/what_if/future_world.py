"""A loaded cluster in virtual time: what runs ends when its time is up, and who is evicted waits again."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from stromboli.engine.decisions import Evict
from stromboli.model.amounts import Amounts
from stromboli.model.job import Job
from stromboli.model.shape import Shape
from stromboli.model.status import Status
from stromboli.model.task import Task
from stromboli.model.time_limits import job_time_limit
from stromboli.simulator.cluster_loading import Loaded
from stromboli.simulator.ephemeral_claims import make_ephemeral_claims
from stromboli.simulator.runs.event_queue import EventKind, ScheduledEvent
from stromboli.simulator.runs.run_record import (
    EVICTED,
    RUNNING,
    SUCCEEDED,
    EvictionRecord,
    JobRecord,
    PodRecord,
)
from stromboli.simulator.runs.run_recorder import RunRecorder, in_units
from stromboli.simulator.runs.simulation_settings import SimulationSettings
from stromboli.simulator.runs.timed_world import GANG_RESTARTED, TimedWorld
from stromboli.simulator.runs.world_objects import capacity_of, new_record, nodes_of
from stromboli.simulator.what_if.run_times import RunTimes

HOLDING = (Status.BOUND, Status.RUNNING)
"""Statuses of pods on their nodes that run, or are about to."""
GRACE_PERIOD = 30.0
"""Seconds after which pods are gone that are being deleted at the present, as Kubernetes has it by default."""


@dataclass(slots=True, eq=False)
class RunningPod:
    """A pod on its node, from when to when."""

    task: Task
    node: str
    started: float
    end: float


class FutureWorld(TimedWorld):
    """The present of a cluster, and what follows from it as time passes."""

    def __init__(
        self,
        loaded: Loaded,
        now: float,
        settings: SimulationSettings,
        assumed: float | None = None,
        measures: bool = True,
    ) -> None:
        """`assumed`: seconds that jobs without a limit run; None: for ever. `measures`: what is used is recorded."""
        super().__init__(now, loaded.intake)
        self._loaded = loaded
        self._run_times = RunTimes(self.cluster.queues, assumed)
        self._running: dict[Task, RunningPod] = {}
        self._places: dict[Job, int] = {}
        """Of jobs in the record."""
        self._hurt: dict[Job, None] = {}
        """Jobs that lost pods at this moment."""
        self._measures = measures
        self._requests: dict[Shape, dict[str, int]] = {}
        """What pods of each shape request, by name."""
        self._may_lack_claims = True
        """Whether pods came to wait since claims were last made for those that do."""
        nodes = nodes_of(self.cluster) if measures else {}
        self.record = new_record("", nodes, settings)
        self.recorder = RunRecorder(self.record, capacity_of(nodes))
        self.events.schedule(0.0, EventKind.JOB_SUBMITTED, None)  # the first cycle
        for job in self.cluster.jobs.values():
            self._record_of(job)
        self._enter_present(now)

    def _enter_present(self, now: float) -> None:
        """Pods that are on their nodes already; those that end together are one event."""
        ending: dict[float, list[RunningPod]] = {}
        started: dict[Job, float] = {}
        last: Task | None = None
        since = end = 0.0
        for task in self.cluster.tasks.values():
            if task.status is Status.RELEASING:
                self.events.schedule(GRACE_PERIOD, EventKind.POD_ENDS, task)
            elif task.status in HOLDING and task.node is not None:
                if last is None or not _end_together(last, task):
                    last = task
                    since = 0.0 if task.started is None else task.started - now
                    end = self._run_times.end_of(task, now) - now
                pod = self._running[task] = RunningPod(task, task.node.name, since, end)
                if end < inf:
                    ending.setdefault(end, []).append(pod)
                if task.job is not None:
                    started.setdefault(task.job, since)
                    if self._measures:
                        self._measure(task, 1)
        for end, pods in ending.items():
            self.events.schedule(end, EventKind.POD_ENDS, pods)
        for job, since in started.items():
            if _has_minimum(job):
                self._record_of(job).started = since

    # -- what happens

    def sync(self) -> None:
        """What was decided comes true, and controllers make what is due."""
        super().sync()
        self._restart_gangs()
        expansion = self._loaded.expansion
        if expansion is not None and expansion.unfinished:
            self._loaded.advance()
            self._may_lack_claims = True
        if self._may_lack_claims:
            self.claims.make_from_templates()
            make_ephemeral_claims(self.intake)
            self._may_lack_claims = False

    def start(self, task: Task) -> None:
        super().start(task)
        self._enter(task, self.time, self.time + self._run_times.of(task).seconds)

    def is_stale(self, event: ScheduledEvent) -> bool:
        pods = event.subject
        return isinstance(pods, list) and not any(self._running.get(pod.task) is pod for pod in pods)

    def happen(self, event: ScheduledEvent) -> None:
        if isinstance(event.subject, Task):
            self.vanish(event.subject)
        elif isinstance(event.subject, list):
            for pod in event.subject:
                task = pod.task
                if self._running.get(task) is pod:
                    self._leave(task, SUCCEEDED)
                    self.finish(task)
                    self._note_end(task.job)

    def drop_misfits(self) -> None:
        """Everybody waits as long as it takes."""

    def evict(self, task: Task, decision: Evict) -> None:
        """A new pod waits in the place of one that is evicted, under its name and with all its work to do."""
        self._lose(task, decision.reason or decision.action, decision.beneficiary)

    def _lose(self, task: Task, reason: str, beneficiary: str = "") -> None:
        pod = self._leave(task, EVICTED)
        job = task.job
        self.claims.pod_ended(task, gone=True)
        task.claims = tuple(claim._replace(claim="") if claim.template else claim for claim in task.claims)
        task.terminating, task.assumed, task.started, task.scheduled_at = False, None, None, None
        task.nominated, task.extended_claim = "", ""
        self.cluster.move(task, Status.PENDING, None)
        self._may_lack_claims = True
        if pod is None or job is None:
            return
        lost = self.time - pod.started
        record = self._record_of(job)
        record.evictions += 1
        record.lost_work += lost
        self._hurt[job] = None
        place = self._places[job]
        eviction = EvictionRecord(self.time, place, task.key, pod.node, lost, reason, beneficiary)
        self.record.evictions.append(eviction)

    def _restart_gangs(self) -> None:
        """Where fewer pods are left than must run together, all of the job starts again."""
        while self._hurt:
            job, _ = self._hurt.popitem()
            record = self._record_of(job)
            if record.started is None or _has_minimum(job):
                continue
            record.first_started = record.started if record.first_started is None else record.first_started
            record.started = None
            for task in [task for task in job.tasks.values() if task in self._running]:
                self._lose(task, GANG_RESTARTED)
            self._hurt.pop(job, None)

    # -- what is recorded

    def _record_of(self, job: Job) -> JobRecord:
        place = self._places.get(job)
        if place is None:
            place = self._places[job] = len(self.record.jobs)
            requests = in_units(self._named(job.total)) if self._measures else {}
            queue = job.queue.name if job.queue is not None else ""
            created, limit = job.created - self.epoch, job_time_limit(job, self.cluster.queues)
            self.record.jobs.append(
                JobRecord(job.key, created, len(job.tasks), requests, queue=queue, time_limit=limit)
            )
        return self.record.jobs[place]

    def _enter(self, task: Task, started: float, end: float) -> None:
        assert task.node is not None
        pod = self._running[task] = RunningPod(task, task.node.name, started, end)
        self.events.schedule(end, EventKind.POD_ENDS, [pod])
        if task.job is not None:
            record = self._record_of(task.job)
            if self._measures:
                self._measure(task, 1)
            if record.started is None and _has_minimum(task.job):
                record.started = started

    def _leave(self, task: Task, outcome: str) -> RunningPod | None:
        pod = self._running.pop(task, None)
        if pod is not None and task.job is not None:
            self._record_of(task.job)
            if self._measures:
                self._measure(task, -1)
            place = self._places[task.job]
            self.recorder.add_pod(PodRecord(place, task.key, pod.node, pod.started, self.time, outcome))
        return pod

    def _measure(self, task: Task, times: int) -> None:
        """A pod of a job uses what it requests from now on, or no longer."""
        assert task.job is not None
        self.recorder.use(self._record_of(task.job).queue, self._requested(task), times)

    def _requested(self, task: Task) -> dict[str, int]:
        named = self._requests.get(task.shape)
        if named is None:
            named = self._requests[task.shape] = self._named(task.request)
        return named

    def _named(self, request: Amounts) -> dict[str, int]:
        return self.cluster.dims.named({dim: int(amount) for dim, amount in request.items()})

    def _note_end(self, job: Job | None) -> None:
        """A job has ended when none of its pods runs or waits any more."""
        if job is None or job.counts[Status.PENDING] or job.ready_count > job.counts[Status.SUCCEEDED]:
            return
        self._record_of(job).ended = self.time
        self.done += 1

    def close(self) -> None:
        """What still runs is recorded as running."""
        for task in list(self._running):
            self._leave(task, RUNNING)
        for job, place in self._places.items():
            self.record.jobs[place].pods = len(job.tasks)
        self.record.end = self.time
        self.recorder.close()
        self.record.notes += self.notes.lines()


def _end_together(one: Task, other: Task) -> bool:
    """Whether two pods began together, and all that is said of how long they run is the same."""
    return (
        one.job is other.job
        and one.annotations is other.annotations
        and one.started == other.started
        and one.deadline == other.deadline
        and one.time_limit == other.time_limit
    )


def _has_minimum(job: Job) -> bool:
    return job.ready_count >= max(1, job.minimum)
