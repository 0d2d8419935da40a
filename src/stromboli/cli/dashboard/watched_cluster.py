"""The cluster that a dashboard shows: watched once, as each group of viewers may see it."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stromboli.cli.dashboard.leader_answers import LeaderAnswers
from stromboli.cli.dashboard.reading.kept_explanations import Explanations
from stromboli.cli.dashboard.reading.kept_reads import KeptReads
from stromboli.cli.dashboard.topology.node_occupancy import FollowedNodes
from stromboli.cli.live.cluster_content import ClusterContent
from stromboli.cli.live.cluster_records import ClusterRecords
from stromboli.cli.live.record_watches import ALL_KINDS, RecordWatches
from stromboli.cli.live.usage_samples import RECENT_STEP, UsageHistory
from stromboli.cli.live.visible_records import Visibility, VisibleRecords
from stromboli.cli.status.cluster_policy import PolicyInForce, policy_in_force
from stromboli.kube.request import NoResponse

if TYPE_CHECKING:
    from stromboli.cli.cluster.cluster_session import ClusterSession
    from stromboli.engine.catalog import Catalog

log = logging.getLogger(__name__)

POLICY_SECONDS = 30.0
"""Until the policy is read again."""
MOST_VISIBILITIES = 256
"""Kinds of viewers for whom records are kept; the one that looked least recently goes for a new one."""
MOST_VISIBLE_PODS = 1_000_000
"""In all records that are kept for them; beyond that, too, the one that looked least recently goes."""


@dataclass(slots=True)
class ClusterView:
    """The cluster as viewers with the same visibility see it."""

    records: ClusterRecords
    content: ClusterContent
    history: UsageHistory = field(default_factory=UsageHistory)
    nodes: FollowedNodes = field(init=False)

    def __post_init__(self) -> None:
        self.nodes = FollowedNodes(self.records)


class WatchedCluster:
    """One set of watches, and the views of all who look."""

    def __init__(self, session: ClusterSession, catalog: Catalog) -> None:
        self.session = session
        self.watches = RecordWatches(session, ClusterRecords(), kinds=ALL_KINDS)
        self.catalog = catalog
        self.leader = LeaderAnswers()
        self.reads = KeptReads()
        self.explanations = Explanations()
        self._policy: PolicyInForce | None = None
        self._whole = ClusterView(self.watches.records, self._content(self.watches.records))
        self._tasks: list[asyncio.Task[None]] = []
        self._watching = AsyncExitStack()
        self._views: dict[str, ClusterView] = {}
        """Of those who may not see the whole cluster, the one that was looked at least recently first."""

    def _content(self, records: ClusterRecords) -> ClusterContent:
        return ClusterContent(records, self._policy, self.catalog)

    def view(self, visibility: Visibility) -> ClusterView:
        """The cluster as somebody may see it; of what the watches bring."""
        if visibility.is_complete:
            return self._whole
        view = self._views.pop(visibility.key, None)
        if view is None:
            self._make_room()
            records = VisibleRecords(self._whole.records, visibility)
            view = ClusterView(records, self._content(records))
            view.history.add(view.content, time.time())
        self._views[visibility.key] = view
        return view

    def _make_room(self) -> None:
        while self._views and (
            len(self._views) >= MOST_VISIBILITIES
            or sum(len(view.records.pods) for view in self._views.values()) > MOST_VISIBLE_PODS
        ):
            self._forget(next(iter(self._views)))

    def _forget(self, key: str) -> None:
        records = self._views.pop(key).records
        assert isinstance(records, VisibleRecords)
        records.stop()

    @property
    def policy(self) -> PolicyInForce | None:
        return self._policy

    async def start(self) -> None:
        """Watch until `stop`, from the first call on."""
        if self._tasks:
            return
        works = (self._listed(), self._read_policy(), self._sample())
        self._tasks = [asyncio.create_task(work) for work in works]
        await self._watching.enter_async_context(self.watches.running())

    async def stop(self) -> None:
        await self.explanations.close()
        await self.reads.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._watching.aclose()

    async def _listed(self) -> None:
        await self.watches.listed()
        for view in self._all_views():
            view.records.tells_news = True

    def _all_views(self) -> list[ClusterView]:
        return [self._whole, *self._views.values()]

    async def _read_policy(self) -> None:
        """Now and then, as it may change while somebody looks."""
        while True:
            try:
                read = await policy_in_force(self.session.client, self.session.running, self.catalog)
                if read.is_known or self._policy is None:  # a wrong edit leaves the last good one in force
                    self._policy = read
                for view in self._all_views():
                    view.content.use_policy(self._policy)
            except NoResponse as error:
                log.debug("policy: %s", error)
            except Exception:
                log.exception("the policy cannot be read")
            await asyncio.sleep(POLICY_SECONDS)

    async def _sample(self) -> None:
        await self.watches.listed()
        while True:
            try:
                for view in self._all_views():
                    view.history.add(view.content, time.time())
            except Exception:
                log.exception("no sample can be taken")
            await asyncio.sleep(RECENT_STEP)
