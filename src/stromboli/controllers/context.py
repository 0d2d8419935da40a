"""What a controller works with: shelves to read from, a pen, a voice, a clock, the options and the metrics."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from stromboli.api.types.meta import Object
from stromboli.controllers.api_writer import Pen
from stromboli.controllers.controller_metrics import Metrics
from stromboli.controllers.options import Options
from stromboli.controllers.recorder import Voice
from stromboli.controllers.store import Shelf
from stromboli.controllers.watched_kinds import PLACES

Kind = TypeVar("Kind", bound=Object)


@dataclass(slots=True)
class Desk:
    """Shared by all controllers; a kind that several read is watched once."""

    pen: Pen
    voice: Voice
    options: Options = field(default_factory=Options)
    metrics: Metrics = field(default_factory=Metrics)
    clock: Callable[[], float] = time.time
    """Seconds since 1970."""
    shelves: dict[type[Object], Shelf[Any]] = field(default_factory=dict)

    def shelf(self, kind: type[Kind]) -> Shelf[Kind]:
        """The shelf of a kind, set up at the first question."""
        if kind not in self.shelves:
            self.shelves[kind] = Shelf(kind, PLACES[kind])
        return self.shelves[kind]
