"""A heterogeneous cluster: ten kinds of pods that select, tolerate, prefer and spread, on several kinds of nodes.

Every pod has a random kind (seeded), also within a gang, so that consecutive pods differ: the hardest order for an
engine that caches what it computes for a kind of pod.
"""

import random
from collections.abc import Iterator
from typing import Any, NamedTuple

from bench.manifests import HOSTNAME, ZONE, Manifest, Request, node, pod, pod_group

DISK = "example.com/disk"
FAMILY = "node.kubernetes.io/instance-type"
POOL = "example.com/pool"
APP = "app"


class Kind(NamedTuple):
    """A kind of pod: what it asks for, and the rest of its spec."""

    name: str
    request: Request
    spec: dict[str, Any]


def _prefer(*preferences: tuple[int, str, str]) -> dict[str, Any]:
    terms = [
        {
            "weight": weight,
            "preference": {"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]},
        }
        for weight, key, value in preferences
    ]
    return {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}}}


def _spread(app: str, *rules: tuple[str, int, str]) -> dict[str, Any]:
    constraints = [
        {
            "topologyKey": key,
            "maxSkew": skew,
            "whenUnsatisfiable": otherwise,
            "labelSelector": {"matchLabels": {APP: app}},
        }
        for key, skew, otherwise in rules
    ]
    return {"topologySpreadConstraints": constraints}


_BATCH = {"key": "dedicated", "operator": "Equal", "value": "batch", "effect": "NoSchedule"}
_SPOT = {"key": "spot", "operator": "Exists"}

KINDS = [
    Kind("plain", {"cpu": "1", "memory": "2Gi"}, {}),
    Kind("small", {"cpu": "500m", "memory": "1Gi"}, {}),
    Kind("memory", {"cpu": "1", "memory": "8Gi"}, {"nodeSelector": {FAMILY: "highmem"}}),
    Kind("disk", {"cpu": "1", "memory": "4Gi"}, {"nodeSelector": {DISK: "ssd"}}),
    Kind("batch", {"cpu": "2", "memory": "4Gi"}, {"nodeSelector": {POOL: "batch"}, "tolerations": [_BATCH]}),
    Kind("spot", {"cpu": "1", "memory": "2Gi"}, {"tolerations": [_SPOT, _BATCH]}),
    Kind("near", {"cpu": "1", "memory": "2Gi"}, _prefer((80, ZONE, "z1"), (20, DISK, "ssd"))),
    Kind("roomy", {"cpu": "500m", "memory": "4Gi"}, _prefer((50, FAMILY, "highmem"))),
    Kind("even", {"cpu": "1", "memory": "2Gi"}, _spread("even", (ZONE, 1, "DoNotSchedule"))),
    Kind(
        "apart",
        {"cpu": "500m", "memory": "1Gi"},
        _spread("apart", (ZONE, 2, "ScheduleAnyway"), (HOSTNAME, 1, "ScheduleAnyway")),
    ),
]


def heterogeneous_cluster(nodes: int, gangs: int, members: int, seed: int) -> Iterator[Manifest]:
    """Gangs of mixed pods for a cluster of several kinds of nodes."""
    draw = random.Random(seed)
    for index in range(nodes):
        yield machine(index)
    for number in range(gangs):
        name = f"job-{number}"
        kinds = draw.choices(KINDS, k=members)
        yield pod_group(name, members, [kind.request for kind in kinds], "Pending")
        for index, kind in enumerate(kinds):
            yield member(name, index, kind)


def machine(index: int) -> Manifest:
    """A node: half have fast disks, a quarter much memory, a tenth is kept for batch, a tenth is better avoided."""
    made = node(index)
    pool = {0: "batch", 1: "spot"}.get(index % 10, "general")
    made["metadata"]["labels"] |= {
        DISK: "ssd" if index % 2 == 0 else "hdd",
        FAMILY: "highmem" if index % 4 == 3 else "standard",
        POOL: pool,
    }
    if pool == "batch":
        made["spec"] = {"taints": [{"key": "dedicated", "value": "batch", "effect": "NoSchedule"}]}
    elif pool == "spot":
        made["spec"] = {"taints": [{"key": "spot", "value": "true", "effect": "PreferNoSchedule"}]}
    return made


def member(group: str, index: int, kind: Kind) -> Manifest:
    made = pod(group, index, kind.request, role=kind.name)
    made["metadata"]["labels"][APP] = kind.name
    made["spec"] |= kind.spec
    return made
