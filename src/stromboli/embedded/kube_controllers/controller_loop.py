"""Runs the controllers: they name the objects that a committed change concerns, and reconcile them one by one."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from pathlib import Path

from stromboli.embedded.api_status import StatusError
from stromboli.embedded.kube_controllers.controller import Controller
from stromboli.embedded.kube_controllers.definition_controller import DefinitionController
from stromboli.embedded.kube_controllers.event_expiry import EventExpiry
from stromboli.embedded.kube_controllers.garbage_collection import GarbageCollector
from stromboli.embedded.kube_controllers.namespace_controller import NamespaceController
from stromboli.embedded.kube_controllers.pod_garbage_collection import PodGarbageCollector
from stromboli.embedded.kube_controllers.pod_group_protection import PodGroupProtection
from stromboli.embedded.kube_controllers.resource_claims import ResourceClaimController
from stromboli.embedded.kube_controllers.services.endpoints_controller import EndpointsController
from stromboli.embedded.kube_controllers.status_controllers import DisruptionController, QuotaController
from stromboli.embedded.kube_controllers.volumes.ephemeral_volumes import EphemeralVolumeController
from stromboli.embedded.kube_controllers.volumes.persistent_volumes import PersistentVolumeController
from stromboli.embedded.kube_controllers.volumes.volume_protection import VolumeProtection
from stromboli.embedded.objects.object_verbs import Objects
from stromboli.embedded.store.records import Change, Key
from stromboli.embedded.store.version_log import WriteFailed
from stromboli.embedded.time_slices import TimeSlices

log = logging.getLogger(__name__)

RETRY_AFTER = 5.0
"""Seconds after which a reconciliation that failed is tried again."""


class ControllerLoop:
    """The queue of objects to reconcile, fed by the commits of the store."""

    def __init__(self, objects: Objects, data: Path, ca: str = ""):
        self._store = objects.store
        self.event_expiry = EventExpiry(objects.store)
        self._controllers: tuple[Controller, ...] = (
            GarbageCollector(objects),
            NamespaceController(objects, ca),
            DefinitionController(objects),
            PodGarbageCollector(objects, self._enqueue_after),
            PodGroupProtection(objects),
            VolumeProtection(objects),
            ResourceClaimController(objects),
            PersistentVolumeController(objects, data),
            EphemeralVolumeController(objects),
            QuotaController(objects),
            DisruptionController(objects, self._enqueue),
            EndpointsController(objects, self._enqueue),
        )
        self._queue: dict[Key, None] = {}
        self._wake = asyncio.Event()

    def on_commit(self, batch: Sequence[Change]) -> None:
        for change in batch:
            if change.key.resource == "events":
                self.event_expiry.observe(change)
                continue
            for controller in self._controllers:
                self._enqueue(controller.keys_for(change))

    def _enqueue(self, keys: Iterable[Key]) -> None:
        for key in keys:
            self._queue[key] = None
            self._wake.set()

    def _enqueue_after(self, seconds: float, key: Key) -> None:
        asyncio.get_running_loop().call_later(seconds, self._enqueue, [key])

    async def start(self) -> None:
        """Reconcile what the last run may have left half done, before requests are served."""
        for record in self._store.list("events"):
            self.event_expiry.add(record)
        for controller in self._controllers:
            self._enqueue(controller.initial_keys())
        await self.drain()

    async def drain(self) -> None:
        """Reconcile everything that is queued."""
        while self._queue:
            await self._reconcile_next()
        await self._store.wait_committed()

    async def run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            slices = TimeSlices()
            while self._queue:
                await self._reconcile_next()
                if slices.due:
                    await slices.pause()

    async def _reconcile_next(self) -> None:
        key = next(iter(self._queue))
        del self._queue[key]
        results = [await self._reconcile(controller, key) for controller in self._controllers]
        if not all(results):
            self._enqueue_after(RETRY_AFTER, key)

    async def _reconcile(self, controller: Controller, key: Key) -> bool:
        """Whether it succeeded: whatever fails, the other controllers and objects have their turn."""
        try:
            await controller.reconcile(key)
        except StatusError as error:
            if error.code == 404:
                return True
            log.warning("%s %s/%s: %s; tried again", key.resource, key.namespace, key.name, error)
            return False
        except Exception as error:
            if not isinstance(error, WriteFailed):
                log.exception("%s %s/%s: tried again", key.resource, key.namespace, key.name)
            return False
        return True
