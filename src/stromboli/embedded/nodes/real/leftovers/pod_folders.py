"""Removes the folders of pods that are gone, also of those that went while we did not run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from pathlib import Path

from stromboli.embedded.folder_removal import remove_tree

AT_ONCE = 2
"""Folders that are removed at a time: a large one keeps neither pods that start nor other folders waiting."""
CLOSE_SECONDS = 5.0
"""Seconds that removals may take when we end; what is left goes at the next start."""


class PodFolders:
    """The folders of the pods of a machine."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._removals: set[asyncio.Task[None]] = set()

    def remove(self, folder: Path) -> None:
        """Remove a folder soon."""
        task = asyncio.create_task(self._remove(folder))
        self._removals.add(task)
        task.add_done_callback(self._removals.discard)

    async def remove_others(self, kept: Callable[[], Collection[Path]]) -> None:
        """Remove all folders but these; called when all pods that exist are known."""
        folders = await asyncio.to_thread(_entries, self._path)
        known = set(kept())
        for folder in folders:
            if folder not in known:
                self.remove(folder)

    async def close(self) -> None:
        if self._removals:
            await asyncio.wait(self._removals, timeout=CLOSE_SECONDS)

    async def _remove(self, folder: Path) -> None:
        async with self._slots:
            await asyncio.to_thread(remove_tree, folder)


def _entries(path: Path) -> list[Path]:
    try:
        return list(path.iterdir())
    except FileNotFoundError:
        return []
