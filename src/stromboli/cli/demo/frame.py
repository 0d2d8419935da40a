"""The state of the cluster at one moment, read from its API server."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import msgspec

from stromboli.api import names
from stromboli.api.types.node import Node
from stromboli.api.types.pod import Pod
from stromboli.api.types.scheduling import Queue
from stromboli.embedded.tables.table_printer import condition
from stromboli.kube.api_client import Client
from stromboli.kube.api_resources import EVENTS, RESOURCES, Resource

_JOBS = Resource("batch.volcano.sh", "v1alpha1", "jobs", "Job")
_LISTED = (RESOURCES[Node], RESOURCES[Pod], _JOBS, RESOURCES[Queue], EVENTS)
Manifest = dict[str, Any]


@dataclass(slots=True)
class PodState:
    name: str
    """`namespace/name`, as that of a job."""
    job: str
    gpus: int
    node: str
    phase: str
    terminating: bool
    reason: str
    """Why it is unschedulable."""


@dataclass(slots=True)
class JobState:
    name: str
    queue: str
    minimum: int
    replicas: int
    finished: bool
    pods: list[PodState] = field(default_factory=list)

    def count(self, phase: str) -> int:
        return sum(pod.phase == phase and not pod.terminating for pod in self.pods)

    @property
    def running(self) -> int:
        return self.count(names.POD_RUNNING)

    @property
    def is_starting(self) -> bool:
        """Whether a pod has a node and does not run yet."""
        return any(pod.node and pod.phase == "Pending" for pod in self.pods)

    @property
    def is_gang(self) -> bool:
        return self.minimum > 1


@dataclass(slots=True)
class QueueState:
    name: str
    weight: int
    used: int = 0
    own: int = 0
    """The GPUs that its weight entitles it to."""


@dataclass(slots=True)
class NodeState:
    name: str
    gpus: int
    pods: list[PodState] = field(default_factory=list)


@dataclass(slots=True)
class Frame:
    """The whole cluster; jobs by `namespace/name`."""

    queues: dict[str, QueueState]
    nodes: list[NodeState]
    jobs: dict[str, JobState]
    evictions: dict[str, tuple[str, str]]
    """The action and the job that gained, by evicted pod."""

    @property
    def gpus(self) -> int:
        return sum(node.gpus for node in self.nodes)

    @property
    def idle_gpus(self) -> int:
        return self.gpus - sum(pod.gpus for node in self.nodes for pod in node.pods)


async def read_frame(client: Client) -> Frame:
    bodies = await asyncio.gather(*(client.list(resource) for resource in _LISTED))
    return build_frame(*(msgspec.json.decode(body)["items"] for body in bodies))


def build_frame(
    nodes: list[Manifest],
    pods: list[Manifest],
    jobs: list[Manifest],
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
            NodeState(node["metadata"]["name"], int(node["status"]["allocatable"].get(names.NVIDIA_GPU, 0)))
            for node in nodes
        ],
        {_name(job): _job(job) for job in sorted(jobs, key=lambda job: job["metadata"]["creationTimestamp"])},
        _evictions(events),
    )
    by_name = {node.name: node for node in frame.nodes}
    for pod in map(_pod, sorted(pods, key=lambda pod: _numbered(pod["metadata"]["name"]))):
        job = frame.jobs.get(pod.job)
        if job is not None:
            job.pods.append(pod)
        if pod.node in by_name and pod.phase in (names.POD_PENDING, names.POD_RUNNING):
            by_name[pod.node].pods.append(pod)
            if job is not None and job.queue in frame.queues:
                frame.queues[job.queue].used += pod.gpus
    weights = sum(queue.weight for queue in frame.queues.values())
    for queue in frame.queues.values():
        queue.own = frame.gpus * queue.weight // weights
    return frame


def _name(content: Manifest) -> str:
    return f"{content['metadata']['namespace']}/{content['metadata']['name']}"


def _numbered(name: str) -> tuple[str, int]:
    """Sort `sweep-worker-10` after `sweep-worker-9`."""
    base, _, index = name.rpartition("-")
    return base, int(index)


def _job(job: Manifest) -> JobState:
    spec, status = job["spec"], job.get("status") or {}
    return JobState(
        _name(job),
        spec.get("queue", ""),
        spec.get("minAvailable", 1),
        sum(task.get("replicas", 1) for task in spec["tasks"]),
        (status.get("state") or {}).get("phase") in ("Completed", "Failed", "Aborted", "Terminated"),
    )


def _pod(pod: Manifest) -> PodState:
    meta, spec, status = pod["metadata"], pod["spec"], pod.get("status", {})
    limits = (container.get("resources", {}).get("limits", {}) for container in spec["containers"])
    scheduled = condition(pod, names.CONDITION_POD_SCHEDULED)
    return PodState(
        _name(pod),
        f"{meta['namespace']}/{(meta.get('labels') or {}).get(names.JOB_NAME, '')}",
        sum(int(limit.get(names.NVIDIA_GPU, 0)) for limit in limits),
        spec.get("nodeName", ""),
        status.get("phase", "Pending"),
        "deletionTimestamp" in meta,
        scheduled.get("message", "") if scheduled.get("status") == "False" else "",
    )


def _evictions(events: list[Manifest]) -> dict[str, tuple[str, str]]:
    return {
        f"{event['involvedObject']['namespace']}/{event['involvedObject']['name']}": _eviction_cause(
            event.get("message", "")
        )
        for event in events
        if event.get("reason") == names.EVENT_EVICT and event["involvedObject"].get("kind") == "Pod"
    }


def _eviction_cause(message: str) -> tuple[str, str]:
    """Return the action and the PodGroup that gained, from the message of an eviction."""
    _, _, why = message.partition(names.POD_EVICTED.format(reason=""))
    action, _, beneficiary = (why or message).partition(" for ")
    return action, beneficiary.partition(",")[0].partition(" ")[0]
