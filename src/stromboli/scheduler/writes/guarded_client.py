"""What the writer writes with: asks only as long as we may write, and remembers what was written last."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any

from stromboli.kube.request import Api, ApiError, Request, RequestWithdrawn, is_gone

TIMEOUT = 10.0
"""Seconds that one request may take."""
REMEMBERED = 100_000


class Over(Exception):
    """A bind or an eviction cannot come to pass any more."""

    def __init__(self, why: str, gone: bool = False):
        super().__init__(why)
        self.gone = gone


class Gone(Exception):
    """There is nobody left to write about."""


class Pen:
    """A way to the API server for as long as we may write."""

    def __init__(self, api: Api, may_write: Callable[[], bool]):
        self.may_write = may_write
        self._api = api
        self._written: OrderedDict[Hashable, Any] = OrderedDict()
        """What was last written of an object, for what the next patch of it must say."""

    async def send(self, request: Request) -> bytes:
        try:
            if self.may_write():
                return await self._api.send(request._replace(still_wanted=self.may_write), TIMEOUT)
        except RequestWithdrawn:
            pass
        raise Over("no longer the leader")

    async def send_unless_gone(self, request: Request) -> None:
        """Ask, where some refusals mean that the object, known by its uid, is gone: `Gone`."""
        try:
            await self.send(request)
        except ApiError as error:
            if is_gone(error):
                raise Gone from None
            raise

    # -- memory

    def last(self, key: Hashable, otherwise: Any) -> Any:
        return self._written.get(key, otherwise)

    def remember(self, key: Hashable, value: Any) -> None:
        self._written[key] = value
        self._written.move_to_end(key)
        if len(self._written) > REMEMBERED:
            self._written.popitem(last=False)

    def forget(self, key: Hashable) -> None:
        self._written.pop(key, None)
