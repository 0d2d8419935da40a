"""Look up a name of the command line: a job by any of its objects, a pod, a queue or a node."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stromboli.model.status import Status

if TYPE_CHECKING:
    from stromboli.model.cluster import Cluster
    from stromboli.model.job import Job
    from stromboli.model.node_columns import Node
    from stromboli.model.queue import Queue
    from stromboli.model.task import Task

ANY_WORKLOAD = "workload"
KINDS = {
    "job": "Job",
    "jobs": "Job",
    "vcjob": "Job",
    "vj": "Job",
    "podgroup": "PodGroup",
    "podgroups": "PodGroup",
    "pg": "PodGroup",
    "pod": "Pod",
    "pods": "Pod",
    "po": "Pod",
    "queue": "Queue",
    "queues": "Queue",
    "q": "Queue",
    "node": "Node",
    "nodes": "Node",
    "no": "Node",
    "deployment": "Deployment",
    "deployments": "Deployment",
    "deploy": "Deployment",
    "replicaset": "ReplicaSet",
    "replicasets": "ReplicaSet",
    "rs": "ReplicaSet",
    "statefulset": "StatefulSet",
    "statefulsets": "StatefulSet",
    "sts": "StatefulSet",
    "daemonset": "DaemonSet",
    "daemonsets": "DaemonSet",
    "ds": "DaemonSet",
    "workload": ANY_WORKLOAD,
}
"""Types as users write them, as for kubectl; what follows a dot is ignored."""
MAX_NAMED = 5


@dataclass(frozen=True, slots=True)
class Found:
    """What to explain: a job, perhaps by one of its pods, a pod without a job, a queue or a node."""

    kind: str
    name: str
    job: Job | None = None
    task: Task | None = None
    queue: Queue | None = None
    node: Node | None = None

    @property
    def full_name(self) -> str:
        """`job/train in namespace default`."""
        namespace = self.job.namespace if self.job else self.task.namespace if self.task else ""
        return f"{self.kind.lower()}/{self.name}" + (f" in namespace {namespace}" if namespace else "")


class NotFound(LookupError):
    """The name is unknown or ambiguous; the message has the remedy."""


class UnknownType(ValueError):
    """A TYPE/NAME with an unknown type."""


def look_up(cluster: Cluster, text: str, namespace: str = "") -> tuple[Found, list[str]]:
    """What a name means, and other objects of that name. Without a namespace, in all namespaces."""
    type_name, slash, name = text.rpartition("/")
    wanted = ""
    if slash:
        wanted = KINDS.get(type_name.partition(".")[0].lower(), "")
        if not wanted:
            listed = "job, podgroup, pod, queue, node, deployment, replicaset, statefulset, daemonset"
            raise UnknownType(f"{text}: unknown type {type_name!r}; valid types: {listed}")
    found = list(_candidates(cluster, wanted, name, namespace))
    if not found:
        raise NotFound(_missing(cluster, wanted, name, namespace))
    first, *others = found
    same_kind = [
        other for other in others if other.kind == first.kind and _namespace(other) != _namespace(first)
    ]
    if same_kind and not namespace:
        where = sorted({_namespace(each) for each in (first, *same_kind)})
        raise NotFound(
            f"{text} exists in several namespaces ({', '.join(where[:MAX_NAMED])}); choose one with -n"
        )
    return first, [other.full_name for other in others if other.kind != first.kind or _differs(first, other)]


def _namespace(found: Found) -> str:
    return found.job.namespace if found.job else found.task.namespace if found.task else ""


def _differs(first: Found, other: Found) -> bool:
    return (other.job, other.queue, other.node) != (first.job, first.queue, first.node)


def _candidates(cluster: Cluster, wanted: str, name: str, namespace: str) -> Iterable[Found]:
    """Everything of that name: jobs by their owners, then PodGroups, pods, queues and nodes."""
    if wanted not in ("Pod", "Queue", "Node"):
        yield from _jobs(cluster, wanted, name, namespace)
    if wanted in ("", "Pod"):
        for task in cluster.tasks.values():
            if task.name == name and namespace in ("", task.namespace):
                yield Found("Pod", name, task.job, task)
    if wanted in ("", "Queue") and name in cluster.queues:
        yield Found("Queue", name, queue=cluster.queues[name])
    if wanted in ("", "Node") and name in cluster.nodes:
        yield Found("Node", name, node=cluster.nodes[name])


def _jobs(cluster: Cluster, wanted: str, name: str, namespace: str) -> Iterable[Found]:
    groups: list[Found] = []
    owned: dict[Job, Found] = {}
    for job in cluster.jobs.values():
        if namespace not in ("", job.namespace):
            continue
        if job.name == name:
            groups.append(Found("PodGroup", name, job))
        for kind, owner in _owners(job):
            if owner == name and (wanted in ("", ANY_WORKLOAD, kind)):
                owned.setdefault(job, Found(kind, name, job))
            elif (
                kind == "ReplicaSet"
                and owner.rpartition("-")[0] == name
                and wanted in ("", ANY_WORKLOAD, "Deployment")
            ):
                owned.setdefault(job, Found("Deployment", name, job))
    yield from _newest_first(owned.values())
    if wanted in ("", "PodGroup", ANY_WORKLOAD):
        yield from (found for found in groups if found.job not in owned)


def _newest_first(found: Iterable[Found]) -> list[Found]:
    """Jobs with waiting pods first, then the newest: a workload may have several PodGroups."""
    return sorted(
        found,
        key=lambda each: (
            -(each.job.counts[Status.PENDING] > 0) if each.job else 0,
            -(each.job.created if each.job else 0.0),
        ),
    )


def _owners(job: Job) -> set[tuple[str, str]]:
    """Kind and name of the owners of the PodGroup and of the first pod."""
    owners = {(job.owner.kind, job.owner.name)} if job.owner else set()
    first = next(iter(job.tasks.values()), None)
    if first is not None and first.owner is not None:
        owners.add(first.owner)
    return owners


def _missing(cluster: Cluster, wanted: str, name: str, namespace: str) -> str:
    kind = (wanted or "job, PodGroup, pod, queue or node").replace(ANY_WORKLOAD, "workload")
    where = f" in namespace {namespace}" if namespace and wanted not in ("Queue", "Node") else ""
    elsewhere = sorted({_namespace(found) for found in _candidates(cluster, wanted, name, "")} - {""})
    elsewhere_text = f"; found in namespace {', '.join(elsewhere[:MAX_NAMED])}" if elsewhere else ""
    return f'no {kind} named "{name}"{where}{elsewhere_text}'
