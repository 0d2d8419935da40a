"""The gates that a job passes, in order; the first that holds it makes the diagnosis."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from stromboli.api import names
from stromboli.engine.explanation.closest_domain import pods
from stromboli.engine.explanation.diagnosis import (
    WAITING,
    Diagnosis,
    below_minimum_text,
    first_waiting,
    largest_holders,
    missing_pods_remedy,
    refusal_diagnosis,
    shortage,
    waiting_count,
    waits,
)
from stromboli.engine.explanation.node_gates import NodeGates, no_nodes
from stromboli.engine.explanation.quantities import amounts_text, time_text
from stromboli.engine.explanation.queue_limit_hits import QueueLimitGate
from stromboli.engine.explanation.topology_gate import TopologyGate
from stromboli.engine.explanation.volcano_messages import group_message
from stromboli.engine.unmet_requirements import unmet_by_task, unreachable_tier
from stromboli.model.remedy import Why
from stromboli.model.reservations import RoleOwner
from stromboli.model.status import Status

if TYPE_CHECKING:
    from stromboli.engine.placement.verdict import Verdict
    from stromboli.engine.plugin import Promise
    from stromboli.engine.plugin_failures import Failure
    from stromboli.engine.session import Session
    from stromboli.model.job import Job, JobId
    from stromboli.model.task import Task


SHOWN_NODES = 5
"""Nodes or jobs that a message names."""


class Diagnoses:
    """Why jobs and their tasks wait when the actions of a cycle have run; computed once for each job."""

    def __init__(self, session: Session):
        self._session = session
        self._first = cache(first_waiting)
        self._by_job: dict[Job, Diagnosis | None] = {}

    @cached_property
    def _nodes(self) -> NodeGates:
        return NodeGates(self._session, self._first)

    @cached_property
    def _gates(self) -> tuple[Callable[[Job], Diagnosis | None], ...]:
        """All gates in order; made on request, since most cycles need none."""
        session = self._session
        topology = TopologyGate(session, self._nodes.by_size)
        return (
            _no_group,
            partial(_no_queue, session),
            partial(_unmet_requirement, session),
            partial(_capacity_is_coming, session),
            MovedPods(session).of_job,
            partial(_objection, session),
            _all_gated,
            partial(no_nodes, session),
            partial(_promised_start, session),
            partial(_held_back, session),
            topology.of_job,
            self._nodes.of_job,
            _queue_closed,
            self._nodes.by_size,
            topology.by_size,
            partial(_not_enqueued, session),
            partial(_no_action, session),
            QueueLimitGate(session, self._first).of_job,
            _too_few_pods,
            _not_placed,
        )

    def of(self, job: Job) -> Diagnosis | None:
        """The steady diagnosis of a job; None if it does not wait."""
        if job not in self._by_job:
            self._session.waits.recall(self._session, job)
            self._by_job[job] = self._first_gate(job) if waits(job) else None
        return self._by_job[job]

    def after(self, job: Job, lost: Failure | None = None) -> Diagnosis | None:
        """The steady diagnosis after a cycle, which may have been lost."""
        return _lost_cycle(lost) if lost and waits(job) else self.of(job)

    def of_task(self, job: Job, task: Task) -> Diagnosis | None:
        """The diagnosis of a task: by its own verdict, or else that of its job."""
        diagnosis = self.of(job)
        return (diagnosis and diagnosis.gate == "nodes" and self._nodes.of_task(job, task)) or diagnosis

    def measured(self, job: Job, lost: Failure | None = None, reader: str = "") -> Diagnosis | None:
        """The diagnosis of a job with current numbers after a cycle, which may have been lost.

        For a `reader` of one namespace, holders in other namespaces are not named.
        """
        steady = self.after(job, lost)
        if steady is None:
            return None
        diagnosis, short = steady.measured().for_reader(reader), below_minimum_text(job)
        return replace(
            diagnosis,
            message=f"{short}: {diagnosis.message}" if short else diagnosis.message,
            pods=waiting_count(job),
            queue=job.queue.name if job.queue else "",
            summary=steady.message,
            sentence=steady.sentence_about(job),
        )

    def text_of_task(self, task: Task, lost: Failure | None = None, reader: str = "") -> str:
        """Why a pod waits, in a sentence; empty if it does not."""
        if task.status is not Status.PENDING:
            return ""
        if task.job is None:
            return "it does not belong to a PodGroup"
        verdict = self.verdicts(task.job).get(task)
        diagnosis = None if verdict else self.measured(task.job, lost, reader)
        return verdict.message if verdict else diagnosis.message if diagnosis else ""

    def verdicts(self, job: Job) -> Mapping[Task, Verdict]:
        """The verdicts on the tasks of a job when they were last tried."""
        self._session.waits.recall(self._session, job)
        return self._session.attempts.verdicts.get(job, {})

    def _first_gate(self, job: Job) -> Diagnosis:
        with self._session.reporting():
            return next(diagnosis for gate in self._gates if (diagnosis := gate(job)))
        return _not_placed(job)


def _lost_cycle(failure: Failure) -> Diagnosis:
    text = f"the cycle is lost: {failure.message}"
    return Diagnosis("cycle", "CycleLost", text, failure.remedy, code="CycleLost")


# -- the gates


def _no_group(job: Job) -> Diagnosis | None:
    if job.group is not None:
        return None
    reference, api_group = "the annotation scheduling.k8s.io/group-name", ""
    if job.native is not None:
        reference, api_group = "spec.schedulingGroup", " of scheduling.k8s.io"
    text = f"PodGroup {job.key}{api_group} does not exist"
    remedy = f"create it, or correct {reference} of its pods"
    return Diagnosis("pod-group", "PodGroup missing", text, remedy, code="PodGroupMissing")


def _no_queue(session: Session, job: Job) -> Diagnosis | None:
    if job.queue is not None and job.queue.exists:
        return None
    text = names.QUEUE_MISSING.format(queue=job.queue.name if job.queue else "")
    field = "spec.queue" if job.native is None else f"the annotation {names.QUEUE_NAME}"
    remedy = f"create it, or set {field} of the PodGroup"
    steady = Diagnosis("queue", "Queue missing", text, remedy, code="QueueMissing")

    def measure() -> Diagnosis:
        queues = session.cluster.queues.values()
        known = sorted(queue.name for queue in queues if queue.exists and queue.name != "root")
        choice = f" to one of: {', '.join(known[:10])}" if known else ""
        return replace(steady, remedy=remedy + choice)

    return replace(steady, measure=measure)


def _unmet_requirement(session: Session, job: Job) -> Diagnosis | None:
    """Its PodGroup, its queue or one of its pods has a requirement that this policy or cluster cannot meet."""
    unmet = (
        session.requirements.unmet(job)
        or _unmet_before_the_queue(session, job)
        or unreachable_tier(session, job)
    )
    if unmet is not None:
        return refusal_diagnosis("requirements", unmet)
    for task, verdict in session.attempts.verdicts.get(job, {}).items():
        if verdict.unmet and verdict.why is not None:
            return refusal_diagnosis("requirements", verdict.why, task)
    return None


def _unmet_before_the_queue(session: Session, job: Job) -> Why | None:
    """The unmet requirement of a pod whose job is not admitted: the reason of the queue would be misleading."""
    task = first_waiting(job) if job.waits_for_queue else None
    return unmet_by_task(session, task) if task else None


def _capacity_is_coming(session: Session, job: Job) -> Diagnosis | None:
    """Pipelined tasks of the job suffice to start once their nodes are free."""
    pipelined, promised = (
        session.attempts.uncommitted.pipelined,
        session.attempts.uncommitted.promised.get(job, 0),
    )
    if not promised or job.ready_count - job.counts[Status.ALLOCATED] + promised < job.minimum:
        return None
    tasks = (task for status in WAITING for task in job.by_status[status])
    nodes = sorted({pipelined[task.key] for task in tasks if task.key in pipelined})
    if not nodes:
        return None
    where = ", ".join(nodes[:SHOWN_NODES])
    why = Why(
        f"capacity is being freed on {where}",
        "no action needed: it starts once that capacity is free",
        "Pipelined",
        "capacity is being freed for it",
        "Pipelined",
    )
    return refusal_diagnosis("pipeline", why)


def _objection(session: Session, job: Job) -> Diagnosis | None:
    """A plugin or an action left the job out."""
    text = session.objections.get(job)
    if text is None:
        return None
    return refusal_diagnosis("validity", session.reports.advice.get(job) or Why(text))


def _all_gated(job: Job) -> Diagnosis | None:
    tasks = job.by_status[Status.PENDING]
    if not tasks or not all(task.gates for task in tasks):
        return None
    gates = sorted({gate for task in tasks for gate in task.gates})
    text = f"its pods have scheduling gates: {', '.join(gates)}"
    remedy = "it continues when the controller that set the gates removes them"
    if gates == [names.AFTER]:  # its controller holds the pods until other jobs have ended
        others = job.annotations.get(names.AFTER, "")[:200] or "none, its annotation is empty"
        text, remedy = f"it waits for other jobs: {others}", _AFTER_OTHERS
    return Diagnosis("scheduling-gates", "SchedulingGated", text, remedy, code="SchedulingGated")


_AFTER_OTHERS = (
    "no action needed: it continues when these jobs end as required, and its events report if they cannot"
)


def _queue_closed(job: Job) -> Diagnosis | None:
    queue = job.queue
    if queue is None or queue.open or queue.object is None:
        return None
    state = queue.object.status.state
    text = f'queue "{queue.name}" is {state.lower()}'
    remedy = f"open it: stromboli queue open {queue.name}"
    return Diagnosis("queue", f"Queue {state}", text, remedy, code="QueueClosed")


def _not_enqueued(session: Session, job: Job) -> Diagnosis | None:
    if not job.waits_for_queue:
        return None
    refusals = session.reports.refusals.get(job, {})
    why = next(reversed(refusals.values()), _UNEXPLAINED)
    summary = f'not admitted to queue "{job.queue.name if job.queue else ""}": {why.summary}'
    steady = refusal_diagnosis("enqueue", why._replace(summary=summary))
    return replace(steady, measure=lambda: _enqueue_numbers(session, job, steady.measured()))


_UNEXPLAINED = Why(
    "not admitted to its queue yet",
    code="NotAdmitted",
    summary="a plugin rejected it without giving a reason",
    title="not admitted to its queue yet",
)


def _enqueue_numbers(session: Session, job: Job, refused: Diagnosis) -> Diagnosis:
    """The request of the job and the free resources, which enqueue compares."""
    cluster, wanted = session.cluster, session.needs.least(job) or {}
    if not wanted:
        return refused
    source = "its pods" if job.min_resources is None else "spec.minResources"
    free = cluster.columns.free
    short = {dim: amount for dim, amount in wanted.items() if amount > free.get(dim, 0)}
    asked = amounts_text(cluster.dims, short or wanted)
    left = amounts_text(cluster.dims, {dim: free.get(dim, 0) for dim in short or wanted})
    taken = (
        "" if short else ", so it is blocked by jobs admitted earlier or by a limit of its queue or namespace"
    )
    next_step = f"; {refused.remedy}" if refused.remedy else taken
    return replace(
        refused,
        remedy=f"it requests {asked} ({source}), the cluster has {left} free{next_step}",
        shortages=tuple(
            shortage(cluster.dims, dim, amount, free.get(dim, 0)) for dim, amount in short.items()
        ),
        holders=largest_holders(cluster, short),
    )


def _no_action(session: Session, job: Job) -> Diagnosis | None:
    """Pods without requests are placed by the action backfill only."""
    pending = job.counts[Status.PENDING]
    if not pending or job.pending_best_effort < pending or "backfill" in session.policy.actions:
        return None
    text = "its pods request no resources, and the policy lacks the action backfill, which places such pods"
    remedy = "add backfill to the policy actions, or set resource requests on the pods"
    return Diagnosis("policy", "No backfill", text, remedy, code="NoBackfill")


def _too_few_pods(job: Job) -> Diagnosis | None:
    missing = job.minimum - len(job.tasks)
    if missing <= 0:
        return None
    summary = f"it has fewer pods than the {job.minimum} that must start together"
    text = f"it has {len(job.tasks)} of the {job.minimum} pods that must start together"
    remedy = missing_pods_remedy(job, missing)
    return refusal_diagnosis("gang", Why(text, remedy, "PodsMissing", summary, "Pods missing"))


def _not_placed(job: Job) -> Diagnosis:
    text = "its pods were not placed in the last cycle"
    steady = Diagnosis("gang", "Not placed", text, code="NotPlaced")
    return replace(steady, measure=lambda: replace(steady, message=group_message(job)))


# -- jobs with a promised start, and jobs that would delay one


def _promised_start(session: Session, job: Job) -> Diagnosis | None:
    """Capacity is reserved for the job, with the latest start."""
    promise = session.rules.promised(job)
    if promise is None:
        return None
    remedy = _promise_remedy(promise)
    return Diagnosis("backfill", "Reserved", _promise_text(promise), remedy, code="Reserved")


def _promise_remedy(promise: Promise) -> str:
    if not promise.overdue:
        return "no action needed: it may start earlier if other jobs end earlier"
    return "wait until these jobs end, or end them" if promise.after else "wait until it is free"


def _promise_text(promise: Promise) -> str:
    nodes, after = _some(promise.nodes), _some(promise.after)
    held = f"capacity on {nodes}" if promise.nodes else "queue quota"
    if promise.overdue and not promise.after:
        return f"{held} is reserved for it and is not free yet, although the reserved time has come"
    if promise.overdue:
        return f"{held} is reserved for it until {after} end, which are over their time limits"
    end = "ends" if len(promise.after) == 1 else "end"
    when = f", after {after} {end}" if after else ""
    if not promise.nodes:
        by = f" by {time_text(promise.start)}{when}" if after else ""
        return f"queue quota is reserved for it{by}"
    return f"reserved to start by {time_text(promise.start)} on {nodes}{when}"


def _some(known: tuple[str, ...]) -> str:
    more = f" and {len(known) - SHOWN_NODES} more" if len(known) > SHOWN_NODES else ""
    return ", ".join(known[:SHOWN_NODES]) + more


def _held_back(session: Session, job: Job) -> Diagnosis | None:
    """The job may fit, but would delay jobs before it."""
    held = session.reports.held_back.get(job) or session.rules.held_back(job)
    return refusal_diagnosis("backfill", held) if held is not None else None


# -- jobs that were moved for a gang and wait for their replacement pods


class MovedPods:
    """Jobs whose pods were moved: capacity is held for the replacements."""

    def __init__(self, session: Session):
        self._session = session

    def of_job(self, job: Job) -> Diagnosis | None:
        """The diagnosis of a job that cannot start without replacement pods for which capacity is held; or None."""
        nodes = self._nodes.get(job.id) if len(job.tasks) < job.minimum else None
        if not nodes:
            return None
        some = sorted(set(nodes))
        where = ", ".join(some[:SHOWN_NODES]) + (", ..." if len(some) > SHOWN_NODES else "")
        summary = "its pods were moved and their replacements do not exist yet"
        text = f"{summary}: capacity is held for {pods(len(nodes))} on {where}"
        return refusal_diagnosis("gang", Why(text, "its controller creates them", "Moved", summary, "Moved"))

    @cached_property
    def _nodes(self) -> dict[JobId, list[str]]:
        """The nodes where capacity is held for replacement pods, by job."""
        nodes: dict[JobId, list[str]] = {}
        for reservation in self._session.cluster.reservations:
            if isinstance(reservation.owner, RoleOwner):
                nodes.setdefault(reservation.owner.job, []).append(reservation.node.name)
        return nodes
