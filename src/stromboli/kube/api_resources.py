"""Which kinds live where on an API server, and which of them a server has."""

from __future__ import annotations

import re
from typing import NamedTuple, Protocol
from urllib.parse import quote

import msgspec

from stromboli.api.types.kinds import CLUSTER_SCOPED, GROUPS, title_of
from stromboli.api.types.meta import Object
from stromboli.api.types.native_group import NativePodGroup
from stromboli.kube.request import ApiError, Request


class Resource(NamedTuple):
    """A collection of objects of one kind."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def root(self) -> str:
        """Where its group and version begin."""
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """All objects, those of a namespace, one object, or a part of it."""
        parts = [self.root]
        if namespace and self.namespaced:
            parts += ["namespaces", quote(namespace, safe="")]
        parts.append(self.plural)
        parts += [quote(part, safe="") for part in (name, subresource) if part]
        return "/".join(parts)

    def __str__(self) -> str:
        return f"{self.plural}.{self.group or 'core'}/{self.version}"


VERSIONS = {
    "": "v1",
    "scheduling.volcano.sh": "v1beta1",
    "topology.volcano.sh": "v1alpha1",
    "shard.volcano.sh": "v1alpha1",
}
"""Of groups that are not at v1, and of the core."""


def _plural(kind: str) -> str:
    """As Kubernetes makes plurals: Queue, queues; PriorityClass, priorityclasses."""
    word = kind.lower()
    return word + "es" if word.endswith("s") else word + "s"


RESOURCES: dict[type[Object], Resource] = {
    kind: Resource(
        group,
        VERSIONS.get(group, "v1"),
        _plural(title_of(kind)),
        title_of(kind),
        kind not in CLUSTER_SCOPED,
    )
    for group, kinds in GROUPS.items()
    for kind in kinds
}
"""Where every kind lives that the scheduler reads."""
RESOURCES[NativePodGroup] = RESOURCES[NativePodGroup]._replace(version="v1alpha2")
"""Unless discovery finds another (`located`)."""
LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease")
EVENTS = Resource("", "v1", "events", "Event")

WITHOUT: dict[str, str] = {
    "PodGroup": "no gang can be scheduled",
    "Queue": "no job can be scheduled",
    "NodeShard": "this scheduler has no nodes of its own",
    "HyperNode": "the network's topology is not considered",
}
"""What is switched off if a kind is not installed."""


def absence(resource: Resource) -> str:
    """What to tell an administrator about a kind that the server does not have."""
    if resource.plural == "podgroups" and not resource.group.endswith("volcano.sh"):
        return f"native groups ({resource.plural}.{resource.group}) are not offered, so there are none to schedule"
    effect = WITHOUT.get(resource.kind, f"it is as if there were no {resource.plural}")
    way_out = (
        "; install it with `kubectl apply -k deploy/crds`" if resource.group.endswith("volcano.sh") else ""
    )
    return f"{resource.kind} ({resource}) is not installed, so {effect}{way_out}"


# -- discovery


class Asks(Protocol):
    async def insist(self, request: Request) -> bytes: ...


class _Entry(msgspec.Struct, gc=False):
    name: str = ""
    kind: str = ""


class _Entries(msgspec.Struct, gc=False):
    resources: tuple[_Entry, ...] | None = None


class _Version(msgspec.Struct, gc=False):
    version: str = ""


class _Group(msgspec.Struct, gc=False):
    versions: tuple[_Version, ...] | None = None


async def versions(client: Asks, group: str) -> tuple[str, ...]:
    """The versions of a group that the server has, its preferred one first; none if it has no such group."""
    try:
        answer = await client.insist(Request("GET", f"/apis/{quote(group, safe='')}"))
    except ApiError as error:
        if error.status == 404:
            return ()
        raise
    return tuple(one.version for one in msgspec.json.decode(answer, type=_Group).versions or ())


async def plurals(client: Asks, root: str) -> frozenset[str]:
    """The resources, and subresources as `plural/part`, of one group and version (`Resource.root`)."""
    try:
        answer = await client.insist(Request("GET", root))
    except ApiError as error:
        if error.status == 404:
            return frozenset()
        raise
    return frozenset(one.name for one in msgspec.json.decode(answer, type=_Entries).resources or ())


async def located(client: Asks, resource: Resource) -> Resource | None:
    """A resource in the most mature version in which the server offers it; None if in none that can be read."""
    for version in sorted(await versions(client, resource.group), key=_maturity, reverse=True):
        there = resource._replace(version=version)
        if _maturity(version) > _maturity("v1alpha1") and there.plural in await plurals(client, there.root):
            return there
    return None


def _maturity(version: str) -> tuple[int, ...]:
    """As Kubernetes orders versions: v1 before v1beta1 before v1alpha3; what is none of these comes last."""
    found = re.fullmatch(r"v([0-9]{1,6})(?:(alpha|beta)([0-9]{1,6}))?", version)
    if found is None:
        return ()
    return ({"alpha": 0, "beta": 1, None: 2}[found[2]], int(found[1]), int(found[3] or 0))


async def discover(client: Asks) -> dict[type[Object], Resource]:
    """The kinds we read that this server has, and where."""
    fixed = {kind: one for kind, one in RESOURCES.items() if kind is not NativePodGroup}
    offered = {root: await plurals(client, root) for root in {one.root for one in fixed.values()}}
    found = {kind: one for kind, one in fixed.items() if one.plural in offered[one.root]}
    native = await located(client, RESOURCES[NativePodGroup])
    return found | ({NativePodGroup: native} if native is not None else {})
