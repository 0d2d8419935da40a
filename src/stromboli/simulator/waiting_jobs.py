"""Why a job waits: the one reason that matters, in users' words, with the next step."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from stromboli.api import names
from stromboli.engine.cycle import Outcome
from stromboli.engine.outcome import job_message
from stromboli.engine.placement.verdict import Verdict
from stromboli.engine.session import Session
from stromboli.model.job import Job
from stromboli.model.status import Status
from stromboli.model.task import Task
from stromboli.simulator.queue_limit_hits import limit_hit, queue_hint
from stromboli.simulator.wait_hints import (
    gate_hint,
    had_room,
    minimum_field,
    objection_hint,
    too_large,
    verdict_hint,
)


class Waiting(Struct):
    """A job with pods that are not placed."""

    reason: str
    message: str
    hint: str = ""
    counts: dict[str, int] = {}
    """Nodes per reason, where nodes were looked at."""
    pods: int = 0
    """How many of its pods wait."""
    queue: str = ""


class Case:
    """A waiting job as the explanations below look at it."""

    def __init__(self, outcome: Outcome, job: Job) -> None:
        self.outcome = outcome
        self.session: Session = outcome.session
        self.job = job
        self.lost = outcome.lost
        self.verdicts: dict[Task, Verdict] = self.session.verdicts.get(job, {})
        self.tasks = list(job.by_status[Status.PENDING])
        held = outcome.pipelined
        self.held = sorted({held[task.key] for task in self.tasks if task.key in held}) if held else []


def waiting_jobs(outcome: Outcome) -> dict[str, Waiting]:
    """Every job that has a pod to place or lacks the pods to start, with its reason."""
    return {job.key: _explain(outcome, job) for job in outcome.session.cluster.jobs.values() if _waits(job)}


def why(outcome: Outcome, task: Task) -> str:
    """Why one pod waits, in a sentence; empty if it does not."""
    if task.status is not Status.PENDING:
        return ""
    if task.job is None:
        return "belongs to no PodGroup"
    verdict = outcome.session.verdicts.get(task.job, {}).get(task)
    return verdict.message if verdict else _explain(outcome, task.job).message


def _waits(job: Job) -> bool:
    if job.counts[Status.PENDING]:
        return True
    return job.group is not None and not job.tasks and job.minimum > 0


def _explain(outcome: Outcome, job: Job) -> Waiting:
    case = Case(outcome, job)
    waiting = next(found for explanation in _EXPLANATIONS if (found := explanation(case)))
    waiting.pods = len(case.tasks)
    waiting.queue = job.queue.name if job.queue else ""
    return waiting


# -- explanations, the first that applies counts


def _cycle_lost(case: Case) -> Waiting | None:
    if case.lost is None:
        return None
    hint = "mend the plugin or take it out of the policy" if case.lost.plugin else ""
    return Waiting("CycleLost", f"the cycle is lost: {case.lost.message}", hint)


def _no_group(case: Case) -> Waiting | None:
    if case.job.group is not None:
        return None
    named = "the annotation scheduling.k8s.io/group-name"
    whose = ""
    if case.job.native is not None:
        named, whose = "spec.schedulingGroup", " of scheduling.k8s.io"
    hint = f"create it, or correct {named} of its pods"
    return Waiting("PodGroup missing", f"PodGroup {case.job.key}{whose} does not exist", hint)


def _no_queue(case: Case) -> Waiting | None:
    queue = case.job.queue
    if queue is not None and queue.exists:
        return None
    name = queue.name if queue else ""
    known = sorted(
        one.name for one in case.session.cluster.queues.values() if one.exists and one.name != "root"
    )
    choice = f" to one of: {', '.join(known[:10])}" if known else ""
    where = "spec.queue" if case.job.native is None else f"the annotation {names.QUEUE_NAME}"
    return Waiting(
        "Queue missing",
        names.QUEUE_MISSING.format(queue=name),
        f"create it, or set {where} of the PodGroup{choice}",
    )


def _room_is_coming(case: Case) -> Waiting | None:
    """It holds its place until room is free, and that is enough to start."""
    if not case.held or case.job.ready_count + case.outcome.promised.get(case.job, 0) < case.job.minimum:
        return None
    where = ", ".join(case.held[:5])
    return Waiting(
        "Pipelined", f"room is being freed on {where}", "nothing to do: it starts once that room is free"
    )


def _objection(case: Case) -> Waiting | None:
    text = case.session.objections.get(case.job)
    if text is None:
        return None
    return Waiting(_short(text), text, objection_hint(case.job, text))


def _all_gated(case: Case) -> Waiting | None:
    gates = sorted({gate for task in case.tasks for gate in task.gates})
    if not gates or not all(task.gates for task in case.tasks):
        return None
    text = f"its pods have scheduling gates: {', '.join(gates)}"
    return Waiting("SchedulingGated", text, "it goes on when whoever set the gates removes them")


def _no_node(case: Case) -> Waiting | None:
    """The verdict over nodes, if one was reached; one that only refers to another is of less use."""
    if not case.verdicts:
        return None
    task, verdict = next(
        ((t, v) for t, v in case.verdicts.items() if v.reasons), next(iter(case.verdicts.items()))
    )
    dominant = verdict.dominant
    reason = dominant.text if dominant else _short(verdict.message)
    hint = verdict_hint(case.outcome, task, reason)
    return Waiting(reason, f"{task.name}: {verdict.message}", hint, verdict.histogram())


def _queue_closed(case: Case) -> Waiting | None:
    queue = case.job.queue
    if queue is None or queue.open or queue.object is None:
        return None
    state = queue.object.status.state
    return Waiting(
        f"Queue {state}",
        f'queue "{queue.name}" is {state.lower()}',
        f"open it: vcctl queue operate -n {queue.name} -a open",
    )


def _at_the_gate(case: Case) -> Waiting | None:
    """Enqueue did not let it in."""
    job = case.job
    if not job.waits_for_queue:
        return None
    said = [text for topic, text in case.session.messages.get(job, {}).items() if topic.startswith("gate:")]
    text = said[-1] if said else "not let into its queue yet"
    return Waiting(_short(text), text, gate_hint(case.session.cluster, job))


def _too_large(case: Case) -> Waiting | None:
    text = next((text for task in case.tasks[:1] if (text := too_large(case.session.cluster, task))), "")
    return Waiting("Larger than any node", text, "ask for less, or add a larger node") if text else None


def _queue_full(case: Case) -> Waiting | None:
    queue, rules, tasks = case.job.queue, case.session.rules, case.tasks
    if queue is None or not tasks:
        return None
    try:
        overused = rules.overused(queue)
        limit = limit_hit(case.outcome, queue, tasks[0].request)
        if overused:
            text = f'queue "{queue.name}" has used up its share'
        elif not rules.allocatable(queue, tasks[0]) or (limit and queue in case.outcome.held):
            text = f'queue "{queue.name}" cannot take another pod of this size'
        elif placed := had_room(case.session, case.job):
            text = f'queue "{queue.name}" may take {placed} of its {len(tasks)} pods now'
            limit = limit_hit(case.outcome, queue, case.job.pending)
        else:
            return None
    except Exception:  # a plugin that fails here has been named already
        return None
    told = f"{text}: {limit.text}" if limit else text
    return Waiting("Queue overused", told, queue_hint(case.outcome, case.job, queue, limit))


def _too_few_pods(case: Case) -> Waiting | None:
    job = case.job
    if len(job.tasks) >= job.minimum:
        return None
    missing = job.minimum - len(job.tasks)
    text = f"it has {len(job.tasks)} of the {job.minimum} pods that must start together"
    return Waiting("Pods missing", text, f"create {missing} more or lower {minimum_field(job)}")


def _left_over(case: Case) -> Waiting | None:
    return Waiting("Not placed", job_message(case.session, case.job))


_EXPLANATIONS: tuple[Callable[[Case], Waiting | None], ...] = (
    _cycle_lost,
    _no_group,
    _no_queue,
    _room_is_coming,
    _objection,
    _all_gated,
    _no_node,
    _queue_closed,
    _at_the_gate,
    _too_large,
    _queue_full,
    _too_few_pods,
    _left_over,
)


def _short(text: str) -> str:
    """A text without its particulars."""
    return text.split(":", 1)[0].split(", ", 1)[0]
