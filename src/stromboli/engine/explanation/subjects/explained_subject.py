"""What the engine says of a job, a pod, a queue or a node after a cycle, from the objects and the policy alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stromboli.engine.explanation.subjects.explanation_document import JobExplanation, PodCounts, Subject
from stromboli.engine.explanation.subjects.job_subject import job_explanation
from stromboli.engine.explanation.subjects.node_subject import node_explanation
from stromboli.engine.explanation.subjects.queue_subject import queue_explanation

if TYPE_CHECKING:
    from stromboli.engine.explanation.subjects.ended_cycle import EndedCycle
    from stromboli.engine.explanation.subjects.subject_lookup import Found
    from stromboli.model.task import Task


def explain_found(outcome: EndedCycle, found: Found) -> Subject:
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


def _lone_pod(outcome: EndedCycle, task: Task) -> JobExplanation:
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
