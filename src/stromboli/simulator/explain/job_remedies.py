"""Remedies in the job itself: a smaller minimum, smaller requests, a wider topology, no scheduling gates."""

from __future__ import annotations

from stromboli.api import names
from stromboli.engine.explanation.quantities import quantities
from stromboli.model.status import Status
from stromboli.simulator.dangling_references import first_few
from stromboli.simulator.explain.explanation_document import ObjectChange, Remedy
from stromboli.simulator.explain.group_changes import (
    fewer_at_once,
    group_patch,
    group_with_less,
    less_restricted,
)
from stromboli.simulator.explain.remedy_trials import RemedyTrials, listed, pods_patch
from stromboli.simulator.explain.smaller_requests import (
    containers_with_less,
    largest_request_with_room,
    rounded_down,
)

LARGER_MINIMA = 2
"""Trials of a larger minimum than one with which a job starts."""


def remove_gates(trials: RemedyTrials) -> None:
    gated = [task for task in trials.job.by_status[Status.PENDING] if task.gates]
    if not gated:
        return
    gates = sorted({gate for task in gated for gate in task.gates})
    text = f"the scheduling gates of its pods are removed ({first_few(gates)})"
    change = pods_patch(gated, {"spec": {"schedulingGates": []}})
    trials.attempt(Remedy("scheduling-gates", text, [change]), "removing its scheduling gates alone")


def lower_minimum(trials: RemedyTrials) -> None:
    """The largest minimum with which it starts, as far as few trials tell; none if no pod has room as it is."""
    job = trials.job
    likely = min(job.ready_count + trials.pods_with_room(), len(job.tasks), job.minimum - 1)
    too_many = likely + 1
    for minimum in dict.fromkeys((likely, likely * 3 // 4, likely // 2)):
        if minimum >= 1 and _start_with(trials, minimum):
            _raise_minimum(trials, minimum, too_many)
            return
        too_many = minimum


def _raise_minimum(trials: RemedyTrials, enough: int, too_many: int) -> None:
    """Put a larger minimum that helps too in the place of the last remedy, in few trials."""
    helpful = trials.remedies.helpful
    for _ in range(LARGER_MINIMA):
        middle = (enough + too_many) // 2
        if middle == enough or trials.exhausted:
            return
        if _start_with(trials, middle):
            del helpful[-2]
            enough = middle
        else:
            too_many = middle


def start_with_one(trials: RemedyTrials) -> None:
    """A job that could start with any of its pods may come before others who have their room."""
    found = any(remedy.kind == "minimum" for remedy in trials.remedies.helpful)
    if not found and trials.job.minimum > 1 and not _start_with(trials, 1) and not trials.exhausted:
        trials.remedies.in_vain.append("a smaller minimum")


def _start_with(trials: RemedyTrials, minimum: int) -> bool:
    job = trials.job
    if job.native is not None or job.group is None:
        return False
    text = f"minMember is {minimum} instead of {job.minimum}"
    return trials.attempt(Remedy("minimum", text, [fewer_at_once(trials.cluster, job, minimum)]))


def lower_requests(trials: RemedyTrials) -> None:
    """The largest requests with which it starts, as far as few trials tell."""
    clues, cluster = trials.clues, trials.cluster
    asked = {dim: max(int(task.request.get(dim, 0)) for task in clues.tasks) for dim in clues.short}
    room = {dim: largest_request_with_room(clues, dim) for dim, amount in asked.items() if amount > 0}
    for part in (1.0, 0.5, 0.25):
        most = {dim: rounded_down(dim, int(amount * part)) for dim, amount in room.items()}
        most = {dim: amount for dim, amount in most.items() if 0 < amount < asked[dim]}
        changes = _pods_with_less(trials, most) if most else []
        if not changes:
            continue
        less = listed(quantities(cluster, most))
        now = listed(quantities(cluster, {dim: asked[dim] for dim in most}))
        each = "each pod requests" if len(clues.tasks) > 1 else "its pod requests"
        changes += group_with_less(cluster.dims, trials.job, asked, most)
        text = f"{each} {less} instead of {now}"
        if trials.attempt(Remedy("requests", text, changes), f"requests of {less}"):
            return


def _pods_with_less(trials: RemedyTrials, most: dict[int, int]) -> list[ObjectChange]:
    """None of the pods asks for more than this; empty if some cannot be changed so easily."""
    changes = []
    for tasks in trials.tasks_by_shape():
        if all(tasks[0].request.get(dim, 0) <= amount for dim, amount in most.items()):
            continue
        containers = containers_with_less(trials.cluster.dims, tasks[0].shape, most)
        if containers is None:
            return []
        changes.append(pods_patch(tasks, {"spec": {"containers": containers}}))
    return changes


def relax_topology(trials: RemedyTrials) -> None:
    if trials.clues.wait.gate not in ("topology", "requirements"):
        return
    for text, change in less_restricted(trials.job, trials.cluster.hyper_nodes.tiers):
        if trials.attempt(Remedy("topology", text, [change]), text):
            return


def shorten_time(trials: RemedyTrials) -> None:
    """A time limit with which it ends before those start whom it would delay."""
    job, promised = trials.job, trials.clues.promised
    seconds = int(promised - trials.now) if promised is not None else 0
    if seconds < 1 or job.native is not None or job.group is None:
        return
    limit = f"{seconds}s"
    text = f"its time limit is {limit}, so that it delays no reserved job (annotation {names.TIME_LIMIT})"
    change = group_patch(job, {"metadata": {"annotations": {names.TIME_LIMIT: limit}}})
    trials.attempt(Remedy("time-limit", text, [change]), f"a time limit of {limit}")
