"""The consistency check: the live model against one that was built from a fresh list."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from stromboli.api.errors import BadObject
from stromboli.api.types.meta import Object
from stromboli.kube.reflector import Expired, list_pages
from stromboli.kube.request import ApiError, NoResponse
from stromboli.model.cluster import Cluster
from stromboli.model.intake.assumed_tasks import MAY_STILL_SHOW
from stromboli.model.intake.object_intake import IntakeFailed
from stromboli.model.ledgers import Fact, Unsettled
from stromboli.model.status import Status
from stromboli.model.task import Task
from stromboli.scheduler.mirror.cluster_mirror import ClusterMirror
from stromboli.scheduler.thread_seam import Unavailable

MISSING = "missing"
ROUNDS = 3


class Difference(NamedTuple):
    """An object that the model and the API server do not agree on."""

    kind: str
    key: str
    model: str
    server: str

    @property
    def object_id(self) -> tuple[str, str, str]:
        """Kind, namespace and name."""
        namespace, _, name = self.key.partition(" ")[0].rpartition("/")
        return self.kind, namespace, name

    def __str__(self) -> str:
        return f"{self.kind} {self.key}: {self.model}; on the API server: {self.server}"


async def check(mirror: ClusterMirror, rounds: int = ROUNDS, pause: float = 1.0) -> list[Difference]:
    """Where the model differs from fresh lists, in the same way several times in a row; on the event loop."""
    remaining: list[Difference] = []
    for turn in range(rounds):
        if turn:
            await asyncio.sleep(pause)
        before = {difference[:3] for difference in remaining}
        fresh = await list_all(mirror)
        differences = await mirror.seam.result_from_cycle(partial(_compare_mirror, mirror, fresh))
        remaining = [difference for difference in differences if not turn or difference[:3] in before]
        if not remaining:
            break
    return remaining


async def list_all(mirror: ClusterMirror) -> Cluster:
    """A cluster from a fresh list of everything."""
    intake, watches = mirror.new_intake(), mirror.watches
    for reflector in watches.reflectors:
        try:
            async for page in list_pages(
                watches.client, reflector.resource, reflector.kind, scope=reflector.scope
            ):
                for decoded in page.objects:
                    if decoded.object is not None and watches.wanted(decoded.object):
                        with suppress(BadObject, IntakeFailed):  # the live model has reported the same
                            intake.put(decoded.object)
                await asyncio.sleep(0)
        except (Expired, ApiError, NoResponse) as error:
            if not (isinstance(error, ApiError) and error.status == 404):
                raise Unavailable(f"{reflector.resource}: {error}") from None
    intake.cluster.settle()
    return intake.cluster


def _compare_mirror(mirror: ClusterMirror, fresh: Cluster) -> list[Difference]:
    """Without objects that are known to be unusable as they are now: the model has them as they were before."""
    mirror.cluster.settle()
    differences = compare(mirror.cluster, fresh)
    return [difference for difference in differences if not mirror.is_unusable(difference.object_id)]


def compare(live: Cluster, fresh: Cluster) -> list[Difference]:
    """Where two clusters differ, apart from decisions whose writes are under way."""
    if live.cards.models is not None:
        fresh.share_cards(live.cards.models)
    unsettled = unsettled_tasks(live, fresh)
    model = dict([*descriptions(live), *ledger_facts(live, unsettled)])
    server = dict([*descriptions(fresh), *ledger_facts(fresh, unsettled)])
    differences = [
        Difference(*at, model.get(at, MISSING), server.get(at, MISSING))
        for at in {**model, **server}
        if model.get(at) != server.get(at)
    ]
    unexpected = [difference for difference in differences if not _is_assumed(difference, live, fresh)]
    return unexpected + list(_wrong_sums(live))


def descriptions(cluster: Cluster) -> Iterator[tuple[tuple[str, str], str]]:
    """What the model knows of every object, by kind and key, independent of the order in which they came."""
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
            queue_name = job.queue.name if job.queue else "-"
            yield (
                (job.id.kind, job.key),
                f"{_version(job.group)} in {queue_name}, {job.minimum}, priority {job.priority}"
                + ", goes as a whole" * job.disrupted_as_group,
            )
    for queue in cluster.queues.values():
        if queue.object is not None:
            yield ("Queue", queue.name), _version(queue.object)
    for object in cluster.objects:
        yield (type(object).__name__, object.key), _version(object)
    for domain in cluster.hyper_nodes.domains.values():
        nodes = ", ".join(cluster.columns.nodes[row].name for row in domain.rows)
        above = domain.parent.name if domain.parent else "-"
        yield ("HyperNode", f"{domain.name} in the tree"), f"tier {domain.tier} below {above}, nodes {nodes}"


def _task(cluster: Cluster, task: Task) -> str:
    node = task.node.name if task.node else "-"
    job = task.job.key if task.job else "-"
    request = sorted((cluster.dims.names[dim], int(amount)) for dim, amount in task.request.items())
    marks = " ".join(mark for mark in ("dying" * task.terminating, *task.gates) if mark)
    return f"{task.status.title} on {node} of {job} asks {request} {marks}".strip()


def _version(object: Object) -> str:
    return f"{object.metadata.uid}@{object.metadata.resource_version}"


def _is_assumed(difference: Difference, live: Cluster, fresh: Cluster) -> bool:
    if difference.kind != "Pod":
        return False
    uid = difference.key.rpartition(" ")[2]
    ours, theirs = live.tasks.get(uid), fresh.tasks.get(uid)
    return ours is not None and theirs is not None and theirs.status in MAY_STILL_SHOW.get(ours.status, ())


def _wrong_sums(cluster: Cluster) -> Iterator[Difference]:
    """Nodes whose columns are not the sum of what their tasks request."""
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


# -- what the ledgers of a cluster count, as texts that two clusters can be compared by


IN_FLIGHT = frozenset({Status.ALLOCATED, Status.PIPELINED, Status.BINDING, Status.RELEASING})
"""Statuses of tasks whose grants the objects may not show, or no longer show."""


def ledger_facts(cluster: Cluster, unsettled: frozenset[str]) -> Iterator[Fact]:
    """What is held of cards, CPUs, claims and volumes, without what tasks of these uids have to do with."""
    tasks = Unsettled(unsettled, [cluster.tasks[uid] for uid in unsettled & cluster.tasks.keys()])
    for ledger in cluster.ledgers:
        yield from ledger.facts(tasks)


def unsettled_tasks(live: Cluster, fresh: Cluster) -> frozenset[str]:
    """Uids of tasks that are on their way onto a node or off it, or that only one of the clusters has there."""
    return frozenset(
        uid
        for uid in live.tasks.keys() | fresh.tasks.keys()
        if _place(live.tasks.get(uid)) != _place(fresh.tasks.get(uid)) or _in_flight(live.tasks.get(uid))
    )


def _in_flight(task: Task | None) -> bool:
    return task is not None and task.status in IN_FLIGHT


def _place(task: Task | None) -> str:
    return task.node.name if task is not None and task.node is not None else ""
