"""The gates that a job has to pass, in order; the first that holds it is the cause of its waiting."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING

from stromboli.api import names
from stromboli.engine.explanation.backfill_causes import held_back, promised_start
from stromboli.engine.explanation.closest_domain import pods
from stromboli.engine.explanation.node_causes import NodeCauses, no_nodes
from stromboli.engine.explanation.queue_limit_hits import QueueLimitCauses
from stromboli.engine.explanation.topology_causes import TopologyCauses
from stromboli.engine.explanation.volcano_messages import group_message
from stromboli.engine.explanation.wait_cause import WAITING, Cause, Details, first_waiting, short_text, waits
from stromboli.engine.explanation.ways_out import (
    enqueue_way_out,
    missing_pods_way_out,
)
from stromboli.engine.unmet_requirements import unmet_by_task, unreachable_tier
from stromboli.model.reservations import RoleOwner
from stromboli.model.status import Status

if TYPE_CHECKING:
    from stromboli.engine.placement.verdict import Verdict
    from stromboli.engine.session import Session
    from stromboli.engine.unmet_requirements import Unmet
    from stromboli.model.job import Job, JobId
    from stromboli.model.task import Task


_UNMET = "Unmet requirement"
MORE = "run `stromboli plan` for details"
"""Where no way out is known."""


class WaitCauses:
    """Why jobs and their tasks wait when the actions of a cycle have run; sought once for each job."""

    def __init__(self, session: Session):
        self._session = session
        self._first = cache(first_waiting)
        self._by_job: dict[Job, Cause | None] = {}

    @cached_property
    def _nodes(self) -> NodeCauses:
        return NodeCauses(self._session, self._first)

    @cached_property
    def _gates(self) -> tuple[Callable[[Job], Cause | None], ...]:
        """The first that holds a job explains; made when somebody asks, as of most cycles nobody does."""
        session = self._session
        return (
            _no_group,
            partial(_no_queue, session),
            partial(_unmet_requirement, session),
            partial(_room_is_coming, session),
            MovedPods(session).of_job,
            partial(_objection, session),
            _all_gated,
            partial(no_nodes, session),
            partial(promised_start, session),
            partial(held_back, session),
            TopologyCauses(session, self._nodes.by_size).of_job,
            self._nodes.of_job,
            _queue_closed,
            self._nodes.by_size,
            partial(_not_enqueued, session),
            partial(_no_action, session),
            QueueLimitCauses(session, self._first).of_job,
            _too_few_pods,
            _not_placed,
        )

    def of(self, job: Job) -> Cause | None:
        """What holds a job; none if it does not wait."""
        if job not in self._by_job:
            self._session.waits.recall(self._session, job)
            self._by_job[job] = self._first_gate(job) if waits(job) else None
        return self._by_job[job]

    def of_task(self, job: Job, task: Task) -> Cause | None:
        """What holds a task of a job: what nodes answer to this task, or else what holds the job."""
        cause = self.of(job)
        return (cause and cause.gate == "nodes" and self._nodes.of_task(job, task)) or cause

    def verdicts(self, job: Job) -> Mapping[Task, Verdict]:
        """What nodes answered to the tasks of a job when they were last tried."""
        self._session.waits.recall(self._session, job)
        return self._session.verdicts.get(job, {})

    def _first_gate(self, job: Job) -> Cause:
        with self._session.reporting():
            return next(cause for gate in self._gates if (cause := gate(job)))
        return _not_placed(job)


# -- the gates


def _no_group(job: Job) -> Cause | None:
    if job.group is not None:
        return None
    reference, api_group = "the annotation scheduling.k8s.io/group-name", ""
    if job.native is not None:
        reference, api_group = "spec.schedulingGroup", " of scheduling.k8s.io"
    text = f"PodGroup {job.key}{api_group} does not exist"
    hint = f"create it, or correct {reference} of its pods"
    return Cause("pod-group", text, hint, lambda: Details("PodGroup missing", text, hint))


def _no_queue(session: Session, job: Job) -> Cause | None:
    if job.queue is not None and job.queue.exists:
        return None
    text = names.QUEUE_MISSING.format(queue=job.queue.name if job.queue else "")
    field = "spec.queue" if job.native is None else f"the annotation {names.QUEUE_NAME}"
    way_out = f"create it, or set {field} of the PodGroup"

    def details() -> Details:
        queues = session.cluster.queues.values()
        known = sorted(queue.name for queue in queues if queue.exists and queue.name != "root")
        choice = f" to one of: {', '.join(known[:10])}" if known else ""
        return Details("Queue missing", text, way_out + choice)

    return Cause("queue", text, way_out, details)


def _unmet_requirement(session: Session, job: Job) -> Cause | None:
    """Its PodGroup, its queue or one of its pods asks for what this policy or cluster cannot give."""
    unmet = session.unmet(job) or _unmet_before_the_queue(session, job) or unreachable_tier(session, job)
    if unmet is not None:
        reason, text = f"{_UNMET}: {unmet.requirement}", unmet.message
        details = partial(Details, reason, text, unmet.remedy_in_plans or unmet.remedy)
        return Cause("requirements", text, unmet.remedy or MORE, details)
    for task, verdict in session.verdicts.get(job, {}).items():
        if verdict.requirement:
            reason, text = f"{_UNMET}: {verdict.requirement}", f"{task.name}: {verdict.message}"
            details = partial(Details, reason, text, verdict.remedy.current_text(task))
            return Cause("requirements", verdict.message, verdict.remedy.steady_text(task) or MORE, details)
    return None


def _unmet_before_the_queue(session: Session, job: Job) -> Unmet | None:
    """Of a pod that was not tried, as its job was not let in: the queue's reason would send its owner the wrong way."""
    task = first_waiting(job) if job.waits_for_queue else None
    return unmet_by_task(session, task) if task else None


