"""`GET /explain/...` of the leader, for users with permission to read the object in the API server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from aiohttp import web
from msgspec.structs import replace

from stromboli.daemon.delegated_authorization import (
    DelegatedAuthorization,
    ListAccess,
    ObjectAccess,
    PathAccess,
    RequiredAccess,
)
from stromboli.daemon.telemetry_guard import TelemetryGuard
from stromboli.scheduler.explain.explain_paths import (
    BAD_CYCLE_QUERY,
    BAD_PATH,
    CYCLES,
    NAMED_IN_CYCLES,
    POLICY,
    PREFIX,
    Question,
    parse_cycle_query,
    parse_path,
)
from stromboli.scheduler.explain.explanations import Explanations, TooManyQuestions
from stromboli.scheduler.explain.leader_answer import LeaderAnswer
from stromboli.scheduler.explain.leader_log import LeaderLog
from stromboli.scheduler.thread_seam import Unavailable

Handler = Callable[[web.Request], Awaitable[web.Response]]
RIGHTS = "deploy/components/explain"
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
        self._explanations = explanations
        self._record = record
        self._authorization = authorization
        self._standing_by = standing_by
        self._identity = identity
        self._guard = guard

    def add_routes(self, app: web.Application) -> None:
        app.router.add_get(CYCLES, self._guarded(self._report_cycles))
        app.router.add_get(POLICY, self._guarded(self._report_policy))
        app.router.add_get(f"{PREFIX}{{path:.*}}", self._guarded(self._explain))

    def _guarded(self, handler: Handler) -> Handler:
        """A handler that turns failures into error responses."""

        async def respond(request: web.Request) -> web.Response:
            with self._guard("explanation"):
                try:
                    return await handler(request)
                except TooManyQuestions as error:
                    return refuse(429, str(error))
                except Unavailable as error:
                    return refuse(503, str(error))
            return refuse(500, "the explanation failed; see the scheduler log")

        return respond

    async def _explain(self, request: web.Request) -> web.Response:
        question = parse_path(request.rel_url.raw_path)
        if question is None:
            return refuse(400, BAD_PATH)
        access = ObjectAccess(question.kind.group, question.kind.plural, question.namespace, question.name)
        refusal = await self._refusal(request, access)
        if refusal is not None:
            return refusal
        return answered(await self._explanations.answer(question), question, self._identity)

    async def _report_cycles(self, request: web.Request) -> web.Response:
        query = parse_cycle_query(request.rel_url.query)
        if query is None:
            return refuse(400, BAD_CYCLE_QUERY)
        refusal = await self._refusal(request, *(ListAccess(*kind[:2]) for kind in NAMED_IN_CYCLES))
        if refusal is not None:
            return refusal
        return document(replace(self._record.cycles.select(query), leader=self._identity))

    async def _report_policy(self, request: web.Request) -> web.Response:
        refusal = await self._refusal(request, PathAccess("get", POLICY))
        if refusal is not None:
            return refusal
        return document(replace(self._record.policy.document(), leader=self._identity))

    async def _refusal(self, request: web.Request, *accesses: RequiredAccess) -> web.Response | None:
        """The error response to a request that needs all of these permissions; None if it has them."""
        for access in accesses:
            refusal = await self._authorization.refusal(request, access)
            if refusal is not None:
                return refuse(refusal.status, refusal.message)
        leader = self._standing_by()
        if leader is not None:
            reason = f"the leader is {leader}" if leader else "no leader is elected yet"
            return refuse(503, f"{self._identity} is on standby: {reason}")
        return None


def answered(answer: LeaderAnswer, question: Question, identity: str) -> web.Response:
    """The response with an answer; 404 if neither the object nor a history of it is known."""
    if answer.is_empty:
        return refuse(404, question.not_found)
    return document(replace(answer, leader=identity))


def document(content: msgspec.Struct) -> web.Response:
    return web.Response(body=msgspec.json.encode(content), content_type="application/json")


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
