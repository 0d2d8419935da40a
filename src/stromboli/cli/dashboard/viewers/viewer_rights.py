"""What a user may see, by access reviews: a kind everywhere, or else in which namespaces.

What he may see is asked again each time, as rights can be taken away. What he may not see is asked again now and then,
and for namespaces that are new: in most clusters that is nearly all of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from typing import Any

from stromboli.cli.live import cluster_records
from stromboli.cli.live.visible_records import CLUSTER_WIDE, NAMESPACED, Visibility
from stromboli.daemon.delegated_reviews import Subject, review_access
from stromboli.kube.request import Api

MOST_NAMESPACES = 1000
"""About which the API server is asked for a viewer; what is in further ones is not shown to him."""
REFUSED_SECONDS = 300.0
"""After which it is asked again about what a viewer may not see; sooner if he logs in again."""
REVIEWS_AT_ONCE = 8
_GROUPS = {
    cluster_records.GROUPS: "scheduling.volcano.sh",
    cluster_records.QUEUES: "scheduling.volcano.sh",
    cluster_records.JOBS: "batch.volcano.sh",
    cluster_records.HYPER_NODES: "topology.volcano.sh",
}
"""API groups of the kinds that are not in the core group."""
_Place = tuple[str, str]
"""A kind, and a namespace; empty for all."""


class ReviewedRights:
    """The rights of one user to list what is shown, as far as the API server was asked."""

    def __init__(self, api: Api, subject: Subject, clock: Callable[[], float]) -> None:
        self.subject = subject
        self._api = api
        self._clock = clock
        self._turn = asyncio.Semaphore(REVIEWS_AT_ONCE)
        self._refused: dict[_Place, float] = {}
        """When it was last asked about what he may not list in a namespace."""

    async def visibility(self, namespaces: Collection[str]) -> Visibility:
        """What he may list, in the namespaces that have anything to show."""
        kinds = (*CLUSTER_WIDE, *NAMESPACED)
        everywhere = dict(zip(kinds, await self._may([(kind, "") for kind in kinds]), strict=True))
        reviewed = sorted(namespaces)[:MOST_NAMESPACES]
        limited = [kind for kind in NAMESPACED if not everywhere[kind]]
        asked = [
            place for place in ((kind, name) for kind in limited for name in reviewed) if self._is_due(place)
        ]
        visible: dict[str, set[str]] = {kind: set() for kind in limited}
        for (kind, namespace), may in zip(asked, await self._may(asked), strict=True):
            if may:
                visible[kind].add(namespace)
                self._refused.pop((kind, namespace), None)
            else:
                self._refused[kind, namespace] = self._clock()
        self._forget(set(reviewed))
        return Visibility(
            {kind: frozenset(names) for kind, names in visible.items()},
            frozenset(kind for kind in CLUSTER_WIDE if not everywhere[kind]),
            bool(limited) and len(reviewed) < len(namespaces),
        )

    def _is_due(self, place: _Place) -> bool:
        refused = self._refused.get(place)
        return refused is None or self._clock() - refused >= REFUSED_SECONDS

    def _forget(self, namespaces: set[str]) -> None:
        """What is kept of namespaces that are no longer there."""
        for place in [place for place in self._refused if place[1] not in namespaces]:
            del self._refused[place]

    async def _may(self, places: list[_Place]) -> list[bool]:
        return await asyncio.gather(*(self._may_list(*place) for place in places))

    async def _may_list(self, kind: str, namespace: str) -> bool:
        attributes: dict[str, Any] = {"verb": "list", "group": _GROUPS.get(kind, ""), "resource": kind}
        if namespace:
            attributes["namespace"] = namespace
        async with self._turn:
            return await review_access(self._api, self.subject, [{"resourceAttributes": attributes}])
