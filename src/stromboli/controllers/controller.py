"""The base of controllers that watch an API server: the kinds they watch, and the keys that a change enqueues."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from stromboli.api.types.meta import Object
from stromboli.controllers.context import Context
from stromboli.controllers.reconciler import Key, Reconciler
from stromboli.controllers.store import Store
from stromboli.kube.reflector import EVERYTHING, WatchScope

Kind = TypeVar("Kind", bound=Object)
MapFunc = Callable[[Kind | None, Kind | None], Iterable[Key]]
"""The keys to enqueue for a change, given the old and the new object; old is None if it was added, new if deleted."""


class Controller(Reconciler[Key]):
    """Reconciles the objects of one kind. A subclass declares in `__init__` what it watches, and defines `sync`.

    Its `name` is as in `--controllers`.
    """

    def __init__(self, context: Context) -> None:
        super().__init__(context.metrics)
        self.context = context
        self.stores: list[Store[Any]] = []

    def watch(
        self, kind: type[Kind], keys_for: MapFunc[Kind, Key] | None = None, scope: WatchScope = EVERYTHING
    ) -> Store[Kind]:
        """The store of a kind, or of those in a scope; every change enqueues the keys that `keys_for` returns."""
        store = self.context.store(kind, scope)
        if store not in self.stores:
            self.stores.append(store)
        if keys_for is not None:
            map_func = keys_for

            def enqueue(before: Kind | None, now: Kind | None) -> None:
                for key in map_func(before, now):
                    self.queue.add(key)

            store.add_event_handler(enqueue)
        return store
