"""What the controllers have in common."""

from __future__ import annotations

from collections.abc import Iterable

from stromboli.embedded.objects.object_verbs import Objects
from stromboli.embedded.store.records import Change, Key


class Controller:
    """Names the objects that a change concerns, and reconciles them; each controller is given every key."""

    def __init__(self, objects: Objects):
        self._objects = objects

    def initial_keys(self) -> Iterable[Key]:
        """Objects to reconcile at the start, which may have been left half done."""
        return ()

    def keys_for(self, change: Change) -> Iterable[Key]:
        """Objects to reconcile because of a committed change."""
        raise NotImplementedError

    async def reconcile(self, key: Key) -> None:
        raise NotImplementedError
