"""What happens by itself: kinds come with definitions, accounts with namespaces, what is owned goes with its owner."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

from stromboli.embedded.admission.resource_quota import QUOTAS
from stromboli.embedded.auth.identity import SYSTEM
from stromboli.embedded.kinds.kind_rules import CLEANUP
from stromboli.embedded.kinds.status_errors import Refusal
from stromboli.embedded.kube_controllers.garbage_collection import Garbage
from stromboli.embedded.objects import disruption_budgets
from stromboli.embedded.objects.deletion import DeleteOptions, delete
from stromboli.embedded.objects.disruption_budgets import BUDGETS
from stromboli.embedded.objects.object_verbs import Objects, Options
from stromboli.embedded.store.object_store import WriteFailed
from stromboli.embedded.store.records import Change, Key, Record

log = logging.getLogger(__name__)

DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"
EVENT_LIFE = 3600.0
"""Seconds for which events are kept."""
AGAIN = 5.0
"""Seconds after which something that was refused is tried again."""
SOON = 0.2
"""Seconds for which changes are gathered before a budget's pods are counted."""
PORTION = 20
"""Objects after which others have their turn."""

Content = dict[str, Any]


class Lifecycle:
    """Hears of every change once it is committed, and acts on it in its own time."""

    def __init__(self, objects: Objects):
        self._objects = objects
        self._garbage = Garbage(objects)
        self._waiting: dict[Key, None] = {}
        self._soon: set[Key] = set()
        self._news = asyncio.Event()
        self._events: deque[tuple[float, Key, int]] = deque()
        self._terminating: set[str] = set()
        """Namespaces, and ids of kinds, that go once they are empty."""

    def learn(self) -> None:
        """What was there at the start, and may have been left half done."""
        store = self._objects.store
        for resource in store.resources():
            for record in store.all(resource):
                self._garbage.learn(record)
                if resource in ("namespaces", DEFINITIONS):
                    self._look_at([record.key])
                elif resource == "events":
                    self._events.append((time.monotonic() + EVENT_LIFE, record.key, record.revision))
        self._look_at(self._garbage.everything())

    def heard(self, batch: Sequence[Change]) -> None:
        for change in batch:
            key = change.key
            if key.resource == "events":
                if change.after is not None:
                    self._events.append((time.monotonic() + EVENT_LIFE, key, change.revision))
                continue
            if key.resource == DEFINITIONS:
                self._define(change)
            self._look_at(self._garbage.heard(change))
            if key.resource in ("namespaces", DEFINITIONS, "nodes") or _due(change):
                self._look_at([key])
            self._recount(key)
            if change.after is None and self._terminating:
                self._emptied(key)
            if change.after is None and key.resource == "serviceaccounts":
                self._look_at([Key("namespaces", "", key.namespace)])

    def _recount(self, key: Key) -> None:
        """Quotas and budgets of a namespace have to be counted again."""
        store = self._objects.store
        if key.namespace and len(store.table(QUOTAS)):
            self._look_at(record.key for record in store.all(QUOTAS, key.namespace))
        if key.resource == "pods" and len(store.table(BUDGETS)):
            for record in store.all(BUDGETS, key.namespace):
                self._look_soon(record.key)
        elif key.resource == BUDGETS:
            self._look_soon(key)

    def _look_soon(self, key: Key) -> None:
        """Count all pods again, but not for each of them."""
        if key not in self._soon:
            self._soon.add(key)
            asyncio.get_running_loop().call_later(SOON, self._now, key)

    def _now(self, key: Key) -> None:
        self._soon.discard(key)
        self._look_at([key])

    def _define(self, change: Change) -> None:
        registry = self._objects.registry
        if change.before is not None:
            registry.drop(change.key.name)
        if change.after is not None:
            registry.define(change.after.object())
            if change.before is not None:
                self._renew(change.key.name)

    def _emptied(self, key: Key) -> None:
        if key.namespace in self._terminating:
            self._look_at([Key("namespaces", "", key.namespace)])
        if key.resource in self._terminating:
            self._look_at([Key(DEFINITIONS, "", key.resource)])

    def _look_at(self, keys: Iterable[Key]) -> None:
        for key in keys:
            self._waiting[key] = None
            self._news.set()

    async def catch_up(self) -> None:
        """Do all that is due, before anybody is let in."""
        while self._waiting:
            key = next(iter(self._waiting))
            del self._waiting[key]
            await self._tried(key)
        await self._objects.store.settled()

    async def run(self) -> None:
        """Look at what changed, one after another, for ever."""
        while True:
            await self._news.wait()
            self._news.clear()
            while self._waiting:
                for key in list(self._waiting)[:PORTION]:
                    del self._waiting[key]
                    await self._tried(key)
                await asyncio.sleep(0)

    async def _tried(self, key: Key) -> None:
        try:
            await self._act(key)
        except Refusal as refusal:
            if refusal.code != 404:
                log.warning("%s %s/%s: %s; tried again", key.resource, key.namespace, key.name, refusal)
                asyncio.get_running_loop().call_later(AGAIN, self._look_at, [key])
        except Exception as error:  # whatever is wrong with one object, the others have their turn
            if not isinstance(error, WriteFailed):
                log.exception("%s %s/%s: tried again", key.resource, key.namespace, key.name)
            asyncio.get_running_loop().call_later(AGAIN, self._look_at, [key])

    async def _act(self, key: Key) -> None:
        await self._garbage.look(key)
        record = self._objects.store.get(*key)
        if key.resource == "nodes" and record is None:
            self._lose(key.name)
        if record is None:
            return
        if key.resource == "namespaces":
            await self._namespace(record)
        elif key.resource == DEFINITIONS:
            self._renew(key.name)
            if record.meta.deletion_timestamp:
                await self._undefine(record)
        elif key.resource in (QUOTAS, BUDGETS):
            self._tell(record)
        elif key.resource == "pods" and record.meta.deletion_timestamp:
            self._unreachable(record)

    # -- namespaces

    async def _namespace(self, record: Record) -> None:
        name = record.key.name
        if not record.meta.deletion_timestamp:
            await self._furnish(name)
            return
        self._terminating.add(name)
        left = await self._delete_all(name=name)
        if not left:
            self._objects.mend(record, _let_go)
            self._terminating.discard(name)

    async def _furnish(self, namespace: str) -> None:
        """What every namespace has."""
        kind = self._objects.registry.by_id("serviceaccounts")
        if kind is not None and self._objects.store.get(kind.id, namespace, "default") is None:
            body: Content = {"metadata": {"name": "default"}}
            await self._objects.create(kind, namespace, body, Options(SYSTEM, manager="stromboli"))

    async def _delete_all(self, name: str = "", resource: str = "") -> int:
        """Delete everything in a namespace, or of a kind; how much is left. A refusal is raised after the last."""
        objects, left = self._objects, 0
        refused: Refusal | None = None
        kinds = {
            kind.id: kind for kind in objects.registry if kind.id == resource or (name and kind.namespaced)
        }
        for kind in kinds.values():
            for record in list(objects.store.all(kind.id, name)):
                if not record.meta.deletion_timestamp:
                    try:
                        await delete(objects, kind, *record.key[1:], DeleteOptions(), Options(SYSTEM))
                    except Refusal as refusal:
                        refused = refusal if refusal.code != 404 else refused
                left += objects.store.get(*record.key) is not None
        if refused is not None:
            raise refused
        return left

    def _renew(self, resource: str) -> None:
        """All objects are of the one version in which their kind is stored now; they change it together."""
        kind = self._objects.registry.by_id(resource)
        if kind is None:
            return
        version = kind.stored or kind.api_version
        for record in list(self._objects.store.all(resource)):
            if record.field("apiVersion") == version:
                return
            self._objects.mend(record, lambda content: content.update(apiVersion=version))

    async def _undefine(self, record: Record) -> None:
        """A kind goes once its last object has."""
        resource = record.key.name
        self._terminating.add(resource)
        if not await self._delete_all(resource=resource):
            self._objects.mend(record, lambda content: _finalized(content, CLEANUP))
            self._terminating.discard(resource)

    # -- pods on nodes that are gone

    def _lose(self, node: str) -> None:
        for record in list(self._objects.store.all("pods")):
            if record.meta.deletion_timestamp and record.field("spec.nodeName") == node:
                self._objects.mend(record, _without_grace)

    def _unreachable(self, record: Record) -> None:
        """Nobody is there to stop a pod whose node does not exist."""
        node = record.field("spec.nodeName")
        if self._objects.store.get("nodes", "", node) is None:
            self._objects.mend(record, _without_grace)

    # -- quotas and budgets

    def _tell(self, record: Record) -> None:
        """Write down what was counted."""
        if record.key.resource == QUOTAS:
            status = self._objects.admission.quotas.status(record)
        else:
            status = disruption_budgets.status(record, disruption_budgets.counted(self._objects, record))
        self._objects.mend(record, lambda content: content.update(status=status))

    # -- by the clock

    def expire(self) -> None:
        """Forget events that are old."""
        now = time.monotonic()
        while self._events and self._events[0][0] < now:
            _, key, revision = self._events.popleft()
            record = self._objects.store.get(*key)
            if record is not None and record.revision == revision:
                self._objects.store.remove(key, record.object())


def _due(change: Change) -> bool:
    """Whether a pod has just been told to go."""
    return (
        change.key.resource == "pods"
        and change.after is not None
        and change.after.meta.deletion_timestamp is not None
    )


def _let_go(content: Content) -> None:
    content["spec"] = {}


def _without_grace(content: Content) -> None:
    content["metadata"]["deletionGracePeriodSeconds"] = 0


def _finalized(content: Content, name: str) -> None:
    left = [one for one in content["metadata"].get("finalizers") or () if one != name]
    content["metadata"]["finalizers"] = left
