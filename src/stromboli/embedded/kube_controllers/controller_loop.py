"""Runs the API server's own controllers: each commit of the store feeds their queues."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress

from stromboli.controllers.recorder import Recorder
from stromboli.embedded.kube_controllers.controller import StoreController
from stromboli.embedded.store.object_store import Store
from stromboli.embedded.store.records import Change

START_TIMEOUT = 5.0
"""Seconds after which requests are served though objects are still to be reconciled: they may wait for webhooks."""

log = logging.getLogger(__name__)


class ControllerLoop:
    """All controllers, and the recorder of their events."""

    def __init__(self, store: Store, recorder: Recorder, controllers: Sequence[StoreController]):
        self._store = store
        self._recorder = recorder
        self._controllers = controllers
        self._recording: asyncio.Task[None] | None = None

    def on_commit(self, batch: Sequence[Change]) -> None:
        for change in batch:
            if change.key.resource == "events":  # no controller depends on them
                continue
            for controller in self._controllers:
                try:
                    for key in controller.keys_for(change):
                        controller.queue.add(key)
                except Exception:  # the other controllers get the change all the same
                    log.exception("%s: %s", controller.name, change.key)

    async def start(self) -> None:
        """Reconcile what the last run may have left half done, for a limited time before requests are served."""
        self._recording = asyncio.create_task(self._recorder.run(), name="events")
        for controller in self._controllers:
            for key in controller.initial_keys():
                controller.queue.add(key)
            controller.start()
        with suppress(TimeoutError):
            async with asyncio.timeout(START_TIMEOUT):
                await self.drain()

    async def drain(self) -> None:
        """Wait until everything that is queued is reconciled."""
        while not all(controller.queue.idle for controller in self._controllers):
            await asyncio.sleep(0.001)
        await self._store.wait_committed()

    async def stop(self) -> None:
        for controller in self._controllers:
            await controller.stop()
        if self._recording is not None:
            self._recording.cancel()
            with suppress(asyncio.CancelledError):
                await self._recording
