"""The REST paths of all kinds we read, and discovery of those that a server offers."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple, Protocol
from urllib.parse import quote

import msgspec

from stromboli.api.types.kinds import CLUSTER_SCOPED, GROUPS, kind_name
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
        """The path of its group and version."""
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Of all objects, those of a namespace, one object, or its subresource."""
        path = _collection(self, namespace)
        if name:
            path = f"{path}/{quote(name, safe='')}"
        return f"{path}/{quote(subresource, safe='')}" if subresource else path

    def __str__(self) -> str:
        return f"{self.plural}.{self.group or 'core'}/{self.version}"


@lru_cache(maxsize=1024)
def _collection(resource: Resource, namespace: str) -> str:
    """The path of all objects, or of those of a namespace."""
    inside = f"/namespaces/{quote(namespace, safe='')}" if namespace and resource.namespaced else ""
    return f"{resource.root}{inside}/{resource.plural}"


VERSIONS = {
    "": "v1",
    "scheduling.volcano.sh": "v1beta1",
    "nodeinfo.volcano.sh": "v1alpha1",
    "topology.volcano.sh": "v1alpha1",
    "shard.volcano.sh": "v1alpha1",
}
"""Of groups that are not at v1, and of the core group."""


def _plural(kind: str) -> str:
    """As Kubernetes makes plurals: Queue, queues; PriorityClass, priorityclasses; NetworkPolicy, networkpolicies."""
    word = re.sub("(?<![aeiou])y$", "ie", kind.lower())
    return word + "es" if word.endswith("s") else word + "s"


def resource_of(manifest: Mapping[str, Any]) -> Resource:
    """The resource of a manifest, by its version and kind."""
    group, _, version = str(manifest["apiVersion"]).rpartition("/")
    kind = str(manifest["kind"])
    return Resource(group, version, _plural(kind), kind)


RESOURCES: dict[type[Object], Resource] = {
    kind: Resource(
        group,
        VERSIONS.get(group, "v1"),
        _plural(kind_name(kind)),
        kind_name(kind),
        kind not in CLUSTER_SCOPED,
    )
    for group, kinds in GROUPS.items()
    for kind in kinds
}
"""Of every kind that the scheduler reads."""
RESOURCES[NativePodGroup] = RESOURCES[NativePodGroup]._replace(version="v1alpha2")
"""Unless discovery finds another version (`in_offered_version`)."""
LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease")
EVENTS = Resource("", "v1", "events", "Event")

EFFECT_OF_ABSENCE: dict[str, str] = {
    "PodGroup": "no gang can be scheduled",
    "Queue": "no job can be scheduled",
    "NodeShard": "this scheduler has no nodes of its own",
    "Numatopology": "Guaranteed pods with a NUMA policy wait where the policy has numa-aware",
    "HyperNode": "gangs with a hard network topology wait, and all others may lie anywhere in the network",
}
"""What does not work if a kind is not installed."""


def absence(resource: Resource) -> str:
    """The message for an administrator about a kind that the server does not have."""
    if resource.plural == "podgroups" and not resource.group.endswith("volcano.sh"):
        return f"native groups ({resource.plural}.{resource.group}) are not offered, so there are none to schedule"
    effect = EFFECT_OF_ABSENCE.get(resource.kind, f"it is as if there were no {resource.plural}")
    remedy = (
        "; install it with `kubectl apply -k deploy/crds`" if resource.group.endswith("volcano.sh") else ""
    )
    return f"{resource.kind} ({resource}) is not installed, so {effect}{remedy}"


# -- discovery


class RequestSender(Protocol):
    async def send_with_retries(self, request: Request) -> bytes: ...


class _Entry(msgspec.Struct, gc=False):
    name: str = ""
    version: str = ""


class _Discovery(msgspec.Struct, gc=False):
    """A group with its versions, or one version with its resources."""

    versions: tuple[_Entry, ...] | None = None
    resources: tuple[_Entry, ...] | None = None


async def _discovery(client: RequestSender, path: str) -> _Discovery:
    """Empty if the server has no such group or version."""
    try:
        body = await client.send_with_retries(Request("GET", path))
    except ApiError as error:
        if error.status == 404:
            return _Discovery()
        raise
    return msgspec.json.decode(body, type=_Discovery)


async def plurals(client: RequestSender, root: str) -> frozenset[str]:
    """The resources, and subresources as `plural/part`, of one group and version (`Resource.root`)."""
    return frozenset(entry.name for entry in (await _discovery(client, root)).resources or ())


async def in_offered_version(client: RequestSender, resource: Resource) -> Resource | None:
    """A resource in the most mature version in which the server offers it; None if in none that can be read."""
    group = await _discovery(client, f"/apis/{quote(resource.group, safe='')}")
    offered = (entry.version for entry in group.versions or ())
    for version in sorted(offered, key=_maturity, reverse=True):
        candidate = resource._replace(version=version)
        if _maturity(version) > _maturity("v1alpha1") and candidate.plural in await plurals(
            client, candidate.root
        ):
            return candidate
    return None


def _maturity(version: str) -> tuple[int, ...]:
    """As Kubernetes orders versions: v1 before v1beta1 before v1alpha3, anything else last."""
    match = re.fullmatch(r"v([0-9]{1,6})(?:(alpha|beta)([0-9]{1,6}))?", version)
    if match is None:
        return ()
    return ({"alpha": 0, "beta": 1, None: 2}[match[2]], int(match[1]), int(match[3] or 0))


async def discover(client: RequestSender) -> dict[type[Object], Resource]:
    """The kinds we read that this server has, and where."""
    fixed = {kind: resource for kind, resource in RESOURCES.items() if kind is not NativePodGroup}
    roots = sorted({resource.root for resource in fixed.values()})
    offered = dict(zip(roots, await asyncio.gather(*(plurals(client, root) for root in roots)), strict=True))
    present = {
        kind: resource for kind, resource in fixed.items() if resource.plural in offered[resource.root]
    }
    native = await in_offered_version(client, RESOURCES[NativePodGroup])
    return present | ({NativePodGroup: native} if native is not None else {})
