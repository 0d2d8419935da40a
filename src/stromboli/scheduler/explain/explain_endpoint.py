"""`GET /explain/...` of the leader: for users whom the API server lets read the object that they ask about."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import msgspec
from aiohttp import web
from msgspec.structs import replace

from stromboli.daemon.delegated_authorization import DelegatedAuthorization, ObjectAccess
from stromboli.daemon.telemetry_guard import TelemetryGuard
from stromboli.scheduler.explain.explain_paths import BAD_PATH, PREFIX, Question, parse_path
from stromboli.scheduler.explain.explanations import Explanations, TooManyQuestions
from stromboli.scheduler.explain.leader_answer import LeaderAnswer
from stromboli.scheduler.thread_seam import Unavailable

log = logging.getLogger(__name__)

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
    """Checks a request, and passes its question on if this replica leads."""

    def __init__(
        self,
        explanations: Explanations,
        authorization: DelegatedAuthorization,
        standing_by: Callable[[], str | None],
        identity: str,
        guard: TelemetryGuard,
    ) -> None:
        """`standing_by` gives the identity of the leader, perhaps empty; None if it is this replica."""
        self._explanations = explanations
        self._authorization = authorization
        self._standing_by = standing_by
        self._identity = identity
        self._guard = guard

    def add_routes(self, app: web.Application) -> None:
        app.router.add_get(f"{PREFIX}{{path:.*}}", self.respond)

    async def respond(self, request: web.Request) -> web.Response:
        with self._guard("explanation"):
            return await self._respond(request)
        return refuse(500, "the explanation failed; see the log of the scheduler")

    async def _respond(self, request: web.Request) -> web.Response:
        question = parse_path(request.rel_url.raw_path)
        if question is None:
            return refuse(400, BAD_PATH)
        access = ObjectAccess(question.kind.group, question.kind.plural, question.namespace, question.name)
        refusal = await self._authorization.refusal(request, access)
        if refusal is not None:
            return refuse(refusal.status, refusal.message)
        leader = self._standing_by()
        if leader is not None:
            who = f"{leader} leads" if leader else "nobody leads yet"
            return refuse(503, f"{self._identity} stands by: {who}")
        try:
            return answered(await self._explanations.answer(question), question, self._identity)
        except TooManyQuestions as error:
            return refuse(429, str(error))
        except Unavailable as error:
            return refuse(503, str(error))


def answered(answer: LeaderAnswer, question: Question, identity: str) -> web.Response:
    """The answer; 404 if neither the object nor a history of it is known."""
    if not answer.known and not answer.history.entries:
        return refuse(404, question.not_found)
    body = msgspec.json.encode(replace(answer, leader=identity))
    return web.Response(body=body, content_type="application/json")


def refuse(status: int, message: str) -> web.Response:
    """A refusal as Kubernetes writes them."""
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
