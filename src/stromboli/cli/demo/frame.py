"""What the cluster looks like at a moment, put together from what its API server shows."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import msgspec

from stromboli.api import names
from stromboli.api.resources.quantity import milli
from stromboli.kube.api_client import Client
from stromboli.kube.api_resources import EVENTS, Resource

_VOLCANO = ("scheduling.volcano.sh", "v1beta1")
RESOURCES = (
    Resource("", "v1", "nodes", "Node", namespaced=False),
    Resource("", "v1", "pods", "Pod"),
    Resource(*_VOLCANO, "podgroups", "PodGroup"),
    Resource(*_VOLCANO, "queues", "Queue", namespaced=False),
    EVENTS,
)
Thing = dict[str, Any]


@dataclass(slots=True)
class PodSight:
    name: str
    job: str
    cpu: float
    node: str
    phase: str
    leaving: bool
    reason: str = ""
    """Why it finds no node."""

    @property
    def holds(self) -> bool:
        """Whether it takes room on its node."""
        return bool(self.node) and self.phase in ("Pending", "Running")


@dataclass(slots=True)
class JobSight:
    name: str
    queue: str
    minimum: int
    phase: str
    reason: str
    born: str
    pods: list[PodSight] = field(default_factory=list)

    def count(self, *phases: str) -> int:
        return sum(one.phase in phases and not one.leaving for one in self.pods)

    @property
    def running(self) -> int:
        return self.count("Running")

    @property
    def over(self) -> bool:
        return bool(self.pods) and all(one.phase in ("Succeeded", "Failed") for one in self.pods)


@dataclass(slots=True)
class QueueSight:
    name: str
    weight: int
    used: float = 0.0
    deserved: float = 0.0


@dataclass(slots=True)
class NodeSight:
    name: str
    size: float
    pods: list[PodSight] = field(default_factory=list)

    @property
    def used(self) -> float:
        return sum(one.cpu for one in self.pods)


@dataclass(slots=True)
class Sight:
    """Everything, at one moment; jobs by `namespace/name`."""

    queues: dict[str, QueueSight]
    nodes: list[NodeSight]
    jobs: dict[str, JobSight]
    evictions: dict[str, tuple[str, str]]
    """Pods that were evicted, with the action and for whom, by the event's name."""

    @property
    def size(self) -> float:
        return sum(node.size for node in self.nodes)


async def look(client: Client) -> Sight:
    """Ask for everything."""
    bodies = await asyncio.gather(*(client.list(resource) for resource in RESOURCES))
    return put_together(*(msgspec.json.decode(body)["items"] for body in bodies))


def put_together(
    nodes: list[Thing], pods: list[Thing], groups: list[Thing], queues: list[Thing], events: list[Thing]
) -> Sight:
    hidden = (names.ROOT_QUEUE, names.DEFAULT_QUEUE)
    sight = Sight(
        {
            one["metadata"]["name"]: QueueSight(one["metadata"]["name"], one["spec"].get("weight", 1))
            for one in queues
            if one["metadata"]["name"] not in hidden
        },
        [
            NodeSight(one["metadata"]["name"], milli(one["status"]["allocatable"]["cpu"]) / 1000)
            for one in nodes
        ],
        {job.name: job for job in sorted(map(_job, groups), key=lambda job: (job.born, job.name))},
        _evictions(events),
    )
    by_name = {node.name: node for node in sight.nodes}
    for pod in sorted(map(_pod, pods), key=lambda pod: pod.name):
        job = sight.jobs.get(pod.job)
        if job is not None:
            job.pods.append(pod)
            job.reason = pod.reason if job.reason and pod.reason else job.reason
        if pod.holds and pod.node in by_name:
            by_name[pod.node].pods.append(pod)
            if job is not None and job.queue in sight.queues:
                sight.queues[job.queue].used += pod.cpu
    weights = sum(queue.weight for queue in sight.queues.values())
    for queue in sight.queues.values():
        queue.deserved = sight.size * queue.weight / weights
    return sight


def _job(group: Thing) -> JobSight:
    meta, spec, status = group["metadata"], group["spec"], group.get("status") or {}
    waits = [
        one for one in status.get("conditions") or () if one.get("type") == names.CONDITION_UNSCHEDULABLE
    ]
    reason = str(waits[-1].get("message", "")) if waits and waits[-1].get("status") == "True" else ""
    return JobSight(
        f"{meta['namespace']}/{meta['name']}",
        spec.get("queue", ""),
        spec.get("minMember", 1),
        status.get("phase") or "Pending",
        reason,
        meta["creationTimestamp"],
    )


def _pod(pod: Thing) -> PodSight:
    meta, spec = pod["metadata"], pod["spec"]
    requests = [(one.get("resources") or {}).get("requests") or {} for one in spec["containers"]]
    group = (meta.get("annotations") or {}).get(names.GROUP_NAME, "")
    return PodSight(
        meta["name"],
        f"{meta['namespace']}/{group}",
        sum(milli(one.get("cpu", 0)) for one in requests) / 1000,
        spec.get("nodeName", ""),
        pod.get("status", {}).get("phase", "Pending"),
        "deletionTimestamp" in meta,
        _refusal(pod.get("status", {})),
    )


def _refusal(status: Thing) -> str:
    conditions = {one["type"]: one for one in status.get("conditions") or ()}
    scheduled = conditions.get(names.CONDITION_POD_SCHEDULED, {})
    return str(scheduled.get("message", "")) if scheduled.get("status") == "False" else ""


def _evictions(events: list[Thing]) -> dict[str, tuple[str, str]]:
    return {
        f"{one['involvedObject']['namespace']}/{one['involvedObject']['name']}": _why(one.get("message", ""))
        for one in events
        if one.get("reason") == names.EVENT_EVICT and one["involvedObject"].get("kind") == "Pod"
    }


def _why(message: str) -> tuple[str, str]:
    """The action and the beneficiary in an eviction's message."""
    _, _, why = message.partition(names.POD_EVICTED.format(reason=""))
    action, _, beneficiary = (why or message).partition(" for ")
    return action, beneficiary.partition(",")[0]
