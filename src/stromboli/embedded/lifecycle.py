"""What happens by itself: kinds come with definitions, accounts with namespaces, what is owned goes with its owner."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from stromboli.embedded.objects import Objects
from stromboli.embedded.records import Change
from stromboli.embedded.registry import defined_kind

DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"


class Lifecycle:
    """Hears of every change once it is committed, and acts on it in its own time."""

    def __init__(self, objects: Objects):
        self._objects = objects
        self._news: asyncio.Queue[Change] = asyncio.Queue()

    def heard(self, batch: Sequence[Change]) -> None:
        for change in batch:
            if change.key.resource == DEFINITIONS:
                self._define(change)

    def _define(self, change: Change) -> None:
        registry = self._objects.registry
        if change.after is not None:
            registry.add(defined_kind(change.after.object()))
        elif change.before is not None:
            registry.drop(defined_kind(change.before.object()))

    async def run(self) -> None:
        await asyncio.Event().wait()
