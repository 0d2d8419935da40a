"""Reconciles a JobFlow without I/O: which jobs to create or delete, and its status (spec 06 7)."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from stromboli.api.go_scalars import duration, rfc3339
from stromboli.api.types.jobflow import (
    Flow,
    FlowJobStatus,
    FlowState,
    JobFlow,
    JobFlowStatus,
    JobTemplate,
    Probe,
    RunningHistory,
)
from stromboli.api.types.volcano_job import Job
from stromboli.controllers.jobflow.flow_jobs import job_name, job_of

PENDING, RUNNING, SUCCEED, FAILED = "Pending", "Running", "Succeed", "Failed"
COMPLETED = "Completed"
DELETE = "delete"
TERMINAL = frozenset({FAILED, "Terminating"})
HISTORY_LIMIT = 50
"""Newest entries of a job's history that are kept."""
MAX_TASKS_SHOWN = 100
"""Tasks of a job above which its summary in the flow's status does not count their pods; the job's status does."""
PROBE_PERIOD = 5.0
"""Seconds between two probes."""
_UNKNOWN = ("Restarting", "Aborting", "Aborted", "")


@dataclass(slots=True)
class Outcome:
    """What is to be done about a flow."""

    status: JobFlowStatus
    create: list[dict[str, Any]] = field(default_factory=list)
    delete: list[Job] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    """Templates that do not exist."""
    requeue_after: float | None = None


def reconcile(
    flow: JobFlow,
    templates: Mapping[str, JobTemplate],
    jobs: Iterable[Job],
    now: float,
    passed: Collection[str] = (),
) -> Outcome:
    """What to do about a flow; `jobs` are those that it controls, `passed` the steps whose probes all succeeded."""
    own = {job.name: job for job in jobs}
    phase = flow.status.state.phase or PENDING
    if phase in TERMINAL:
        return Outcome(flow.status)
    if phase == SUCCEED:
        return Outcome(
            flow.status, delete=list(own.values()) if flow.spec.job_retain_policy == DELETE else []
        )
    outcome = Outcome(flow.status)
    complete = complete_jobs(flow, own)
    for step in flow.spec.flows:
        if _is_due(flow, step, own, complete, passed):
            template = templates.get(step.name)
            if template is None:
                outcome.missing.append(step.name)
            else:
                outcome.create.append(job_of(flow, step, template))
    if outcome.missing and not outcome.create and not own:
        return outcome  # nothing is deployed, and the status stays as it is until something can be
    outcome.status = _status(flow, own, now)
    if waiting_for_probes(flow, own):
        outcome.requeue_after = PROBE_PERIOD
    return outcome


def waiting_for_probes(flow: JobFlow, jobs: Mapping[str, Job]) -> list[Flow]:
    """The steps whose job is not created yet, while those of their targets are: probes decide when it is."""
    created = jobs.keys() | complete_jobs(flow, jobs)
    return [
        step
        for step in flow.spec.flows
        if _probe(step) is not None
        and job_name(flow, step.name) not in created
        and all(job_name(flow, target) in created for target in _targets(step))
    ]


def complete_jobs(flow: JobFlow, jobs: Mapping[str, Job]) -> frozenset[str]:
    """The names of jobs of a flow that are complete; they stay so when they are deleted."""
    before = {status.name for status in flow.status.job_status_list if status.state == COMPLETED}
    now = {name for name, job in jobs.items() if job.status.state.phase == COMPLETED}
    return frozenset(before - jobs.keys() | now)


# -- which steps are due


def _is_due(
    flow: JobFlow, step: Flow, jobs: Container[str], complete: Container[str], passed: Collection[str]
) -> bool:
    name = job_name(flow, step.name)
    if name in jobs or name in complete:
        return False
    return step.name in passed or all(job_name(flow, target) in complete for target in _targets(step))


def _targets(step: Flow) -> tuple[str, ...]:
    return step.depends_on.targets if step.depends_on is not None else ()


def _probe(step: Flow) -> Probe | None:
    return step.depends_on.probe if step.depends_on is not None and step.depends_on.targets else None


# -- the status


def _status(flow: JobFlow, jobs: Mapping[str, Job], now: float) -> JobFlowStatus:
    ordered = [jobs[name] for name in sorted(jobs)]

    def jobs_in(*phases: str) -> tuple[str, ...]:
        return tuple(job.name for job in ordered if job.status.state.phase in phases)

    complete = complete_jobs(flow, jobs)
    steps = {job_name(flow, step.name) for step in flow.spec.flows}
    completed = sorted({*(steps & complete), *jobs_in(COMPLETED)})
    return JobFlowStatus(
        state=FlowState(_phase(flow, {job.status.state.phase for job in ordered}, completed)),
        pending_jobs=jobs_in("Pending"),
        running_jobs=jobs_in("Running"),
        failed_jobs=jobs_in("Failed"),
        completed_jobs=tuple(completed),
        terminated_jobs=jobs_in("Terminated"),
        un_know_jobs=jobs_in(*_UNKNOWN),
        job_status_list=_histories(flow, ordered, now),
        conditions={job.name: _condition(job) for job in ordered},
    )


def _phase(flow: JobFlow, job_phases: Collection[str], completed: Collection[str]) -> str:
    bad = "Failed" in job_phases or "Terminated" in job_phases
    if (flow.status.state.phase or PENDING) == PENDING:
        if ("Running" in job_phases or completed) and "Failed" not in job_phases:
            return RUNNING
        return FAILED if bad else PENDING
    if {job_name(flow, step.name) for step in flow.spec.flows} <= set(completed):
        return SUCCEED
    return FAILED if bad else RUNNING


def _condition(job: Job) -> dict[str, Any]:
    """A summary of the job's own status."""
    status, created = job.status, job.metadata.creation_timestamp
    counts = {task: {"phase": dict(state.phase)} for task, state in status.task_status_count.items()}
    condition = {
        "phase": status.state.phase,
        "createTime": rfc3339(created) if created is not None else "",
        "runningDuration": status.running_duration,
        "taskStatusCount": counts if len(counts) <= MAX_TASKS_SHOWN else {},
    }
    return {key: value for key, value in condition.items() if value}


def _histories(flow: JobFlow, jobs: Iterable[Job], now: float) -> tuple[FlowJobStatus, ...]:
    known = {status.name: status for status in flow.status.job_status_list}
    moment = datetime.fromtimestamp(int(now), UTC)
    for job in jobs:
        known[job.name] = _history(known.get(job.name), job, moment)
    return tuple(known.values())


def _history(before: FlowJobStatus | None, job: Job, now: datetime) -> FlowJobStatus:
    """A new entry whenever the phase changes, which ends the one before."""
    phase, created = job.status.state.phase, job.metadata.creation_timestamp
    entries = before.running_histories if before is not None else ()
    if phase and (not entries or entries[-1].state != phase):
        ended = entries[-1:] and (RunningHistory(entries[-1].start_timestamp, now, entries[-1].state),)
        entries = (*entries[:-1], *ended, RunningHistory(now, None, phase))
    ran = duration(job.status.running_duration) if job.status.running_duration else None
    return FlowJobStatus(
        name=job.name,
        state=phase,
        start_timestamp=created,
        end_timestamp=_end(created, ran),
        restart_count=job.status.retry_count,
        running_histories=entries[-HISTORY_LIMIT:],
    )


def _end(created: datetime | None, ran: float | None) -> datetime | None:
    if created is None or ran is None:
        return None
    try:
        return (created + timedelta(seconds=ran)).replace(microsecond=0)
    except OverflowError:
        return None
