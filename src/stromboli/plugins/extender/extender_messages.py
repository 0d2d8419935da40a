"""The requests to an extender, with the field names that Volcano exports, and its responses.

A subset of Volcano's fields: identities, requests, allocations, and the Kubernetes objects as far as they are decoded.
Amounts are milli-CPU, bytes, and thousandths of every other resource; a status is a power of two, as in Volcano.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct, field

from stromboli.api import names
from stromboli.model.cluster import Cluster
from stromboli.model.dimensions import CPU, MEMORY, Dimensions
from stromboli.model.job import Job
from stromboli.model.node_columns import Node
from stromboli.model.queue import Queue
from stromboli.model.task import Task

Json = dict[str, Any]

# -- requests


def resource(amounts: Mapping[int, float], dims: Dimensions) -> Json:
    scalars = {dims.names[dim]: amount for dim, amount in amounts.items() if dim > MEMORY}
    return {
        "MilliCPU": amounts.get(CPU, 0),
        "Memory": amounts.get(MEMORY, 0),
        "ScalarResources": scalars,
    }


def task_message(task: Task, dims: Dimensions) -> Json:
    request = resource(task.request, dims)
    return {
        "UID": task.uid,
        "Job": task.job.key if task.job is not None else "",
        "Name": task.name,
        "Namespace": task.namespace,
        "TaskRole": task.role,
        "Resreq": request,
        "InitResreq": request,
        "NodeName": task.node.name if task.node is not None else "",
        "Status": 1 << task.status,
        "Priority": task.priority,
        "Preemptable": task.preemptable,
        "BestEffort": task.best_effort,
        "RevocableZone": task.zone,
        "SchGated": bool(task.gates),
        "Pod": {
            "metadata": {
                "name": task.name,
                "namespace": task.namespace,
                "uid": task.uid,
                "labels": task.label_set.labels,
                "annotations": task.annotations,
            },
            "spec": task.shape.spec,
        },
    }


def node_message(node: Node, cluster: Cluster) -> Json:
    """A node with its amounts at this point of the cycle."""
    columns, dims = cluster.columns, cluster.dims
    held = {
        field: resource(dict(enumerate(block[:, node.row].tolist())) if node.row >= 0 else {}, dims)
        for field, block in (
            ("Idle", columns.idle),
            ("Used", columns.used),
            ("Releasing", columns.releasing),
            ("Pipelined", columns.pipelined),
            ("Allocatable", columns.allocatable),
        )
    }
    return {"Name": node.name, "Node": node.object, **held}


def job_message(job: Job, dims: Dimensions) -> Json:
    return {
        "UID": job.key,
        "Name": job.name,
        "Namespace": job.namespace,
        "Queue": job.queue.name if job.queue is not None else "",
        "Priority": job.priority,
        "MinAvailable": job.minimum,
        "TaskMinAvailable": job.role_minimums,
        "Allocated": resource(job.allocated, dims),
        "TotalRequest": resource(job.total, dims),
        "Tasks": {task.uid: task_message(task, dims) for task in job.tasks.values()},
        "PodGroup": job.group,
    }


def queue_message(queue: Queue) -> Json:
    return {"UID": queue.name, "Name": queue.name, "Weight": queue.weight, "Queue": queue.object}


def session_message(cluster: Cluster, jobs: Iterable[Job]) -> Json:
    """The cluster at the opening of a session."""
    nodes = {node.name: node_message(node, cluster) for node in cluster.columns.nodes}
    revocable = {node.name for node in cluster.columns.nodes if names.REVOCABLE_ZONE in node.labels}
    return {
        "Jobs": {job.key: job_message(job, cluster.dims) for job in jobs},
        "Nodes": nodes,
        "Queues": {queue.name: queue_message(queue) for queue in cluster.queues.values() if queue.exists},
        "NamespaceInfo": {name: {"Name": name} for name in cluster.objects.namespaces},
        "RevocableNodes": {name: nodes[name] for name in revocable},
        "NodeList": list(nodes),
    }


# -- responses


class Predicate(Struct):
    """Why a node cannot take a task (empty: it can), and a code: 2 if evictions could help."""

    status: str = ""
    code: int = 0


class Prioritize(Struct, rename="camel"):
    node_score: dict[str, float] | None = None
    error_message: str = ""


class Victim(Struct):
    uid: str = field(name="UID")


class Victims(Struct):
    status: int = 0
    victims: list[Victim] | None = None


class VoteResponse(Struct):
    """1 for, -1 against, 0 neither."""

    status: int = 0


class Overused(Struct):
    overused: bool = False


class Ready(Struct):
    status: bool = False


class Accepted(Struct, rename="camel"):
    """Whether a move is refused, and why."""

    error_message: str = ""
