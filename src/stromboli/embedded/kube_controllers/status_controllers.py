"""The status of resource quotas and disruption budgets: what they count, whenever it changes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from stromboli.embedded.admission.resource_quota import QUOTAS
from stromboli.embedded.kube_controllers.controller import Controller
from stromboli.embedded.objects import disruption_budgets
from stromboli.embedded.objects.disruption_budgets import BUDGETS
from stromboli.embedded.objects.object_verbs import Objects
from stromboli.embedded.store.records import Change, Key

BUDGET_DELAY = 0.2
"""Seconds for which changes of pods are gathered before those of a budget are counted."""


class QuotaController(Controller):
    def keys_for(self, change: Change) -> Iterable[Key]:
        """All quotas of the namespace."""
        namespace = change.key.namespace
        return [quota.key for quota in self._objects.store.list(QUOTAS, namespace)] if namespace else ()

    async def reconcile(self, key: Key) -> None:
        if key.resource == QUOTAS and (record := self._objects.store.get(*key)) is not None:
            status = self._objects.admission.quotas.status(record)
            self._objects.system_update(record, lambda content: content.update(status=status))


class DisruptionController(Controller):
    def __init__(self, objects: Objects, enqueue: Callable[[Iterable[Key]], None]):
        super().__init__(objects)
        self._enqueue = enqueue
        self._delayed: set[Key] = set()

    def keys_for(self, change: Change) -> Iterable[Key]:
        """None at once: counting all pods for each of them would take too long."""
        store, key = self._objects.store, change.key
        if key.resource == "pods" and len(store.table(BUDGETS)):
            for record in store.list(BUDGETS, key.namespace):
                self._delay(record.key)
        elif key.resource == BUDGETS:
            self._delay(key)
        return ()

    def _delay(self, key: Key) -> None:
        if key not in self._delayed:
            self._delayed.add(key)
            asyncio.get_running_loop().call_later(BUDGET_DELAY, self._enqueue_delayed, key)

    def _enqueue_delayed(self, key: Key) -> None:
        self._delayed.discard(key)
        self._enqueue([key])

    async def reconcile(self, key: Key) -> None:
        if key.resource == BUDGETS and (record := self._objects.store.get(*key)) is not None:
            status = disruption_budgets.status(record, self._objects.budgets.count(record))
            self._objects.system_update(record, lambda content: content.update(status=status))
