"""Reconciles a Job of `batch/v1` without I/O, in three steps with writes in between.

`reconcile` says which pods to create and delete; `record` notes in the status what happened, before the finalizers of
ended pods are removed; `finish` counts these and ends the job. Each begins with what the API server has at that time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import msgspec

from stromboli.api import names
from stromboli.api.pods import is_active, is_ready, is_terminating
from stromboli.api.types.controlled_pod import Pod
from stromboli.api.types.meta import Time
from stromboli.controllers.user_event import UserEvent
from stromboli.controllers.workloads.batch_job.batch_job_kind import (
    COMPLETE,
    FAILED,
    FALSE,
    SUCCESS_CRITERIA_MET,
    SUSPENDED,
    TRUE,
    BatchJob,
    BatchJobStatus,
    JobCondition,
    new_condition,
    with_condition,
)
from stromboli.controllers.workloads.batch_job.job_ends import completion, deadline_in, early_end
from stromboli.controllers.workloads.batch_job.job_tracking import Tracking, settle, track
from stromboli.controllers.workloads.batch_job.job_view import JobView, observe
from stromboli.controllers.workloads.batch_job.pod_backoff import PodBackoff
from stromboli.controllers.workloads.batch_job.pod_management import PodChanges, wanted_changes


@dataclass(slots=True)
class Decision:
    """What the job wants of its pods, and the condition that it ends with, if it does."""

    view: JobView
    changes: PodChanges
    end: JobCondition | None
    requeue_after: float | None

    @property
    def announcement(self) -> BatchJobStatus | None:
        """The status to be written before pods are deleted, so that whoever sees them go knows why.

        Otherwise pods of a job that succeeds early would look like failures to whoever goes on from there.
        """
        status = msgspec.structs.replace(self.view.job.status)
        return status if self.end is not None and with_condition(status, self.end) else None


@dataclass(slots=True)
class Recorded:
    """The status to be written before the finalizers of `tracking.release` are removed."""

    tracking: Tracking
    end: JobCondition | None
    events: list[UserEvent] = field(default_factory=list)

    @property
    def status(self) -> BatchJobStatus:
        return self.tracking.status


@dataclass(slots=True)
class Finish:
    """The last status, with events to be recorded once it is written."""

    status: BatchJobStatus
    events: list[UserEvent] = field(default_factory=list)
    is_final: bool = False


def reconcile(job: BatchJob, pods: Sequence[Pod], backoff: PodBackoff, now: float) -> Decision:
    """`backoff` is as of the last sync."""
    moment = _moment(now)
    job = msgspec.structs.replace(job, status=_started(job, moment))
    view = observe(job, pods, backoff)
    end = early_end(view, moment)
    if end is not None:
        return Decision(view, PodChanges(delete=view.active), end, None)
    changes = wanted_changes(view, now) if job.metadata.deletion_timestamp is None else PodChanges()
    waits = [wait for wait in (changes.requeue_after, deadline_in(job, moment)) if wait is not None]
    return Decision(view, changes, None, min(waits, default=None))


def record(decision: Decision, pods: Iterable[Pod], now: float) -> Recorded:
    """`pods` are as they are after the changes."""
    pods, view, moment = list(pods), decision.view, _moment(now)
    job, status = view.job, msgspec.structs.replace(view.job.status)
    active = [pod for pod in pods if is_active(pod)]
    status.active, status.ready = len(active), sum(map(is_ready, active))
    status.terminating = sum(map(is_terminating, pods))
    end, events = decision.end, list[UserEvent]()
    if end is not None:
        end = end if not active else None  # not before all pods are deleted
    else:
        end = completion(view, len(active), moment)
        if end is None and job.metadata.deletion_timestamp is None:
            events = _suspend_or_resume(job, status, moment)
    tracking = track(view, pods, status, end, _deleted_at_end(decision, pods))
    if end is not None:
        with_condition(status, end)
    return Recorded(tracking, end, events)


def _deleted_at_end(decision: Decision, pods: Iterable[Pod]) -> set[str]:
    """Uids of pods that are deleted because the job ends: now, or after an earlier sync decided that."""
    if decision.end is None:
        return set()
    if decision.announcement is not None:
        return {pod.metadata.uid for pod in decision.changes.delete}
    return {pod.metadata.uid for pod in pods if pod.metadata.deletion_timestamp is not None}


def finish(decision: Decision, recorded: Recorded, released: Iterable[Pod], now: float) -> Finish:
    """`released` are the pods whose finalizers are removed now."""
    status, end = settle(recorded.tracking, released), recorded.end
    unfinished = status.terminating or status.uncounted_terminated_pods or not recorded.tracking.all_noted
    if end is None or unfinished:
        return Finish(status)
    moment = _moment(now)
    succeeded = end.type == SUCCESS_CRITERIA_MET
    with_condition(status, new_condition(COMPLETE if succeeded else FAILED, end.reason, end.message, moment))
    if not succeeded:
        return Finish(status, [UserEvent(names.WARNING, end.reason, end.message)], True)
    status.completion_time = moment
    return Finish(status, _completion_events(decision.view.job, status), True)


def _completion_events(job: BatchJob, status: BatchJobStatus) -> list[UserEvent]:
    events = [UserEvent(names.NORMAL, "Completed", "Job completed")]
    if job.spec.completions is not None and status.succeeded > job.spec.completions:
        message = "Too many succeeded pods running after completion count reached"
        events.insert(0, UserEvent(names.WARNING, "TooManySucceededPods", message))
    return events


def _started(job: BatchJob, now: Time) -> BatchJobStatus:
    """A job starts when it is first seen and not suspended."""
    if job.status.start_time is not None or job.spec.suspend:
        return job.status
    return msgspec.structs.replace(job.status, start_time=now)


def _suspend_or_resume(job: BatchJob, status: BatchJobStatus, now: Time) -> list[UserEvent]:
    """Set the condition; a job that is resumed starts anew, so that its deadline counts from then."""
    if job.spec.suspend:
        if not with_condition(status, new_condition(SUSPENDED, "JobSuspended", "Job suspended", now, TRUE)):
            return []
        status.start_time = None
        return [UserEvent(names.NORMAL, "Suspended", "Job suspended")]
    if not with_condition(status, new_condition(SUSPENDED, "JobResumed", "Job resumed", now, FALSE)):
        return []
    status.start_time = now
    return [UserEvent(names.NORMAL, "Resumed", "Job resumed")]


def _moment(now: float) -> Time:
    """To the second, as times are written."""
    return datetime.fromtimestamp(int(now), UTC)
