"""What the engine says of a job, a pod, a queue or a node after a cycle, from the objects and the policy alone."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from typing import TYPE_CHECKING

from stromboli.engine.explanation.diagnosis import waiting_count, waits
from stromboli.engine.explanation.quantities import quantities, quantity
from stromboli.engine.queue_limits import deserved_share, own_capability, own_limits
from stromboli.model.amounts import Amounts, excess
from stromboli.model.dimensions import PODS
from stromboli.simulator.explain.explanation_document import (
    JobExplanation,
    PodCounts,
    QueueExplanation,
    QueueShare,
    Subject,
    WaitingJob,
)
from stromboli.simulator.explain.job_subject import job_explanation
from stromboli.simulator.explain.node_subject import node_explanation
from stromboli.simulator.explain.resource_holders import holding_jobs, holding_tasks

if TYPE_CHECKING:
    from stromboli.engine.cycle import Outcome
    from stromboli.engine.session import Session
    from stromboli.model.job import Job
    from stromboli.model.queue import Queue
    from stromboli.model.task import Task
    from stromboli.simulator.explain.subject_lookup import Found


def explain_found(outcome: Outcome, found: Found) -> Subject:
    """Explain a subject, to be asked before the cluster changes again."""
    if found.queue is not None:
        return queue_explanation(outcome, found.queue)
    if found.node is not None:
        return node_explanation(outcome, found.node)
    if found.job is not None:
        if found.kind == "Pod":
            return job_explanation(outcome, found.job, pod=found.task)
        return job_explanation(outcome, found.job, found.kind, found.name)
    assert found.task is not None
    return _lone_pod(outcome, found.task)


def _lone_pod(outcome: Outcome, task: Task) -> JobExplanation:
    """A pod that belongs to no PodGroup, or to another scheduler."""
    why = outcome.explain_task(task)
    where = (
        f"is {task.status.title.lower()} on {task.node.name}"
        if task.node
        else f"waits: {why}"
        if why
        else "waits"
    )
    return JobExplanation(
        kind="Pod",
        name=task.name,
        namespace=task.namespace,
        pod_group="",
        queue="",
        state="runs" if task.node else "waits",
        pods=PodCounts(total=1, waiting=not task.node, running=bool(task.node)),
        summary=f"Pod {task.key} {where}",
        notes=[] if task.ours else ["It is assigned to another scheduler."],
        pod=task.name,
    )


# -- a queue explained after a cycle: its state and shares, its waiting and running jobs, and the borrowing queues


MOST_JOBS = 10
MOST_BORROWERS = 10


def queue_explanation(outcome: Outcome, queue: Queue) -> QueueExplanation:
    """Explain a queue as it is after a cycle, to be asked before the cluster changes again."""
    session = outcome.session
    waiting = sorted(
        (job for job in queue.jobs if waits(job)), key=lambda job: (-job.priority, job.created, job.key)
    )
    running = [task for job in queue.jobs for task in holding_tasks(job)]
    holding, total = holding_jobs(session.cluster, running, MOST_JOBS)
    state = "missing" if queue.object is None else queue.object.status.state or "Open"
    explained = QueueExplanation(
        kind="Queue",
        name=queue.name,
        state=state,
        parent=queue.parent,
        weight=queue.weight,
        reclaimable=queue.reclaimable,
        shares=_shares(session, queue),
        waiting=[_waiting(outcome, job) for job in waiting[:MOST_JOBS]],
        waiting_total=len(waiting),
        running=holding,
        running_total=total,
        borrowers=_borrowers(session, queue) if waiting else [],
    )
    if queue.object is not None:
        children = sorted(
            other.name for other in session.cluster.queues.values() if other.parent == queue.name
        )
        if children and queue.name != "root":
            explained.notes.append(f"Child queues: {', '.join(children[:MOST_JOBS])}.")
    explained.summary = _summary(explained)
    return explained


def used_of(session: Session, queue: Queue) -> Amounts:
    """What a queue uses, together with those below it where the policy has a tree of queues."""
    below = (other for other in session.cluster.queues.values() if other.parent == queue.name)
    for child in below:
        for limit in session.rules.queue_limits(child):
            if limit.queue is queue:
                return limit.held
    return queue.allocated


def _shares(session: Session, queue: Queue) -> list[QueueShare]:
    cluster = session.cluster
    used, deserved = used_of(session, queue), deserved_share(queue, own_limits(session, queue))
    capability = own_capability(queue)
    named = {
        dim for amounts in (used, deserved, capability, queue.guarantee, queue.pending) for dim in amounts
    }
    named |= {0, 1}
    borrowed = excess(used, deserved) if deserved else {}

    def text(amounts: Mapping[int, float], dim: int) -> str:
        return quantities(cluster, amounts, [dim]).get(cluster.dims.names[dim], "")

    return [
        QueueShare(
            resource=cluster.dims.names[dim],
            used=quantity(cluster, dim, used.get(dim, 0)),
            deserved=text(deserved, dim),
            guarantee=text(queue.guarantee, dim),
            capability=text(capability, dim),
            waiting=text(queue.pending, dim) if queue.pending.get(dim) else "",
            borrowed=text(borrowed, dim) if borrowed.get(dim) else "",
        )
        for dim in cluster.dims.ordered(named)
        if dim != PODS
    ]


def _waiting(outcome: Outcome, job: Job) -> WaitingJob:
    wait = outcome.explain(job)
    asked = quantities(outcome.session.cluster, job.pending)
    return WaitingJob(job.key, waiting_count(job), asked, wait.message if wait else "")


def _borrowers(session: Session, queue: Queue) -> list[str]:
    """Other queues that use more than they deserve, those first that borrow most."""
    total, borrowing = session.cluster.total, []
    for other in session.cluster.queues.values():
        if other is queue or not other.exists or other.name == "root":
            continue
        deserved = deserved_share(other, own_limits(session, other))
        beyond = {
            dim: amount
            for dim, amount in excess(other.allocated, deserved).items()
            if amount > 0 and dim != PODS
        }
        if deserved and beyond:
            share = sum(amount / max(total.get(dim, 0), 1) for dim, amount in beyond.items())
            listed = ", ".join(f"{name} {text}" for name, text in quantities(session.cluster, beyond).items())
            fixed = "" if other.reclaimable else ", and is not reclaimable"
            borrowing.append(
                (share, other.name, f"{other.name} uses {listed} above its deserved share{fixed}")
            )
    return [text for *_, text in heapq.nlargest(MOST_BORROWERS, borrowing)]


def _summary(explained: QueueExplanation) -> str:
    running, waiting = explained.running_total, explained.waiting_total
    hold, wait = (
        "1 job holds" if running == 1 else f"{running} jobs hold",
        "waits" if waiting == 1 else "wait",
    )
    jobs = f"{hold} resources, {waiting} {wait}"
    return f"Queue {explained.name} is {explained.state.lower()}: {jobs}"
