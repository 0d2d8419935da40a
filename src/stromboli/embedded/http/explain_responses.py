"""What the scheduler of an embedded cluster knows of objects, cycles and policy, for users who may read that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from aiohttp import web

from stromboli.daemon.delegated_authorization import ListAccess, ObjectAccess, PathAccess, RequiredAccess
from stromboli.embedded.api_status import StatusError
from stromboli.embedded.auth.authorization import RequestAuthorizer
from stromboli.embedded.http.json_responses import json_response
from stromboli.embedded.rbac.policy_rules import Attributes, User
from stromboli.scheduler.explain.explain_paths import NO_PATH_PERMISSION
from stromboli.scheduler.explain.explanations import TooManyQuestions
from stromboli.scheduler.explain.leader_reports import Ask, LeaderReports, Refused
from stromboli.scheduler.thread_seam import Unavailable

if TYPE_CHECKING:
    from stromboli.scheduler.explain.leader_log import LeaderLog

LEADER = "stromboli up"
"""Its identity in answers: there is no election."""


class ClusterExplanations:
    """Asks the scheduler, once it runs: an API server starts before it."""

    def __init__(self) -> None:
        self._reports = LeaderReports(LEADER)

    def connect(self, ask: Ask, record: LeaderLog | None = None) -> None:
        self._reports = LeaderReports(LEADER, ask, record)

    async def respond(
        self, path: str, query: Mapping[str, str], user: User, authorizer: RequestAuthorizer
    ) -> web.Response:
        """The response that the endpoint of a leader elsewhere gives; a `StatusError` for errors."""

        async def authorize(accesses: Sequence[RequiredAccess]) -> None:
            for access in accesses:
                _check(access, user, authorizer)

        try:
            return json_response(await self._reports.report(path, query, authorize))
        except Refused as error:
            raise StatusError(error.status, str(error)) from None
        except Unavailable as error:
            status = 429 if isinstance(error, TooManyQuestions) else 503
            raise StatusError(status, str(error), retry_after=1) from None


def _check(access: RequiredAccess, user: User, authorizer: RequestAuthorizer) -> None:
    """Raise a `StatusError` unless a user has a permission."""
    match access:
        case ObjectAccess(group, resource, namespace, name):
            where = {"group": group, "resource": resource, "namespace": namespace}
            try:
                authorizer.check(user, Attributes("get", name=name, **where))
            except StatusError:
                if not authorizer.allows(user, Attributes("list", **where)):
                    raise
        case ListAccess(group, resource):
            authorizer.check(user, Attributes("list", group=group, resource=resource))
        case PathAccess(verb, path):
            try:
                authorizer.check_path(user, path, verb)
            except StatusError as error:
                raise StatusError(error.code, f"{error}: {NO_PATH_PERMISSION}") from None
