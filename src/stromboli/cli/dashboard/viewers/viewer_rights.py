"""What a user may see, by access reviews: a kind everywhere, or else in which namespaces."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Any

from stromboli.cli.live import cluster_records
from stromboli.cli.live.visible_records import CLUSTER_WIDE, NAMESPACED, Visibility
from stromboli.daemon.delegated_reviews import Subject, review_access
from stromboli.kube.request import Api

MOST_NAMESPACES = 500
"""About which the API server is asked for a viewer; what is in further ones is not shown to him."""
REVIEWS_AT_ONCE = 8
_GROUPS = {
    cluster_records.GROUPS: "scheduling.volcano.sh",
    cluster_records.QUEUES: "scheduling.volcano.sh",
    cluster_records.JOBS: "batch.volcano.sh",
    cluster_records.HYPER_NODES: "topology.volcano.sh",
}
"""API groups of the kinds that are not in the core group."""


async def visibility_of(api: Api, subject: Subject, namespaces: Collection[str]) -> Visibility:
    """What a user may list of the kinds that are shown, in the namespaces that have anything to show."""
    turn = asyncio.Semaphore(REVIEWS_AT_ONCE)

    async def may_list(kind: str, namespace: str = "") -> bool:
        attributes: dict[str, Any] = {"verb": "list", "group": _GROUPS.get(kind, ""), "resource": kind}
        if namespace:
            attributes["namespace"] = namespace
        async with turn:
            return await review_access(api, subject, [{"resourceAttributes": attributes}])

    kinds = (*CLUSTER_WIDE, *NAMESPACED)
    everywhere = dict(zip(kinds, await asyncio.gather(*map(may_list, kinds)), strict=True))
    asked = [
        (kind, namespace)
        for kind in NAMESPACED
        if not everywhere[kind]
        for namespace in sorted(namespaces)[:MOST_NAMESPACES]
    ]
    allowed = await asyncio.gather(*(may_list(kind, namespace) for kind, namespace in asked))
    visible: dict[str, set[str]] = {kind: set() for kind in NAMESPACED if not everywhere[kind]}
    for (kind, namespace), may in zip(asked, allowed, strict=True):
        if may:
            visible[kind].add(namespace)
    return Visibility(
        {kind: frozenset(names) for kind, names in visible.items()},
        frozenset(kind for kind in CLUSTER_WIDE if not everywhere[kind]),
    )
