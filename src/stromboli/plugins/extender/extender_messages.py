"""What an extender is sent, with the field names that Volcano exports, and what it may answer.

A subset: who and where things are, what they ask for and hold, and the Kubernetes objects as far as they are read here.
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

# -- questions


def resource(amounts: Mapping[int, float], dims: Dimensions) -> Json:
    scalars = {dims.names[dim]: amount for dim, amount in amounts.items() if dim > MEMORY}
    return {
        "MilliCPU": amounts.get(CPU, 0),
        "Memory": amounts.get(MEMORY, 0),
        "ScalarResources": scalars,
    }


def task(one: Task, dims: Dimensions) -> Json:
    asked = resource(one.request, dims)
    return {
        "UID": one.uid,
        "Job": one.job.key if one.job is not None else "",
        "Name": one.name,
        "Namespace": one.namespace,
        "TaskRole": one.role,
        "Resreq": asked,
        "InitResreq": asked,
        "NodeName": one.node.name if one.node is not None else "",
        "Status": 1 << one.status,
        "Priority": one.priority,
        "Preemptable": one.preemptable,
        "BestEffort": one.best_effort,
        "RevocableZone": one.zone,
        "SchGated": bool(one.gates),
        "Pod": {
            "metadata": {
                "name": one.name,
                "namespace": one.namespace,
                "uid": one.uid,
                "labels": one.label_set.labels,
                "annotations": one.annotations,
            },
            "spec": one.shape.spec,
        },
    }


def node(one: Node, cluster: Cluster) -> Json:
    """Its amounts as they are at this point of the cycle."""
    columns, dims = cluster.columns, cluster.dims
    held = {
        field: resource(dict(enumerate(block[:, one.row].tolist())) if one.row >= 0 else {}, dims)
        for field, block in (
            ("Idle", columns.idle),
            ("Used", columns.used),
            ("Releasing", columns.releasing),
            ("Pipelined", columns.pipelined),
            ("Allocatable", columns.allocatable),
        )
    }
    return {"Name": one.name, "Node": one.object, **held}


def job(one: Job, dims: Dimensions) -> Json:
    return {
        "UID": one.key,
        "Name": one.name,
        "Namespace": one.namespace,
        "Queue": one.queue.name if one.queue is not None else "",
        "Priority": one.priority,
        "MinAvailable": one.minimum,
        "TaskMinAvailable": one.role_minimums,
        "Allocated": resource(one.allocated, dims),
        "TotalRequest": resource(one.total, dims),
        "Tasks": {each.uid: task(each, dims) for each in one.tasks.values()},
        "PodGroup": one.group,
    }


def queue(one: Queue) -> Json:
    return {"UID": one.name, "Name": one.name, "Weight": one.weight, "Queue": one.object}


def everything(cluster: Cluster, jobs: Iterable[Job]) -> Json:
    """The cluster as a session opens on it."""
    nodes = {one.name: node(one, cluster) for one in cluster.columns.nodes}
    revocable = {one.name for one in cluster.columns.nodes if names.REVOCABLE_ZONE in one.labels}
    return {
        "Jobs": {one.key: job(one, cluster.dims) for one in jobs},
        "Nodes": nodes,
        "Queues": {one.name: queue(one) for one in cluster.queues.values() if one.exists},
        "NamespaceInfo": {name: {"Name": name} for name in cluster.objects.namespaces},
        "RevocableNodes": {name: nodes[name] for name in revocable},
        "NodeList": list(nodes),
    }


# -- answers


class Predicate(Struct):
    """Why a node cannot take a task (empty: it can), and a code: 2 if evicting somebody could help."""

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


class Opinion(Struct):
    """1 for, -1 against, 0 neither."""

    status: int = 0


class Overused(Struct):
    overused: bool = False


class Ready(Struct):
    status: bool = False


class Accepted(Struct, rename="camel"):
    """Whether a move is refused, and why."""

    error_message: str = ""
