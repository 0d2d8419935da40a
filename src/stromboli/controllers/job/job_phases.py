"""The state table of a job (spec 06 2.6): what an action does in a phase, and which phase follows from the counts."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from stromboli.api.types.volcano_job import Job
from stromboli.controllers.job.pod_facts import Counts


class Phase(StrEnum):
    PENDING = "Pending"
    RUNNING = "Running"
    RESTARTING = "Restarting"
    ABORTING = "Aborting"
    ABORTED = "Aborted"
    COMPLETING = "Completing"
    COMPLETED = "Completed"
    TERMINATING = "Terminating"
    TERMINATED = "Terminated"
    FAILED = "Failed"


class Action(StrEnum):
    SYNC_JOB = "SyncJob"
    ABORT_JOB = "AbortJob"
    RESTART_JOB = "RestartJob"
    RESTART_TASK = "RestartTask"
    RESTART_POD = "RestartPod"
    RESTART_PARTITION = "RestartPartition"
    TERMINATE_JOB = "TerminateJob"
    COMPLETE_JOB = "CompleteJob"
    RESUME_JOB = "ResumeJob"


TARGETED = frozenset({Action.RESTART_TASK, Action.RESTART_POD, Action.RESTART_PARTITION})
"""Actions on a part of a job."""
KNOWN = frozenset(map(str, Action))
COMMANDS = (
    Action.ABORT_JOB,
    Action.RESUME_JOB,
    Action.RESTART_JOB,
    Action.TERMINATE_JOB,
    Action.COMPLETE_JOB,
)
"""Actions that a command may ask for: those on a whole job."""
FINISHED = frozenset({Phase.COMPLETED, Phase.TERMINATED, Phase.FAILED})
"""Phases that a job never leaves."""
INACTIVE = FINISHED | {Phase.ABORTED}
"""Phases in which a job has no pods but ended ones."""


class Effect(StrEnum):
    """What an action does to pods."""

    SYNC = "sync pods"
    KILL = "delete all pods but those that have ended"
    KILL_ALL = "delete all pods"
    KILL_TARGET = "delete targeted pods"


class Transition(NamedTuple):
    """What an action does in a phase, the phase it leads to at once, and whether it counts as a retry."""

    effect: Effect
    to: Phase | None = None
    is_retry: bool = False


SYNC = Transition(Effect.SYNC)
KILL = Transition(Effect.KILL)
_Transitions = dict[str, Transition]
_TARGETED: _Transitions = dict.fromkeys(
    TARGETED, Transition(Effect.KILL_TARGET, Phase.RESTARTING, is_retry=True)
)
_ENDING: _Transitions = {
    Action.ABORT_JOB: Transition(Effect.KILL, Phase.ABORTING),
    Action.COMPLETE_JOB: Transition(Effect.KILL, Phase.COMPLETING),
    Action.TERMINATE_JOB: Transition(Effect.KILL, Phase.TERMINATING),
}
_LIVE: _Transitions = {
    **_ENDING,
    **_TARGETED,
    Action.RESTART_JOB: Transition(Effect.KILL_ALL, Phase.RESTARTING, is_retry=True),
}
_RESTARTING: _Transitions = {
    **_ENDING,
    **dict.fromkeys(TARGETED, Transition(Effect.KILL_TARGET)),
    Action.RESTART_JOB: Transition(Effect.KILL_ALL, Phase.RESTARTING),
}
_RESUMABLE: _Transitions = {Action.RESUME_JOB: Transition(Effect.KILL, Phase.RESTARTING)}

TABLE: dict[str, dict[str, Transition]] = {
    Phase.PENDING: _LIVE,
    Phase.RUNNING: _LIVE,
    Phase.RESTARTING: _RESTARTING,
    Phase.ABORTING: _RESUMABLE,
    Phase.ABORTED: _RESUMABLE,
}
"""By phase and action; every other action has the `default_transition` of the phase."""


def default_transition(phase: str) -> Transition:
    """What every action does in a phase that is not in the table."""
    return SYNC if is_live(phase) else KILL


def transition_of(phase: str, action: str) -> Transition:
    """What an action does in a phase; an unknown phase counts as Pending."""
    known = phase if phase in TABLE or phase in _ENDED else Phase.PENDING
    return TABLE.get(known, {}).get(action) or default_transition(known)


_ENDED = FINISHED | {Phase.COMPLETING, Phase.TERMINATING}


def is_live(phase: str) -> bool:
    """Whether the job should have its pods."""
    return phase not in INACTIVE and phase not in _KILLING


_KILLING = {
    Phase.ABORTING: Phase.ABORTED,
    Phase.COMPLETING: Phase.COMPLETED,
    Phase.TERMINATING: Phase.TERMINATED,
}


def next_phase(phase: str, job: Job, counts: Counts) -> Phase | None:
    """The phase that follows from the counts; None if it stays."""
    if phase in _KILLING:
        return _KILLING[Phase(phase)] if counts.terminating + counts.pending + counts.running == 0 else None
    if phase == Phase.RUNNING:
        return _after_running(job, counts)
    if phase == Phase.RESTARTING:
        return _after_restarting(job, counts)
    if phase in INACTIVE:
        return None
    return Phase.RUNNING if job.spec.min_available <= counts.started else None


def _after_running(job: Job, counts: Counts) -> Phase | None:
    spec = job.spec
    total = sum(task.replicas for task in spec.tasks)
    if total == 0:
        return None
    if spec.min_success is not None and counts.succeeded >= spec.min_success:
        return Phase.COMPLETED
    if counts.succeeded + counts.failed == total:
        return Phase.COMPLETED if _succeeded(job, counts) else Phase.FAILED
    return Phase.PENDING if counts.pending > total - spec.min_available else None


def _succeeded(job: Job, counts: Counts) -> bool:
    """Whether enough pods succeeded, now that all have ended; of each task too, if the job needs all tasks."""
    spec = job.spec
    if spec.min_available >= sum(minimum_of(task.min_available, task.replicas) for task in spec.tasks):
        for task in spec.tasks:
            phases = counts.tasks.get(task.name)
            if task.min_available is not None and phases and phases["Succeeded"] < task.min_available:
                return False
    if spec.min_success is not None:
        return counts.succeeded >= max(spec.min_success, spec.min_available)
    return counts.succeeded >= spec.min_available


def _after_restarting(job: Job, counts: Counts) -> Phase | None:
    if job.status.retry_count > job.spec.max_retry:
        return Phase.FAILED
    total = sum(task.replicas for task in job.spec.tasks)
    return Phase.PENDING if total - counts.terminating >= job.status.min_available else None


def minimum_of(stated: int | None, replicas: int) -> int:
    return replicas if stated is None else stated
