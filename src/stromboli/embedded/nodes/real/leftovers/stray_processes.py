"""Kills processes that left the groups of their containers; pods that end at about the same time share a search."""

from __future__ import annotations

import asyncio
import logging

from stromboli.embedded.nodes.real.process_guardian import kill_marked

log = logging.getLogger(__name__)


class StrayProcesses:
    """A search reads the environment of all processes, so there is one at a time, for all pods that wait for it."""

    def __init__(self) -> None:
        self._waiting: dict[str, asyncio.Future[bool]] = {}
        self._searching: asyncio.Task[None] | None = None

    async def kill(self, root: str) -> bool:
        """Kill all processes with this root; whether they are gone."""
        loop = asyncio.get_running_loop()
        gone = self._waiting.setdefault(root, loop.create_future())
        if self._searching is None:
            self._searching = loop.create_task(self._search())
        return await asyncio.shield(gone)

    async def _search(self) -> None:
        while self._waiting:
            pods, self._waiting = self._waiting, {}
            left = set(pods)
            try:
                left = await asyncio.to_thread(kill_marked, pods.keys())
            except Exception:
                log.exception("processes that left their containers are not found")
            for root, future in pods.items():
                future.set_result(root not in left)
        self._searching = None
