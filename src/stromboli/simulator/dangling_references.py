"""What is odd about a cluster that was loaded from files: rules and names that point at nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from stromboli.api import names
from stromboli.api.types.pod import PodSpec
from stromboli.model.cluster import Cluster
from stromboli.model.devices.claim_plan import device_classes
from stromboli.model.node_columns import Node
from stromboli.model.status import Status
from stromboli.model.task import Task
from stromboli.model.volumes.volume_claims import class_name
from stromboli.policy.policy_problems import suggestion

SHOWN = 3
_SYSTEM = (names.SYSTEM_CLUSTER_CRITICAL, names.SYSTEM_NODE_CRITICAL)


def dangling_references(cluster: Cluster, by_hand: bool) -> list[str]:
    """Each in a sentence; `by_hand` if the nodes were written without what a kubelet adds."""
    return [
        *_unknown_priorities(cluster),
        *_unknown_classes(cluster),
        *_unknown_templates(cluster),
        *(_missing_hostnames(cluster) if by_hand else ()),
    ]


def _unknown_classes(cluster: Cluster) -> Iterator[str]:
    """Storage classes of claims that are not bound, and device classes of claims that have no devices."""
    objects = cluster.objects
    storage: dict[str, list[str]] = {}
    for claim in objects.claims.values():
        name = class_name(claim)
        if name and not claim.spec.volume_name and name not in objects.storage_classes:
            storage.setdefault(name, []).append(f"PersistentVolumeClaim {claim.key}")
    devices: dict[str, list[str]] = {}
    asking = [
        *((f"ResourceClaim {claim.key}", claim.spec) for claim in objects.resource_claims.values()),
        *(
            (f"ResourceClaimTemplate {template.key}", template.spec.spec)
            for template in objects.resource_claim_templates.values()
        ),
    ]
    for user, spec in asking:
        for name in sorted(device_classes(spec).keys() - objects.device_classes.keys()):
            devices.setdefault(name, []).append(user)
    yield from _missing("StorageClass", storage, objects.storage_classes)
    yield from _missing("DeviceClass", devices, objects.device_classes)


def _unknown_templates(cluster: Cluster) -> Iterator[str]:
    """ResourceClaims and templates that pending pods name."""
    claims: dict[str, list[str]] = {}
    templates: dict[str, list[str]] = {}
    for task in cluster.tasks.values():
        if not task.claims or not task.ours or task.status is not Status.PENDING:
            continue
        for claim in task.claims:
            template, name = f"{task.namespace}/{claim.template}", f"{task.namespace}/{claim.claim}"
            if claim.template and not claim.claim:
                if template not in cluster.objects.resource_claim_templates:
                    templates.setdefault(template, []).append(f"Pod {task.key}")
            elif claim.claim and name not in cluster.objects.resource_claims:
                claims.setdefault(name, []).append(f"Pod {task.key}")
    yield from _missing("ResourceClaim", claims, cluster.objects.resource_claims)
    yield from _missing("ResourceClaimTemplate", templates, cluster.objects.resource_claim_templates)


def _missing(kind: str, users: dict[str, list[str]], known: Collection[str]) -> Iterator[str]:
    for name, objects in sorted(users.items()):
        yield f'{kind} "{name}" of {first_few(objects)} is not among the objects{suggestion(name, known)}'


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
