"""What an installation is made of, read from a cluster; what may not be read is told as such."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import msgspec

from stromboli.cli.cluster.cluster_errors import FORBIDDEN, ClusterError, refusal_text
from stromboli.cli.cluster.cluster_kinds import (
    LEASES,
    MUTATING_WEBHOOKS,
    NODES,
    QUEUES,
    VALIDATING_WEBHOOKS,
    Manifest,
)
from stromboli.cli.cluster.cluster_session import ClusterSession
from stromboli.kube.api_resources import Resource
from stromboli.kube.request import ApiError, Request

DEFINITIONS = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False
)
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
ENDPOINT_SLICES = Resource("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice")
SELF_REVIEW = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
ACCESS_REVIEW = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


@dataclass(slots=True)
class InstallationFacts:
    """Objects by kind, and why those are missing that could not be read."""

    server: str
    namespace: str
    """Of the installation."""
    is_local: bool
    """Whether it is a cluster of `stromboli up`, which has its parts in one process."""
    version: str = ""
    user: str = ""
    now: float = 0.0
    """Our clock."""
    server_time: str = ""
    objects: dict[str, list[Manifest]] = field(default_factory=dict)
    """By kind."""
    refused: dict[str, str] = field(default_factory=dict)
    """Why a kind could not be read."""
    rights: dict[str, bool] = field(default_factory=dict)
    """What the user may do, by `verb resource.group`."""


EVERYDAY_RIGHTS: tuple[tuple[str, str, str, str], ...] = (
    ("create", "batch.volcano.sh", "jobs", ""),
    ("list", "batch.volcano.sh", "jobs", ""),
    ("delete", "batch.volcano.sh", "jobs", ""),
    ("create", "bus.volcano.sh", "commands", ""),
    ("list", "scheduling.volcano.sh", "podgroups", ""),
    ("list", "scheduling.volcano.sh", "queues", ""),
    ("list", "", "pods", ""),
    ("get", "", "pods", "log"),
    ("list", "", "events", ""),
    ("list", "", "nodes", ""),
)
"""Verb, group, resource and subresource of what everyday commands do."""


async def read_facts(session: ClusterSession, namespace: str) -> InstallationFacts:
    """All facts; a server that does not answer at all is an error."""
    client = session.client
    facts = InstallationFacts(client.access.server, namespace, session.running is not None)
    try:
        facts.version = str((await session.send(Request("GET", "/version"))).get("gitVersion") or "")
    except ApiError as error:
        if error.status != FORBIDDEN:
            raise
        facts.version = "its version is not told"
    await _read_user(session, facts)
    for resource, where in (
        (DEFINITIONS, ""),
        (DEPLOYMENTS, namespace),
        (LEASES, namespace),
        (MUTATING_WEBHOOKS, ""),
        (VALIDATING_WEBHOOKS, ""),
        (ENDPOINT_SLICES, namespace),
        (QUEUES, ""),
        (NODES, ""),
    ):
        try:
            facts.objects[resource.kind] = (await session.list(resource, where)).items
        except ApiError as error:
            facts.refused[resource.kind] = refusal_text(error)
        except ClusterError as error:
            facts.refused[resource.kind] = str(error)
    await _read_rights(session, facts)
    return facts


async def _review(session: ClusterSession, path: str, kind: str, spec: Any = None) -> Manifest:
    group_version = "/".join(path.split("/")[2:4])
    body = {"apiVersion": group_version, "kind": kind, "metadata": {}} | (
        {} if spec is None else {"spec": spec}
    )
    return await session.send(Request("POST", path, msgspec.json.encode(body)))


async def _read_user(session: ClusterSession, facts: InstallationFacts) -> None:
    """Who we are, and the clock of the server, which marks its answer."""
    try:
        review = await _review(session, SELF_REVIEW, "SelfSubjectReview")
    except ApiError as error:
        facts.refused["SelfSubjectReview"] = refusal_text(error)
    else:
        facts.user = str(((review.get("status") or {}).get("userInfo") or {}).get("username") or "")
        facts.server_time = str((review.get("metadata") or {}).get("creationTimestamp") or "")
    facts.now = time.time()


async def _read_rights(session: ClusterSession, facts: InstallationFacts) -> None:
    for verb, group, resource, subresource in EVERYDAY_RIGHTS:
        attributes = {"verb": verb, "group": group, "resource": resource, "namespace": session.namespace}
        if subresource:
            attributes["subresource"] = subresource
        name = f"{verb} {resource}{'/' if subresource else ''}{subresource}{'.' if group else ''}{group}"
        try:
            review = await _review(
                session, ACCESS_REVIEW, "SelfSubjectAccessReview", {"resourceAttributes": attributes}
            )
        except ApiError as error:
            facts.refused["SelfSubjectAccessReview"] = refusal_text(error)
            return
        facts.rights[name] = bool((review.get("status") or {}).get("allowed"))
