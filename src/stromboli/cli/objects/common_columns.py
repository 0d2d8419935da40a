"""What every kind shows of its metadata: age, owner, and the first fields of its description."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from stromboli.cli.cluster.cluster_errors import refusal_text
from stromboli.cli.cluster.cluster_kinds import Manifest, name_of, namespace_of
from stromboli.cli.cluster.description import Description
from stromboli.cli.cluster.object_events import event_lines, events_of
from stromboli.cli.cluster.object_output import NONE, Column
from stromboli.embedded.tables.age_text import age, ago
from stromboli.kube.api_resources import Resource
from stromboli.kube.request import ApiError

if TYPE_CHECKING:
    from stromboli.cli.cluster.cluster_session import ClusterSession


def nested(manifest: Manifest, *path: str) -> Any:
    """A field, however deep; None where anything on the way is missing or no map."""
    value: Any = manifest
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def age_of(manifest: Manifest) -> str:
    return age(manifest, time.time())


def ago_of(moment: object) -> str:
    """How long ago a timestamp was; a dash without one."""
    return f"{ago(moment, time.time())} ago" if moment else NONE


def items(value: object) -> list[Manifest]:
    """The maps of a list; none if it is no list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def owner_of(manifest: Manifest) -> str:
    """`job/train`, what controls an object; empty if nothing does."""
    owners = items(nested(manifest, "metadata", "ownerReferences"))
    controlling = next((owner for owner in owners if owner.get("controller")), None)
    return f"{str(controlling.get('kind')).lower()}/{controlling.get('name')}" if controlling else ""


AGE_COLUMN = Column("AGE", age_of)


def begun(manifest: Manifest) -> Description:
    """A description with what all kinds have: name, namespace, labels, age."""
    description = Description()
    description.field("Name", name_of(manifest))
    description.field("Namespace", namespace_of(manifest))
    if labels := nested(manifest, "metadata", "labels"):
        description.entries("Labels", labels)
    description.field("Owner", owner_of(manifest))
    created = nested(manifest, "metadata", "creationTimestamp")
    description.field("Created", f"{created} ({ago_of(created)})" if created else "")
    if nested(manifest, "metadata", "deletionTimestamp"):
        description.field("Deleted", ago_of(nested(manifest, "metadata", "deletionTimestamp")))
    return description


async def listed(
    session: ClusterSession, description: Description, resource: Resource, namespace: str
) -> list[Manifest]:
    """Objects that a description is better with; who may not list them is told so there."""
    try:
        return (await session.list(resource, namespace)).items
    except ApiError as error:
        description.section(f"{resource.kind}s", [f"not shown: {refusal_text(error)}"])
        return []


async def with_events(session: ClusterSession, description: Description, manifest: Manifest) -> Description:
    """A description that ends with the events; who may not read events is told so there."""
    try:
        lines = event_lines(await events_of(session, manifest))
        description.section("Events", lines or [NONE])
    except ApiError as error:
        description.section("Events", [f"not shown: {refusal_text(error)}"])
    return description
