"""The state of the cluster at one moment, read from its API server."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import msgspec

from stromboli.api import names
from stromboli.api.resources.quantity import milli
from stromboli.api.resources.quota_charges import pod_charges
from stromboli.api.types.node import Node
from stromboli.api.types.pod import Pod, pod_resources
from stromboli.api.types.scheduling import PodGroup, Queue
from stromboli.kube.api_client import Client
from stromboli.kube.api_resources import EVENTS, RESOURCES

_LISTED = (RESOURCES[Node], RESOURCES[Pod], RESOURCES[PodGroup], RESOURCES[Queue], EVENTS)
Manifest = dict[str, Any]


@dataclass(slots=True)
class PodState:
    name: str
    job: str
    cpu: float
    node: str
    phase: str
    terminating: bool
    reason: str = ""
    """Why it is unschedulable."""

    @property
    def occupies_node(self) -> bool:
        return bool(self.node) and self.phase in ("Pending", "Running")


@dataclass(slots=True)
class JobState:
    name: str
    queue: str
    minimum: int
    phase: str
    reason: str
    created: str
    pods: list[PodState] = field(default_factory=list)

    def count(self, *phases: str) -> int:
        return sum(pod.phase in phases and not pod.terminating for pod in self.pods)

    @property
    def running(self) -> int:
        return self.count("Running")

    @property
    def finished(self) -> bool:
        return bool(self.pods) and all(pod.phase in ("Succeeded", "Failed") for pod in self.pods)


@dataclass(slots=True)
class QueueState:
    name: str
    weight: int
    used: float = 0.0
    deserved: float = 0.0


@dataclass(slots=True)
class NodeState:
    name: str
    size: float
    pods: list[PodState] = field(default_factory=list)

    @property
    def used(self) -> float:
        return sum(pod.cpu for pod in self.pods)


@dataclass(slots=True)
class Frame:
    """The whole cluster; jobs by `namespace/name`."""

    queues: dict[str, QueueState]
    nodes: list[NodeState]
    jobs: dict[str, JobState]
    evictions: dict[str, tuple[str, str]]
    """The action and the beneficiary, by evicted pod."""

    @property
    def size(self) -> float:
        return sum(node.size for node in self.nodes)


async def read_frame(client: Client) -> Frame:
    bodies = await asyncio.gather(*(client.list(resource) for resource in _LISTED))
    return build_frame(*(msgspec.json.decode(body)["items"] for body in bodies))


def build_frame(
    nodes: list[Manifest],
    pods: list[Manifest],
    groups: list[Manifest],
    queues: list[Manifest],
    events: list[Manifest],
) -> Frame:
    hidden = (names.ROOT_QUEUE, names.DEFAULT_QUEUE)
    frame = Frame(
        {
            queue["metadata"]["name"]: QueueState(queue["metadata"]["name"], queue["spec"].get("weight", 1))
            for queue in queues
            if queue["metadata"]["name"] not in hidden
        },
        [
            NodeState(node["metadata"]["name"], milli(node["status"]["allocatable"]["cpu"]) / 1000)
            for node in nodes
        ],
        {job.name: job for job in sorted(map(_job, groups), key=lambda job: (job.created, job.name))},
        _evictions(events),
    )
    by_name = {node.name: node for node in frame.nodes}
    for pod in sorted(map(_pod, pods), key=lambda pod: pod.name):
        job = frame.jobs.get(pod.job)
        if job is not None:
            job.pods.append(pod)
            job.reason = pod.reason if job.reason and pod.reason else job.reason
        if pod.occupies_node and pod.node in by_name:
            by_name[pod.node].pods.append(pod)
            if job is not None and job.queue in frame.queues:
                frame.queues[job.queue].used += pod.cpu
    weights = sum(queue.weight for queue in frame.queues.values())
    for queue in frame.queues.values():
        queue.deserved = frame.size * queue.weight / weights
    return frame


def _job(group: Manifest) -> JobState:
    meta, spec, status = group["metadata"], group["spec"], group.get("status") or {}
    return JobState(
        f"{meta['namespace']}/{meta['name']}",
        spec.get("queue", ""),
        spec.get("minMember", 1),
        status.get("phase") or "Pending",
        _condition_message(status, names.CONDITION_UNSCHEDULABLE, "True"),
        meta["creationTimestamp"],
    )


def _pod(pod: Manifest) -> PodState:
    meta, spec = pod["metadata"], pod["spec"]
    group = (meta.get("annotations") or {}).get(names.GROUP_NAME, "")
    return PodState(
        meta["name"],
        f"{meta['namespace']}/{group}",
        float(pod_charges(pod_resources(pod)).get(names.CPU, 0)),
        spec.get("nodeName", ""),
        pod.get("status", {}).get("phase", "Pending"),
        "deletionTimestamp" in meta,
        _condition_message(pod.get("status", {}), names.CONDITION_POD_SCHEDULED, "False"),
    )


def _condition_message(status: Manifest, type: str, value: str) -> str:
    """The message of a condition that has this value."""
    conditions = {condition["type"]: condition for condition in status.get("conditions") or ()}
    condition = conditions.get(type, {})
    return str(condition.get("message", "")) if condition.get("status") == value else ""


def _evictions(events: list[Manifest]) -> dict[str, tuple[str, str]]:
    return {
        f"{event['involvedObject']['namespace']}/{event['involvedObject']['name']}": _eviction_cause(
            event.get("message", "")
        )
        for event in events
        if event.get("reason") == names.EVENT_EVICT and event["involvedObject"].get("kind") == "Pod"
    }


def _eviction_cause(message: str) -> tuple[str, str]:
    """The action and the beneficiary in an eviction's message."""
    _, _, why = message.partition(names.POD_EVICTED.format(reason=""))
    action, _, beneficiary = (why or message).partition(" for ")
    return action, beneficiary.partition(",")[0].partition(" ")[0]
