"""What queues use, deserve, are guaranteed and may have: as the scheduler divides, or else as the queues state."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from stromboli.cli.cluster.cluster_kinds import Manifest, name_of
from stromboli.cli.cluster.readable_parts import ReadableParts
from stromboli.cli.queue.queue_names import spec_of_queue

if TYPE_CHECKING:
    from stromboli.cli.cluster.cluster_session import ClusterSession

Share = dict[str, Any]
PARTS = ("used", "deserved", "guarantee", "capability")
LEFT_OUT = "shares are as the queues state them, not as the scheduler divides"
UNCOUNTED = ("pods",)
"""Resources that no share is about."""


async def read_shares(
    session: ClusterSession, queues: list[Manifest], parts: ReadableParts
) -> dict[str, Share]:
    """By queue; for users who may not list nodes, pods or PodGroups, what the queues say."""
    computed = await _computed(session, parts)
    return {name_of(queue): computed.get(name_of(queue)) or stated_share(queue) for queue in queues}


def stated_share(queue: Manifest) -> Share:
    """What a queue says of itself: what its jobs hold, and the shares in its spec."""
    spec, status = spec_of_queue(queue), queue.get("status") or {}
    lists = {
        "used": status.get("allocated"),
        "deserved": spec.get("deserved"),
        "guarantee": (spec.get("guarantee") or {}).get("resource"),
        "capability": spec.get("capability"),
    }
    return {key: _counted(amounts) for key, amounts in lists.items() if isinstance(amounts, dict) and amounts}


def _counted(amounts: Manifest) -> dict[str, str]:
    return {name: str(amount) for name, amount in amounts.items() if name not in UNCOUNTED}


async def _computed(session: ClusterSession, parts: ReadableParts) -> dict[str, Share]:
    """As `stromboli status` computes them; none if something that it takes may not be read."""
    from stromboli.api.types.volcano_job import Job
    from stromboli.cli.status.cluster_policy import policy_in_force
    from stromboli.cli.status.cluster_status import LISTED, all_of_kind, status_of
    from stromboli.extensions import load_catalog

    objects: dict[Any, Any] = {Job: []}
    for kind, resource in LISTED.items():
        if kind is Job:
            continue
        read = await parts.read(LEFT_OUT, all_of_kind(session.client, resource, kind), None)
        if read is None:
            return {}
        objects[kind] = read
    catalog = load_catalog(None)
    in_force = await policy_in_force(session.client, session.running, catalog)
    status = status_of(objects, in_force, catalog, time.time(), {})
    return {queue["name"]: queue for queue in status["queues"]}
