"""The client of the writer: it sends only while we lead, and remembers what was written last."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any

from stromboli.kube.request import Api, ApiError, Request, RequestWithdrawn, is_gone

TIMEOUT = 10.0
"""Seconds that one request may take, at most."""
MAX_REMEMBERED = 100_000


class WriteFailed(Exception):
    """A bind or an eviction cannot succeed any more."""

    def __init__(self, why: str, gone: bool = False):
        super().__init__(why)
        self.gone = gone


class ObjectGone(Exception):
    """The object to write about no longer exists."""


class GuardedClient:
    """Sends requests as long as we lead, each to end before another replica can."""

    def __init__(self, api: Api, write_time_left: Callable[[], float]):
        """`write_time_left`: the seconds for which surely no other replica leads, zero if we must not write."""
        self._api = api
        self._write_time_left = write_time_left
        self._written: OrderedDict[Hashable, Any] = OrderedDict()
        """What was last written of an object: its next patch depends on it."""

    def may_write(self) -> bool:
        return self._write_time_left() > 0

    async def send(self, request: Request) -> bytes:
        try:
            if (left := self._write_time_left()) > 0:
                return await self._api.send(request._replace(still_wanted=self.may_write), min(TIMEOUT, left))
        except RequestWithdrawn:
            pass
        raise WriteFailed("no longer the leader")

    async def send_unless_gone(self, request: Request) -> None:
        """Send; `ObjectGone` if the refusal means that the object, known by its uid, no longer exists."""
        try:
            await self.send(request)
        except ApiError as error:
            if is_gone(error):
                raise ObjectGone from None
            raise

    # -- what was written last

    def last_written(self, key: Hashable, default: Any) -> Any:
        return self._written.get(key, default)

    def remember(self, key: Hashable, value: Any) -> None:
        self._written[key] = value
        self._written.move_to_end(key)
        if len(self._written) > MAX_REMEMBERED:
            self._written.popitem(last=False)

    def forget(self, key: Hashable) -> None:
        self._written.pop(key, None)
