"""A list and a watch of objects that goes on when it breaks; whoever asked is told the latest state of each."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from stromboli.cli.cluster.cluster_kinds import Manifest, name_of
from stromboli.kube.api_resources import Resource
from stromboli.kube.request import ApiError, Backoff, NoResponse, is_transient

if TYPE_CHECKING:
    from stromboli.cli.cluster.cluster_session import ClusterSession

FORBIDDEN, EXPIRED = 403, 410
LOOK_AGAIN = 1.0
"""Seconds from look to look for users who may list objects and not watch them, as with Volcano's own roles."""
BACKOFF = Backoff(first=0.2, longest=10.0)
TOLD_AFTER = 3
"""Failures in a row until the user hears of them."""
Changed = Callable[[str, Manifest | None], None]
"""Called with the name of an object and its state, None once it is gone."""


class ObjectWatch:
    """Objects of one kind by labels or fields."""

    def __init__(
        self,
        session: ClusterSession,
        resource: Resource,
        namespace: str,
        changed: Changed,
        labels: str = "",
        fields: str = "",
        tell: Callable[[str], None] = lambda text: None,
        known: Iterable[str] = (),
    ) -> None:
        """`known` are names of objects that were there: whoever asked is told if they are gone."""
        self._session = session
        self._resource = resource
        self._namespace = namespace
        self._changed = changed
        self._labels = labels
        self._fields = fields
        self._tell = tell
        self._known = set(known)
        self._version = ""
        self._failures = 0

    async def run(self) -> None:
        """Until cancelled; `ApiError` if the API server refuses for good."""
        while True:
            try:
                if not self._version:
                    await self._list()
                if not await self._watch_if_allowed():
                    await asyncio.sleep(BACKOFF.pause(1))  # a server that ends every watch at once
            except ApiError as error:
                self._version = ""
                if error.status == EXPIRED:
                    await asyncio.sleep(BACKOFF.pause(1))
                elif is_transient(error):
                    await self._pause(error)
                else:
                    raise
            except NoResponse as error:
                await self._pause(error)

    async def _watch_if_allowed(self) -> bool:
        """Watch, or else let some time pass before the next list."""
        try:
            return await self._watch()
        except ApiError as error:
            if error.status != FORBIDDEN:
                raise
        self._version = ""
        await asyncio.sleep(LOOK_AGAIN)
        return True

    async def _pause(self, error: Exception) -> None:
        self._failures += 1
        if self._failures == TOLD_AFTER:
            self._tell(f"the API server does not answer, trying again: {error}")
        await asyncio.sleep(BACKOFF.pause(self._failures))

    async def _list(self) -> None:
        listed = await self._session.list(self._resource, self._namespace, self._labels, self._fields)
        present = {name_of(item) for item in listed.items}
        for name in sorted(self._known - present):
            self._changed(name, None)
        for item in listed.items:
            self._changed(name_of(item), item)
        self._known, self._version, self._failures = present, listed.version, 0

    async def _watch(self) -> bool:
        """Whether it said anything before it ended."""
        said = False
        changes = self._session.watch(
            self._resource, self._version, self._namespace, self._labels, self._fields
        )
        async for change in changes:
            version = str((change.object.get("metadata") or {}).get("resourceVersion") or "")
            self._version, self._failures, said = version or self._version, 0, True
            name = name_of(change.object)
            if change.type == "DELETED":
                self._known.discard(name)
                self._changed(name, None)
            elif change.type != "BOOKMARK":
                self._known.add(name)
                self._changed(name, change.object)
        return said
