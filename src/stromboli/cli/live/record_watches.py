"""The watches that keep records up to date: a reflector per kind, and what the user may not read, in words."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from stromboli.api import names
from stromboli.api.types.meta import Object
from stromboli.api.types.node import Node
from stromboli.api.types.pod import Pod
from stromboli.api.types.scheduling import HyperNode, PodGroup, Queue
from stromboli.api.types.volcano_job import Job
from stromboli.cli.cluster.cluster_errors import refusal_text, shown
from stromboli.cli.cluster.cluster_kinds import JOBS
from stromboli.cli.live.cluster_records import ClusterRecords, Event
from stromboli.kube.api_resources import EVENTS, RESOURCES, Resource, absence
from stromboli.kube.reflector import Reflector, WatchScope
from stromboli.kube.request import ApiError

if TYPE_CHECKING:
    from stromboli.cli.cluster.cluster_session import ClusterSession

KINDS: tuple[type[Object], ...] = (Queue, Node, PodGroup, Pod)
"""What is needed to know who uses what."""
ALL_KINDS: tuple[type[Object], ...] = (*KINDS, Job, HyperNode)
NAMESPACED = (PodGroup, Pod, Job)
_RESOURCES: dict[type[Object], Resource] = {**RESOURCES, Job: JOBS}
REFUSED_RECHECK = 60.0
"""Seconds until what was refused is tried again."""


class RecordReflector(Reflector):
    """Says which right is missing, and does not ask again and again."""

    absence_level = logging.DEBUG
    refused = ""
    lists_only = False
    """Set where one look at the cluster is enough."""

    async def _watch(self) -> None:
        if self.lists_only:
            await asyncio.Event().wait()  # until cancelled
        await super()._watch()

    def _handle_api_error(self, error: ApiError) -> float:
        pause = super()._handle_api_error(error)
        if error.status not in (401, 403):
            return pause
        self.refused = refusal_text(error)
        self.synced.set()
        return REFUSED_RECHECK

    def _recovered(self) -> None:
        self.refused = ""
        super()._recovered()


class RecordWatches:
    """All watches of a cluster, into one set of records."""

    def __init__(
        self,
        session: ClusterSession,
        records: ClusterRecords,
        lists_only: bool = False,
        kinds: tuple[type[Object], ...] = KINDS,
    ) -> None:
        scope = session.namespace if session.namespace_given else ""
        self.records = records
        self.reflectors = [
            RecordReflector(
                session.client,
                _RESOURCES[kind],
                kind,
                records,
                scope=WatchScope(scope if kind in NAMESPACED else ""),
            )
            for kind in kinds
        ]
        self.evictions = RecordReflector(
            session.client, EVENTS, Event, records, scope=WatchScope(scope, f"reason={names.EVENT_EVICT}")
        )

        for each in (*self.reflectors, self.evictions):
            each.lists_only = lists_only

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Watch until the block ends."""
        tasks = [asyncio.create_task(each.run()) for each in (*self.reflectors, self.evictions)]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def listed(self) -> None:
        """Wait until everything was listed that may be; from then on, changes are news."""
        for each in (*self.reflectors, self.evictions):
            await each.synced.wait()
        self.records.tells_news = True

    @property
    def is_listed(self) -> bool:
        return all(each.synced.is_set() for each in self.reflectors)

    @property
    def condition(self) -> tuple[bool, tuple[str, ...]]:
        """What viewers are told of the watches: whether everything is listed, and what is wrong."""
        return self.is_listed, tuple(self.problems())

    @property
    def refusals(self) -> list[str]:
        """Which rights are missing."""
        return [each.refused for each in self.reflectors if each.refused]

    @property
    def absences(self) -> list[str]:
        """Which kinds the cluster does not have."""
        return [absence(each.resource) for each in self.reflectors if each.installed is False]

    @property
    def sees_nothing(self) -> bool:
        return all(each.refused for each in self.reflectors)

    def problems(self) -> list[str]:
        """What is wrong with the watches, the missing rights and kinds first."""
        failing = [
            shown(f"{each.resource.plural}: {each.problem}")
            for each in self.reflectors
            if each.problem and not each.refused
        ]
        return self.refusals + self.absences + failing

    def progress(self) -> str:
        """What was read so far, until everything is listed."""
        counts = [f"{len(each.known)} {each.resource.plural}" for each in self.reflectors]
        return f"reading the cluster: {', '.join(counts)}"
