"""Why a job waits: the gate that holds it, what is short and by how much, who holds that, and the way out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from stromboli.api import names
from stromboli.engine.explanation.queue_limit_hits import limit_hit, queue_way_out
from stromboli.engine.explanation.shortages import Holder, Shortage
from stromboli.engine.explanation.ways_out import (
    enqueue_way_out,
    had_room,
    larger_than_any_node,
    minimum_field,
    nodes_way_out,
    validity_way_out,
)
from stromboli.engine.outcome import job_message
from stromboli.engine.plugin_failures import Failure
from stromboli.engine.session import Session
from stromboli.model.job import Job
from stromboli.model.status import Status
from stromboli.model.task import Task

Gate = Literal[
    "cycle",
    "pod-group",
    "queue",
    "requirements",
    "pipeline",
    "validity",
    "scheduling-gates",
    "enqueue",
    "nodes",
    "queue-limits",
    "gang",
]
"""What a job has to pass before it starts."""


_UNMET = "Unmet requirement: "


class WaitExplanation(Struct, frozen=True):
    """Why a job with pods that are not placed waits."""

    gate: Gate
    reason: str
    """A few words, the same for all jobs that wait for this."""
    message: str
    hint: str = ""
    """The way out, in a sentence."""
    counts: dict[str, int] = {}
    """Nodes per reason, where nodes were looked at."""
    shortages: tuple[Shortage, ...] = ()
    holders: tuple[Holder, ...] = ()
    pods: int = 0
    """How many of its pods wait."""
    queue: str = ""


def explain_job(session: Session, job: Job, lost: Failure | None = None) -> WaitExplanation | None:
    """Why a job waits after a cycle, which may have been lost; none if it does not wait."""
    waiting = job.counts[Status.PENDING]
    if not waiting and not (job.group is not None and not job.tasks and job.minimum > 0):
        return None
    explanation = _lost_cycle(lost) if lost else next(made for gate in _GATES if (made := gate(session, job)))
    return replace(explanation, pods=waiting, queue=job.queue.name if job.queue else "")


def explain_task(session: Session, task: Task, lost: Failure | None = None) -> str:
    """Why one pod waits, in a sentence; empty if it does not."""
    if task.status is not Status.PENDING:
        return ""
    if task.job is None:
        return "belongs to no PodGroup"
    verdict = session.verdicts.get(task.job, {}).get(task)
    explanation = None if verdict else explain_job(session, task.job, lost)
    return verdict.message if verdict else explanation.message if explanation else ""


def _lost_cycle(failure: Failure) -> WaitExplanation:
    hint = "mend the plugin or take it out of the policy" if failure.plugin else ""
    return WaitExplanation("cycle", "CycleLost", f"the cycle is lost: {failure.message}", hint)


# -- the gates in order; the first that holds the job explains


def _no_group(session: Session, job: Job) -> WaitExplanation | None:
    if job.group is not None:
        return None
    reference, api_group = "the annotation scheduling.k8s.io/group-name", ""
    if job.native is not None:
        reference, api_group = "spec.schedulingGroup", " of scheduling.k8s.io"
    message = f"PodGroup {job.key}{api_group} does not exist"
    hint = f"create it, or correct {reference} of its pods"
    return WaitExplanation("pod-group", "PodGroup missing", message, hint)


def _no_queue(session: Session, job: Job) -> WaitExplanation | None:
    if job.queue is not None and job.queue.exists:
        return None
    message = names.QUEUE_MISSING.format(queue=job.queue.name if job.queue else "")
    queues = session.cluster.queues.values()
    known = sorted(queue.name for queue in queues if queue.exists and queue.name != "root")
    choice = f" to one of: {', '.join(known[:10])}" if known else ""
    field = "spec.queue" if job.native is None else f"the annotation {names.QUEUE_NAME}"
    hint = f"create it, or set {field} of the PodGroup{choice}"
    return WaitExplanation("queue", "Queue missing", message, hint)


def _unmet_requirement(session: Session, job: Job) -> WaitExplanation | None:
    """Its PodGroup, its queue or one of its pods asks for what this policy or cluster cannot give."""
    unmet = session.unmet(job)
    if unmet is not None:
        return WaitExplanation("requirements", _UNMET + unmet.requirement, unmet.message, unmet.way_out)
    for task, verdict in session.verdicts.get(job, {}).items():
        if verdict.requirement:
            message = f"{task.name}: {verdict.message}"
            return WaitExplanation("requirements", _UNMET + verdict.requirement, message, verdict.way_out)
    return None


def _room_is_coming(session: Session, job: Job) -> WaitExplanation | None:
    """It holds its place until room is free, and that is enough to start."""
    pipelined, promised = session.uncommitted.pipelined, session.uncommitted.promised.get(job, 0)
    if not pipelined or job.ready_count + promised < job.minimum:
        return None
    tasks = job.by_status[Status.PENDING]
    nodes = sorted({pipelined[task.key] for task in tasks if task.key in pipelined})
    if not nodes:
        return None
    message = f"room is being freed on {', '.join(nodes[:5])}"
    return WaitExplanation(
        "pipeline", "Pipelined", message, "nothing to do: it starts once that room is free"
    )


def _objection(session: Session, job: Job) -> WaitExplanation | None:
    text = session.objections.get(job)
    return (
        WaitExplanation("validity", _short(text), text, validity_way_out(job, text))
        if text is not None
        else None
    )


def _all_gated(session: Session, job: Job) -> WaitExplanation | None:
    tasks = job.by_status[Status.PENDING]
    gates = sorted({gate for task in tasks for gate in task.gates})
    if not gates or not all(task.gates for task in tasks):
        return None
    message = f"its pods have scheduling gates: {', '.join(gates)}"
    hint = "it goes on when whoever set the gates removes them"
    return WaitExplanation("scheduling-gates", "SchedulingGated", message, hint)


def _no_node(session: Session, job: Job) -> WaitExplanation | None:
    """The verdict over nodes, if one was reached; one that only refers to another is of less use."""
    verdicts = session.verdicts.get(job)
    if not verdicts:
        return None
    first = next(iter(verdicts.items()))
    task, verdict = next(((task, verdict) for task, verdict in verdicts.items() if verdict.reasons), first)
    reason = verdict.dominant.text if verdict.dominant else _short(verdict.message)
    hint, shortages, holders = nodes_way_out(session, task, reason)
    message = f"{task.name}: {verdict.message}"
    return WaitExplanation("nodes", reason, message, hint, verdict.histogram(), shortages, holders)


def _queue_closed(session: Session, job: Job) -> WaitExplanation | None:
    queue = job.queue
    if queue is None or queue.open or queue.object is None:
        return None
    state = queue.object.status.state
    message = f'queue "{queue.name}" is {state.lower()}'
    hint = f"open it: vcctl queue operate -n {queue.name} -a open"
    return WaitExplanation("queue", f"Queue {state}", message, hint)


def _not_enqueued(session: Session, job: Job) -> WaitExplanation | None:
    if not job.waits_for_queue:
        return None
    events = session.messages.get(job, {}).items()
    messages = ["not let into its queue yet", *(text for topic, text in events if topic.startswith("gate:"))]
    hint, shortages, holders = enqueue_way_out(session.cluster, job)
    message = messages[-1]
    return WaitExplanation("enqueue", _short(message), message, hint, {}, shortages, holders)


def _too_large(session: Session, job: Job) -> WaitExplanation | None:
    task = next(iter(job.by_status[Status.PENDING]), None)
    way_out = larger_than_any_node(session.cluster, task) if task else None
    if way_out is None:
        return None
    hint = "ask for less, or add a larger node"
    return WaitExplanation("nodes", "Larger than any node", way_out.text, hint, {}, way_out.shortages)


def _queue_full(session: Session, job: Job) -> WaitExplanation | None:
    queue, rules, tasks = job.queue, session.rules, list(job.by_status[Status.PENDING])
    if queue is None or not tasks:
        return None
    try:
        overused = rules.overused(queue)
        hit = limit_hit(session, queue, tasks[0].request)
        if overused:
            message = f'queue "{queue.name}" has used up its share'
        elif not rules.allocatable(queue, tasks[0]) or (hit and queue in session.uncommitted.held):
            message = f'queue "{queue.name}" cannot take another pod of this size'
        elif placed := had_room(session, job):
            message = f'queue "{queue.name}" may take {placed} of its {len(tasks)} pods now'
            hit = limit_hit(session, queue, job.pending)
        else:
            return None
    except Exception:  # a plugin that fails here has been named already
        return None
    hint, shortages, holders = queue_way_out(session, job, queue, hit)
    message = f"{message}: {hit.text}" if hit else message
    return WaitExplanation("queue-limits", "Queue overused", message, hint, {}, shortages, holders)


def _too_few_pods(session: Session, job: Job) -> WaitExplanation | None:
    missing = job.minimum - len(job.tasks)
    if missing <= 0:
        return None
    message = f"it has {len(job.tasks)} of the {job.minimum} pods that must start together"
    return WaitExplanation(
        "gang", "Pods missing", message, f"create {missing} more or lower {minimum_field(job)}"
    )


def _not_placed(session: Session, job: Job) -> WaitExplanation | None:
    return WaitExplanation("gang", "Not placed", job_message(session, job))


_GATES: tuple[Callable[[Session, Job], WaitExplanation | None], ...] = (
    _no_group,
    _no_queue,
    _unmet_requirement,
    _room_is_coming,
    _objection,
    _all_gated,
    _no_node,
    _queue_closed,
    _not_enqueued,
    _too_large,
    _queue_full,
    _too_few_pods,
    _not_placed,
)


def _short(text: str) -> str:
    """A text without its particulars."""
    return text.split(":", 1)[0].split(", ", 1)[0]
