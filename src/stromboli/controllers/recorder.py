"""Records events in the background: controllers do not wait for them, and beyond a limit they are dropped."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable

from stromboli.api import names
from stromboli.api.types.meta import Object
from stromboli.controllers.user_event import UserEvent
from stromboli.controllers.watched_resources import WATCHED_RESOURCES
from stromboli.daemon.telemetry_guard import TelemetryGuard
from stromboli.kube.event_recorder import EventRecorder, ObjectReference, PendingEvent
from stromboli.kube.request import ApiError, LeaseLost, NoResponse, Request

log = logging.getLogger(__name__)

MAX_PENDING = 2000
Send = Callable[[Request], Awaitable[object]]
"""Sends a request to the API server."""


class ComponentRecorder:
    """Records events in the name of a component, by the recorder of all."""

    def __init__(self, recorder: Recorder, component: str) -> None:
        self._recorder = recorder
        self._component = component

    def normal(self, obj: Object, reason: str, message: str) -> None:
        self.record(obj, UserEvent(names.NORMAL, reason, message))

    def warning(self, obj: Object, reason: str, message: str) -> None:
        self.record(obj, UserEvent(names.WARNING, reason, message))

    def record(self, obj: Object, event: UserEvent) -> None:
        resource, meta = WATCHED_RESOURCES[type(obj)], obj.metadata
        self.record_at(
            ObjectReference(resource.kind, meta.namespace, meta.name, meta.uid, resource.api_version), event
        )

    def record_at(self, subject: ObjectReference, event: UserEvent) -> None:
        """Record an event on an object of any kind."""
        self._recorder.enqueue(PendingEvent(subject, *event, self._component))


class Recorder(ComponentRecorder):
    """The event recorder of all controllers, whose own component is that of `events`."""

    def __init__(self, send: Send, events: EventRecorder, guard: TelemetryGuard | None = None) -> None:
        super().__init__(self, "")
        self._guard = guard or TelemetryGuard()
        self._send = send
        self._events = events
        self._pending: deque[PendingEvent] = deque()
        self._wake = asyncio.Event()
        self._drained = asyncio.Event()
        self._drained.set()
        self._dropped = 0

    @property
    def dropped(self) -> int:
        """Events left out because there were too many."""
        return self._dropped + self._events.dropped

    def of_component(self, component: str) -> ComponentRecorder:
        """A recorder whose events come from another component."""
        return ComponentRecorder(self, component)

    def enqueue(self, event: PendingEvent) -> None:
        with self._guard("events"):
            self._enqueue(event)

    def _enqueue(self, event: PendingEvent) -> None:
        if len(self._pending) >= MAX_PENDING:
            self._dropped += 1
            return
        self._pending.append(event)
        self._drained.clear()
        self._wake.set()

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            while not self._pending:
                self._drained.set()
                self._wake.clear()
                await self._wake.wait()
            with self._guard("events"):
                await self._write(self._pending[0])
            self._pending.popleft()

    async def flush(self) -> None:
        """Wait until all events are written."""
        await self._drained.wait()

    async def _write(self, event: PendingEvent) -> None:
        for _ in range(2):
            request = self._events.request(event)
            if request is None:
                return
            try:
                await self._send(request)
                return
            except (ApiError, NoResponse, LeaseLost) as error:
                if not self._events.failed(event, error):
                    log.debug("an event was not written: %s", error)
                    return
