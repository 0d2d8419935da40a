"""`GET /explain/...` of the leader, for users with permission to read the object in the API server."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from aiohttp import web

from stromboli.daemon.delegated_authorization import DelegatedAuthorization, RequiredAccess
from stromboli.daemon.telemetry_guard import TelemetryGuard
from stromboli.scheduler.explain.explain_paths import PREFIX
from stromboli.scheduler.explain.explanations import Explanations, TooManyQuestions
from stromboli.scheduler.explain.leader_log import LeaderLog
from stromboli.scheduler.explain.leader_reports import LeaderReports, Refused
from stromboli.scheduler.thread_seam import Unavailable

PERMISSIONS = "deploy/components/explain"
_REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    429: "TooManyRequests",
    503: "ServiceUnavailable",
}


class ExplainEndpoint:
    """Authorizes requests, and answers them if this replica is the leader."""

    def __init__(
        self,
        explanations: Explanations,
        record: LeaderLog,
        authorization: DelegatedAuthorization,
        standing_by: Callable[[], str | None],
        identity: str,
        guard: TelemetryGuard,
    ) -> None:
        """`standing_by` returns the identity of the leader, perhaps empty; None if it is this replica."""
        self._reports = LeaderReports(identity, explanations.answer, record)
        self._authorization = authorization
        self._standing_by = standing_by
        self._identity = identity
        self._guard = guard

    def add_routes(self, app: web.Application) -> None:
        app.router.add_get(f"{PREFIX}{{path:.*}}", self._respond)

    async def _respond(self, request: web.Request) -> web.Response:
        """The report on a path, or an error response."""
        url, authorize = request.rel_url, partial(self._authorize, request)
        with self._guard("explanation"):
            try:
                body = await self._reports.report(url.raw_path, url.query, authorize)
                return web.Response(body=body, content_type="application/json")
            except Refused as error:
                return refuse(error.status, str(error))
            except TooManyQuestions as error:
                return refuse(429, str(error))
            except Unavailable as error:
                return refuse(503, str(error))
        return refuse(500, "the explanation failed; see the scheduler log")

    async def _authorize(self, request: web.Request, accesses: Sequence[RequiredAccess]) -> None:
        """Refuse a request without these permissions, and any request on a standby replica."""
        for access in accesses:
            refusal = await self._authorization.refusal(request, access)
            if refusal is not None:
                raise Refused(refusal.status, refusal.message)
        leader = self._standing_by()
        if leader is not None:
            reason = f"the leader is {leader}" if leader else "no leader is elected yet"
            raise Refused(503, f"{self._identity} is on standby: {reason}")


def refuse(status: int, message: str) -> web.Response:
    """An error response with a Status, as Kubernetes writes it."""
    content: dict[str, Any] = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": _REASONS.get(status, "InternalError"),
        "code": status,
    }
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else {}
    headers |= {"Retry-After": "1"} if status == 429 else {}
    return web.json_response(content, status=status, headers=headers)
