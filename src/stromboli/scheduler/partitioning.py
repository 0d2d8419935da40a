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
"""Places of each member on the ring."""
MOST_MEMBERS = 1000
Wanted = Callable[[Object], bool]


def parse_selectors(given: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """`key:value` each; what has no value asks for nothing, as in Volcano."""
    parts = (one.partition(":") for one in given)
    return tuple((key.strip(), value.strip()) for key, _, value in parts if key.strip() and value.strip())


def by_label(selectors: tuple[tuple[str, str], ...]) -> Wanted:
    """Only nodes that have one of these labels."""

    def wanted(thing: Object) -> bool:
        labels = thing.metadata.labels
        return not isinstance(thing, Node) or any(labels.get(key) == value for key, value in selectors)

    return wanted if selectors else lambda _: True


class Ring:
    """Who of several schedulers has what: the member at the first place behind the hash of its name."""

    def __init__(self, members: Iterable[str]):
        places = sorted(
            {_hash(f"{number}{member}"): member for member in members for number in range(POINTS)}.items()
        )
        self._places = [place for place, _ in places]
        self._members = [member for _, member in places]

    def owner(self, key: str) -> str:
        return self._members[bisect_right(self._places, _hash(key)) % len(self._places)]


def idle_members(environment: Mapping[str, str], lease: str) -> str:
    """Why all members but one would decide nothing, if they elect one on a lease that they share."""
    if not _divided(environment) or environment.get("SCHEDULER_POD_NAME", "") in lease:
        return ""
    return (
        f"nodes and jobs are divided by hash, yet whoever has the lease {lease!r} decides alone: the parts of the "
        "others wait; set --leader-elect=false, or a --leader-elect-resource-name with the pod's name"
    )


def _divided(environment: Mapping[str, str]) -> bool:
    return environment.get("MULTI_SCHEDULER_ENABLE") == "true"


def by_hash(environment: Mapping[str, str], schedulers: Iterable[str]) -> Wanted:
    """Our part of the cluster, if the environment says that there are several schedulers."""
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
    ring = Ring(f"{base}-{index}" for index in range(members))
    ours = frozenset(schedulers)

    def wanted(thing: Object) -> bool:
        if isinstance(thing, Node):
            return ring.owner(thing.name) == me
        if isinstance(thing, Pod):
            if thing.spec.scheduler_name in ours and ring.owner(_root(thing)) == me:
                return True
            return bool(thing.spec.node_name) and ring.owner(thing.spec.node_name) == me
        return not isinstance(thing, PodGroup | NativePodGroup) or ring.owner(_root(thing)) == me

    return wanted


def _root(thing: Object) -> str:
    """What keeps the parts of a workload together: its native group, else the name of who made it."""
    if isinstance(thing, Pod) and thing.spec.scheduling_group is not None:
        return thing.spec.scheduling_group.pod_group_name
    if isinstance(thing, NativePodGroup):
        return thing.name
    owners = thing.metadata.owner_references
    return owners[0].name if owners else thing.name


def _hash(text: str) -> int:
    return zlib.crc32(text.encode())
