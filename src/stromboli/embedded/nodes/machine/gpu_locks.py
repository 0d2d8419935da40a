"""Locks of GPUs, lest two clusters of a user give out the same card at a time: each knows its own pods alone.

A card has a file in a folder that all clusters of the user share, locked while a pod has the card. The kernel unlocks
it when a cluster dies, but then processes of the pod may still run: the file has the folder of the pod, by which they
are found. UUIDs of cards are unique, so machines that share a home folder do no harm.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from pathlib import Path

_LONGEST_PATH = 4096


def locks_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Of this user. Not where runtime files are: these go when the user logs out, and clusters may go on."""
    home = os.path.expanduser("~")
    if state := environment.get("XDG_STATE_HOME"):
        return Path(state) / "stromboli" / "gpus"
    if os.access(home, os.W_OK):
        return Path(home) / ".local" / "state" / "stromboli" / "gpus"
    return Path(tempfile.gettempdir()) / f"stromboli-gpus-{os.getuid()}"


class GpuLocks:
    """The cards that pods of this cluster have."""

    def __init__(self, folder: Path, pods: Path, in_use: Callable[[str], bool]) -> None:
        """`pods` has the folders of our pods; `in_use` tells whether a pod with this folder has processes."""
        self._folder = folder
        self._pods = pods
        self._in_use = in_use
        self._held: dict[str, int] = {}
        """Descriptors of locked files."""

    def lock(self, cards: Collection[str], pod: Path) -> set[str]:
        """Lock all of these cards for a pod, or none; those that pods of other clusters have. `OSError` if there can
        be no locks.
        """
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        taken: set[str] = set()
        try:
            taken = {card for card in cards if not self._lock(card, pod)}
            return taken
        except OSError:
            taken = set(cards)
            raise
        finally:
            if taken:
                self.unlock(cards)

    def unlock(self, cards: Collection[str]) -> None:
        """No process of their pod is left."""
        for card in cards:
            file = self._held.pop(card, None)
            if file is not None:
                with suppress(OSError):
                    os.ftruncate(file, 0)
                os.close(file)

    def close(self) -> None:
        """Unlock all, though processes of their pods may be left."""
        while self._held:
            os.close(self._held.popitem()[1])

    def _lock(self, card: str, pod: Path) -> bool:
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        file = os.open(self._folder / f"{card}.lock", flags, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            former = os.fsdecode(os.pread(file, _LONGEST_PATH, 0))
            if former and not Path(former).is_relative_to(self._pods) and self._in_use(former):
                raise BlockingIOError
            os.ftruncate(file, 0)
            os.pwrite(file, os.fsencode(pod), 0)
        except OSError as error:
            os.close(file)
            if isinstance(error, BlockingIOError):
                return False
            raise
        self._held[card] = file
        return True
