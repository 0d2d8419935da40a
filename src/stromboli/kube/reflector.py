"""Follows one kind of object: lists it, watches it, resumes where it was cut off, and lists again where it cannot.

What is known is kept by name as uid and version, so a new list tells only what differs: nothing is lost, and nothing
is told twice.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import NamedTuple, Protocol

from stromboli.api.types.meta import Object, ObjectMeta
from stromboli.kube.api_client import TooLarge, with_query
from stromboli.kube.api_resources import Resource, absence
from stromboli.kube.rate_limits import Backoff, Clock, Dice, Sleep
from stromboli.kube.request import ApiError, NoResponse, Request
from stromboli.kube.watch_decoding import Line, Lines, Page, Pages, Sight, Splitter, What

log = logging.getLogger(__name__)

PAGE = 500
SILENCE = 180.0
"""Seconds without a word after which a watch is taken for dead: bookmarks come about once a minute."""
LASTS = (300, 600)
"""How long a watch may last, picked by chance so that not all end at once."""
ABSENT = 60.0
"""Seconds after which we look again whether a missing kind was installed."""
SHORT = 1.0
"""A watch that ended sooner than this counts as failed."""


class UnusableObject(NamedTuple):
    """An object that cannot be used, and why."""

    kind: str
    namespace: str
    name: str
    uid: str
    text: str


class Source(Protocol):
    """What is asked of a client."""

    async def list(self, resource: Resource, namespace: str = "", **query: str | int) -> bytes: ...

    async def insist(self, request: Request) -> bytes: ...

    def stream(self, path: str, silence: float) -> AbstractAsyncContextManager[AsyncIterator[bytes]]: ...


class Sink(Protocol):
    """Where news go."""

    def put(self, thing: Object, new: bool) -> None: ...

    def drop(self, thing: Object) -> None: ...

    def bad(self, trouble: UnusableObject) -> None: ...

    async def room(self) -> None: ...


class Known(NamedTuple):
    """As which object, and in which state of it, a name was last seen."""

    uid: str
    version: str


class Expired(Exception):
    """What happened since is not known any more; only a new list helps."""


async def pages(
    source: Source, resource: Resource, kind: type[Object], size: int = PAGE
) -> AsyncIterator[Page]:
    """All objects of a kind, as they were at one moment. A page that is too large is asked for in halves."""
    reader, next = Pages(kind), ""
    while True:
        try:
            page = reader.read(await source.list(resource, limit=size, **{"continue": next}))
        except TooLarge:
            if size <= 1:
                raise
            size = max(1, size // 2)
            continue
        except ApiError as error:
            if error.status == 410:
                raise Expired(str(error)) from None
            raise
        yield page
        next = page.next
        if not next:
            return


class Reflector:
    """Tells a sink all that happens to the objects of one kind."""

    missed = logging.WARNING
    """How loudly it is said that the kind is not installed."""

    def __init__(
        self,
        source: Source,
        resource: Resource,
        kind: type[Object],
        sink: Sink,
        wanted: Callable[[Object], bool] = lambda _: True,
        page: int = PAGE,
        silence: float = SILENCE,
        absent: float = ABSENT,
        backoff: Backoff = Backoff(first=0.2, longest=30.0),  # noqa: B008 - frozen
        sleep: Sleep = asyncio.sleep,
        clock: Clock = time.monotonic,
        dice: Dice = random.random,
    ) -> None:
        self.resource = resource
        self.kind = kind
        self.known: dict[str, Known] = {}
        self.version = ""
        """Up to where everything is known; empty if a list is due."""
        self.synced = asyncio.Event()
        """Set once all objects were told, or it is sure that there are none."""
        self.installed: bool | None = None
        self.trouble = ""
        """Why nothing is heard at the moment."""
        self.lists = self.watches = self.events = 0
        self._source = source
        self._sink = sink
        self._wanted = wanted
        self._page = page
        self._silence = silence
        self._absent = absent
        self._backoff = backoff
        self._sleep = sleep
        self._clock = clock
        self._dice = dice
        self._lines = Lines(kind)
        self._failures = 0

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            pause = 0.0
            try:
                if not self.version:
                    await self._list()
                await self._watch()
            except Expired as error:
                log.info("%s: %s; listing again", self.resource, error)
                self.version = ""
                pause = self._failed("")
            except ApiError as error:
                pause = self._refused(error)
            except NoResponse as error:
                pause = self._failed(str(error))
            except ValueError as error:  # what cannot be read would come again if we resumed before it
                self.version = ""
                pause = self._failed(str(error))
            except Exception as error:
                log.exception("%s: unexpected", self.resource)
                self.version = ""
                pause = self._failed(f"{type(error).__name__}: {error}")
            if pause:
                await self._sleep(pause)

    # -- what can go wrong

    def _failed(self, why: str, asked: float | None = None) -> float:
        """How long to wait. That a watch breaks off now and then is nothing to worry about; failing again is."""
        self._failures += 1
        if why and (self._failures == 2 or why != self.trouble):
            level = logging.INFO if self._failures == 1 else logging.WARNING
            log.log(level, "%s: %s; trying again", self.resource, why)
        self.trouble = why
        return self._backoff.pause(self._failures, asked)

    def _refused(self, error: ApiError) -> float:
        if error.status == 404:
            self._gone()
            return self._absent * (0.5 + 0.5 * self._dice())
        if error.status in (401, 403):
            way_out = "see deploy/ for the rights that are needed"
            return self._failed(f"the API server does not let us list and watch it: {error}; {way_out}")
        if error.status == 410:
            self.version = ""
        return self._failed(str(error), error.retry_after)

    def _gone(self) -> None:
        """The kind is not installed, or not any more: then there are no such objects."""
        if self.installed is not False:
            log.log(self.missed, "%s", absence(self.resource))
        self.installed, self.version, self.trouble = False, "", ""
        self._drop_all_but(set())
        self.synced.set()

    def _fine(self) -> None:
        if self.trouble or self.installed is False:
            log.info("%s: all is well again", self.resource)
        self.installed, self.trouble, self._failures = True, "", 0

    # -- list

    async def _list(self) -> None:
        listed: set[str] = set()
        version = ""
        async for page in pages(self._source, self.resource, self.kind, self._page):
            for sight in page.sights:
                listed.add(sight.key)
                self._put(sight)
            version = page.version
            await self._sink.room()
        self._drop_all_but(listed)
        self.version = version
        self.lists += 1
        self._fine()
        self.synced.set()

    def _drop_all_but(self, listed: set[str]) -> None:
        for key in [key for key in self.known if key not in listed]:
            self._drop(key)

    # -- watch

    async def _watch(self) -> None:
        begun = self._clock()
        before = self.events
        shortest, longest = LASTS
        query: dict[str, str | int] = {
            "watch": "true",
            "resourceVersion": self.version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": int(shortest + (longest - shortest) * self._dice()),
        }
        self.watches += 1
        splitter = Splitter()
        async with self._source.stream(with_query(self.resource.path(), query), self._silence) as pieces:
            async for piece in pieces:
                for line in splitter.feed(piece):
                    self._take(self._lines.read(line))
                await self._sink.room()
        if self.events == before and self._clock() - begun < SHORT:
            raise NoResponse("the watch ended at once")

    def _take(self, line: Line) -> None:
        what, sight, status = line
        if what is What.REFUSED:
            assert status is not None
            if status.code == 410 or status.reason in ("Expired", "Gone"):
                raise Expired(status.message or "the resource version is too old")
            raise ApiError(status.code or 500, status.reason, status.message)
        if what is What.PUT:
            self._put(sight)
        elif what is What.DROP:
            before = self.known.get(sight.key)
            if before is not None and before.uid == sight.marks.uid:
                self._drop(sight.key)
        self.version = line.version or self.version
        self.events += 1
        if self._failures:
            self._fine()

    # -- what is known

    def _put(self, sight: Sight) -> None:
        key, marks = sight.key, sight.marks
        now = Known(marks.uid, marks.resource_version)
        before = self.known.get(key)
        if before == now:
            return
        if before is not None and before.uid != now.uid:
            self._drop(key)
            before = None
        if sight.bad is not None:
            text = ": ".join(part for part in (sight.bad.field, sight.bad.problem) if part)
            self._sink.bad(UnusableObject(self.kind.__name__, marks.namespace, marks.name, marks.uid, text))
        elif sight.thing is not None and self._wanted(sight.thing):
            self._sink.put(sight.thing, new=before is None)
        elif before is not None:
            self._sink.drop(self._stub(key, before))
        if key:
            self.known[key] = now

    def _drop(self, key: str) -> None:
        self._sink.drop(self._stub(key, self.known.pop(key)))

    def _stub(self, key: str, known: Known) -> Object:
        namespace, _, name = key.rpartition("/")
        return self.kind(metadata=ObjectMeta(name=name, namespace=namespace, uid=known.uid))
