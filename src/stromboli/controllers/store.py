"""The objects of one kind as a reflector keeps them, with indexes and event handlers, like an informer's store.

What the API server answered to a write may be put in at once (`mutated`), so that no controller decides by a state that
it has already changed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any, Generic, TypeVar, cast

from stromboli.api.types.kinds import describe
from stromboli.api.types.meta import Object
from stromboli.kube.api_resources import Resource
from stromboli.kube.reflector import EVERYTHING, UnusableObject, WatchScope

log = logging.getLogger(__name__)

Kind = TypeVar("Kind", bound=Object)
EventHandler = Callable[[Kind | None, Kind | None], None]
"""Called with the old and the new object: old is None when it was added, new is None when it was deleted."""
IndexFunc = Callable[[Kind], Iterable[Hashable]]
"""The values under which an object is indexed."""


class Index(Generic[Kind]):
    """Objects by the values of an index function."""

    def __init__(self, index_func: IndexFunc[Kind]) -> None:
        self._index_func = index_func
        self._objects: dict[Hashable, dict[str, Kind]] = {}

    def __getitem__(self, value: Hashable) -> list[Kind]:
        """All objects with that value, in the order of their names."""
        objects = self._objects.get(value)
        return [objects[key] for key in sorted(objects)] if objects else []

    def unordered(self, value: Hashable) -> list[Kind]:
        """The same in the order in which they came."""
        return list(self._objects.get(value, {}).values())

    def count(self, value: Hashable) -> int:
        return len(self._objects.get(value, ()))

    def add(self, obj: Kind) -> None:
        for value in self._index_func(obj):
            self._objects.setdefault(value, {})[obj.key] = obj

    def remove(self, obj: Kind) -> None:
        for value in self._index_func(obj):
            objects = self._objects.get(value)
            if objects is not None:
                objects.pop(obj.key, None)
                if not objects:
                    del self._objects[value]


class Store(Generic[Kind]):
    """The objects of one kind by `namespace/name`; a reflector's sink."""

    def __init__(self, kind: type[Kind], resource: Resource, scope: WatchScope = EVERYTHING) -> None:
        self.kind = kind
        self.resource = resource
        self.scope = scope
        self._objects: dict[str, Kind] = {}
        self._indexes: dict[Any, Index[Kind]] = {}
        self._handlers: list[EventHandler[Kind]] = []

    # -- reading

    def get(self, key: str, namespace: str = "") -> Kind | None:
        """By `namespace/name`, or by name and namespace."""
        return self._objects.get(f"{namespace}/{key}" if namespace else key)

    def __iter__(self) -> Iterator[Kind]:
        return iter(list(self._objects.values()))

    def __len__(self) -> int:
        return len(self._objects)

    def index(self, index_func: IndexFunc[Kind]) -> Index[Kind]:
        """The index by that function; one per function."""
        index = self._indexes.get(index_func)
        if index is None:
            index = self._indexes[index_func] = Index(index_func)
            for obj in self._objects.values():
                index.add(obj)
        return index

    def add_event_handler(self, handler: EventHandler[Kind]) -> None:
        """Call it for every object that is there, and for every change from now on."""
        self._handlers.append(handler)
        for obj in list(self._objects.values()):
            self._notify(handler, None, obj)

    # -- what a reflector calls

    def put(self, obj: Object, new: bool = False) -> None:
        """An object was added or changed; a state older than the stored one is ignored."""
        now = cast(Kind, obj)
        before = self._objects.get(now.key)
        if before is not None and before.metadata.uid == now.metadata.uid and not _newer(now, before):
            return
        self._change(now.key, before, now)

    def drop(self, obj: Object) -> None:
        """An object is gone; only its name, namespace and uid are read."""
        before = self._objects.get(obj.key)
        if before is not None and obj.metadata.uid in ("", before.metadata.uid):
            self._change(obj.key, before, None)

    def unusable(self, problem: UnusableObject) -> None:
        """An object that cannot be decoded: the stored state stays."""
        log.warning("%s %s/%s: %s", problem.kind, problem.namespace or "-", problem.name, problem.text)

    async def wait_for_room(self) -> None:
        await asyncio.sleep(0)

    def mutated(self, obj: Object | None) -> None:
        """The answer to a write of ours: the object as it is now, None if it is gone (which the watch will tell)."""
        if obj is None:
            return
        before = self._objects.get(obj.key)
        if before is not None and before.metadata.uid == obj.metadata.uid:
            self.put(obj)

    def _change(self, key: str, before: Kind | None, now: Kind | None) -> None:
        for index in self._indexes.values():
            if before is not None:
                index.remove(before)
            if now is not None:
                index.add(now)
        if now is not None:
            self._objects[key] = now
        else:
            del self._objects[key]
        for handler in self._handlers:
            self._notify(handler, before, now)

    def _notify(self, handler: EventHandler[Kind], before: Kind | None, now: Kind | None) -> None:
        try:
            handler(before, now)
        except Exception:  # one object must not stop the watch of all others
            log.exception("%s could not be handled", describe(cast(Object, now or before)))


def _newer(now: Object, before: Object) -> bool:
    """Whether a state comes after another; resource versions are whole numbers that grow."""
    new, old = now.metadata.resource_version, before.metadata.resource_version
    if new.isdecimal() and old.isdecimal():
        return int(new) > int(old)
    return new != old
