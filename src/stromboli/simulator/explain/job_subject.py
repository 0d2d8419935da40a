"""A job explained after a cycle: its gate, what is short and where, which jobs hold it; or where it runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from stromboli.engine.decisions import Bind
from stromboli.engine.explanation.diagnosis import WAITING
from stromboli.engine.explanation.event_history import History, HistoryEntry, history_of
from stromboli.engine.explanation.quantities import quantities, time_text
from stromboli.model.status import Status
from stromboli.simulator.explain.eviction_answers import EvictionAnswers
from stromboli.simulator.explain.explanation_document import (
    GateState,
    JobExplanation,
    PodCounts,
    PodPlace,
    PodRequest,
    State,
)
from stromboli.simulator.explain.resource_holders import (
    expected_end,
    holding_tasks,
    resource_holders,
)
from stromboli.simulator.explain.room_by_nodes import hyper_node_rooms, node_group_rooms
from stromboli.simulator.explain.wait_clues import WaitClues, wait_clues

if TYPE_CHECKING:
    from stromboli.engine.cycle import Outcome
    from stromboli.engine.explanation.diagnosis import Diagnosis
    from stromboli.model.cluster import Cluster
    from stromboli.model.job import Job
    from stromboli.model.task import Task


MAX_PLACES = 50
MAX_REQUESTS = 20
ROOM_GATES = ("nodes", "topology", "gang", "pipeline", "backfill", "queue-limits", "enqueue")
"""Gates at which free capacity matters."""
WITHOUT_CLUES = ("cycle", "pod-group")
"""Gates at which the cycle found out nothing about the job."""


def job_explanation(
    outcome: Outcome, job: Job, kind: str = "", name: str = "", pod: Task | None = None
) -> tuple[JobExplanation, WaitClues | None]:
    """Explain a job as it is after a cycle, with clues to remedies if it waits.

    `kind` and `name` are those of the object that was asked about, if it is not the PodGroup itself.
    """
    wait = outcome.explain(job)
    explained = JobExplanation(
        kind=kind or (job.owner.kind if job.owner else "PodGroup"),
        name=name or (job.owner.name if job.owner else job.name),
        namespace=job.namespace,
        pod_group=job.name,
        native=job.native is not None,
        queue=job.queue.name if job.queue else "",
        state=job_state(outcome, job, wait),
        priority=job.priority,
        phase=job.phase,
        pods=_pod_counts(job),
        requests=_requests(outcome.session.cluster, job),
        history=_history(job),
    )
    clues = _add_wait(outcome, job, wait, explained) if wait is not None else None
    _add_places(outcome, job, explained)
    explained.summary = _summary(explained)
    if pod is not None:
        explained.pod, explained.pod_text = pod.name, _pod_text(outcome, pod)
    return explained, clues


def job_state(outcome: Outcome, job: Job, wait: Diagnosis | None) -> State:
    """Whether a job waits, starts by the decisions of the cycle, or runs."""
    counts, held = job.counts, holding_tasks(job)
    enough = job.ready_count - counts[Status.ALLOCATED] >= max(job.minimum, 1)
    if job.tasks and all(task.status in (Status.SUCCEEDED, Status.FAILED) for task in job.tasks.values()):
        return "ended"
    if any(counts[status] for status in WAITING):
        if enough and any(task.status is Status.BINDING for task in held) and not wait:
            return "starts"
        return "partly-runs" if enough and held else "waits"
    if wait is not None:
        return "waits"
    if any(decision.uid in job.tasks for decision in outcome.decisions if isinstance(decision, Bind)):
        return "starts"
    if held:
        leaving = all(task.status is Status.RELEASING for task in held)
        return "leaving" if leaving else "runs"
    return "empty"


def _add_wait(outcome: Outcome, job: Job, wait: Diagnosis, explained: JobExplanation) -> WaitClues | None:
    """Add why a job waits; return the clues to remedies."""
    explained.wait = wait
    explained.gates = gate_states(job, wait)
    if wait.gate in WITHOUT_CLUES:
        return None
    session, clues = outcome.session, wait_clues(outcome, job, wait)
    tasks, needed = clues.tasks, clues.needed
    if tasks and wait.gate in ROOM_GATES and len(session.cluster.columns):
        explained.room = node_group_rooms(session, clues.kinds)
        explained.hyper_nodes = hyper_node_rooms(session, tasks[:needed], needed)
        explained.holders = resource_holders(session, tasks[0], clues.holders, clues.short, clues.usable)
        explained.evicting = EvictionAnswers(session, tasks[0]).policy_text
    return clues


def _pod_counts(job: Job) -> PodCounts:
    counts = job.counts
    return PodCounts(
        total=len(job.tasks),
        minimum=job.minimum,
        waiting=sum(counts[status] for status in WAITING),
        running=sum(
            counts[status] for status in (Status.BINDING, Status.BOUND, Status.RUNNING, Status.UNKNOWN)
        ),
        leaving=counts[Status.RELEASING],
        succeeded=counts[Status.SUCCEEDED],
        failed=counts[Status.FAILED],
    )


def _requests(cluster: Cluster, job: Job) -> list[PodRequest]:
    kinds = Counter((task.shape, task.role) for task in job.tasks.values())
    return [
        PodRequest(
            pods=count,
            requests=quantities(cluster, shape.request),
            role=role,
            node_selector=dict(shape.spec.node_selector or {}),
        )
        for (shape, role), count in kinds.most_common(MAX_REQUESTS)
    ]


def _add_places(outcome: Outcome, job: Job, explained: JobExplanation) -> None:
    """Add where the pods of a job are, since when and until when."""
    tasks = holding_tasks(job)
    nodes: dict[str, list[Task]] = {}
    for task in tasks:
        nodes.setdefault(task.node.name if task.node else "", []).append(task)
    for node, on_it in list(nodes.items())[:MAX_PLACES]:
        since = min((task.started for task in on_it if task.started is not None), default=None)
        explained.places.append(PodPlace(node, len(on_it), None if since is None else time_text(since)))
    starts = [task.started for task in tasks if task.started is not None]
    end = expected_end(tasks, outcome.session.cluster.queues)
    explained.since = time_text(min(starts)) if starts else None
    explained.until = None if end is None else time_text(end)


def _summary(explained: JobExplanation) -> str:
    title = f"{explained.kind} {explained.namespace}/{explained.name}"
    nodes = _node_list(explained.places)
    since = f" (since {explained.since})" if explained.since else ""
    match explained.state:
        case "waits" | "partly-runs" if explained.wait is not None:
            text = explained.wait.message
            if explained.state == "waits":
                return f"{title} waits: {text}"
            return f"{title} is running{since}, {explained.pods.waiting} more pods wait: {text}"
        case "partly-runs":
            return f"{title} is running{nodes}{since}, {explained.pods.waiting} more pods are starting"
        case "starts":
            return f"{title} starts in the next cycle{nodes}"
        case "runs":
            return f"{title} is running{nodes}{since}"
        case "leaving":
            return f"{title} is terminating{nodes}"
        case "ended":
            return f"{title} has ended: {explained.pods.succeeded} pods succeeded, {explained.pods.failed} failed"
        case _:
            return f"{title} has no pods"


def _node_list(places: Sequence[PodPlace]) -> str:
    if not places:
        return ""
    listed = [f"{place.node} ({place.pods})" if place.pods > 1 else place.node for place in places[:5]]
    more = f" and {len(places) - 5} more nodes" if len(places) > 5 else ""
    return f" on {', '.join(listed)}{more}"


def _pod_text(outcome: Outcome, task: Task) -> str:
    if task.status is Status.PENDING:
        if task.gates:
            return f"Pod {task.name} has scheduling gates: {', '.join(task.gates)}"
        return f"Pod {task.name} waits: {outcome.explain_task(task)}"
    where = f" on {task.node.name}" if task.node else ""
    since = f" since {time_text(task.started)}" if task.started is not None else ""
    return f"Pod {task.name} is {task.status.title.lower()}{where}{since}"


# -- all gates in the order in which a job passes them: passed, holding it, or not known yet


_PLACE = {
    "pod-group": 0,
    "queue": 1,
    "enqueue": 2,
    "validity": 3,
    "scheduling-gates": 3,
    "gang": 3,
    "requirements": 4,
    "policy": 4,
    "backfill": 4,
    "cycle": 4,
    "queue-limits": 5,
    "topology": 6,
    "nodes": 6,
    "pipeline": 6,
}
"""The place in `_NAMES` of each gate of a diagnosis."""
_NAMES = ("PodGroup", "queue", "admission", "gang", "rules", "share", "room")


def gate_states(job: Job, wait: Diagnosis) -> list[GateState]:
    """All gates; those after the one that holds the job, or that it has not reached, are unknown."""
    holding = _PLACE.get(wait.gate, 6)
    known = [_group(job), _queue(job), _admission(job), _gang(job)]
    states: list[GateState] = []
    reached = True
    for place, name in enumerate(_NAMES):
        if place == holding:
            states.append(GateState(name, "holds", wait.summary or wait.message))
            reached = False
        elif place < len(known):
            passed, text = known[place]
            reached = reached and passed
            states.append(GateState(name, "passed" if passed else "unknown", text))
        else:
            states.append(GateState(name, "passed" if reached else "unknown", _LATER[name][reached]))
    return states


_UNKNOWN = "not checked yet"
_LATER = {
    "rules": (_UNKNOWN, "no plugin rejects it"),
    "share": (_UNKNOWN, "below its limit"),
    "room": (_UNKNOWN, "sufficient"),
}


def _group(job: Job) -> tuple[bool, str]:
    return job.group is not None, f"{job.name} {'exists' if job.group else 'does not exist'}"


def _queue(job: Job) -> tuple[bool, str]:
    queue = job.queue
    if queue is None or queue.object is None:
        return False, f'queue "{queue.name if queue else ""}" does not exist'
    state = "open" if queue.open else queue.object.status.state.lower()
    return queue.open, f'queue "{queue.name}" is {state}'


def _admission(job: Job) -> tuple[bool, str]:
    admitted = not job.waits_for_queue
    return admitted, f"{'admitted' if admitted else 'not admitted yet'} (phase {job.phase or 'none'})"


def _gang(job: Job) -> tuple[bool, str]:
    if job.complete:
        return True, f"{job.minimum} of its {job.valid_count} pods must start together"
    return False, f"{job.valid_count} of the {job.minimum} pods that must start together exist"


# -- the history by its objects


MAX_TEXT = 2000
"""Characters of the message of a condition."""
MOMENT = 60
"""Seconds within which changes of pods of a job are one entry."""


def _history(job: Job) -> History:
    """The history by the objects of a job: their creation and conditions, and when pods were bound and started."""
    entries: list[HistoryEntry] = []
    if job.group is not None:
        if job.created:
            text = f"PodGroup {job.name} was created"
            entries.append(HistoryEntry(time=time_text(job.created), kind="created", text=text))
        for condition in job.group.status.conditions:
            if condition.last_transition_time is not None and condition.message:
                time = time_text(condition.last_transition_time.timestamp())
                text = f"{condition.type}: {condition.message[:MAX_TEXT]}"
                entries.append(HistoryEntry(time=time, kind="condition", text=text))
    tasks = job.tasks.values()
    for kind, verb, moments in (
        ("created", "created", [task.created for task in tasks if task.created]),
        ("scheduled", "bound to a node", [task.scheduled_at for task in tasks if task.scheduled_at]),
        ("started", "started", [task.started for task in tasks if task.started]),
    ):
        entries += _pods_at(kind, verb, [int(moment) for moment in moments], len(tasks))
    return history_of(entries)


def _pods_at(kind: str, verb: str, moments: list[int], total: int) -> list[HistoryEntry]:
    """One entry for pods of the same moment, at most three: the first, the second and the last one."""
    counts: Counter[int] = Counter()
    start = -MOMENT
    for moment in sorted(moments):
        start = start if moment - start < MOMENT else moment
        counts[start] += 1
    ordered = sorted(counts)
    chosen = ordered if len(ordered) <= 3 else [*ordered[:2], ordered[-1]]
    return [
        HistoryEntry(
            time=time_text(moment),
            kind=kind,
            text=f"{counts[moment]} of its {total} pods were {verb}" if total > 1 else f"its pod was {verb}",
            count=counts[moment],
        )
        for moment in chosen
    ]
