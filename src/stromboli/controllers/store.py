"""What is known of one kind: its objects by name, indexed, and told to whoever listens.

Fed by a reflector. What a controller just wrote may be put back at once (`learn`), so that it does not decide by what
it has changed itself.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any, Generic, TypeVar, cast

from stromboli.api.types.kinds import describe
from stromboli.api.types.meta import Object
from stromboli.kube.api_resources import Resource
from stromboli.kube.reflector import UnusableObject

log = logging.getLogger(__name__)

Thing = TypeVar("Thing", bound=Object)
Listener = Callable[[Thing | None, Thing | None], None]
"""Told what was and what is; one of them may be nothing."""
Marks = Callable[[Thing], Iterable[Hashable]]


class Index(Generic[Thing]):
    """Objects by something they have in common."""

    def __init__(self, marks: Marks[Thing]) -> None:
        self._marks = marks
        self._found: dict[Hashable, dict[str, Thing]] = {}

    def __getitem__(self, mark: Hashable) -> list[Thing]:
        """All that have it, in the order of their names."""
        found = self._found.get(mark)
        return [found[key] for key in sorted(found)] if found else []

    def count(self, mark: Hashable) -> int:
        return len(self._found.get(mark, ()))

    def add(self, thing: Thing) -> None:
        for mark in self._marks(thing):
            self._found.setdefault(mark, {})[thing.key] = thing

    def remove(self, thing: Thing) -> None:
        for mark in self._marks(thing):
            found = self._found.get(mark)
            if found is not None:
                found.pop(thing.key, None)
                if not found:
                    del self._found[mark]


class Shelf(Generic[Thing]):
    """The objects of one kind."""

    def __init__(self, kind: type[Thing], resource: Resource) -> None:
        self.kind = kind
        self.resource = resource
        self._things: dict[str, Thing] = {}
        self._indexes: dict[Any, Index[Thing]] = {}
        self._listeners: list[Listener[Thing]] = []

    # -- reading

    def get(self, name: str, namespace: str = "") -> Thing | None:
        return self._things.get(f"{namespace}/{name}" if namespace else name)

    def at(self, key: str) -> Thing | None:
        """By `namespace/name`."""
        return self._things.get(key)

    def __iter__(self) -> Iterator[Thing]:
        return iter(list(self._things.values()))

    def __len__(self) -> int:
        return len(self._things)

    def index(self, marks: Marks[Thing]) -> Index[Thing]:
        """Objects by what `marks` finds on them; asked twice for the same function, it is one index."""
        index = self._indexes.get(marks)
        if index is None:
            index = self._indexes[marks] = Index(marks)
            for thing in self._things.values():
                index.add(thing)
        return index

    def listen(self, listener: Listener[Thing]) -> None:
        """Hear of every change from now on, and of what is there already."""
        self._listeners.append(listener)
        for thing in list(self._things.values()):
            self._tell(listener, None, thing)

    # -- what comes in, as a reflector's sink

    def put(self, thing: Object, new: bool = False) -> None:
        """An object is there, or is different; what is older than what we know is no news."""
        now = cast(Thing, thing)
        before = self._things.get(now.key)
        if before is not None and before.metadata.uid == now.metadata.uid and not _newer(now, before):
            return
        self._change(now.key, before, now)

    def drop(self, thing: Object) -> None:
        """An object is gone; only its name, namespace and uid are asked for."""
        before = self._things.get(thing.key)
        if before is not None and thing.metadata.uid in ("", before.metadata.uid):
            self._change(thing.key, before, None)

    def learn(self, thing: Object | None) -> None:
        """What the API server answered to a write: the object as it is now, if it is still there."""
        if thing is None:
            return
        before = self._things.get(thing.key)
        if before is not None and before.metadata.uid == thing.metadata.uid:
            self.put(thing)

    def unusable(self, problem: UnusableObject) -> None:
        """An object that cannot be read: what is known of it stays as it is, the others go on."""
        log.warning("%s %s/%s: %s", problem.kind, problem.namespace or "-", problem.name, problem.text)

    async def wait_for_room(self) -> None:
        await asyncio.sleep(0)

    def _change(self, key: str, before: Thing | None, now: Thing | None) -> None:
        for index in self._indexes.values():
            if before is not None:
                index.remove(before)
            if now is not None:
                index.add(now)
        if now is not None:
            self._things[key] = now
        else:
            del self._things[key]
        for listener in self._listeners:
            self._tell(listener, before, now)

    def _tell(self, listener: Listener[Thing], before: Thing | None, now: Thing | None) -> None:
        try:
            listener(before, now)
        except Exception:  # one object must not keep the others from being heard of
            log.exception("%s could not be taken in", describe(cast(Object, now or before)))


def _newer(now: Object, before: Object) -> bool:
    """Whether one state of an object comes after another; versions are whole numbers that grow."""
    new, old = now.metadata.resource_version, before.metadata.resource_version
    if new.isdecimal() and old.isdecimal():
        return int(new) > int(old)
    return new != old


# -- what objects are indexed by


def controller_uid(thing: Object) -> tuple[str, ...]:
    """The uid of whoever made it and looks after it."""
    return tuple(owner.uid for owner in thing.metadata.owner_references if owner.controller)
