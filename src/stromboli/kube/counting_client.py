"""A client that counts its requests, as Go's clients do (`rest_client_requests_total`)."""

from __future__ import annotations

from collections.abc import Callable

from stromboli.kube.api_client import MAX_RESPONSE_BYTES, TIMEOUT, Client
from stromboli.kube.cluster_access import Access
from stromboli.kube.rate_limits import RateLimiter
from stromboli.kube.request import ApiError, Request

NO_RESPONSE = "<error>"
"""In place of a status."""


class CountingClient(Client):
    """Calls `count` with method and status of every request except watches."""

    def __init__(self, access: Access, limiter: RateLimiter, count: Callable[[str, str], None]):
        super().__init__(access, limiter)
        self._count = count

    async def send(
        self, request: Request, timeout: float = TIMEOUT, max_bytes: int = MAX_RESPONSE_BYTES
    ) -> bytes:
        status = NO_RESPONSE
        try:
            response = await super().send(request, timeout, max_bytes)
            status = "201" if request.method == "POST" else "200"
            return response
        except ApiError as error:
            status = str(error.status)
            raise
        finally:
            self._count(request.method, status)
