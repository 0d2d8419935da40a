"""What the scheduler of an embedded cluster knows of objects, cycles and policy, for users who may read that."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

import msgspec
from aiohttp import web
from msgspec.structs import replace

from stromboli.embedded.api_status import StatusError
from stromboli.embedded.auth.authorization import RequestAuthorizer
from stromboli.embedded.http.json_responses import json_response
from stromboli.embedded.kinds.status_errors import bad_request
from stromboli.embedded.rbac.policy_rules import Attributes, User
from stromboli.scheduler.explain.explain_paths import (
    BAD_CYCLE_QUERY,
    BAD_PATH,
    CYCLES,
    NAMED_IN_CYCLES,
    NO_PATH_PERMISSION,
    POLICY,
    Question,
    parse_cycle_query,
    parse_path,
)
from stromboli.scheduler.explain.explanations import TooManyQuestions
from stromboli.scheduler.thread_seam import Unavailable

if TYPE_CHECKING:
    from stromboli.scheduler.explain.leader_answer import LeaderAnswer
    from stromboli.scheduler.explain.leader_log import LeaderLog

LEADER = "stromboli up"
"""Its identity in answers: there is no election."""
NOT_STARTED = "the scheduler of this cluster has not started yet"


class ClusterExplanations:
    """Asks the scheduler, once it runs: an API server starts before it."""

    def __init__(self) -> None:
        self._ask: Callable[[Question], Awaitable[LeaderAnswer]] | None = None
        self._record: LeaderLog | None = None

    def connect(
        self, ask: Callable[[Question], Awaitable[LeaderAnswer]], record: LeaderLog | None = None
    ) -> None:
        self._ask = ask
        self._record = record

    async def respond(
        self, path: str, query: Mapping[str, str], user: User, authorizer: RequestAuthorizer
    ) -> web.Response:
        """As the endpoint of a leader elsewhere answers; a `StatusError` if it does not."""
        try:
            if path == CYCLES:
                return self._tell_cycles(query, user, authorizer)
            if path == POLICY:
                return self._tell_policy(user, authorizer)
            return await self._explain(path, user, authorizer)
        except Unavailable as error:
            status = 429 if isinstance(error, TooManyQuestions) else 503
            raise StatusError(status, str(error), retry_after=1) from None

    async def _explain(self, path: str, user: User, authorizer: RequestAuthorizer) -> web.Response:
        question = parse_path(path)
        if question is None:
            raise bad_request(BAD_PATH)
        _check(question, user, authorizer)
        if self._ask is None:
            raise Unavailable(NOT_STARTED)
        answer = await self._ask(question)
        if answer.is_empty:
            raise StatusError(404, question.not_found)
        return json_response(msgspec.json.encode(replace(answer, leader=LEADER)))

    def _tell_cycles(
        self, query: Mapping[str, str], user: User, authorizer: RequestAuthorizer
    ) -> web.Response:
        wanted = parse_cycle_query(query)
        if wanted is None:
            raise bad_request(BAD_CYCLE_QUERY)
        for kind in NAMED_IN_CYCLES:
            authorizer.check(user, Attributes("list", group=kind.group, resource=kind.plural))
        cycles = self._connected_record.cycles.select(wanted)
        return json_response(msgspec.json.encode(replace(cycles, leader=LEADER)))

    def _tell_policy(self, user: User, authorizer: RequestAuthorizer) -> web.Response:
        try:
            authorizer.check_path(user, POLICY, "get")
        except StatusError as error:
            raise StatusError(error.code, f"{error}: {NO_PATH_PERMISSION}") from None
        policy = self._connected_record.policy.document()
        return json_response(msgspec.json.encode(replace(policy, leader=LEADER)))

    @property
    def _connected_record(self) -> LeaderLog:
        if self._record is None:
            raise Unavailable(NOT_STARTED)
        return self._record


def _check(question: Question, user: User, authorizer: RequestAuthorizer) -> None:
    """Whoever may get the object, or list all of its kind there, may ask about it."""
    kind = question.kind
    where = {"group": kind.group, "resource": kind.plural, "namespace": question.namespace}
    try:
        authorizer.check(user, Attributes("get", name=question.name, **where))
    except StatusError:
        if not authorizer.allows(user, Attributes("list", **where)):
            raise
