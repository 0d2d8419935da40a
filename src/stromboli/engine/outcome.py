"""What a cycle writes when it closes: phases and conditions of jobs, conditions of pods, events, queue status.

Only jobs that may have changed are reported: those that changed, and those that were not settled when last reported.
A status or condition that an object has already is not written again. (spec 01 4.2, 4.3, 11)
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from stromboli.api import names
from stromboli.api.resources.resource_lists import resource_list
from stromboli.api.wait_messages import MAX_BYTES, truncated, wait_message
from stromboli.engine.decisions import (
    Event,
    GroupCondition,
    NativeGroupCondition,
    PodCondition,
    PodGroupStatus,
    QueueStatus,
)
from stromboli.engine.explanation.diagnosis import WAITING
from stromboli.engine.explanation.volcano_messages import gang_message, readiness
from stromboli.engine.unmet_requirements import ignored
from stromboli.model.amounts import Amounts, shift
from stromboli.model.queue import Queue, lineage
from stromboli.model.status import SCHEDULED_CLASS, Status
from stromboli.model.task import Condition

if TYPE_CHECKING:
    from stromboli.engine.explanation.diagnosis import Diagnosis, Gate
    from stromboli.engine.explanation.wait_gates import Diagnoses
    from stromboli.engine.session import Session
    from stromboli.model.job import Job
    from stromboli.model.task import Task


def reportable(session: Session) -> list[Job]:
    """Jobs that may have changed; those that were not tried only if a plugin has something new to report."""
    cluster = session.cluster
    if session.changed.everything:
        candidates = dict.fromkeys(cluster.jobs.values())
    else:
        candidates = {**session.changed.jobs, **cluster.dirty.jobs}
        candidates |= dict.fromkeys(session.waits.unreported(session))
        candidates |= session.reports.news
    return sorted((job for job in candidates if job.visible), key=attrgetter("id"))


def report_outcome(session: Session, diagnoses: Diagnoses, totals: QueueTotals) -> None:
    """Decide what is written about jobs, pods and queues."""
    guard = session.reporting()
    for job in reportable(session):
        phase = names.GROUP_PENDING
        with guard:
            phase = _report_job(session, diagnoses, job)
        _note_settled(session, job, phase)
    with guard:
        _report_invisible(session, diagnoses)
    if session.changed or session.journal:
        with guard:
            _report_queues(session, totals)


def settle_outcome(session: Session) -> None:
    """Decide phases of jobs and nominated nodes of tasks, which rules read, without conditions and events."""
    for job in reportable(session):
        phase = _phase(job, _is_unschedulable(session, job))
        if phase != job.phase:
            session.journal.deferred.phases[job] = phase
        for task in [task for status in WAITING for task in job.by_status[status] if not task.gates]:
            nominated = _nominated_node(session, task)
            if nominated and nominated != task.nominated:
                session.journal.deferred.write(task, "nominated", nominated)
        _note_settled(session, job, phase)


def _note_settled(session: Session, job: Job, phase: str) -> None:
    """Note whether a job must be reported again even if it does not change."""
    cluster = session.cluster
    if job.enough_ready and job not in cluster.backlog and phase != names.GROUP_PENDING:
        cluster.unsettled.pop(job, None)
    else:
        cluster.unsettled[job] = None
        session.waits.note_unsettled(job)


# -- jobs


def _report_job(session: Session, diagnoses: Diagnoses, job: Job) -> str:
    """Report a job and its pods; return its phase."""
    phase = _phase(job, _is_unschedulable(session, job))
    if job.native is not None and not job.tasks:
        return phase  # it has no pods of this scheduler and may be for another one
    _report_ignored(session, job)
    messages = JobMessages(diagnoses, job)
    written = _report_status(session, job, phase, messages)
    if phase in (names.GROUP_UNKNOWN, names.GROUP_PENDING, names.GROUP_INQUEUE):
        _report_waiting(session, job, messages)
    else:
        session.reports.forget_events(job, names.EVENT_UNSCHEDULABLE)
        if written:
            session.reports.record_event(
                job, "outcome", names.NORMAL, names.EVENT_SCHEDULED, names.GROUP_IS_READY
            )
    _report_pods(session, job, messages)
    return phase


def _report_ignored(session: Session, job: Job) -> None:
    """Report requests of a job and its tasks without effect; an unchanged event is not repeated."""
    if texts := ignored(session, job):
        text = truncated("; ".join(texts), MAX_BYTES)
        session.reports.record_event(job, "ignored", names.WARNING, names.EVENT_FIELD_IGNORED, text)


def _report_waiting(session: Session, job: Job, messages: JobMessages) -> None:
    """Events about a job that has not started, on its PodGroup and on the object that owns it."""
    if messages.cause is None and (job.enough_ready or not job.tasks):
        # it waits only for its binds (spec 05 9.3, 18.6), or its controller creates its pods now
        session.reports.forget_events(job, names.EVENT_UNSCHEDULABLE)
        return
    text, sentence = messages.group, messages.sentence
    session.reports.record_event(job, "outcome", names.WARNING, names.EVENT_UNSCHEDULABLE, text, sentence)
    if messages.cause is not None:
        session.reports.record_owner_event(job, names.WARNING, names.EVENT_UNSCHEDULABLE, sentence)


def _report_status(session: Session, job: Job, phase: str, messages: JobMessages) -> bool:
    """Write phase, counts and conditions if any differ from those of the object."""
    if phase != job.phase:
        session.journal.deferred.phases[job] = phase
    if job.native is not None:
        return _report_native(session, job, messages)
    counts = job.counts
    status = (phase, counts[Status.RUNNING], counts[Status.SUCCEEDED], counts[Status.FAILED])
    fresh = dict(session.reports.conditions.get(job, {}))
    unschedulable = fresh.get(names.CONDITION_UNSCHEDULABLE)
    if unschedulable is not None and not unschedulable.message:
        status_and_reason = (unschedulable.status, unschedulable.reason)
        fresh[names.CONDITION_UNSCHEDULABLE] = Condition(*status_and_reason, messages.group)
    elif _is_admitted_without_pods(job, phase):
        fresh[names.CONDITION_UNSCHEDULABLE] = Condition("False", names.LET_IN, names.PODS_TO_COME)
    if status == job.written and fresh.items() <= job.conditions.items():
        return False
    session.journal.deferred.write(job, "written", status)
    conditions = dict(job.conditions)
    if names.CONDITION_SCHEDULED in fresh:  # the earlier condition may never have been written
        conditions.pop(names.CONDITION_UNSCHEDULABLE, None)
    session.journal.deferred.write(job, "conditions", {**conditions, **fresh})
    written = tuple(GroupCondition(type, *condition, session.id) for type, condition in fresh.items())
    session.journal.decisions.append(PodGroupStatus(job.namespace, job.name, *status, written))
    return True


def _is_admitted_without_pods(job: Job, phase: str) -> bool:
    """Whether the condition still has the reason against admission while the controller creates the pods."""
    if job.tasks or phase != names.GROUP_INQUEUE:
        return False
    known = job.conditions.get(names.CONDITION_UNSCHEDULABLE)
    return known is not None and known.status == "True"


def _is_unschedulable(session: Session, job: Job) -> bool:
    """Whether plugins report it in this cycle; for an unchanged job with something new to report, as before."""
    if job in session.reports.news and job not in session.reports.conditions:
        return job.phase == names.GROUP_UNKNOWN
    return names.CONDITION_UNSCHEDULABLE in session.reports.conditions.get(job, ())


def _phase(job: Job, unschedulable: bool) -> str:
    counts = job.counts
    completed = counts[Status.SUCCEEDED] + counts[Status.FAILED]
    scheduled = completed + counts[Status.RUNNING] + counts[Status.BOUND] + releasing_with_node(job)
    if counts[Status.RUNNING] > 0 and unschedulable:
        return names.GROUP_UNKNOWN
    if scheduled >= job.minimum:
        # quirk: spec 01 11.2: minMember 0 and nothing scheduled counts as Completed
        return names.GROUP_COMPLETED if scheduled == completed else names.GROUP_RUNNING
    if job.phase == names.GROUP_COMPLETED and len(job.tasks) == completed:
        return names.GROUP_COMPLETED  # finished pods that are deleted are not created again
    # A gang that was moved as a whole has no pods for a while: it stays admitted, as its capacity stays reserved.
    admitted = job.phase == names.GROUP_INQUEUE or job.native is not None or bool(job.reserved)
    return names.GROUP_INQUEUE if admitted else names.GROUP_PENDING


def _report_native(session: Session, job: Job, messages: JobMessages) -> bool:
    """Write the one condition of a native group, as Kubernetes does; once true, it stays true."""
    known = job.conditions.get(names.CONDITION_GROUP_SCHEDULED)
    if job.ready_count - job.counts[Status.ALLOCATED] >= job.minimum:
        written = NativeGroupCondition(job.namespace, job.name, "True", names.GROUP_SCHEDULED, "")
    elif known is not None and known.status == "True":
        return False
    else:
        why = messages.group
        written = NativeGroupCondition(job.namespace, job.name, "False", names.UNSCHEDULABLE, why)
    condition = Condition(written.status, written.reason, written.message)
    if condition == known:
        return False
    session.journal.deferred.write(job, "conditions", {names.CONDITION_GROUP_SCHEDULED: condition})
    session.journal.decisions.append(written)
    return True


def _report_invisible(session: Session, diagnoses: Diagnoses) -> None:
    """Report to PodGroups and pods without a PodGroup or a queue that it is missing."""
    changed, jobs = session.changed, session.cluster.jobs
    candidates = jobs.values() if changed.everything else changed.jobs
    for job in sorted((job for job in candidates if not job.visible), key=lambda job: job.id):
        messages = JobMessages(diagnoses, job)
        if job.group is not None and messages.cause is not None:
            session.set_condition(job, names.CONDITION_UNSCHEDULABLE, names.NOT_ENOUGH_RESOURCES)
            _report_status(session, job, job.phase, messages)
            _report_waiting(session, job, messages)
        _report_pods(session, job, messages)


def releasing_with_node(job: Job) -> int:
    releasing = job.by_status[Status.RELEASING]
    return sum(task.node is not None for task in releasing) if releasing else 0


def scheduled_count(job: Job) -> int:
    return sum(count for status, count in enumerate(job.counts) if SCHEDULED_CLASS[status])


# -- pods


def _report_pods(session: Session, job: Job, messages: JobMessages) -> None:
    """Conditions and events of waiting pods that have another condition."""
    changed = {
        task: condition
        for status in WAITING
        for task in job.by_status[status]
        if not task.gates and not _is_shown(task, condition := wait_condition(session, task, messages))
    }
    for task in sorted(changed, key=lambda task: task.order):
        _report_pod(session, task, changed[task])


def wait_condition(session: Session, task: Task, messages: JobMessages) -> WaitCondition:
    """Why a task waits: by its last tentative placement, if any, or else by its status.

    The reason is always `Unschedulable`, the only one that autoscalers read. (spec 01 4.3)
    """
    tentative = session.attempts.tentative.get(task)
    if tentative is None and task.node is None:
        return messages.waiting(task)
    status, node = (tentative.status, tentative.node) if tentative else (task.status, task.node)
    if status is Status.ALLOCATED and node is not None:
        return WaitCondition(names.UNSCHEDULABLE, messages.with_capacity(task))
    if status is Status.PIPELINED and node is not None:
        text = messages.with_capacity_to_come(task)
        return WaitCondition(names.UNSCHEDULABLE, text, _nominated_node(session, task))
    return messages.waiting(task)


def _nominated_node(session: Session, task: Task) -> str:
    """The node that is being freed for a task; empty if there is none."""
    tentative = session.attempts.tentative.get(task)
    status, node = (tentative.status, tentative.node) if tentative else (task.status, task.node)
    if status is not Status.PIPELINED or node is None:
        return ""
    nominated = tentative.nominated if tentative else session.journal.is_nominated(task)
    if tentative and session.topology.confines(task):
        nominated = False  # trials in several domains were undone, and each may have left a node
    return node.name if nominated else ""


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
    """Write the condition of a pod, and an event if the message is new."""
    known = task.condition
    session.journal.deferred.write(task, "condition", Condition("False", condition.reason, condition.message))
    if condition.nominated:
        session.journal.deferred.write(task, "nominated", condition.nominated)
    session.journal.decisions.append(PodCondition(task.namespace, task.name, task.uid, *condition))
    if known is None or (known.status, known.message) != ("False", condition.message):
        reason = names.EVENT_FAILED_SCHEDULING
        session.journal.decisions.append(
            Event("Pod", task.namespace, task.name, "Warning", reason, condition.message)
        )


# -- queues


class QueueTotals:
    """What each queue and its descendants have allocated, updated for the queues of changed jobs."""

    def __init__(self) -> None:
        self._counted: dict[Queue, tuple[Amounts, list[Queue]]] = {}
        """The counted amounts of each queue with any, and the queues whose totals include them."""
        self._totals: dict[Queue, Amounts] = {}
        self._parents: dict[Queue, str | None] = {}
        """The parent of each queue that exists."""
        self.had_more: dict[Queue, None] = {}
        """The queues that were last reported with corrections or devices."""

    def update(self, session: Session) -> dict[Queue, Amounts]:
        """The totals of queues that may have changed."""
        cluster, changed = session.cluster, session.changed
        jobs = {**changed.jobs, **cluster.dirty.jobs}
        own = {job.queue: None for job in jobs if job.queue is not None}
        queues = {**changed.queues, **cluster.dirty.queues, **own}
        if changed.everything or any(self._parents.get(queue) != _parent(queue) for queue in queues):
            self._counted, self._totals = {}, {}
            queues = dict.fromkeys(cluster.queues.values())
            self._parents = {queue: queue.parent for queue in queues if queue.exists}
        affected: dict[Queue, None] = {}
        for queue in queues:
            affected |= dict.fromkeys(self._recount(queue, cluster.queues))
        return {queue: self.of(queue) for queue in affected if queue.exists}

    def of(self, queue: Queue) -> Amounts:
        """What a queue and its descendants have allocated; read-only."""
        return self._totals.get(queue, {})

    def _recount(self, queue: Queue, queues: dict[str, Queue]) -> list[Queue]:
        """Count the amounts of a queue again; return the queues whose totals include them."""
        counted = self._counted.pop(queue, None)
        before, path = counted if counted is not None else ({}, lineage(queue, queues))
        after = dict(queue.allocated) if queue.exists else {}
        for sign, amounts in ((-1, before), (1, after)):
            for member in path if amounts else ():
                shift(self._totals.setdefault(member, {}), amounts, sign)
        if after:
            self._counted[queue] = after, path
        return path


def _parent(queue: Queue) -> str | None:
    return queue.parent if queue.exists else None


def _report_queues(session: Session, totals: QueueTotals) -> None:
    """Report what each queue and its descendants have allocated."""
    cluster = session.cluster
    known = totals.update(session)
    corrections, devices = cluster.cards.queue_corrections, _allocated_devices(session)
    corrected = {queue: lineage(queue, cluster.queues) for queue in corrections}
    more = {**dict.fromkeys(devices), **{member: None for path in corrected.values() for member in path}}
    for member in {**totals.had_more, **more}:
        if member.exists:
            known[member] = dict(totals.of(member))
    totals.had_more = more
    for queue, path in corrected.items():
        for member in path:
            if member in known:
                shift(known[member], corrections[queue])
    for queue, total in sorted(known.items(), key=lambda entry: entry[0].name):
        named = cluster.dims.named({dim: int(amount) for dim, amount in total.items()})
        allocated = resource_list(named | devices.get(queue, {}))
        if queue.reported != allocated:
            session.journal.deferred.write(queue, "reported", allocated)
            session.journal.decisions.append(QueueStatus(queue.name, allocated))


def _allocated_devices(session: Session) -> dict[Queue, dict[str, int]]:
    """What the claims of each queue and its descendants request, by device class."""
    totals: dict[Queue, dict[str, int]] = {}
    for queue, usage in session.cluster.devices.allocated.items():
        for member in lineage(queue, session.cluster.queues):
            total = totals.setdefault(member, {})
            for name, amount in usage.amounts.items():
                total[name] = total.get(name, 0) + amount
    return totals


# -- why a job and its tasks wait, as texts of conditions and events


class WaitCondition(NamedTuple):
    """The condition of a pod that waits at the end of a cycle."""

    reason: str
    message: str
    nominated: str = ""


class JobMessages:
    """The messages about one job; each is made once."""

    def __init__(self, diagnoses: Diagnoses, job: Job):
        self.cause = diagnoses.of(job)
        """None if the job does not wait."""
        self.sentence = self.cause.sentence_about(job) if self.cause else ""
        """`Job train waits: ...`; empty if it does not."""
        self._diagnoses = diagnoses
        self._job = job
        self._group: str | None = None
        self._verdicts = diagnoses.verdicts(job) if self.cause else {}
        self._waiting: dict[int, WaitCondition] = {}
        self._promises: dict[str, str] = {}

    @property
    def group(self) -> str:
        """`Job train waits: ... (2/3 tasks in gang unschedulable: pod group is not ready, ...)`."""
        if self._group is None:
            invalid = self.cause is not None and self.cause.gate == "validity"
            self._group = self._message(self.cause, gang_message(self._job, invalid))
        return self._group

    def waiting(self, task: Task) -> WaitCondition:
        """The condition of a task without capacity; tasks with the same verdict share it."""
        key = id(self._verdicts.get(task))
        condition = self._waiting.get(key)
        if condition is None:
            cause = self._diagnoses.of_task(self._job, task)
            message = self._message(cause, readiness(self._job))
            condition = self._waiting[key] = WaitCondition(names.UNSCHEDULABLE, message)
        return condition

    def with_capacity(self, task: Task) -> str:
        """The message for a task that had capacity when it was last tried, unless its gate is about something else."""
        return self._promised(task, names.ONCE_MIN_AVAILABLE, ("topology", "nodes", "gang", "pipeline"))

    def with_capacity_to_come(self, task: Task) -> str:
        """The message for a task that waits only until other pods have left."""
        return self._promised(task, names.ONCE_RELEASED, ("pipeline",))

    def _promised(self, task: Task, volcano: str, gates: tuple[Gate, ...]) -> str:
        if self.cause is not None and self.cause.gate not in gates:
            return self.waiting(task).message
        if volcano not in self._promises:
            self._promises[volcano] = self._message(self.cause, volcano)
        return self._promises[volcano]

    def _message(self, cause: Diagnosis | None, volcano: str) -> str:
        if cause is None:
            return volcano
        sentence = self.sentence if cause is self.cause else cause.sentence_about(self._job)
        return wait_message(sentence, volcano)
