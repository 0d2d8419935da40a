"""Remedies about queues: opening one, going to another, raising what one may have."""

from __future__ import annotations

from stromboli.engine.explanation.quantities import quantities
from stromboli.engine.explanation.queue_limit_hits import Hit
from stromboli.engine.plugin import DESERVED
from stromboli.engine.queue_limits import own_capability
from stromboli.model.queue import Queue
from stromboli.simulator.explain.explanation_document import ObjectChange, Remedy
from stromboli.simulator.explain.group_changes import group_patch
from stromboli.simulator.explain.remedy_trials import RemedyTrials, listed

MOST_QUEUES = 3
HIGHEST_WEIGHT = 65535


def open_queue(trials: RemedyTrials) -> None:
    queue = trials.job.queue
    if queue is None or queue.object is None or queue.open:
        return
    change = ObjectChange("patch", "Queue", [queue.name], patch={"status": {"state": "Open"}})
    text = f'queue "{queue.name}" is opened'
    trials.attempt(Remedy("open-queue", text, [change]), f'opening queue "{queue.name}" alone')


def change_queue(trials: RemedyTrials) -> None:
    job = trials.job
    if job.native is not None or job.group is None:
        return
    before = f' instead of "{job.queue.name}"' if job.queue else ""
    for queue in _other_queues(trials, job.queue)[:MOST_QUEUES]:
        text = f'it is in queue "{queue.name}"{before}'
        change = group_patch(job, {"spec": {"queue": queue.name}})
        if trials.attempt(Remedy("queue", text, [change]), f'queue "{queue.name}"'):
            return


def _other_queues(trials: RemedyTrials, own: Queue | None) -> list[Queue]:
    """Open queues without queues below them, those that use least of what is short first."""
    queues, total = trials.cluster.queues.values(), trials.cluster.total
    inner = {"root", *(queue.parent for queue in queues)}

    def use(queue: Queue) -> tuple[float, str]:
        return sum(
            queue.held.get(dim, 0) / max(total.get(dim, 0), 1) for dim in trials.clues.short
        ), queue.name

    others = (queue for queue in queues if queue is not own and queue.open and queue.name not in inner)
    return sorted(others, key=use)


def raise_queue_limits(trials: RemedyTrials) -> None:
    """The capability of the queue whose limit holds the job, else what it deserves, else its weight."""
    for hit in trials.clues.hits:
        if hit.limit.queue.object is not None:
            _raise_limit(trials, hit)


def _raise_limit(trials: RemedyTrials, hit: Hit) -> None:
    queue, cluster = hit.limit.queue, trials.cluster
    wanted = {dim: int(hit.held.get(dim, 0) + amount) for dim, amount in hit.asked.items()}
    amounts = quantities(cluster, wanted)
    if any(dim in own_capability(queue) for dim in wanted):
        now = listed(quantities(cluster, {dim: hit.limit.most[dim] for dim in wanted}))
        text = f'the capability of queue "{queue.name}" is {listed(amounts)} instead of {now}'
        if trials.attempt(Remedy("capability", text, [_queue_patch(queue, {"capability": amounts})])):
            return
    if queue.deserved:
        text = f'queue "{queue.name}" deserves {listed(amounts)}'
        trials.attempt(Remedy("deserved", text, [_queue_patch(queue, {"deserved": amounts})]))
    elif hit.limit.code == DESERVED and (weight := _weight_for(trials, queue, wanted)):
        text = f'the weight of queue "{queue.name}" is {weight} instead of {queue.weight}'
        remedy = Remedy("weight", text, [_queue_patch(queue, {"weight": weight})])
        trials.attempt(remedy, f'a larger weight of queue "{queue.name}"')


def _queue_patch(queue: Queue, spec: dict[str, object]) -> ObjectChange:
    return ObjectChange("patch", "Queue", [queue.name], patch={"spec": spec})


def _weight_for(trials: RemedyTrials, queue: Queue, wanted: dict[int, int]) -> int:
    """By its part of all weights, so that its part of the cluster would be enough; 0 if all of it is not."""
    queues, total = trials.cluster.queues.values(), trials.cluster.total
    others = sum(each.weight for each in queues if each is not queue and each.jobs)
    share = max(amount / max(total.get(dim, 0), 1) for dim, amount in wanted.items())
    if share > 1:
        return 0
    if share == 1:
        return HIGHEST_WEIGHT
    return min(HIGHEST_WEIGHT, int(share / (1 - share) * max(others, 1)) + 1)