def _room_is_coming(session: Session, job: Job) -> Cause | None:
    """It holds its place until room is free, and that is enough to start."""
    pipelined, promised = session.uncommitted.pipelined, session.uncommitted.promised.get(job, 0)
    if not promised or job.ready_count - job.counts[Status.ALLOCATED] + promised < job.minimum:
        return None
    tasks = (task for status in WAITING for task in job.by_status[status])
    nodes = sorted({pipelined[task.key] for task in tasks if task.key in pipelined})
    if not nodes:
        return None
    hint = "no action needed: it starts once that capacity is free"
    return Cause(
        "pipeline",
        "capacity is being freed for it",
        hint,
        lambda: Details("Pipelined", f"capacity is being freed on {', '.join(nodes[:5])}", hint),
    )


def _objection(session: Session, job: Job) -> Cause | None:
    text = session.objections.get(job)
    if text is None:
        return None
    advice = session.advice.get(job)
    summary, way_out = advice or _split_advice(text)
    hint = advice.remedy if advice else ""
    if hint == missing_pods_way_out(job):
        hint = missing_pods_way_out(job, job.minimum - job.valid_count)
    return Cause("validity", summary, way_out or MORE, partial(Details, short_text(text), text, hint))


def _split_advice(text: str) -> tuple[str, str]:
    """An objection that ends with its way out, `problem: way out` or `problem; way out`, in two."""
    separator = "; " if "; " in text else ": "
    problem, _, advice = text.rpartition(separator)
    return (problem, advice) if problem else (text, "")


def _all_gated(job: Job) -> Cause | None:
    tasks = job.by_status[Status.PENDING]
    if not tasks or not all(task.gates for task in tasks):
        return None
    gates = sorted({gate for task in tasks for gate in task.gates})
    if gates == [names.AFTER]:
        return _waits_for_jobs(job)
    text = f"its pods have scheduling gates: {', '.join(gates)}"
    hint = "it continues when the controller that set the gates removes them"
    return Cause("scheduling-gates", text, hint, lambda: Details("SchedulingGated", text, hint))


