"""A cluster in virtual time on which jobs are submitted, run, end, are evicted and lose their nodes."""

from __future__ import annotations

from collections.abc import Sequence

from stromboli.api.errors import BadObject
from stromboli.api.manifests.object_defaults import Priorities
from stromboli.engine.cycle import Outcome
from stromboli.engine.decisions import Evict
from stromboli.model.status import Status
from stromboli.model.task import Task
from stromboli.simulator.cluster_notation import Manifest
from stromboli.simulator.runs.event_queue import EventKind, ScheduledEvent
from stromboli.simulator.runs.job_objects import EPOCH, JobTemplates
from stromboli.simulator.runs.job_run import JobRun, RunningPod
from stromboli.simulator.runs.node_outages import NodeOutages
from stromboli.simulator.runs.run_record import (
    EVICTED,
    NODE_FAILED,
    RUNNING,
    SUCCEEDED,
    EvictionRecord,
    JobRecord,
    PodRecord,
)
from stromboli.simulator.runs.run_recorder import RunRecorder, add, in_units
from stromboli.simulator.runs.simulation_settings import SimulationSettings
from stromboli.simulator.runs.timed_world import GANG_RESTARTED, TimedWorld
from stromboli.simulator.runs.waiting_reasons import waiting_notes
from stromboli.simulator.runs.world_objects import add_objects, capacity_of, new_record, nodes_of, size_of
from stromboli.simulator.workloads.submitted_jobs import SubmittedJob, Workload

MOST_PODS_AT_ONCE = 1_000_000
"""Pods that wait or run at a moment."""


