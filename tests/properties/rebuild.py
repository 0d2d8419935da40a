"""What a cluster's numbers must be, worked out from its tasks alone, and what they are: the two must be equal.

Nothing here shares code with the model: one loop over the tasks per number, slow and obvious.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from stromboli.model.cluster import Cluster
from stromboli.model.job import Job
from stromboli.model.reservations import RoleOwner
from stromboli.model.status import Status
from stromboli.model.task import Task

HOLDS = {"ALLOCATED", "BINDING", "BOUND", "RUNNING", "UNKNOWN", "RELEASING"}
ALLOCATED = {"ALLOCATED", "BINDING", "BOUND", "RUNNING"}
READY = ALLOCATED | {"SUCCEEDED"}
COLUMNS = ("allocatable", "used", "idle", "releasing", "pipelined")


def kept_sums(cluster: Cluster) -> dict[str, Any]:
    """The numbers that the cluster keeps."""
    columns = cluster.columns
    return {
        "nodes": {
            node.name: {
                **{name: _named(cluster, getattr(columns, name)[:, row]) for name in COLUMNS},
                "view": tuple(int(amount) for amount in columns.view[:, row]),
                "tasks": sorted(task.uid for task in node.tasks),
            }
            for row, node in enumerate(columns.nodes)
        },
        "spare": {
            name: _sum_named(cluster, amounts)
            for name, amounts in (
                ("free", columns.free),
                ("overbooked", columns.overbooked),
                ("stranded", cluster.stranded),
            )
        },
        "rows": [node.row for node in columns.nodes] == list(range(len(columns.nodes))),
        "jobs": {job.key: _job_sums(cluster, job) for job in cluster.jobs.values()},
        "queues": {
            queue.name: {
                "jobs": sorted(job.key for job in queue.jobs),
                **{which: _sum_named(cluster, getattr(queue, which)) for which in (*_SUMS, *_RESERVED)},
                "expected": _sum_named(cluster, queue.expected),
            }
            for queue in cluster.queues.values()
            if queue.exists or queue.jobs
        },
        "backlog": sorted(job.key for job in cluster.backlog),
        "waiting": sorted(job.key for job in cluster.waiting),
        "tallies": {
            str(key): [int(count) for count in tally.by_node]
            for key, tally in cluster.pod_counts._all.items()
        },
    }


def rebuilt_sums(cluster: Cluster) -> dict[str, Any]:
    """The same numbers, worked out afresh."""
    tasks = list(cluster.tasks.values())
    jobs = list(cluster.jobs.values())
    nodes = [node for node in cluster.nodes.values() if node.object is not None]
    nodes.sort(key=lambda node: (node.created, node.name))
    return {
        "nodes": {
            node.name: _rebuilt_node(cluster, node, [t for t in tasks if t.node is node]) for node in nodes
        },
        "spare": _rebuilt_spare(cluster, nodes, tasks),
        "rows": True,
        "jobs": {job.key: _rebuilt_job(cluster, job, [t for t in tasks if t.job is job]) for job in jobs},
        "queues": {
            queue.name: {
                "jobs": sorted(job.key for job in jobs if job.queue is queue),
                **_sums(cluster, [t for t in tasks if t.job is not None and t.job.queue is queue]),
                "reserved": _reserved(
                    cluster, lambda job, queue=queue: job is not None and job.queue is queue
                ),
                "reserved_below": _reserved(cluster, lambda job, queue=queue: _is_below(cluster, job, queue)),
                "expected": _expected(cluster, queue),
            }
            for queue in cluster.queues.values()
            if queue.object is not None or any(job.queue is queue for job in jobs)
        },
        "backlog": sorted(
            job.key
            for job in jobs
            if _visible(job)
            and any(t.job is job and t.status in (Status.PENDING, Status.PIPELINED) for t in tasks)
        ),
        "waiting": sorted(job.key for job in jobs if _visible(job) and job.phase in ("", "Pending")),
        "tallies": {
            str(key): [
                sum(t.node is node and _in_view(t) and tally.counted(t) for t in tasks) for node in nodes
            ]
            for key, tally in cluster.pod_counts._all.items()
        },
    }


def _rebuilt_node(cluster: Cluster, node: Any, here: list[Task]) -> dict[str, Any]:
    allocatable = Counter({cluster.dims.names[dim]: int(n) for dim, n in node.allocatable.items()})
    used, releasing, pipelined = Counter(), Counter(), Counter()
    view = [0] * 6
    for task in here:
        request = {cluster.dims.names[dim]: int(n) for dim, n in task.shape.request.items()}
        if task.status.name in HOLDS:
            used.update(request)
        if task.status is Status.RELEASING:
            releasing.update(request)
        if task.status is Status.PIPELINED:
            pipelined.update(request)
        if _in_view(task):
            view = [total + int(part) for total, part in zip(view, task.shape.view, strict=True)]
    for amount, where, _ in _weighing(cluster):
        if where is node:
            pipelined.update({cluster.dims.names[dim]: int(n) for dim, n in amount.items()})
    idle = Counter(allocatable)
    idle.subtract(used)
    parts = {
        "allocatable": allocatable,
        "used": used,
        "idle": idle,
        "releasing": releasing,
        "pipelined": pipelined,
    }
    return {
        **{name: {resource: n for resource, n in part.items() if n} for name, part in parts.items()},
        "view": tuple(view),
        "tasks": sorted(task.uid for task in here),
    }


def _rebuilt_spare(cluster: Cluster, nodes: list[Any], tasks: list[Task]) -> dict[str, dict[str, int]]:
    """What is free, what is held beyond the size of nodes, and what is held on nodes that are not known."""
    free, overbooked, stranded = Counter(), Counter(), Counter()
    for node in nodes:
        amounts = _rebuilt_node(cluster, node, [task for task in tasks if task.node is node])
        for resource, idle in amounts["idle"].items():
            free[resource] += max(idle, 0)
            overbooked[resource] += max(-idle - amounts["releasing"].get(resource, 0), 0)
    for task in tasks:
        lost = task.node is not None and task.node.object is None and task.job is not None
        if lost and task.status.name in HOLDS - {"RELEASING"}:
            stranded.update({cluster.dims.names[dim]: int(n) for dim, n in task.shape.request.items()})
    sums = {"free": free, "overbooked": overbooked, "stranded": stranded}
    return {name: {resource: n for resource, n in total.items() if n} for name, total in sums.items()}


def _job_sums(cluster: Cluster, job: Job) -> dict[str, Any]:
    return {
        "tasks": sorted(job.tasks),
        "by_status": {
            Status(status).name: sorted(task.uid for task in members)
            for status, members in enumerate(job.by_status)
            if members
        },
        "counts": {Status(status).name: count for status, count in enumerate(job.counts) if count},
        "ready": job.ready_count,
        "best_effort": job.pending_best_effort,
        "roles": {
            role: {Status(status).name: count for status, count in enumerate(counts) if count}
            for role, counts in job.role_counts.items()
            if any(counts)
        },
        "groups": {
            group.id: {
                "tasks": sorted(task.uid for task in group.tasks),
                "counts": {Status(status).name: count for status, count in enumerate(group.counts) if count},
                "ready": group.ready_count,
                "best_effort": group.pending_best_effort,
            }
            for group in job.sub_jobs.values()
        },
        "total": _sum_named(cluster, job.total),
        "reserved": _sum_named(cluster, job.reserved),
        **{which: _sum_named(cluster, getattr(job, which)) for which in _SUMS},
    }


def _rebuilt_job(cluster: Cluster, job: Job, tasks: list[Task]) -> dict[str, Any]:
    groups: dict[str, list[Task]] = {}
    for task in tasks:
        groups.setdefault(task.sub_job.id, []).append(task)
    roles = {task.role for task in tasks if task.role}
    return {
        "tasks": sorted(task.uid for task in tasks),
        "by_status": {
            status.name: sorted(task.uid for task in tasks if task.status is status)
            for status in Status
            if any(task.status is status for task in tasks)
        },
        **_counters(tasks),
        "roles": {role: _counters([t for t in tasks if t.role == role])["counts"] for role in roles},
        "groups": {
            id: {"tasks": sorted(task.uid for task in members), **_counters(members)}
            for id, members in groups.items()
        },
        "total": _sum_of(cluster, tasks),
        "reserved": _reserved(cluster, lambda owner: owner is job),
        **_sums(cluster, tasks),
    }


def _counters(tasks: list[Task]) -> dict[str, Any]:
    return {
        "counts": dict(Counter(task.status.name for task in tasks)),
        "ready": sum(task.status.name in READY for task in tasks),
        "best_effort": sum(task.status is Status.PENDING and task.best_effort for task in tasks),
    }


_SUMS = ("allocated", "pending", "pipelined")


def _sums(cluster: Cluster, tasks: list[Task]) -> dict[str, Any]:
    return {
        "allocated": _sum_of(cluster, [task for task in tasks if task.status.name in ALLOCATED]),
        "pending": _sum_of(cluster, [task for task in tasks if task.status is Status.PENDING]),
        "pipelined": _sum_of(cluster, [task for task in tasks if task.status is Status.PIPELINED]),
    }


_RESERVED = ("reserved", "reserved_below")


def _weighing(cluster: Cluster) -> list[tuple[dict[int, float], Any, Job | None]]:
    """Amount, node and job of the reservations that weigh: whose task waits, or whose role's job is in a queue."""
    weighing = []
    for reservation in cluster.reservations:
        owner = reservation.owner
        if isinstance(owner, RoleOwner):
            job = cluster.jobs.get(owner.job)
            if job is not None and job.queue is not None:
                weighing.append((reservation.amount, reservation.node, job))
        elif owner in cluster.tasks and cluster.tasks[owner].status is Status.PENDING:
            task = cluster.tasks[owner]
            weighing.append((task.shape.request, reservation.node, task.job))
    return weighing


