"""Remedies at the cost of others: that they end, that they count for less, that they are evicted."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf, isfinite

from stromboli.engine.explanation.quantities import time_text
from stromboli.model.job import Job
from stromboli.model.status import Status
from stromboli.model.task import Task
from stromboli.simulator.dangling_references import first_few
from stromboli.simulator.explain.eviction_answers import BETWEEN_QUEUES, EVICTING, WITHIN_QUEUE
from stromboli.simulator.explain.explanation_document import ObjectChange, Remedy
from stromboli.simulator.explain.group_changes import group_patch
from stromboli.simulator.explain.remedy_trials import RemedyTrials, pods_patch
from stromboli.simulator.explain.resource_holders import expected_end

MOST_HOLDERS = 3
"""Jobs of which it is tried whether the end of each alone is enough."""
OF_THE_SYSTEM = "system-"
"""How the classes are called that are not for users."""
_HOLDING = (Status.RUNNING, Status.BOUND, Status.BINDING, Status.RELEASING, Status.UNKNOWN)
Holding = list[tuple[Job, list[Task]]]


def let_others_end(trials: RemedyTrials) -> None:
    """One of those who hold most, else several of them, those that end first."""
    holders = [holder for holder in trials.clues.holders if _pods_of(holder[0])]
    for holder in holders[:MOST_HOLDERS]:
        if trials.attempt(_end_of(trials, [holder])):
            return
    ordered = sorted(holders, key=lambda holder: _end(trials, holder[1]))
    for count in dict.fromkeys((2, len(ordered) // 2, len(ordered))):
        if 2 <= count <= len(ordered) and trials.attempt(_end_of(trials, ordered[:count])):
            return


def _pods_of(job: Job) -> list[str]:
    """Its pods that hold room; none if it only starts with the next cycle."""
    return sorted(task.name for status in _HOLDING for task in job.by_status[status])


def _end(trials: RemedyTrials, tasks: Iterable[Task]) -> float:
    end = expected_end(tasks, trials.cluster.queues)
    return inf if end is None else end


def _end_of(trials: RemedyTrials, holders: Holding) -> Remedy:
    changes, texts = [], []
    for job, tasks in holders:
        changes.append(ObjectChange("delete", "Pod", _pods_of(job), job.namespace))
        end = _end(trials, tasks)
        texts.append((job.key, f" (by {time_text(end)})" if isfinite(end) else ""))
    listed = first_few([f"{key}{when}" for key, when in texts])
    text = f"{texts[0][0]} ends{texts[0][1]}" if len(texts) == 1 else f"{listed} end"
    return Remedy("end", text, changes)


def raise_priority(trials: RemedyTrials) -> None:
    """The next higher class, else the highest."""
    job = trials.job
    if job.native is not None or job.group is None:
        return
    classes = trials.cluster.objects.priority_classes.values()
    usable = (each for each in classes if not each.name.startswith(OF_THE_SYSTEM))
    higher = sorted({each.value: each.name for each in usable if each.value > job.priority}.items())
    for value, name in [*higher[:1], *higher[1:][-1:]]:
        pods = list(job.by_status[Status.PENDING])
        patch = {"spec": {"priority": value, "priorityClassName": name}}
        changes = [group_patch(job, {"spec": {"priorityClassName": name}}), pods_patch(pods, patch)]
        text = f"its priority is {value} (class {name}) instead of {job.priority}"
        if trials.attempt(Remedy("priority", text, changes), f"priority class {name}"):
            return


def evict(trials: RemedyTrials) -> None:
    """With an action that evicts, where the policy has none."""
    actions = trials.policy.actions
    if any(action in actions for action in EVICTING):
        return
    for added in (WITHIN_QUEUE[0], BETWEEN_QUEUES[0]):
        text = f"action {added} is added to the policy"
        trials.attempt(Remedy("actions", text, actions=[*actions, added]), f"action {added}")
