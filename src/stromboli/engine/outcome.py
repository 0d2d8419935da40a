"""What a cycle writes when it closes: phases and conditions of jobs, conditions of pods, events, queue status.

Only jobs of which something may have changed are reported: those that changed, and those that were not settled when
last reported. What an object shows already is not written again. (spec 01 4.2, 4.3, 11)
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from stromboli.api import names
from stromboli.api.resources.resource_lists import resource_list
from stromboli.engine.decisions import (
    Event,
    GroupCondition,
    NativeGroupCondition,
    PodCondition,
    PodGroupStatus,
    QueueStatus,
)
from stromboli.engine.unmet_requirements import ignored
from stromboli.model.amounts import Amounts, shift
from stromboli.model.queue import Queue, lineage
from stromboli.model.status import ALLOCATED_CLASS, SCHEDULED_CLASS, Status
from stromboli.model.task import Condition

if TYPE_CHECKING:
    from stromboli.engine.session import Session
    from stromboli.model.job import Job
    from stromboli.model.task import Task

MAX_EVENT = 1024
"""Characters that an API server takes as the message of an event."""
_WAITING = (Status.ALLOCATED, Status.PENDING, Status.PIPELINED)


class WaitCondition(NamedTuple):
    """Why a task waits at the end of a cycle, as the condition of its pod has it."""

    reason: str
    message: str
    nominated: str = ""


def reportable(session: Session) -> list[Job]:
    """Jobs of which something may have changed."""
    cluster = session.cluster
    if session.changed.everything:
        candidates = dict.fromkeys(cluster.jobs.values())
    else:
        candidates = {**session.changed.jobs, **cluster.dirty.jobs, **cluster.unsettled}
    return sorted((job for job in candidates if job.visible), key=lambda job: job.id)


def report_outcome(session: Session) -> None:
    """Decide what is written about jobs, pods and queues."""
    cluster = session.cluster
    for job in reportable(session):
        phase = names.GROUP_PENDING
        with session.reporting():
            phase = _report_job(session, job)
        if job.enough_ready and job not in cluster.backlog and phase != names.GROUP_PENDING:
            cluster.unsettled.pop(job, None)
        else:
            cluster.unsettled[job] = None
    with session.reporting():
        _report_invisible(session)
    if session.changed or session.journal:
        with session.reporting():
            _report_queues(session)


# -- jobs


def _report_job(session: Session, job: Job) -> str:
    """Report a job and its pods; gives its phase."""
    unschedulable = session.conditions.get(job, {}).get(names.CONDITION_UNSCHEDULABLE)
    phase = _phase(job, unschedulable is not None)
    if job.native is not None and not job.tasks:
        return phase  # none of its pods are ours: it may be for another scheduler
    _report_ignored(session, job)
    written = _report_status(session, job, phase)
    message = job_message(session, job)
    if phase in (names.GROUP_UNKNOWN, names.GROUP_PENDING, names.GROUP_INQUEUE):
        text = names.GANG_UNSCHEDULABLE.format(
            count=job.counts[Status.PENDING], total=len(job.tasks), message=message
        )
        session.record_event(job, "outcome", names.WARNING, names.EVENT_UNSCHEDULABLE, text)
    elif written:
        session.record_event(job, "outcome", names.NORMAL, names.EVENT_SCHEDULED, names.GROUP_IS_READY)
    changed = {
        task: condition
        for status in _WAITING
        for task in job.by_status[status]
        if not task.gates and not _is_shown(task, condition := wait_condition(session, task, message))
    }
    for task in sorted(changed, key=lambda task: task.order):
        _report_pod(session, task, changed[task])
    return phase


def _report_ignored(session: Session, job: Job) -> None:
    """Tell what a job and its tasks ask for without effect: once, as an event that says nothing new is not repeated."""
    if texts := ignored(session, job):
        session.record_event(
            job, "ignored", names.WARNING, names.EVENT_FIELD_IGNORED, "; ".join(texts)[:MAX_EVENT]
        )


def _report_status(session: Session, job: Job, phase: str) -> bool:
    """Write phase, counts and conditions if any differ from what stands there."""
    if phase != job.phase:
        session.phases[job] = phase
    if job.native is not None:
        return _report_native(session, job)
    counts = job.counts
    status = (phase, counts[Status.RUNNING], counts[Status.SUCCEEDED], counts[Status.FAILED])
    fresh = session.conditions.get(job, {})
    if status == job.written and all(
        job.conditions.get(type) == condition for type, condition in fresh.items()
    ):
        return False
    session.write(job, "written", status)
    session.write(job, "conditions", {**job.conditions, **fresh})
    conditions = tuple(GroupCondition(type, *condition, session.id) for type, condition in fresh.items())
    session.decisions.append(PodGroupStatus(job.namespace, job.name, *status, conditions))
    return True


def _phase(job: Job, unschedulable: bool) -> str:
    counts = job.counts
    completed = counts[Status.SUCCEEDED] + counts[Status.FAILED]
    scheduled = completed + counts[Status.RUNNING] + counts[Status.BOUND] + releasing_with_node(job)
    if counts[Status.RUNNING] > 0 and unschedulable:
        return names.GROUP_UNKNOWN
    if scheduled >= job.minimum:
        # quirk: spec 01 11.2: minMember 0 and nothing scheduled counts as Completed
        return names.GROUP_COMPLETED if scheduled == completed else names.GROUP_RUNNING
    let_in = job.phase == names.GROUP_INQUEUE or job.native is not None
    return names.GROUP_INQUEUE if let_in else names.GROUP_PENDING


def _report_native(session: Session, job: Job) -> bool:
    """Of a native group one condition is written, as Kubernetes does: once it was scheduled, that stands."""
    known = job.conditions.get(names.CONDITION_GROUP_SCHEDULED)
    if job.ready_count - job.counts[Status.ALLOCATED] >= job.minimum:
        written = NativeGroupCondition(job.namespace, job.name, "True", names.GROUP_SCHEDULED, "")
    elif known is not None and known.status == "True":
        return False
    else:
        text = job_message(session, job)
        written = NativeGroupCondition(job.namespace, job.name, "False", names.UNSCHEDULABLE, text)
    condition = Condition(written.status, written.reason, written.message)
    if condition == known:
        return False
    session.write(job, "conditions", {names.CONDITION_GROUP_SCHEDULED: condition})
    session.decisions.append(written)
    return True


def _report_invisible(session: Session) -> None:
    """Write on pods of native groups that no cycle sees that the group or its queue is missing."""
    changed, jobs = session.changed, session.cluster.jobs
    candidates = jobs.values() if changed.everything else changed.jobs
    invisible = [job for job in candidates if job.native is not None and not job.visible]
    for job in sorted(invisible, key=lambda job: job.id):
        if job.group is None or job.queue is None:
            text = names.NATIVE_GROUP_MISSING.format(group=job.key)
        else:
            text = names.QUEUE_MISSING.format(queue=job.queue.name)
        condition = WaitCondition(names.UNSCHEDULABLE, text)
        for task in sorted(job.by_status[Status.PENDING], key=lambda task: task.order):
            if not task.gates and not _is_shown(task, condition):
                _report_pod(session, task, condition)


def releasing_with_node(job: Job) -> int:
    return sum(task.node is not None for task in job.by_status[Status.RELEASING])


def scheduled_count(job: Job) -> int:
    return sum(count for status, count in enumerate(job.counts) if SCHEDULED_CLASS[status])


def tentatively_placed(session: Session, job: Job) -> int:
    """Pending tasks that had room in the last statement that was taken back."""
    return sum(
        task in session.tentative and ALLOCATED_CLASS[session.tentative[task].status]
        for task in job.by_status[Status.PENDING]
    )


def job_message(session: Session, job: Job) -> str:
    """`pod group is not ready, 1 Pending, 3 minAvailable; Pending: 1 Unschedulable. Origin reason is ...`."""
    head = names.GROUP_IS_READY if job.enough_ready else names.GROUP_IS_NOT_READY
    parts = [
        names.STATUS_COUNT.format(count=count, status=Status(status).title)
        for status, count in enumerate(job.counts)
        if count
    ]
    parts.append(names.MIN_AVAILABLE_COUNT.format(count=job.minimum))
    text = f"{head}, {', '.join(sorted(parts))}"
    pending = job.by_status[Status.PENDING]
    if pending:
        reasons = Counter(wait_reason(session, task) for task in pending)
        listed = sorted(names.REASON_COUNT.format(count=count, reason=why) for why, count in reasons.items())
        text += names.PENDING_REASONS.format(histogram=", ".join(listed))
    if objection := session.objections.get(job):
        return text + names.ORIGIN_OF_JOB.format(message=objection)
    for task, verdict in session.verdicts.get(job, {}).items():
        return text + names.ORIGIN_OF_TASK.format(task=task.name, message=verdict.message)
    return text


# -- pods


def wait_reason(session: Session, task: Task) -> str:
    tentative = session.tentative.get(task)
    status = tentative.status if tentative else task.status
    return names.SCHEDULABLE if status is Status.ALLOCATED else names.UNSCHEDULABLE


def wait_condition(session: Session, task: Task, job_text: str) -> WaitCondition:
    """Why a task waits: by its last tentative placement if there was one, else by its status."""
    tentative = session.tentative.get(task)
    status, node = (tentative.status, tentative.node) if tentative else (task.status, task.node)
    if status is Status.ALLOCATED and node is not None:
        text = names.ONCE_MIN_AVAILABLE.format(namespace=task.namespace, name=task.name, node=node.name)
        return WaitCondition(names.SCHEDULABLE, text)
    if status is Status.PIPELINED and node is not None:
        text = names.ONCE_RELEASED.format(namespace=task.namespace, name=task.name, node=node.name)
        nominated = tentative.nominated if tentative else session.is_nominated(task)
        return WaitCondition(names.UNSCHEDULABLE, text, node.name if nominated else "")
    verdict = session.verdicts.get(task.job, {}).get(task) if task.job else None
    return WaitCondition(names.UNSCHEDULABLE, verdict.message if verdict else job_text)


def _is_shown(task: Task, condition: WaitCondition) -> bool:
    """Whether the pod has this condition already."""
    known = task.condition
    return (
        known is not None
        and known.message == condition.message
        and known.reason == condition.reason
        and known.status == "False"
        and (not condition.nominated or task.nominated == condition.nominated)
    )


def _report_pod(session: Session, task: Task, condition: WaitCondition) -> None:
    session.write(task, "condition", Condition("False", condition.reason, condition.message))
    if condition.nominated:
        session.write(task, "nominated", condition.nominated)
    session.decisions.append(PodCondition(task.namespace, task.name, task.uid, *condition))
    session.decisions.append(
        Event("Pod", task.namespace, task.name, "Warning", names.EVENT_FAILED_SCHEDULING, condition.message)
    )


# -- queues


def _report_queues(session: Session) -> None:
    """What each queue has allocated, its descendants included."""
    queues = session.cluster.queues
    totals: dict[Queue, Amounts] = {queue: {} for queue in queues.values() if queue.exists}
    for queue in list(totals):
        for member in lineage(queue, queues):
            if member in totals:
                shift(totals[member], queue.allocated)
    for queue, total in sorted(totals.items(), key=lambda entry: entry[0].name):
        named = session.cluster.dims.named({dim: int(amount) for dim, amount in total.items()})
        allocated = resource_list(named)
        if queue.reported != allocated:
            session.write(queue, "reported", allocated)
            session.decisions.append(QueueStatus(queue.name, allocated))
