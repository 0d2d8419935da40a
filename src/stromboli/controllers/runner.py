"""Runs controllers on one event loop: `ControllerRunner(client, kinds, options).run()`, until `stop`.

`stromboli controllers` runs it in a process with leader election, the embedded cluster beside its API server.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections import Counter
from collections.abc import Callable, Collection
from typing import Any

from stromboli.api import names
from stromboli.api.types.meta import Object
from stromboli.controllers import selection
from stromboli.controllers.api_writer import ApiWriter
from stromboli.controllers.controller import Context, Controller
from stromboli.controllers.controller_metrics import Metrics
from stromboli.controllers.options import Options
from stromboli.controllers.recorder import Recorder
from stromboli.controllers.watched_kinds import Pod
from stromboli.kube.api_client import Client
from stromboli.kube.event_recorder import EventRecorder
from stromboli.kube.reflector import Reflector
from stromboli.kube.request import GuardedClient

log = logging.getLogger(__name__)

COMPONENT = "vc-controller-manager"
SYNC_WARNING = 30.0
"""Seconds after which the log says which kinds a controller still waits for."""


class ControllerRunner:
    """The controllers that the options select, with their stores and reflectors."""

    def __init__(
        self,
        client: Client,
        kinds: Collection[type[Controller[Any]]],
        options: Options | None = None,
        write_time_left: Callable[[], float] = lambda: math.inf,
        metrics: Metrics | None = None,
        instance: str = COMPONENT,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`write_time_left` is as for `GuardedClient`."""
        self.options = options = options if options is not None else Options()
        self.metrics = metrics = metrics if metrics is not None else Metrics()
        writer = ApiWriter(client, write_time_left, on_write=metrics.on_write)
        self.recorder = Recorder(
            GuardedClient(client, write_time_left).send,
            EventRecorder(COMPONENT, instance, clock),
            metrics.guard,
        )
        self.context = Context(writer, self.recorder, options, metrics, clock)
        self.controllers = self._create(kinds)
        self._reflectors = {
            store: Reflector(client, store.resource, store.kind, store, self._wanted, store.scope)
            for store in self.context.stores.values()
        }
        self._stopping = asyncio.Event()

    def _create(self, kinds: Collection[type[Controller[Any]]]) -> list[Controller[Any]]:
        """A controller that cannot be set up is left out, and the others run."""
        controllers = []
        known = {kind.name for kind in kinds}
        for name in self.options.controllers:
            if name.removeprefix("+") in selection.NAMES and name.removeprefix("+") not in known:
                log.warning("%s is asked for, and does not exist in this version", name)
        for kind in kinds:
            feature = selection.FEATURES.get(kind.name, "")
            if not selection.is_enabled(self.options.controllers, kind.name) or not self.options.gate(
                feature
            ):
                continue
            try:
                controllers.append(kind(self.context))
            except Exception:
                log.exception("%s could not be set up, and is left out", kind.name)
        return controllers

    def _wanted(self, obj: Object) -> bool:
        """Keep only pods of our schedulers and jobs in memory, not those of the whole cluster."""
        if not isinstance(obj, Pod):
            return True
        return (
            obj.spec.scheduler_name in self.options.scheduler_name
            or names.JOB_NAME in obj.metadata.annotations
        )

    # -- running

    async def run(self) -> None:
        """Until `stop` is called, or the task is cancelled."""
        tasks = [
            asyncio.create_task(reflector.run(), name=f"watch {reflector.resource.plural}")
            for reflector in self._reflectors.values()
        ]
        tasks.append(asyncio.create_task(self.recorder.run(), name="events"))
        tasks += [
            asyncio.create_task(self._start(controller), name=f"start {controller.name}")
            for controller in self.controllers
        ]
        log.info("controllers: %s", ", ".join(controller.name for controller in self.controllers) or "none")
        try:
            await self._stopping.wait()
            await self._shut_down()
        finally:
            for controller in self.controllers:
                await controller.stop()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def stop(self) -> None:
        """Finish the syncs under way and end."""
        self._stopping.set()

    async def _shut_down(self) -> None:
        grace = self.options.shutdown_timeout
        await asyncio.gather(*(controller.stop(grace) for controller in self.controllers))
        try:
            async with asyncio.timeout(grace):
                await self.recorder.flush()
        except TimeoutError:
            log.warning("not every event was written in time")

    async def _start(self, controller: Controller[Any]) -> None:
        """Start a controller once the stores that it reads are synced."""
        needed = [self._reflectors[store] for store in controller.stores]
        while True:
            try:
                async with asyncio.timeout(SYNC_WARNING):
                    for reflector in needed:
                        await reflector.synced.wait()
                break
            except TimeoutError:
                left = "; ".join(
                    f"{reflector.resource}: {reflector.problem or 'being listed'}"
                    for reflector in needed
                    if not reflector.synced.is_set()
                )
                log.error("%s waits for what it cannot see yet: %s", controller.name, left)
        if not self._stopping.is_set():
            controller.start()

    # -- state

    @property
    def unsynced(self) -> list[str]:
        """The resources that are not listed yet."""
        reflectors = self._reflectors.values()
        return [str(reflector.resource) for reflector in reflectors if not reflector.synced.is_set()]

    @property
    def idle(self) -> bool:
        """Whether all stores are synced and no key waits or is being processed."""
        return not self.unsynced and all(controller.queue.idle for controller in self.controllers)

    def measure(self) -> None:
        """Update the gauges."""
        for controller in self.controllers:
            self.metrics.waiting.labels(controller.name).set(len(controller.queue))
            self.metrics.failing.labels(controller.name).set(controller.queue.failing)
        objects: Counter[str] = Counter()
        for store in self.context.stores.values():
            objects[store.resource.plural] += len(store)
        for plural, count in objects.items():
            self.metrics.objects.labels(plural).set(count)
        self.metrics.dropped_events.set(self.recorder.dropped)