class VirtualWorld(TimedWorld):
    """Decisions come true at once: a bound pod starts, an evicted one is made anew and has lost its work."""

    def __init__(self, workload: Workload, nodes: Sequence[Manifest], settings: SimulationSettings) -> None:
        super().__init__(EPOCH)
        self.workload = workload
        self.jobs: dict[int, JobRun] = {}
        """Jobs that were submitted and have not ended, by their place in the workload."""
        self._settings = settings
        self._runs: dict[str, JobRun] = {}
        """The job of each pod that exists, by uid."""
        self._hurt: dict[JobRun, None] = {}
        """Jobs that lost pods at this moment."""
        self._fresh: list[JobRun] = []
        """Jobs that were submitted at this moment."""
        self._outcome: Outcome | None = None
        """Of the last cycle."""
        self._outages = NodeOutages(settings.failures, settings.seed) if settings.failures else None
        add_objects(self, workload, nodes)
        self._nodes = nodes_of(self.cluster)
        self.record = new_record(workload.name, self._nodes, settings, workload.notes)
        self.recorder = RunRecorder(self.record, capacity_of(self._nodes))
        self._templates = JobTemplates(Priorities(self.cluster.objects.priority_classes.values()))
        self._schedule()

    # -- the beginning

    def _schedule(self) -> None:
        known: set[tuple[str, str]] = set()
        for index, job in enumerate(self.workload.jobs):
            self.record.jobs.append(JobRecord(job.name, job.submit_time, job.pods, {}))
            if (job.namespace, job.name) in known:
                self._leave_out(index, "another job has its name")
                continue
            known.add((job.namespace, job.name))
            self.events.schedule(job.submit_time, EventKind.JOB_SUBMITTED, index)
        if self._outages is not None:
            for name in self._nodes:
                self._schedule_failure(name, 0.0)

    # -- time

    def happen(self, event: ScheduledEvent) -> None:
        """Something happens now."""
        match event.kind:
            case EventKind.JOB_SUBMITTED:
                self._submit(event.subject)
            case EventKind.POD_ENDS:
                self._end_pod(event.subject)
            case EventKind.NODE_FAILS:
                self._fail_node(event.subject)
            case EventKind.NODE_REPAIRED:
                self._repair_node(event.subject)

    def is_stale(self, event: ScheduledEvent) -> bool:
        """Whether an event is of a pod that does not run any more."""
        return event.kind is EventKind.POD_ENDS and event.subject not in self._runs

    def observe(self, outcome: Outcome) -> None:
        """Remember the last cycle, which knows why jobs wait."""
        self._outcome = outcome

    # -- jobs

    def _submit(self, index: int) -> None:
        job = self.workload.jobs[index]
        self.recorder.note_event()
        try:
            template = self._templates.template(job)
            self._check_room(job)
            run = JobRun(index, job, template, self.record.jobs[index])
            self.intake.put(template.group)
            self._describe(run)
            places = self._places(job)
            pods = [
                template.pod(ordinal, self._new_pod(run, ordinal), places.get(ordinal, ""))
                for ordinal in run.first_pods()
            ]
            error = next(filter(None, self.intake.put_all(pods)), None)
            if error is not None:
                self._remove(run)
                raise error
        except BadObject as error:
            self._leave_out(index, str(error))
            return
        self.jobs[index] = run
        self._fresh.append(run)
        self.recorder.waiting += 1
        for ordinal, uid in enumerate(run.uids if places else ()):
            if ordinal in places:
                self._enter(run, self.cluster.tasks[uid])

    def _check_room(self, job: SubmittedJob) -> None:
        if len(self._runs) + job.pods > MOST_PODS_AT_ONCE:
            raise BadObject("pods", f"there would be more than {MOST_PODS_AT_ONCE} pods at once")

    def _places(self, job: SubmittedJob) -> dict[int, str]:
        """The nodes of pods that run already, by their ordinal, as far as these nodes exist."""
        nodes = self.cluster.nodes
        return {ordinal: node for ordinal, node in enumerate(job.running_on[: job.pods]) if node in nodes}

    def _describe(self, run: JobRun) -> None:
        record, job = run.record, run.job
        record.requests = in_units({name: amount * job.pods for name, amount in run.template.request.items()})
        record.run_time = job.run_time if job.run_time < float("inf") else 0.0
        record.time_limit = job.time_limit
        record.queue = run.template.group.spec.queue
        record.user = job.user

    def _leave_out(self, index: int, why: str) -> None:
        self.record.jobs[index].dropped = True
        self.done += 1
        self.notes.add("job", "{is} left out", f"job {self.workload.jobs[index].name}: {why}")

    def _new_pod(self, run: JobRun, ordinal: int) -> str:
        uid = run.new_pod(ordinal)
        self._runs[uid] = run
        return uid

    def start(self, task: Task) -> None:
        """A bound pod runs, and it is known when it ends."""
        super().start(task)
        run = self._runs.get(task.uid)
        if run is not None:
            self._enter(run, task)

    def _enter(self, run: JobRun, task: Task) -> None:
        """A pod runs from now on."""
        if task.node is None:
            return
        run.running[task.uid] = RunningPod(task.name, task.node.name, self.time)
        self.recorder.use(run.record.queue, run.template.request, 1)
        self.events.schedule(self.time + run.job.run_time, EventKind.POD_ENDS, task.uid)
        if not run.has_started and run.has_minimum:
            run.record.started = self.time
            self.recorder.waiting -= 1
            self.recorder.running += 1

    def _end_pod(self, uid: str) -> None:
        run = self._runs[uid]
        self.recorder.note_event()
        self._stop(run, uid, SUCCEEDED)
        if run.has_ended:
            run.record.ended = self.time
            self._remove(run)
            self.recorder.running -= 1
            self.done += 1
        else:
            self.finish(self.cluster.tasks[uid])

    def _stop(self, run: JobRun, uid: str, outcome: str) -> RunningPod:
        """A pod runs no more."""
        pod = run.running.pop(uid)
        self.recorder.use(run.record.queue, run.template.request, -1)
        self.recorder.add_pod(PodRecord(run.index, pod.name, pod.node, pod.started, self.time, outcome))
        if outcome == SUCCEEDED:
            run.succeeded[uid] = self.time - pod.started
        return pod

    def _remove(self, run: JobRun) -> None:
        """All of a job leaves the cluster."""
        for uid in run.uids:
            del self._runs[uid]
            if task := self.cluster.tasks.get(uid):
                self.vanish(task)
        self.intake.drop(run.template.group)
        self.jobs.pop(run.index, None)

    def drop_misfits(self) -> None:
        """Jobs that were submitted at this moment and could not start leave."""
        fresh, self._fresh = self._fresh, []
        for run in fresh:
            if self._settings.drop_misfits and not run.has_started and run.index in self.jobs:
                self._remove(run)
                run.record.dropped = True
                self.recorder.waiting -= 1
                self.done += 1

    # -- losses

    def sync(self) -> None:
        super().sync()
        self._restart_gangs()

    def evict(self, task: Task, decision: Evict) -> None:
        """An evicted pod is made anew by its controller."""
        if task.uid in self._runs:
            reason = decision.reason or decision.action
            self._lose_pod(task, EVICTED, reason, decision.beneficiary)
        else:
            self.vanish(task)

    def _lose_pod(self, task: Task, outcome: str, reason: str, beneficiary: str = "") -> None:
        """A pod goes before its end; another takes its place and begins anew."""
        run = self._runs.pop(task.uid)
        lost = run.succeeded.get(task.uid, 0.0)
        if task.uid in run.running:
            pod = self._stop(run, task.uid, outcome)
            lost = self.time - pod.started
            self.recorder.add_eviction(
                EvictionRecord(self.time, run.index, pod.name, pod.node, lost, reason, beneficiary)
            )
            run.record.evictions += 1
        run.record.lost_work += lost
        ordinal = run.forget_pod(task.uid)
        self.vanish(task)
        self.intake.put(run.template.pod(ordinal, self._new_pod(run, ordinal)))
        self._hurt[run] = None

    def _restart_gangs(self) -> None:
        """Where fewer pods are left than must run together, all of the job starts again."""
        while self._hurt:
            run, _ = self._hurt.popitem()
            if not run.has_started or run.has_minimum:
                continue
            record = run.record
            record.first_started = record.started if record.first_started is None else record.first_started
            record.started = None
            self.recorder.waiting += 1
            self.recorder.running -= 1
            for uid in [*run.running, *run.succeeded]:
                self._lose_pod(self.cluster.tasks[uid], EVICTED, GANG_RESTARTED)
            self._hurt.pop(run, None)

    # -- nodes

    def _schedule_failure(self, node: str, since: float) -> None:
        assert self._outages is not None
        self.events.schedule(since + self._outages.time_to_failure(node), EventKind.NODE_FAILS, node)

    def _fail_node(self, name: str) -> None:
        assert self._outages is not None
        for task in list(self.cluster.nodes[name].tasks):
            if task.uid in self._runs and task.status is Status.RUNNING:
                self._lose_pod(task, NODE_FAILED, f"node {name} failed")
        self.intake.drop(self._nodes[name])
        add(self.recorder.capacity, size_of(self._nodes[name]), -1)
        self.events.schedule(self.time + self._outages.time_to_repair(name), EventKind.NODE_REPAIRED, name)
        self._restart_gangs()

    def _repair_node(self, name: str) -> None:
        self.intake.put(self._nodes[name])
        add(self.recorder.capacity, size_of(self._nodes[name]), 1)
        self._schedule_failure(name, self.time)

    # -- the end

    def close(self) -> None:
        """Complete the record: who still runs, who never did, and what was measured."""
        self.record.notes += self._waiting_notes()
        for run in self.jobs.values():
            for uid in list(run.running):
                self._stop(run, uid, RUNNING)
        self.record.end = self.time
        self.recorder.close()
        self.record.notes += self.notes.lines()

    def _waiting_notes(self) -> list[str]:
        """Who waits though nothing happens any more, and why; of a run that was interrupted nobody knows why."""
        partial = self.record.partial
        outcome, what = (None, "had not started yet") if partial else (self._outcome, "never started")
        waiting = [run for run in self.jobs.values() if not run.has_started]
        stuck = [run for run in self.jobs.values() if run.has_started and not run.running]
        return [
            *waiting_notes(waiting, what, self.cluster, outcome),
            *waiting_notes(stuck, f"{{has}} pods that {what}", self.cluster, outcome),
        ]
