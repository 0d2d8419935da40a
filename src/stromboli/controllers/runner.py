"""All controllers at work: `Controllers(client, options).run()`, until it is told to stop.

It needs an event loop and a client, nothing else: `stromboli controllers` gives it a process and an election, the
embedded cluster runs it beside its API server.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection
from typing import Any

from stromboli.api import names
from stromboli.api.types.meta import Object
from stromboli.controllers import selection
from stromboli.controllers.api_writer import TIMEOUT, Pen
from stromboli.controllers.context import Desk
from stromboli.controllers.controller import Controller
from stromboli.controllers.controller_list import CONTROLLERS
from stromboli.controllers.controller_metrics import Metrics
from stromboli.controllers.options import Options
from stromboli.controllers.recorder import Voice
from stromboli.controllers.watched_kinds import Pod
from stromboli.kube.api_client import Client
from stromboli.kube.event_recorder import EventRecorder
from stromboli.kube.reflector import Reflector

log = logging.getLogger(__name__)

COMPONENT = "vc-controller-manager"
PATIENCE = 30.0
"""Seconds after which we say which kinds a controller still waits for."""


class Controllers:
    """The controllers that the options ask for, on one event loop."""

    def __init__(
        self,
        client: Client,
        options: Options | None = None,
        may_write: Callable[[], bool] = lambda: True,
        metrics: Metrics | None = None,
        instance: str = COMPONENT,
        timeout: float = TIMEOUT,
        clock: Callable[[], float] = time.time,
        kinds: Collection[type[Controller[Any]]] = CONTROLLERS,
    ) -> None:
        """`may_write` is asked before every write; `timeout` is how long one may take."""
        self.options = options = options if options is not None else Options()
        self.metrics = metrics = metrics if metrics is not None else Metrics()
        pen = Pen(client, may_write, timeout, wrote=metrics.wrote)
        self.voice = Voice(client, EventRecorder(COMPONENT, instance, clock), may_write)
        self.desk = Desk(pen, self.voice, options, metrics, clock)
        self.controllers = self._made(kinds)
        self.reflectors = [
            Reflector(client, shelf.resource, kind, shelf, wanted=self._wanted)
            for kind, shelf in self.desk.shelves.items()
        ]
        self._stopping = asyncio.Event()

    def _made(self, kinds: Collection[type[Controller[Any]]]) -> list[Controller[Any]]:
        """One that cannot be set up is left out, and the others run."""
        made = []
        known = {kind.name for kind in kinds}
        for name in self.options.controllers:
            if name.removeprefix("+") in selection.NAMES and name.removeprefix("+") not in known:
                log.warning("%s is asked for, and does not exist in this version", name)
        for kind in kinds:
            feature = selection.FEATURES.get(kind.name, "")
            if not selection.is_on(self.options.controllers, kind.name) or not self.options.gate(feature):
                continue
            try:
                made.append(kind(self.desk))
            except Exception:
                log.exception("%s could not be set up, and is left out", kind.name)
        return made

    def _wanted(self, thing: Object) -> bool:
        """Of pods only those that are ours: memory is for them, not for the whole cluster."""
        if not isinstance(thing, Pod):
            return True
        return (
            thing.spec.scheduler_name in self.options.scheduler_name
            or names.JOB_NAME in thing.metadata.annotations
        )

    # -- running

    async def run(self) -> None:
        """Until `stop` is called, or the task is cancelled."""
        tasks = [
            asyncio.create_task(one.run(), name=f"watch {one.resource.plural}") for one in self.reflectors
        ]
        saying = asyncio.create_task(self.voice.run(), name="events")
        tasks += [asyncio.create_task(self._start(one), name=f"start {one.name}") for one in self.controllers]
        log.info("controllers: %s", ", ".join(one.name for one in self.controllers) or "none")
        try:
            await self._stopping.wait()
            await self._wind_up()
        finally:
            for one in self.controllers:
                await one.stop()
            for task in (*tasks, saying):
                task.cancel()
            await asyncio.gather(*tasks, saying, return_exceptions=True)

    def stop(self) -> None:
        """Finish what is being done and end."""
        self._stopping.set()

    async def _wind_up(self) -> None:
        grace = self.options.shutdown_timeout
        await asyncio.gather(*(one.stop(grace) for one in self.controllers))
        try:
            async with asyncio.timeout(grace):
                await self.voice.silence()
        except TimeoutError:
            log.warning("not every event was written in time")

    async def _start(self, controller: Controller[Any]) -> None:
        """Let a controller begin once it can see all that it needs."""
        needed = [one for one in self.reflectors if self.desk.shelves.get(one.kind) in controller.shelves]
        while True:
            try:
                async with asyncio.timeout(PATIENCE):
                    for one in needed:
                        await one.synced.wait()
                break
            except TimeoutError:
                waiting = [one for one in needed if not one.synced.is_set()]
                left = "; ".join(f"{one.resource}: {one.problem or 'being listed'}" for one in waiting)
                log.error("%s waits for what it cannot see yet: %s", controller.name, left)
        if not self._stopping.is_set():
            controller.start()

    # -- what there is to be shown

    @property
    def unsynced(self) -> list[str]:
        """The kinds that are still waited for."""
        return [str(one.resource) for one in self.reflectors if not one.synced.is_set()]

    @property
    def quiet(self) -> bool:
        """Whether all is seen and nothing is left to be done just now."""
        return not self.unsynced and all(one.queue.quiet for one in self.controllers)

    def measure(self) -> None:
        """Bring the gauges up to date."""
        for one in self.controllers:
            self.metrics.waiting.labels(one.name).set(len(one.queue))
            self.metrics.failing.labels(one.name).set(one.queue.failing)
        for shelf in self.desk.shelves.values():
            self.metrics.objects.labels(shelf.resource.plural).set(len(shelf))
        self.metrics.dropped_events.set(self.voice.dropped)
