"""What every controller is given: stores, the API writer, the event recorder, the clock, options and metrics."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from stromboli.api.types.meta import Object
from stromboli.controllers.api_writer import ApiWriter
from stromboli.controllers.controller_metrics import Metrics
from stromboli.controllers.options import Options
from stromboli.controllers.recorder import Recorder
from stromboli.controllers.store import Store
from stromboli.controllers.watched_resources import WATCHED_RESOURCES
from stromboli.kube.reflector import EVERYTHING, WatchScope

Kind = TypeVar("Kind", bound=Object)


@dataclass(slots=True)
class Context:
    """Shared by all controllers, so that each kind is watched once."""

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
