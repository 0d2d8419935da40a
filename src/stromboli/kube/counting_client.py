"""A client that counts what it asks, as Go's clients do (`rest_client_requests_total`)."""

from __future__ import annotations

from collections.abc import Callable

from stromboli.kube.api_client import LARGEST, TIMEOUT, Client
from stromboli.kube.cluster_access import Access
from stromboli.kube.rate_limits import RateLimiter
from stromboli.kube.request import ApiError, Request

NO_ANSWER = "<error>"
"""In place of a status, where there is none."""


class CountingClient(Client):
    """Tells method and status of every answer; watches, which go on for minutes, are left out."""

    def __init__(self, access: Access, limiter: RateLimiter, count: Callable[[str, str], None]):
        super().__init__(access, limiter)
        self._count = count

    async def ask(self, request: Request, timeout: float = TIMEOUT, largest: int = LARGEST) -> bytes:
        status = NO_ANSWER
        try:
            answer = await super().ask(request, timeout, largest)
            status = "201" if request.method == "POST" else "200"
            return answer
        except ApiError as error:
            status = str(error.status)
            raise
        finally:
            self._count(request.method, status)
