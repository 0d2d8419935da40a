"""Which objects a scheduler watches, by its flags and feature gates, and its watches of them."""

from __future__ import annotations

import asyncio
import logging
import os
import zlib
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping

from stromboli.api.types.config_map import ConfigMap
from stromboli.api.types.devices import ResourceClaimTemplate
from stromboli.api.types.meta import Object
from stromboli.api.types.native_group import NativePodGroup
from stromboli.api.types.node import Node
from stromboli.api.types.node_shard import NodeShard
from stromboli.api.types.numa_topology import Numatopology
from stromboli.api.types.pod import Pod
from stromboli.api.types.scheduling import PodDisruptionBudget, PodGroup, PriorityClass
from stromboli.api.types.workloads import ReplicaSet, ReplicationController, StatefulSet
from stromboli.daemon.flags import BadFlag
from stromboli.kube.api_client import Client
from stromboli.kube.api_resources import RESOURCES
from stromboli.scheduler.mirror.cluster_watches import ClusterWatches
from stromboli.scheduler.options import Options
from stromboli.scheduler.thread_seam import ThreadSeam

log = logging.getLogger(__name__)


def watch_cluster(options: Options, client: Client) -> ClusterWatches:
    """Watches of all kinds but the one of which the policy says what is watched."""
    kinds = [kind for kind in watched_kinds(options) if kind is not ConfigMap]
    seam = ThreadSeam(asyncio.get_running_loop())
    return ClusterWatches(client, kinds, seam, object_filter(options))


def watched_kinds(options: Options) -> list[type[Object]]:
    """The kinds to watch, by flags and feature gates."""
    off: set[type[Object]] = {ResourceClaimTemplate}  # claims are made of them by a controller
    if not options.priority_class or not options.gate("PriorityClass", True):
        off.add(PriorityClass)
    if not options.gate("PodDisruptionBudgetsSupport", True):
        off.add(PodDisruptionBudget)
    if not options.gate("WorkLoadSupport", True):
        off |= {ReplicaSet, StatefulSet, ReplicationController}
    if not options.gate("ResourceTopology", True):
        off.add(Numatopology)
    if options.scheduler_sharding_mode == "none":
        off.add(NodeShard)
    return [kind for kind in RESOURCES if kind not in off]


def object_filter(options: Options) -> ObjectFilter:
    """Which objects are ours: by label, and by hash where several schedulers divide the cluster."""
    labelled = by_label(parse_selectors(options.node_selector))
    hashed = by_hash(os.environ, options.scheduler_name)
    if options.leader_elect and (why := idle_members(os.environ, options.leader_elect_resource_name)):
        log.warning("%s", why)
    return lambda object: labelled(object) and hashed(object)


# -- which objects are ours: nodes by label, and by a hash where several schedulers divide a cluster (spec 05 11)


POINTS = 20
"""Points of each member on the ring."""
MAX_MEMBERS = 1000
ObjectFilter = Callable[[Object], bool]


def parse_selectors(given: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """`key:value` each; an entry without a value is ignored, as in Volcano."""
    parts = (selector.partition(":") for selector in given)
    return tuple((key.strip(), value.strip()) for key, _, value in parts if key.strip() and value.strip())


def by_label(selectors: tuple[tuple[str, str], ...]) -> ObjectFilter:
    """Only nodes that have one of these labels."""

    def wanted(object: Object) -> bool:
        labels = object.metadata.labels
        return not isinstance(object, Node) or any(labels.get(key) == value for key, value in selectors)

    return wanted if selectors else lambda _: True


class HashRing:
    """A consistent hash ring: a key belongs to the member at the first point after the key's hash."""

    def __init__(self, members: Iterable[str]):
        points = sorted(
            {_hash(f"{number}{member}"): member for member in members for number in range(POINTS)}.items()
        )
        self._points = [point for point, _ in points]
        self._members = [member for _, member in points]

    def owner(self, key: str) -> str:
        return self._members[bisect_right(self._points, _hash(key)) % len(self._points)]


def idle_members(environment: Mapping[str, str], lease: str) -> str:
    """Why all members but one would decide nothing, if they share a lease; empty if they do not."""
    if not _divided(environment) or environment.get("SCHEDULER_POD_NAME", "") in lease:
        return ""
    return (
        f"nodes and jobs are divided by hash, yet whoever has the lease {lease!r} decides alone: the parts of the "
        "others wait; set --leader-elect=false, or a --leader-elect-resource-name with the pod's name"
    )


def _divided(environment: Mapping[str, str]) -> bool:
    return environment.get("MULTI_SCHEDULER_ENABLE") == "true"


def by_hash(environment: Mapping[str, str], schedulers: Iterable[str]) -> ObjectFilter:
    """Our part of the cluster, if the environment divides it between several schedulers."""
    if not _divided(environment):
        return lambda _: True
    me = environment.get("SCHEDULER_POD_NAME", "")
    base, dash, _ = me.rpartition("-")
    if not dash:
        raise BadFlag(f"SCHEDULER_POD_NAME: {me!r} is no name of a StatefulSet's pod, such as scheduler-0")
    number = environment.get("SCHEDULER_NUM", "")
    members = int(number) if number.isdecimal() else 1
    if not 0 < members <= MAX_MEMBERS:
        raise BadFlag(f"SCHEDULER_NUM: {number} is not between 1 and {MAX_MEMBERS}")
    ring = HashRing(f"{base}-{index}" for index in range(members))
    ours = frozenset(schedulers)

    def wanted(object: Object) -> bool:
        if isinstance(object, Node):
            return ring.owner(object.name) == me
        if isinstance(object, Pod):
            if object.spec.scheduler_name in ours and ring.owner(_root(object)) == me:
                return True
            return bool(object.spec.node_name) and ring.owner(object.spec.node_name) == me
        return not isinstance(object, PodGroup | NativePodGroup) or ring.owner(_root(object)) == me

    return wanted


def _root(object: Object) -> str:
    """The key that the objects of one workload share: its native group, else its owner's name."""
    if isinstance(object, Pod) and object.spec.scheduling_group is not None:
        return object.spec.scheduling_group.pod_group_name
    if isinstance(object, NativePodGroup):
        return object.name
    owners = object.metadata.owner_references
    return owners[0].name if owners else object.name


def _hash(text: str) -> int:
    return zlib.crc32(text.encode())
