"""Whether the model is what the API server's objects say: the live one against one built from a fresh list."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from stromboli.api.types.meta import Object
from stromboli.model.cluster import Cluster
from stromboli.model.intake.assumed_tasks import MAY_STILL_SHOW
from stromboli.model.status import Status
from stromboli.model.task import Task

Facts = Mapping[tuple[str, str], str]
"""What is to be known of an object, in words, by kind and key."""
NOTHING = "not there"


class Difference(NamedTuple):
    """An object that the model and the API server do not agree on."""

    kind: str
    key: str
    model: str
    server: str

    def __str__(self) -> str:
        return f"{self.kind} {self.key}: {self.model}; the API server says: {self.server}"


def compare(live: Cluster, fresh: Cluster) -> list[Difference]:
    """Where two clusters differ, decisions under way left out."""
    model, server = dict(facts(live)), dict(facts(fresh))
    found = [
        Difference(*at, model.get(at, NOTHING), server.get(at, NOTHING))
        for at in {**model, **server}
        if model.get(at) != server.get(at)
    ]
    return [one for one in found if not _under_way(one, live, fresh)] + list(_sums(live))


def facts(cluster: Cluster) -> Iterator[tuple[tuple[str, str], str]]:
    """Everything that objects told, whatever the order in which they came."""
    for task in cluster.tasks.values():
        yield ("Pod", f"{task.key} {task.uid}"), _task(cluster, task)
    for node in cluster.nodes.values():
        if node.object is not None:
            sizes = {
                cluster.dims.names[dim]: int(amount) for dim, amount in node.allocatable.items() if amount
            }
            yield ("Node", node.name), f"{_version(node.object)} {sorted(sizes.items())}"
    for job in cluster.jobs.values():
        if job.group is not None:
            within = job.queue.name if job.queue else "-"
            yield (
                (job.id.kind, job.key),
                f"{_version(job.group)} in {within}, {job.minimum}, priority {job.priority}"
                + ", goes as a whole" * job.disrupted_as_group,
            )
    for queue in cluster.queues.values():
        if queue.object is not None:
            yield ("Queue", queue.name), _version(queue.object)
    for thing in _shelved(cluster):
        yield (type(thing).__name__, thing.key), _version(thing)


def _task(cluster: Cluster, task: Task) -> str:
    node = task.node.name if task.node else "-"
    job = task.job.key if task.job else "-"
    asks = sorted((cluster.dims.names[dim], int(amount)) for dim, amount in task.request.items())
    marks = " ".join(mark for mark in ("dying" * task.terminating, *task.gates) if mark)
    return f"{task.status.title} on {node} of {job} asks {asks} {marks}".strip()


def _version(thing: Object) -> str:
    return f"{thing.metadata.uid}@{thing.metadata.resource_version}"


def _shelved(cluster: Cluster) -> Iterator[Object]:
    shelves = cluster.objects
    for shelf in (
        shelves.namespaces,
        shelves.priority_classes,
        shelves.quotas,
        shelves.budgets,
        shelves.hyper_nodes,
        shelves.volumes,
        shelves.claims,
        shelves.storage_classes,
        shelves.storage_nodes,
        shelves.services,
        shelves.controllers,
    ):
        yield from shelf.values()


def _under_way(found: Difference, live: Cluster, fresh: Cluster) -> bool:
    if found.kind != "Pod":
        return False
    uid = found.key.rpartition(" ")[2]
    ours, theirs = live.tasks.get(uid), fresh.tasks.get(uid)
    return ours is not None and theirs is not None and theirs.status in MAY_STILL_SHOW.get(ours.status, ())


def _sums(cluster: Cluster) -> Iterator[Difference]:
    """A node's columns must be the sum of what its tasks weigh."""
    columns = cluster.columns
    for row, node in enumerate(columns.nodes):
        used: dict[int, int] = {}
        for task in node.tasks:
            if task.status is not Status.PIPELINED:
                for dim, amount in task.request.items():
                    used[dim] = used.get(dim, 0) + int(amount)
        for dim, name in enumerate(cluster.dims.names):
            if int(columns.used[dim, row]) != used.get(dim, 0):
                kept = f"uses {int(columns.used[dim, row])} {name}"
                yield Difference("Node", node.name, kept, f"its tasks ask for {used.get(dim, 0)}")
