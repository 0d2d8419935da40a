"""A node as its viewer may read it: the object, and what happened to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from stromboli.cli.cluster.cluster_errors import shown
from stromboli.cli.cluster.cluster_kinds import EVENTS, NODES, Manifest
from stromboli.cli.cluster.object_events import Happening, happening, merged
from stromboli.cli.cluster.readable_parts import ReadableParts
from stromboli.embedded.tables.age_text import instant
from stromboli.kube.request import ApiError, NoResponse

if TYPE_CHECKING:
    from stromboli.cli.cluster.cluster_session import ClusterSession

EVENTS_READ = 500
EVENTS_KEPT = 100
"""The latest."""
TAINTS_KEPT = CONDITIONS_KEPT = 50


class NodeCondition(NamedTuple):
    """What a kubelet or a controller says of a node."""

    type: str
    status: str
    reason: str
    message: str
    since: float


class NodeReading(NamedTuple):
    """What is read of a node; empty where the viewer may not, and `gaps` says so."""

    created: float = 0.0
    system: tuple[tuple[str, str], ...] = ()
    """Versions and addresses, by name."""
    capacity: tuple[tuple[str, str], ...] = ()
    taints: tuple[str, ...] = ()
    conditions: tuple[NodeCondition, ...] = ()
    events: tuple[Happening, ...] = ()
    gaps: tuple[str, ...] = ()


async def read_node(session: ClusterSession, name: str) -> NodeReading:
    """The node, as far as it can be read; never an error."""
    parts = ReadableParts()
    try:
        manifest = await parts.read("its object is not shown", session.find(NODES, name), None)
        fields = f"involvedObject.kind=Node,involvedObject.name={name}"
        listed = await parts.list("its events are not shown", session, EVENTS, "", EVENTS_READ, fields=fields)
    except (ApiError, NoResponse) as error:
        return NodeReading(gaps=(f"it could not be read: {shown(str(error))}",))
    told = merged(happening(event) for event in listed or ())[-EVENTS_KEPT:]
    return node_reading(manifest or {})._replace(events=tuple(told), gaps=parts.gaps)


def node_reading(manifest: Manifest) -> NodeReading:
    """What an object says, whatever is wrong with it."""
    spec, status = _mapping(manifest.get("spec")), _mapping(manifest.get("status"))
    info = _mapping(status.get("nodeInfo"))
    addresses = [
        (str(each.get("type") or ""), str(each.get("address") or ""))
        for each in _mappings(status.get("addresses"))[:10]
    ]
    known = ("kubeletVersion", "osImage", "kernelVersion", "containerRuntimeVersion", "architecture")
    return NodeReading(
        instant(_mapping(manifest.get("metadata")).get("creationTimestamp")) or 0.0,
        (*addresses, *((key, str(info[key])) for key in known if info.get(key))),
        tuple((str(key), str(value)) for key, value in _mapping(status.get("capacity")).items()),
        tuple(taint_text(each) for each in _mappings(spec.get("taints"))[:TAINTS_KEPT]),
        tuple(map(_condition, _mappings(status.get("conditions"))[:CONDITIONS_KEPT])),
    )


def taint_text(taint: dict[str, Any]) -> str:
    """`gpu=reserved:NoSchedule`."""
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"{taint.get('key') or ''}{value}:{taint.get('effect') or ''}"


def _condition(condition: dict[str, Any]) -> NodeCondition:
    return NodeCondition(
        str(condition.get("type") or ""),
        str(condition.get("status") or ""),
        str(condition.get("reason") or ""),
        str(condition.get("message") or ""),
        instant(condition.get("lastTransitionTime")) or 0.0,
    )


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _mappings(value: object) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
