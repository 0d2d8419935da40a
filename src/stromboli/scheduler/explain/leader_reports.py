"""What the leader reports on the paths below `/explain/`, over whichever HTTP server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from stromboli.daemon.delegated_authorization import ListAccess, ObjectAccess, PathAccess, RequiredAccess
from stromboli.scheduler.explain.explain_paths import (
    BAD_CYCLE_QUERY,
    BAD_PATH,
    CYCLES,
    NAMED_IN_CYCLES,
    POLICY,
    Question,
    parse_cycle_query,
    parse_path,
)
from stromboli.scheduler.thread_seam import Unavailable

if TYPE_CHECKING:
    from stromboli.scheduler.explain.cycle_documents import CycleList
    from stromboli.scheduler.explain.leader_answer import LeaderAnswer
    from stromboli.scheduler.explain.leader_log import LeaderLog
    from stromboli.scheduler.explain.policy_document import PolicyDocument

NOT_STARTED = "the scheduler of this cluster has not started yet"
Ask = Callable[[Question], Awaitable["LeaderAnswer"]]
Authorize = Callable[[Sequence[RequiredAccess]], Awaitable[None]]
"""Raises an error unless the user has all these permissions."""


class Refused(Exception):
    """A request that is invalid, not authorized, or about an unknown object."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class LeaderReports:
    """Parses and authorizes requests, and answers them with JSON."""

    def __init__(self, identity: str, ask: Ask | None = None, log: LeaderLog | None = None) -> None:
        """Without `ask` or `log` the scheduler has not started yet."""
        self._identity = identity
        self._ask = ask
        self._log = log

    async def report(self, path: str, query: Mapping[str, str], authorize: Authorize) -> bytes:
        """The document of a path; raises `Refused`, `Unavailable` or an error of `authorize`."""
        document: LeaderAnswer | CycleList | PolicyDocument
        if path == CYCLES:
            cycles = parse_cycle_query(query)
            if cycles is None:
                raise Refused(400, BAD_CYCLE_QUERY)
            await authorize([ListAccess(kind.group, kind.plural) for kind in NAMED_IN_CYCLES])
            document = self._started_log.cycles.select(cycles)
        elif path == POLICY:
            await authorize([PathAccess("get", POLICY)])
            document = self._started_log.policy.document()
        else:
            document = await self._answer(path, authorize)
        return msgspec.json.encode(replace(document, leader=self._identity))

    async def _answer(self, path: str, authorize: Authorize) -> LeaderAnswer:
        question = parse_path(path)
        if question is None:
            raise Refused(400, BAD_PATH)
        kind = question.kind
        await authorize([ObjectAccess(kind.group, kind.plural, question.namespace, question.name)])
        if self._ask is None:
            raise Unavailable(NOT_STARTED)
        answer = await self._ask(question)
        if answer.is_empty:
            raise Refused(404, question.not_found)
        return answer

    @property
    def _started_log(self) -> LeaderLog:
        if self._log is None:
            raise Unavailable(NOT_STARTED)
        return self._log
