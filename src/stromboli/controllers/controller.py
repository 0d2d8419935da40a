"""The base of controllers that watch an API server: the kinds they watch, and the keys that a change enqueues."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from stromboli.api.types.meta import Object
from stromboli.controllers.api_writer import ApiWriter
from stromboli.controllers.controller_metrics import Metrics
from stromboli.controllers.options import Options
from stromboli.controllers.reconciler import Key, Reconciler
from stromboli.controllers.recorder import Recorder
from stromboli.controllers.store import Store
from stromboli.controllers.watched_resources import WATCHED_RESOURCES
from stromboli.kube.reflector import EVERYTHING, WatchScope

Kind = TypeVar("Kind", bound=Object)
MapFunc = Callable[[Kind | None, Kind | None], Iterable[Key]]
"""The keys to enqueue for a change, given the old and the new object; old is None if it was added, new if deleted."""


@dataclass(slots=True)
class Context:
    """What every controller is given. All controllers share it, so each kind is watched once."""

    writer: ApiWriter
    recorder: Recorder
    options: Options = field(default_factory=Options)
    metrics: Metrics = field(default_factory=Metrics)
    clock: Callable[[], float] = time.time
    """Seconds since 1970."""
    stores: dict[tuple[type[Object], WatchScope], Store[Any]] = field(default_factory=dict)

    def store(self, kind: type[Kind], scope: WatchScope = EVERYTHING) -> Store[Kind]:
        """The store of a kind, or of those in a scope, created on first use."""
        store = self.stores.get((kind, scope))
        if store is None:
            store = self.stores[kind, scope] = Store(kind, WATCHED_RESOURCES[kind], scope)
        return store


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