def _reserved(cluster: Cluster, counts: Callable[[Job | None], bool]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for amount, _, job in _weighing(cluster):
        if counts(job):
            total.update({cluster.dims.names[dim]: int(n) for dim, n in amount.items()})
    return {resource: amount for resource, amount in total.items() if amount}


def _expected(cluster: Cluster, queue: Any) -> dict[str, int]:
    """What is reserved for pods to come of a queue's jobs."""
    total: Counter[str] = Counter()
    for reservation in cluster.reservations:
        owner = reservation.owner
        if (
            isinstance(owner, RoleOwner)
            and owner.job in cluster.jobs
            and cluster.jobs[owner.job].queue is queue
        ):
            total.update({cluster.dims.names[dim]: int(n) for dim, n in reservation.amount.items()})
    return {resource: amount for resource, amount in total.items() if amount}


def _is_below(cluster: Cluster, job: Job | None, ancestor: Any) -> bool:
    """Whether a job's queue is below another: who has no parent that exists is below the root."""
    existing = {queue.name for queue in cluster.queues.values() if queue.object is not None}
    queue, visited = job.queue if job is not None else None, set()
    while queue is not None and queue.name not in visited and queue.name != "root":
        visited.add(queue.name)
        parent = (queue.object.spec.parent or "root") if queue.object is not None else "root"
        queue = cluster.queues.get(parent if parent in existing else "root")
        if queue is ancestor and queue.name not in visited:
            return True
    return False


def _sum_of(cluster: Cluster, tasks: list[Task]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for task in tasks:
        total.update({cluster.dims.names[dim]: int(n) for dim, n in task.shape.request.items()})
    return {resource: amount for resource, amount in total.items() if amount}


def _sum_named(cluster: Cluster, amounts: dict[int, float]) -> dict[str, float]:
    return {cluster.dims.names[dim]: amount for dim, amount in amounts.items()}


def _named(cluster: Cluster, column: Any) -> dict[str, int]:
    return {cluster.dims.names[dim]: int(amount) for dim, amount in enumerate(column) if amount}


def _in_view(task: Task) -> bool:
    return task.node is not None and (task.status is not Status.RELEASING or task.terminating)


def _visible(job: Job) -> bool:
    return job.group is not None and job.queue is not None and job.queue.object is not None


# -- fingerprints


def fingerprint(cluster: Cluster) -> dict[str, Any]:
    """Everything that undoing must restore: the numbers, where each task stands, what was told about whom."""
    return {
        **kept_sums(cluster),
        "standing": {
            task.uid: (task.status.name, task.node.name if task.node else "", task.condition, task.nominated)
            for task in cluster.tasks.values()
        },
        "told": {
            job.key: (job.phase, job.written, dict(job.conditions), dict(job.reported))
            for job in cluster.jobs.values()
        },
        "reported": {queue.name: queue.reported for queue in cluster.queues.values()},
        "reserved": sorted(
            (str(held.owner), held.node.name, held.since, held.until, _sum_named(cluster, held.amount))
            for held in cluster.reservations
        ),
    }


def facts(cluster: Cluster) -> dict[str, Any]:
    """What objects say, whatever the order in which they came: numbers, standing, and what was read from them."""
    return {
        **fingerprint(cluster),
        "described": {
            task.uid: (
                task.key,
                task.order,
                task.role,
                task.priority,
                task.gates,
                task.ours,
                task.terminating,
                task.job.key if task.job else "",
            )
            for task in cluster.tasks.values()
        },
        "gangs": {
            job.key: (
                job.queue.name,
                job.minimum,
                job.role_minimums,
                job.priority,
                job.created,
                _sum_named(cluster, job.min_resources) if job.min_resources is not None else None,
                sorted((group.id, group.minimum, group.match_index) for group in job.sub_jobs.values()),
                (job.roles_valid, job.roles_ready, job.sub_groups_valid, job.sub_groups_ready),
            )
            for job in cluster.jobs.values()
            if job.group is not None
        },
        "order": [(node.name, node.labels) for node in cluster.columns.nodes],
        "capacity": _sum_named(cluster, cluster.total),
    }
