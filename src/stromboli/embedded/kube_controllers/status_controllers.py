"""The status of resource quotas and disruption budgets: what they count, whenever it changes."""

from __future__ import annotations

from collections.abc import Iterable

from stromboli.embedded.admission.resource_quota import QUOTAS
from stromboli.embedded.kube_controllers.controller import StoreController
from stromboli.embedded.objects import disruption_budgets
from stromboli.embedded.objects.disruption_budgets import BUDGETS
from stromboli.embedded.store.records import Change, Key

BUDGET_DELAY = 0.2
"""Seconds for which changes of pods are gathered before those of a budget are counted."""


class QuotaController(StoreController):
    name = "resourcequota-controller"

    def keys_for(self, change: Change) -> Iterable[Key]:
        """All quotas of the namespace."""
        namespace = change.key.namespace
        return [quota.key for quota in self._objects.store.list(QUOTAS, namespace)] if namespace else ()

    async def reconcile(self, key: Key) -> None:
        if key.resource == QUOTAS and (record := self._objects.store.get(*key)) is not None:
            status = self._objects.admission.quotas.status(record)
            self._objects.system_update(record, lambda content: content.update(status=status))


class DisruptionController(StoreController):
    name = "disruption-controller"

    def keys_for(self, change: Change) -> Iterable[Key]:
        """None at once: counting all pods for each of them would take too long."""
        store, key = self._objects.store, change.key
        if key.resource == "pods" and len(store.table(BUDGETS)):
            for record in store.list(BUDGETS, key.namespace):
                self.queue.add_after(record.key, BUDGET_DELAY)
        elif key.resource == BUDGETS:
            self.queue.add_after(key, BUDGET_DELAY)
        return ()

    async def reconcile(self, key: Key) -> None:
        if key.resource == BUDGETS and (record := self._objects.store.get(*key)) is not None:
            status = disruption_budgets.status(record, self._objects.budgets.count(record))
            self._objects.system_update(record, lambda content: content.update(status=status))
