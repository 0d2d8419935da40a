"""What the scheduler of an embedded cluster knows of an object, for users who may read it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import msgspec
from aiohttp import web
from msgspec.structs import replace

from stromboli.embedded.api_status import StatusError
from stromboli.embedded.auth.authorization import RequestAuthorizer
from stromboli.embedded.http.json_responses import json_response
from stromboli.embedded.kinds.status_errors import bad_request
from stromboli.embedded.rbac.policy_rules import Attributes, User
from stromboli.scheduler.explain.explain_paths import BAD_PATH, Question, parse_path
from stromboli.scheduler.explain.explanations import TooManyQuestions
from stromboli.scheduler.thread_seam import Unavailable

if TYPE_CHECKING:
    from stromboli.scheduler.explain.leader_answer import LeaderAnswer

LEADER = "stromboli up"
"""Its identity in answers: there is no election."""


class ClusterExplanations:
    """Asks the scheduler, once it runs: an API server starts before it."""

    def __init__(self) -> None:
        self._ask: Callable[[Question], Awaitable[LeaderAnswer]] | None = None

    def connect(self, ask: Callable[[Question], Awaitable[LeaderAnswer]]) -> None:
        self._ask = ask

    async def respond(self, path: str, user: User, authorizer: RequestAuthorizer) -> web.Response:
        """As the endpoint of a leader elsewhere answers; a `StatusError` if it does not."""
        question = parse_path(path)
        if question is None:
            raise bad_request(BAD_PATH)
        _check(question, user, authorizer)
        if self._ask is None:
            raise StatusError(503, "the scheduler of this cluster has not started yet")
        try:
            answer = await self._ask(question)
        except Unavailable as error:
            status = 429 if isinstance(error, TooManyQuestions) else 503
            raise StatusError(status, str(error), retry_after=1) from None
        if not answer.known and not answer.history.entries:
            raise StatusError(404, question.not_found)
        return json_response(msgspec.json.encode(replace(answer, leader=LEADER)))


def _check(question: Question, user: User, authorizer: RequestAuthorizer) -> None:
    """Whoever may get the object, or list all of its kind there, may ask about it."""
    kind = question.kind
    where = {"group": kind.group, "resource": kind.plural, "namespace": question.namespace}
    try:
        authorizer.check(user, Attributes("get", name=question.name, **where))
    except StatusError:
        if not authorizer.allows(user, Attributes("list", **where)):
            raise
