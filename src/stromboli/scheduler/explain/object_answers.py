"""What the scheduler knows of an object after a cycle; used in the cycle's thread."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec.structs import replace

from stromboli.engine.explanation.diagnosis import waits
from stromboli.engine.explanation.event_history import History
from stromboli.model.intake.native_groups import KIND
from stromboli.model.job import VOLCANO_GROUP, Job, JobId
from stromboli.scheduler.explain.leader_answer import LeaderAnswer

if TYPE_CHECKING:
    from stromboli.engine.cycle import Outcome
    from stromboli.engine.plugin import Promise
    from stromboli.model.cluster import Cluster
    from stromboli.model.queue import Queue
    from stromboli.model.task import Task
    from stromboli.scheduler.explain.decision_history import DecisionHistory
    from stromboli.scheduler.explain.explain_paths import Question

MAX_REMEMBERED_TEXTS = 16
"""Texts of a plugin about an object."""
MAX_REMEMBERED = 500
"""Characters of each of them."""
MAX_PROMISED_NAMES = 5
"""Nodes or jobs of a promise that an answer names: as many as its event."""
_GROUP_KINDS = {"podgroups": VOLCANO_GROUP, "podgroups.scheduling.k8s.io": KIND}
_VOLCANO_JOBS = "batch.volcano.sh/"


class ObjectAnswers:
    """Looks objects up in the model and in the history."""

    def __init__(self, history: DecisionHistory) -> None:
        self._history = history

    def look_again(self, question: Question, cluster: Cluster) -> bool:
        """Let the next cycle try a waiting job even if it would skip it; return whether the answer needs that cycle.

        The result of the last attempt still holds, but a new attempt may report other reasons.
        """
        job = _job_asked(cluster, question)
        if job is None or not waits(job):
            return False
        cluster.mark_dirty(job)
        return True

    def of(self, question: Question, outcome: Outcome) -> LeaderAnswer:
        """The answer, without the leader's name."""
        session = outcome.session
        cluster = session.cluster
        answer = LeaderAnswer(
            *question,
            time=session.now,
            policy=session.policy.source_name,
            since=self._history.since,
            lost=outcome.lost.message if outcome.lost is not None else "",
        )
        if question.resource == "nodes":
            answer = replace(answer, known=question.name in cluster.nodes)
        elif question.resource == "queues":
            queue = cluster.queues.get(question.name)
            if queue is not None and queue.exists:
                remembered = _remembered(outcome, queue)
                answer = replace(answer, known=True, queue=queue.name, remembered=remembered)
        else:
            answer = self._about_job(answer, question, outcome)
        if answer.is_empty:
            return answer
        return replace(answer, history=answer.history.merged(self._history.policies))

    def _about_job(self, answer: LeaderAnswer, question: Question, outcome: Outcome) -> LeaderAnswer:
        cluster = outcome.session.cluster
        task = _task(cluster, question) if question.resource == "pods" else None
        job = task.job if task is not None else _job(cluster, question)
        if task is not None:
            answer = replace(answer, known=True, pod=outcome.explain_task(task, reader=task.namespace))
        if job is None:
            kind = _GROUP_KINDS.get(question.resource)
            history = self._history.of(JobId(kind, *question[1:])) if kind else History()
            return replace(answer, history=history)
        return replace(
            answer,
            known=True,
            job=job.name,
            phase=job.phase,
            queue=job.queue.name if job.queue is not None else "",
            explanation=outcome.explain(job, reader=job.namespace),
            promise=_promise(outcome, job),
            remembered=_remembered(outcome, job),
            history=self._history.of(job.id),
        )


def _job_asked(cluster: Cluster, question: Question) -> Job | None:
    task = _task(cluster, question) if question.resource == "pods" else None
    return task.job if task is not None else _job(cluster, question)


def _task(cluster: Cluster, question: Question) -> Task | None:
    """The pod of that name; the newer one while another one is terminating."""
    _, namespace, name = question
    named = [task for task in cluster.tasks.values() if task.name == name and task.namespace == namespace]
    return max(named, key=lambda task: task.created, default=None)


def _job(cluster: Cluster, question: Question) -> Job | None:
    """The job of a PodGroup, or of the Volcano Job that owns its PodGroup."""
    _, namespace, name = question
    if kind := _GROUP_KINDS.get(question.resource):
        return cluster.jobs.get(JobId(kind, namespace, name))
    if question.resource != "jobs":
        return None
    return next(
        (job for job in cluster.jobs.values() if job.namespace == namespace and _is_owned(job, name)), None
    )


def _is_owned(job: Job, name: str) -> bool:
    owner = job.owner
    return (
        owner is not None
        and owner.name == name
        and owner.kind == "Job"
        and owner.api_version.startswith(_VOLCANO_JOBS)
    )


def _promise(outcome: Outcome, job: Job) -> Promise | None:
    if outcome.lost is not None:
        return None
    with outcome.session.reporting():
        promise = outcome.session.rules.promised(job)
        if promise is not None:
            nodes, after = promise.nodes[:MAX_PROMISED_NAMES], promise.after[:MAX_PROMISED_NAMES]
            return replace(promise, nodes=nodes, after=after)
    return None


def _remembered(outcome: Outcome, subject: Job | Queue) -> dict[str, dict[str, str]]:
    """The texts of plugins about a job or a queue; a plugin that fails has none."""
    if outcome.lost is not None:
        return {}
    answers: dict[str, dict[str, str]] = {}
    for plugin in outcome.session.rules.plugins:
        with outcome.session.reporting():
            texts = _bounded(plugin.remembered(subject))
            if texts:
                answers[plugin.name] = texts
    return answers


def _bounded(texts: Mapping[str, str]) -> dict[str, str]:
    shown = list(texts.items())[:MAX_REMEMBERED_TEXTS]
    return {str(key)[:MAX_REMEMBERED]: str(text)[:MAX_REMEMBERED] for key, text in shown}