def _waits_for_jobs(job: Job) -> Cause:
    """Its controller holds its pods until other jobs have ended."""
    others = job.annotations.get(names.AFTER, "")[:200] or "none, its annotation is empty"
    text = f"it waits for other jobs: {others}"
    hint = (
        "no action needed: it continues when these jobs end as required, and its events report if they cannot"
    )
    return Cause("scheduling-gates", text, hint, lambda: Details("SchedulingGated", text, hint))


def _queue_closed(job: Job) -> Cause | None:
    queue = job.queue
    if queue is None or queue.open or queue.object is None:
        return None
    state = queue.object.status.state
    text = f'queue "{queue.name}" is {state.lower()}'
    hint = f"open it: stromboli queue open {queue.name}"
    return Cause("queue", text, hint, lambda: Details(f"Queue {state}", text, hint))


def _not_enqueued(session: Session, job: Job) -> Cause | None:
    if not job.waits_for_queue:
        return None
    refusal = next(reversed(session.refusals.get(job, {}).values()), None)
    message = refusal.message if refusal else "not admitted to its queue yet"
    summary = f'not admitted to queue "{job.queue.name if job.queue else ""}"'
    summary += f": {refusal.summary}" if refusal else ": a plugin rejected it without giving a reason"
    way_out = refusal.remedy if refusal else ""

    def details() -> Details:
        hint, shortages, holders = enqueue_way_out(session, job, way_out)
        return Details(short_text(message), message, hint, {}, shortages, holders)

    return Cause("enqueue", summary, way_out or MORE, details)


def _no_action(session: Session, job: Job) -> Cause | None:
    """Pods that ask for nothing are placed by backfill alone."""
    pending = job.counts[Status.PENDING]
    if not pending or job.pending_best_effort < pending or "backfill" in session.policy.actions:
        return None
    text = "its pods request no resources, and the policy lacks the action backfill, which places such pods"
    hint = "add backfill to the policy actions, or set resource requests on the pods"
    return Cause("policy", text, hint, lambda: Details("No backfill", text, hint))


def _too_few_pods(job: Job) -> Cause | None:
    missing = job.minimum - len(job.tasks)
    if missing <= 0:
        return None
    summary = f"it has fewer pods than the {job.minimum} that must start together"
    text = f"it has {len(job.tasks)} of the {job.minimum} pods that must start together"
    details = partial(Details, "Pods missing", text, missing_pods_way_out(job, missing))
    return Cause("gang", summary, missing_pods_way_out(job), details)


def _not_placed(job: Job) -> Cause:
    text = "its pods were not placed in the last cycle"
    return Cause("gang", text, MORE, lambda: Details("Not placed", group_message(job)))


# -- jobs that were moved aside for a gang and wait for the pods that their controllers make anew


MOST_NODES = 5


class MovedPods:
    """Causes of jobs that lack pods because these were moved: room is held for the new ones."""

    def __init__(self, session: Session):
        self._session = session

    def of_job(self, job: Job) -> Cause | None:
        """None unless room is held for its pods to come, and without them it cannot start."""
        nodes = self._nodes.get(job.id) if len(job.tasks) < job.minimum else None
        if not nodes:
            return None
        summary, way_out = (
            "its pods were moved and their replacements do not exist yet",
            "its controller creates them",
        )
        some = sorted(set(nodes))
        where = ", ".join(some[:MOST_NODES]) + (", ..." if len(some) > MOST_NODES else "")
        text = f"{summary}: capacity is held for {pods(len(nodes))} on {where}"
        return Cause("gang", summary, way_out, partial(Details, "Moved", text, way_out))

    @cached_property
    def _nodes(self) -> dict[JobId, list[str]]:
        """The nodes where room is held for pods to come, by job."""
        nodes: dict[JobId, list[str]] = {}
        for reservation in self._session.cluster.reservations:
            if isinstance(reservation.owner, RoleOwner):
                nodes.setdefault(reservation.owner.job, []).append(reservation.node.name)
        return nodes
