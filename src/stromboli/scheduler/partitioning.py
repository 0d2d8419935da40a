"""Which objects are ours: nodes by label, and by a hash where several schedulers divide a cluster (spec 05 11)."""

from __future__ import annotations

import zlib
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping

from stromboli.api.types.meta import Object
from stromboli.api.types.native_group import NativePodGroup
from stromboli.api.types.node import Node
from stromboli.api.types.pod import Pod
from stromboli.api.types.scheduling import PodGroup
from stromboli.daemon.flags import BadFlag

POINTS = 20
"""Points of each member on the ring."""
MOST_MEMBERS = 1000
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
    if not 0 < members <= MOST_MEMBERS:
        raise BadFlag(f"SCHEDULER_NUM: {number} is not between 1 and {MOST_MEMBERS}")
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
