"""Full explanations for viewers: computed one at a time in a thread, and kept, as each reads the whole cluster."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, NamedTuple

from stromboli.cli.cli_errors import Usage
from stromboli.cli.cluster.cluster_errors import ClusterError, refusal_text, shown
from stromboli.cli.dashboard.reading.computing_thread import ComputingThread, Result
from stromboli.cli.dashboard.reading.kept_reads import Key
from stromboli.cli.explain.live_explanation import ExplanationWish, explanation_in
from stromboli.cli.leader.leader_query import Unreachable, ask_leader
from stromboli.kube.request import ApiError, NoResponse
from stromboli.simulator.explain.subject_lookup import NotFound, UnknownType

if TYPE_CHECKING:
    from stromboli.cli.cluster.cluster_session import ClusterSession
    from stromboli.cli.dashboard.watched_cluster import WatchedCluster
    from stromboli.engine.explanation.diagnosis import Diagnosis
    from stromboli.simulator.explain.explanation_document import Explanation

log = logging.getLogger(__name__)

KEPT_SECONDS = 15.0
"""For which an explanation is shown before another is computed."""
KEPT_PER_SECOND = 20.0
"""For so many times as long as it took it is kept, if that is longer; one that failed is not."""
LONGEST_KEPT = 120.0
"""Seconds after which another is computed, however long it took: rights may have changed."""
EXPLANATIONS_KEPT = 32
MOST_EXPLANATIONS_AWAITED = 8
"""Different ones; who asks for another is told to come back."""
MOST_OWN_EXPLANATIONS = 2
"""Of these, for one viewer."""
PATIENCE = 2.0
"""Seconds that a page waits for an explanation before it is shown without."""
EXPLANATION_TIMEOUT = 60.0
LEADER_TIMEOUT = 2.0
"""Seconds for the leader to say why a job waits, on a page that says so in other words without it."""


class KnownExplanation(NamedTuple):
    """An explanation, or why there is none."""

    document: Explanation | None
    problem: str
    computed: float
    """When, in seconds since 1970."""
    until: float = 0.0
    """On the monotonic clock, when another is computed."""


Explain = Callable[[], Awaitable["Explanation"]]


class Explanations:
    """Those of one server."""

    def __init__(self) -> None:
        self._known: dict[Key, KnownExplanation] = {}
        self._tasks: dict[Key, asyncio.Task[None]] = {}
        self._turn = asyncio.Lock()
        self._thread = ComputingThread()

    async def get(self, key: Key, explain: Explain) -> KnownExplanation | None:
        """The latest; None while the first is being computed, which goes on."""
        known = self._known.get(key)
        if known is not None and known.until > time.monotonic():
            return known
        if key not in self._tasks:
            own = sum(awaited[0] == key[0] for awaited in self._tasks)
            if len(self._tasks) >= MOST_EXPLANATIONS_AWAITED or own >= MOST_OWN_EXPLANATIONS:
                return known
            self._tasks[key] = asyncio.create_task(self._explain(key, explain))
        await asyncio.wait({self._tasks[key]}, timeout=PATIENCE)
        return self._known.get(key)

    async def compute(self, function: Callable[[], Result]) -> Result:
        """Call a function of an explanation beside the event loop."""
        return await self._thread.compute(function)

    async def close(self) -> None:
        """Explain no more; nobody waits for what is being computed."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _explain(self, key: Key, explain: Explain) -> None:
        try:
            async with self._turn:
                began = time.monotonic()
                known = await self._attempt(explain)
            self._keep(key, known, time.monotonic() - began)
        finally:
            del self._tasks[key]

    def _keep(self, key: Key, known: KnownExplanation, cost: float) -> None:
        self._known.pop(key, None)
        if len(self._known) >= EXPLANATIONS_KEPT:
            del self._known[next(iter(self._known))]
        kept = KEPT_SECONDS
        if known.document is not None:
            kept = min(max(KEPT_SECONDS, cost * KEPT_PER_SECOND), LONGEST_KEPT)
        self._known[key] = known._replace(until=time.monotonic() + kept)

    async def _attempt(self, explain: Explain) -> KnownExplanation:
        """An explanation, once what was computed for one that was given up has ended."""
        problem = ""
        try:
            async with asyncio.timeout(EXPLANATION_TIMEOUT):
                await self._thread.idle()
                return KnownExplanation(await explain(), "", time.time())
        except ApiError as error:
            problem = refusal_text(error)
        except (ClusterError, NoResponse, NotFound, UnknownType, Usage) as error:
            problem = shown(str(error))
        except TimeoutError:
            problem = f"it took longer than {EXPLANATION_TIMEOUT:g} seconds"
        except Exception:  # a plugin of the user's, or an object that no policy can use
            log.exception("an explanation for the dashboard failed")
            problem = "it failed; the log of the dashboard says why"
        return KnownExplanation(None, problem, time.time())


async def full_explanation(
    cluster: WatchedCluster, session: ClusterSession, viewer: str, subject: str
) -> KnownExplanation | None:
    """Why a job waits and what would help, as `stromboli explain` says; None while it is being computed.

    `viewer` is the key of his rights, `subject` a name as `stromboli explain` takes it.
    """
    wish = ExplanationWish([subject])
    return await cluster.explanations.get(
        (viewer, session.namespace, subject),
        lambda: explanation_in(session, wish, cluster.catalog, cluster.explanations.compute),
    )


async def leaders_explanation(session: ClusterSession, namespace: str, group: str) -> Diagnosis | None:
    """Why the leading scheduler says that a PodGroup waits; None if it does not, or does not answer at once."""
    try:
        async with asyncio.timeout(LEADER_TIMEOUT):
            answer = await ask_leader(session, "podgroups", namespace, group)
    except TimeoutError:
        return None
    return None if isinstance(answer, Unreachable) else answer.explanation
