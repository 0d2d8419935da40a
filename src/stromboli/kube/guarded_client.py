"""A client that sends only while we lead."""

from __future__ import annotations

from collections.abc import Callable

from stromboli.kube.request import Api, Request, RequestWithdrawn

TIMEOUT = 10.0


class LeaseLost(Exception):
    """Nothing was sent, as another replica may lead by now."""


class GuardedClient:
    """Sends requests as long as we lead, each with a timeout before which no other replica can lead."""

    def __init__(self, api: Api, write_time_left: Callable[[], float]):
        """`write_time_left`: the seconds for which surely no other replica leads, zero if we must not write."""
        self._api = api
        self._write_time_left = write_time_left

    def may_write(self) -> bool:
        return self._write_time_left() > 0

    async def send(self, request: Request, timeout: float = TIMEOUT) -> bytes:
        try:
            if (left := self._write_time_left()) > 0:
                guarded = Request(
                    request.method, request.path, request.body, request.content_type, self.may_write
                )
                return await self._api.send(guarded, min(timeout, left))
        except RequestWithdrawn:
            pass
        raise LeaseLost(f"{request.method} {request.path}: not sent, the lease is lost")
