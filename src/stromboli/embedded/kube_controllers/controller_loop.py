"""Runs the controllers: they name the objects that a committed change concerns, and workers reconcile them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
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

START_TIMEOUT = 5.0
"""Seconds after which requests are served though objects are still to be reconciled: they may wait for webhooks."""
RETRY_AFTER = 5.0
"""Seconds after which a reconciliation that failed is tried again."""


class ControllerLoop:
    """The workers of all controllers, whose queues are fed by the commits of the store."""

    def __init__(self, objects: Objects, data: Path, ca: str = ""):
        self._store = objects.store
        self.event_expiry = EventExpiry(objects.store)
        self._controllers: tuple[Controller, ...] = (
            GarbageCollector(objects),
            NamespaceController(objects, ca),
            DefinitionController(objects),
            PodGarbageCollector(objects),
            PodGroupProtection(objects),
            VolumeProtection(objects),
            ResourceClaimController(objects),
            PersistentVolumeController(objects, data),
            EphemeralVolumeController(objects),
            QuotaController(objects),
            DisruptionController(objects),
            EndpointsController(objects),
        )
        self._finished = asyncio.Event()
        """A controller has nothing left to reconcile."""
        self._slices = TimeSlices()
        """Shared by all workers, so that many busy ones hold up requests no longer than one."""

    def on_commit(self, batch: Sequence[Change]) -> None:
        for change in batch:
            if change.key.resource == "events":
                self.event_expiry.observe(change)
                continue
            for controller in self._controllers:
                for key in controller.keys_for(change):
                    controller.queue.add(key)

    async def start(self) -> None:
        """Reconcile what the last run may have left half done, for a limited time before requests are served."""
        for record in self._store.list("events"):
            self.event_expiry.add(record)
        for controller in self._controllers:
            for key in controller.initial_keys():
                controller.queue.add(key)
        with suppress(TimeoutError):
            async with asyncio.timeout(START_TIMEOUT):
                await self.drain()

    async def drain(self) -> None:
        """Wait until everything that is queued is reconciled."""
        while not all(controller.queue.idle for controller in self._controllers):
            self._finished.clear()
            await self._finished.wait()
        await self._store.wait_committed()

    async def run(self) -> None:
        """Until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                for controller in self._controllers:
                    for _ in range(controller.workers):
                        group.create_task(self._work(controller))
        finally:
            for controller in self._controllers:
                controller.queue.close()

    async def _work(self, controller: Controller) -> None:
        queue = controller.queue
        while True:
            key = await queue.get()
            if not await _reconcile(controller, key):
                queue.add_after(key, RETRY_AFTER)
            queue.done(key)
            if queue.idle:
                self._finished.set()
            if self._slices.due:
                await self._slices.pause()


async def _reconcile(controller: Controller, key: Key) -> bool:
    """Whether it succeeded: whatever fails, the other objects have their turn."""
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
