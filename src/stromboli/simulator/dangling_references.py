"""What is odd about a cluster that was loaded from files: rules and names that point at nothing."""

from __future__ import annotations

from collections.abc import Iterator

from stromboli.api import names
from stromboli.api.types.pod import PodSpec
from stromboli.model.cluster import Cluster
from stromboli.model.node_columns import Node
from stromboli.model.status import Status
from stromboli.model.task import Task
from stromboli.policy.policy_problems import suggestion

SHOWN = 3
_SYSTEM = (names.SYSTEM_CLUSTER_CRITICAL, names.SYSTEM_NODE_CRITICAL)


def dangling_references(cluster: Cluster, by_hand: bool) -> list[str]:
    """Each in a sentence; `by_hand` if the nodes were written without what a kubelet adds."""
    return [*_unknown_priorities(cluster), *(_missing_hostnames(cluster) if by_hand else ())]


def _unknown_priorities(cluster: Cluster) -> Iterator[str]:
    classes = cluster.objects.priority_classes
    fallback = min((priority.value for priority in classes.values() if priority.global_default), default=0)
    users: dict[str, list[str]] = {}
    for job in cluster.jobs.values():
        name = job.group.spec.priority_class_name if job.group else ""
        if name and name not in classes:
            users.setdefault(name, []).append(f"PodGroup {job.key}")
    for task in cluster.tasks.values():
        name = task.priority_class
        stated = task.pod_priority != fallback  # from a real cluster, where the class exists
        if name and name not in classes and name not in _SYSTEM and task.ours and not stated:
            users.setdefault(name, []).append(f"Pod {task.key}")
    for name, objects in sorted(users.items()):
        yield (
            f'PriorityClass "{name}" of {first_few(objects)} is not among the objects{suggestion(name, classes)}'
            f" (it counts as {fallback})"
        )


def _missing_hostnames(cluster: Cluster) -> Iterator[str]:
    nodes = cluster.columns.nodes
    bare = [node for node in nodes if names.HOSTNAME not in node.labels]
    if not bare:
        return
    asking: dict[str, Task] = {}
    seen: set[int] = set()
    for task in cluster.tasks.values():
        if task.ours and task.status is Status.PENDING and task.shape.id not in seen:
            seen.add(task.shape.id)
            for field in _fields_by_hostname(task.shape.spec):
                asking.setdefault(field, task)
    for field, task in asking.items():
        yield _bare(bare, len(nodes), field, task)


def _bare(bare: list[Node], count: int, field: str, task: Task) -> str:
    which = first_few([node.name for node in bare])
    return (
        f"{len(bare)} of {count} nodes ({which}) lack the label {names.HOSTNAME}, by which {field} of Pod {task.key}"
        " goes: the rule does not work there; a kubelet would set the label to the node's name"
    )


def _fields_by_hostname(spec: PodSpec) -> Iterator[str]:
    """The rules of a pod that must hold and that tell nodes apart by their hostname."""
    affinity = spec.affinity
    if affinity is not None:
        for field, terms in (
            ("podAffinity", affinity.pod_affinity),
            ("podAntiAffinity", affinity.pod_anti_affinity),
        ):
            if terms is not None and any(term.topology_key == names.HOSTNAME for term in terms.required):
                yield field
    if any(
        constraint.topology_key == names.HOSTNAME and constraint.when_unsatisfiable == names.DO_NOT_SCHEDULE
        for constraint in spec.topology_spread_constraints
    ):
        yield "topologySpreadConstraints"


def first_few(texts: list[str]) -> str:
    """The first few, and how many more."""
    return ", ".join(texts[:SHOWN]) + (f" and {len(texts) - SHOWN} more" if len(texts) > SHOWN else "")
