"""Gives the GPUs of this machine to pods, and keeps a record of it that outlives us.

The record is a file beside the folders of pods, like a kubelet's checkpoint, and not an annotation of the pod, which
users may write. Whoever wants to read it looks at the pod's status. After a restart the cards in it are given out again
once the processes of the former run are gone.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec

from stromboli.api import names
from stromboli.embedded.nodes.machine.gpu_allocator import (
    GpuAllocator,
    GpuGrant,
    GpusUnavailable,
    asks_for_gpus,
)
from stromboli.embedded.nodes.machine.gpu_locks import GpuLocks
from stromboli.embedded.nodes.machine.nvidia_smi import Gpu, NvidiaSmiError, find_gpus
from stromboli.embedded.nodes.node_types import NodePod

log = logging.getLogger(__name__)

CHECK_AFTER = 60.0
"""Seconds after which the cards are looked at again before one is given out."""


class GpuManager:
    """Of all real nodes: whatever the nodes, the cards are those of this machine."""

    def __init__(
        self,
        record: Path,
        locks: GpuLocks,
        find: Callable[[], list[Gpu]] = find_gpus,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.changed: Callable[[int], None] = lambda count: None
        """Called with the number of cards that work when that changes."""
        self._record = record
        self._locks = locks
        self._find = find
        self._clock = clock
        self._allocator = GpuAllocator()
        self._allocator.grants = _read(record)
        self._checked_at: float | None = None
        self._check = asyncio.Lock()
        self._allocating = asyncio.Lock()

    @property
    def former(self) -> list[GpuGrant]:
        """Grants of the former run, and of pods that are gone, which nobody released yet."""
        return [grant for grant in self._allocator.grants if grant.leaving]

    async def allocate(self, pod: NodePod, folder: Path) -> GpuGrant | None:
        """The cards of a pod in its folder, None if it asks for none; `GpusUnavailable` if it cannot have them."""
        if not asks_for_gpus(pod):
            return None
        await self._look()
        async with self._allocating:
            return await self._allocate(pod, folder)

    async def _allocate(self, pod: NodePod, folder: Path) -> GpuGrant:
        elsewhere: set[str] = set()
        while True:
            grant = self._allocator.allocate(pod, elsewhere)
            try:
                taken = await asyncio.to_thread(self._locks.lock, grant.cards, folder)
                if not taken:
                    self._write()
                    return grant
            except OSError as error:
                self._drop(grant)
                message = f"{error.filename or self._record}: cannot be written: {error.strerror}"
                raise GpusUnavailable(message, True) from None
            self._drop(grant)
            elsewhere |= taken

    def leave(self, grant: GpuGrant) -> None:
        """The pod is gone, its processes may not be: whoever needs the cards waits for them."""
        grant.leaving = True

    def release(self, grant: GpuGrant) -> None:
        """No process of the pod is left."""
        self._drop(grant)
        try:
            self._write()
        except OSError as error:  # cards too many in it do no harm: the next start sees that nobody uses them
            log.warning("%s: cannot be written: %s", self._record, error.strerror)

    def close(self) -> None:
        self._locks.close()

    def _drop(self, grant: GpuGrant) -> None:
        self._allocator.release(grant)
        self._locks.unlock(grant.cards)

    async def look(self) -> None:
        """Look which cards work; if that cannot be told, it stays as it is."""
        self._checked_at = None
        with suppress(GpusUnavailable):
            await self._look()

    async def _look(self) -> None:
        """Ask for the cards that work, unless that was done a short while ago."""
        async with self._check:
            now = self._clock()
            if self._checked_at is not None and now - self._checked_at < CHECK_AFTER:
                return
            try:
                cards = tuple(gpu.uuid for gpu in await asyncio.to_thread(self._find))
            except NvidiaSmiError as error:
                raise GpusUnavailable(f"{names.NVIDIA_GPU}: {error}", True) from None
            self._checked_at = now
            if cards != self._allocator.cards:
                self._compare(cards)

    def _compare(self, cards: tuple[str, ...]) -> None:
        for card in [card for card in self._allocator.cards if card not in cards]:
            log.warning("%s is gone or in an error state: it is given to no pod any more", card)
        self._allocator.cards = cards
        self.changed(len(cards))

    def _write(self) -> None:
        """Replace the record, whole or not at all. It survives `kill -9`, and a power cut ends the processes anyway."""
        new = self._record.with_suffix(".new")
        new.write_bytes(
            msgspec.json.encode(
                [_Entry(each.uid, each.pod, each.containers) for each in self._allocator.grants]
            )
        )
        new.replace(self._record)


class _Entry(msgspec.Struct, frozen=True):
    uid: str
    pod: str
    containers: dict[str, tuple[str, ...]]


def _read(record: Path) -> list[GpuGrant]:
    """The grants of the former run."""
    try:
        entries = msgspec.json.decode(record.read_bytes(), type=list[_Entry])
    except FileNotFoundError:
        return []
    except (OSError, msgspec.DecodeError) as error:
        log.warning("%s: cannot be read, so nobody knows which cards were in use: %s", record, error)
        return []
    return [GpuGrant(entry.uid, entry.pod, entry.containers, leaving=True) for entry in entries]
