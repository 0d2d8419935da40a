"""What the leader told each viewer last: asked with his rights, for what is new, and no more often than needed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from msgspec.structs import replace

from stromboli.cli.cluster.cluster_errors import ClusterError, refusal_text
from stromboli.cli.dashboard.viewers.viewer import Viewer
from stromboli.cli.leader.leader_query import Unreachable, ask_cycles, ask_policy
from stromboli.cli.policy.policy_place import DEFAULT_KEY, PolicyPlace, find_policy
from stromboli.kube.request import ApiError, NoResponse
from stromboli.scheduler.explain.cycle_documents import CycleList
from stromboli.scheduler.explain.policy_document import PolicyDocument

CYCLES_SECONDS = 1.0
"""Until the leader is asked for its cycles again."""
POLICY_SECONDS = 5.0
"""Until it is asked for its policy again, and the policy that is kept for it is read again."""
UNREACHABLE_SECONDS = 10.0
"""Until it is asked again after it could not be asked."""
SLOW_SECONDS = 30.0
"""For which its last answer is shown while it does not answer."""
ANSWER_TIMEOUT = 5.0
"""Seconds for which a page waits for the leader."""
MOST_ASKING_VIEWERS = 32
"""For whom answers are kept; the one who looked least recently goes for a new one."""
MOST_KEPT_CYCLES = 1000
"""Of a leader, for a viewer; the oldest go for new ones."""
Document = TypeVar("Document", CycleList, PolicyDocument, PolicyPlace)
Ask = Callable[[Document | None], Awaitable[Document | Unreachable]]
"""Asks the leader, given what is known already."""


@dataclass(slots=True)
class _Answer(Generic[Document]):
    """The last answer to a question of a viewer."""

    seconds: float
    """For which it is good."""
    content: Document | Unreachable | None = None
    until: float = 0.0
    told: float = 0.0
    """When the leader last told it."""
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def current(self, ask: Ask[Document], now: Callable[[], float]) -> Document | Unreachable:
        async with self.lock:
            if self.content is None or now() >= self.until:
                self.content = await self._asked(ask, now)
                failed = isinstance(self.content, Unreachable)
                self.until = now() + (UNREACHABLE_SECONDS if failed else self.seconds)
            return self.content

    async def _asked(self, ask: Ask[Document], now: Callable[[], float]) -> Document | Unreachable:
        """What the leader answers; while it is slow, what it told a moment ago."""
        known = None if isinstance(self.content, Unreachable) else self.content
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT):
                answer = await ask(known)
                self.told = now()
                return answer
        except TimeoutError:
            if known is not None and now() - self.told < SLOW_SECONDS:
                return known
            return Unreachable(f"it has not answered for {ANSWER_TIMEOUT:g} seconds")


@dataclass(slots=True)
class _ViewerAnswers:
    cycles: _Answer[CycleList] = field(default_factory=lambda: _Answer(CYCLES_SECONDS))
    policy: _Answer[PolicyDocument] = field(default_factory=lambda: _Answer(POLICY_SECONDS))
    kept_policy: _Answer[PolicyPlace] = field(default_factory=lambda: _Answer(POLICY_SECONDS))


class LeaderAnswers:
    """The last answers for those who look, by their rights."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._viewers: dict[str, _ViewerAnswers] = {}
        """The one who looked least recently first."""

    def __len__(self) -> int:
        return len(self._viewers)

    async def cycles(self, viewer: Viewer) -> CycleList | Unreachable:
        """What the last cycles of the leader did."""

        async def ask(known: CycleList | None) -> CycleList | Unreachable:
            return await _newer_cycles(viewer, known)

        return await self._answers(viewer).cycles.current(ask, self._now)

    async def policy(self, viewer: Viewer) -> PolicyDocument | Unreachable:
        """The policy in force."""

        async def ask(_: PolicyDocument | None) -> PolicyDocument | Unreachable:
            return await ask_policy(viewer.session)

        return await self._answers(viewer).policy.current(ask, self._now)

    async def kept_policy(self, viewer: Viewer) -> PolicyPlace | Unreachable:
        """The policy as it is kept for the leader, in a ConfigMap or a file, whatever it has loaded."""

        async def ask(_: PolicyPlace | None) -> PolicyPlace | Unreachable:
            return await _kept_policy(viewer)

        return await self._answers(viewer).kept_policy.current(ask, self._now)

    def _answers(self, viewer: Viewer) -> _ViewerAnswers:
        answers = self._viewers.pop(viewer.key, None)
        if answers is None:
            answers = _ViewerAnswers()
            if len(self._viewers) >= MOST_ASKING_VIEWERS:
                del self._viewers[next(iter(self._viewers))]
        self._viewers[viewer.key] = answers
        return answers


async def _kept_policy(viewer: Viewer) -> PolicyPlace | Unreachable:
    try:
        return await find_policy(viewer.session, DEFAULT_KEY)
    except ApiError as error:
        return Unreachable(refusal_text(error))
    except (ClusterError, NoResponse) as error:
        return Unreachable(str(error))


async def _newer_cycles(viewer: Viewer, known: CycleList | None) -> CycleList | Unreachable:
    """All that is known, with what came since; another leader is asked for everything."""
    if known is None:
        return _bounded(await ask_cycles(viewer.session))
    answer = await ask_cycles(viewer.session, after=known.newest)
    if isinstance(answer, Unreachable):
        return answer
    if (answer.leader, answer.since) != (known.leader, known.since):
        return _bounded(await ask_cycles(viewer.session))
    return _bounded(joined_cycles(known, answer))


def joined_cycles(known: CycleList, newer: CycleList) -> CycleList:
    """The cycles of both that the leader still remembers; a run that has become longer takes its own place."""
    entries = {entry.number: entry for entry in (*known.cycles, *newer.cycles)}
    kept = [entries[number] for number in sorted(entries) if number >= newer.oldest]
    return replace(newer, cycles=kept)


def _bounded(answer: CycleList | Unreachable) -> CycleList | Unreachable:
    if isinstance(answer, Unreachable) or len(answer.cycles) <= MOST_KEPT_CYCLES:
        return answer
    return replace(answer, cycles=answer.cycles[-MOST_KEPT_CYCLES:])
