"""Events for users, written in the background: no controller waits for them, and a flood is dropped, not kept."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable

from stromboli.api import names
from stromboli.api.types.meta import Object
from stromboli.controllers.watched_kinds import api_version
from stromboli.kube.event_recorder import EventRecorder, ObjectReference, PendingEvent
from stromboli.kube.request import Api, ApiError, NoResponse

log = logging.getLogger(__name__)

MOST = 2000
TIMEOUT = 10.0


class Voice:
    """Says things about objects."""

    def __init__(self, api: Api, events: EventRecorder, may_write: Callable[[], bool] = lambda: True) -> None:
        self._api = api
        self._events = events
        self._may_write = may_write
        self._unsaid: deque[PendingEvent] = deque()
        self._wake = asyncio.Event()
        self._silent = asyncio.Event()
        self._silent.set()
        self._lost = 0

    @property
    def dropped(self) -> int:
        """Events left out because there were too many."""
        return self._lost + self._events.dropped

    def normal(self, about: Object, reason: str, message: str) -> None:
        self._say(about, names.NORMAL, reason, message)

    def warning(self, about: Object, reason: str, message: str) -> None:
        self._say(about, names.WARNING, reason, message)

    def _say(self, about: Object, type_: str, reason: str, message: str) -> None:
        if len(self._unsaid) >= MOST:
            self._lost += 1
            return
        subject = ObjectReference(
            type(about).__name__, about.namespace, about.name, about.metadata.uid, api_version(about)
        )
        self._unsaid.append(PendingEvent(subject, type_, reason, message))
        self._silent.clear()
        self._wake.set()

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            while not self._unsaid:
                self._silent.set()
                self._wake.clear()
                await self._wake.wait()
            try:
                await self._write(self._unsaid[0])
            except Exception:  # an event is never worth more than the others
                log.exception("an event could not be written")
            self._unsaid.popleft()

    async def silence(self) -> None:
        """Wait until all was said."""
        await self._silent.wait()

    async def _write(self, saying: PendingEvent) -> None:
        for _ in range(2):
            request = self._events.request(saying) if self._may_write() else None
            if request is None:
                return
            try:
                await self._api.send(request, TIMEOUT)
                return
            except (ApiError, NoResponse) as error:
                if not self._events.failed(saying, error):
                    log.debug("an event was not written: %s", error)
                    return
