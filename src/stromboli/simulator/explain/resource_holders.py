"""Which jobs hold what is short, until when, and why the policy does not evict them."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from stromboli.engine.explanation.quantities import quantities, time_text
from stromboli.model.amounts import Amounts, shift
from stromboli.model.status import WEIGHT, Status
from stromboli.model.time_limits import queue_limit, time_limit
from stromboli.simulator.explain.eviction_answers import EvictionAnswers
from stromboli.simulator.explain.explanation_document import HoldingJob, ResourceHolder

if TYPE_CHECKING:
    from stromboli.engine.session import Session
    from stromboli.model.cluster import Cluster
    from stromboli.model.job import Job
    from stromboli.model.node_columns import Bools
    from stromboli.model.queue import Queue
    from stromboli.model.task import Task

MAX_HOLDERS = 5
MAX_CANDIDATES = 20
"""The largest jobs, of which those that hold most on usable nodes are chosen."""
HOLDING = (Status.RUNNING, Status.BOUND, Status.BINDING, Status.RELEASING, Status.UNKNOWN)
"""Statuses of tasks that hold capacity."""
NO_JOB = "pods without a job"


def holding_tasks(job: Job) -> list[Task]:
    """The tasks of a job that hold capacity on a node."""
    return [task for status in HOLDING for task in job.by_status[status] if task.node is not None]


def expected_end(tasks: Iterable[Task], queues: dict[str, Queue]) -> float | None:
    """When the last of these tasks ends by its time limit; None if one of them has no limit or has not started."""
    ends = []
    for task in tasks:
        limit = time_limit(task, queue_limit(task.job.queue if task.job else None, queues))
        if limit is None or task.started is None:
            return None
        ends.append(task.started + limit)
    return max(ends, default=None)


class HoldingTasks(NamedTuple):
    """A job with its tasks on some nodes, and what these hold."""

    job: Job
    tasks: list[Task]
    held: Amounts


def largest_holding_jobs(
    session: Session, dims: Collection[int], usable: Bools, waiting: Job
) -> list[HoldingTasks]:
    """The jobs other than the waiting one that hold the most of some resources on some nodes."""
    cluster = session.cluster
    sizes = {dim: max(cluster.total.get(dim, 0), 1) for dim in dims}

    def weight(held: Amounts) -> float:
        return sum(held.get(dim, 0) / sizes[dim] for dim in dims)

    others = (job for job in cluster.jobs.values() if job is not waiting and job.allocated)
    largest = heapq.nlargest(MAX_CANDIDATES, others, key=lambda job: (weight(job.allocated), job.key))
    holding = []
    for job in largest:
        tasks = [
            task for task in holding_tasks(job) if task.node and task.node.row >= 0 and usable[task.node.row]
        ]
        held: Amounts = {}
        for task in tasks:
            shift(held, task.request)
        if weight(held) > 0:
            holding.append(HoldingTasks(job, tasks, held))
    return sorted(holding, key=lambda entry: (-weight(entry.held), entry.job.key))


def resource_holders(
    session: Session,
    waiting: Task,
    holding: Sequence[HoldingTasks],
    dims: Collection[int],
    usable: Bools,
) -> list[ResourceHolder]:
    """The jobs and pods that hold the most of what is short where the task could run."""
    cluster, answers = session.cluster, EvictionAnswers(session, waiting)
    holders = []
    for job, tasks, held in holding[:MAX_HOLDERS]:
        end = expected_end(tasks, cluster.queues)
        over = end is not None and end <= session.now
        holders.append(
            ResourceHolder(
                job=job.key,
                queue=job.queue.name if job.queue else "",
                pods=len(tasks),
                nodes=len({task.node for task in tasks}),
                holds=quantities(cluster, held, dims),
                priority=job.priority,
                until=None if end is None or over else time_text(end),
                over_limit=over,
                not_evicted=answers.why_not(job, tasks),
            )
        )
    return holders + _without_job(cluster, dims, usable)


def _without_job(cluster: Cluster, dims: Collection[int], usable: Bools) -> list[ResourceHolder]:
    """What pods without a job hold, such as those of other schedulers."""
    held: Amounts = {}
    count, nodes = 0, set()
    for task in cluster.tasks.values():
        node = task.node
        if task.job is not None or node is None or node.row < 0 or not usable[node.row]:
            continue
        if WEIGHT[task.status].used and any(task.request.get(dim, 0) for dim in dims):
            shift(held, task.request)
            count += 1
            nodes.add(node)
    if not count:
        return []
    text = "this scheduler does not manage them"
    listed = quantities(cluster, held, dims)
    return [
        ResourceHolder(job=NO_JOB, queue="", pods=count, nodes=len(nodes), holds=listed, not_evicted=text)
    ]


def holding_jobs(cluster: Cluster, tasks: Iterable[Task], most: int) -> tuple[list[HoldingJob], int]:
    """Tasks on nodes by job, the largest jobs first, and the number of jobs."""
    by_job: dict[str, list[Task]] = {}
    for task in tasks:
        by_job.setdefault(task.job.key if task.job else task.key, []).append(task)
    sizes = {key: sum(_share(cluster, task) for task in tasks) for key, tasks in by_job.items()}
    largest = heapq.nsmallest(most, by_job, key=lambda key: (-sizes[key], key))
    return [_holding_job(cluster, key, by_job[key]) for key in largest], len(by_job)


def _holding_job(cluster: Cluster, key: str, tasks: list[Task]) -> HoldingJob:
    held: Amounts = {}
    for task in tasks:
        shift(held, task.request)
    job, end = tasks[0].job, expected_end(tasks, cluster.queues)
    return HoldingJob(
        job=key if job else f"pod {key}",
        pods=len(tasks),
        holds=quantities(cluster, held),
        queue=job.queue.name if job and job.queue else "",
        until=None if end is None else time_text(end),
    )


def _share(cluster: Cluster, task: Task) -> float:
    return sum(amount / max(cluster.total.get(dim, 0), 1) for dim, amount in task.request.items())
