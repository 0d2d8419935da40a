"""Lists and watches one kind, resumes a broken watch, and lists again where the server cannot resume it.

The uid and resource version last seen of every object are kept by name, so after a new list only the differences are
passed on: nothing is lost and nothing is repeated.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import AsyncIterator, Callable
from typing import NamedTuple, Protocol

from stromboli.api.types.meta import Object, ObjectMeta
from stromboli.kube.api_client import Client, TooLarge, with_query
from stromboli.kube.api_resources import Resource, absence
from stromboli.kube.request import ApiError, Backoff, Clock, Jitter, NoResponse, Sleep
from stromboli.kube.watch_decoding import (
    DecodedObject,
    LineSplitter,
    ListDecoder,
    ListPage,
    WatchEvent,
    WatchEventDecoder,
)

log = logging.getLogger(__name__)

PAGE_SIZE = 500
WATCH_IDLE_TIMEOUT = 180.0
"""Seconds without data after which a watch is considered dead: bookmarks come about once a minute."""
WATCH_SECONDS = (300, 600)
"""Bounds of a watch's duration, which is random so that not all end at once."""
ABSENT_RECHECK = 60.0
"""Seconds after which we check again whether a missing kind was installed."""
SHORT_WATCH = 1.0
"""A watch that ends within so many seconds counts as failed."""


class UnusableObject(NamedTuple):
    """An object that cannot be used, and why."""

    kind: str
    namespace: str
    name: str
    uid: str
    text: str


class Sink(Protocol):
    """Receives the changes that a reflector sees."""

    def put(self, object: Object, new: bool) -> None:
        """An object was added, if `new`, or modified."""

    def drop(self, object: Object) -> None:
        """An object was deleted; only its name, namespace and uid are set."""

    def unusable(self, problem: UnusableObject) -> None:
        """An object cannot be used as it is; `put` follows if a part of it can."""

    async def wait_for_room(self) -> None:
        """Called after every batch: let other tasks run, and wait while too many changes are pending."""


ObjectFilter = Callable[[Object], bool]


def every_object(_: Object) -> bool:
    """The filter that wants all objects."""
    return True


class SeenVersion(NamedTuple):
    """Uid and resource version of the object that was last seen under a name."""

    uid: str
    version: str


class WatchScope(NamedTuple):
    """The objects of a kind that are listed and watched."""

    namespace: str = ""
    field_selector: str = ""

    @classmethod
    def of_one(cls, namespace: str, name: str) -> WatchScope:
        """A single object; a role may grant it by `resourceNames`."""
        return cls(namespace, f"metadata.name={name}")


EVERYTHING = WatchScope()


class Expired(Exception):
    """The server no longer knows the events since our resource version: a new list is needed."""


async def list_pages(
    client: Client,
    resource: Resource,
    kind: type[Object],
    size: int = PAGE_SIZE,
    scope: WatchScope = EVERYTHING,
) -> AsyncIterator[ListPage]:
    """All objects of a kind, of one resource version.

    While a page is decoded and taken in, the server prepares the next one.
    """
    requests = PageRequests(client, resource, scope, size)
    decoder = ListDecoder(kind)
    body = await requests.send("")
    while token := decoder.continue_token(body):
        following = asyncio.create_task(requests.send(token))
        try:
            await asyncio.sleep(0)  # the request is sent before we are busy
            yield decoder.decode(body)
            body = await following
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
    yield decoder.decode(body)


class PageRequests:
    """Requests for the pages of one list."""

    def __init__(self, client: Client, resource: Resource, scope: WatchScope, size: int) -> None:
        self._client = client
        self._resource = resource
        self._scope = scope
        self._size = size

    async def send(self, token: str) -> bytes:
        """The page that a token stands for; one that is too large is requested again in halves."""
        namespace, selector = self._scope
        query = {"continue": token, "fieldSelector": selector}
        while True:
            try:
                return await self._client.list(self._resource, namespace, limit=self._size, **query)
            except TooLarge:
                if self._size <= 1:
                    raise
                self._size = max(1, self._size // 2)
            except ApiError as error:
                if error.status == 410:
                    raise Expired(str(error)) from None
                raise


class Reflector:
    """Passes all changes of the objects of one kind to a sink."""

    absence_level = logging.WARNING
    """With which the log says that the kind is not installed."""

    def __init__(
        self,
        client: Client,
        resource: Resource,
        kind: type[Object],
        sink: Sink,
        wanted: ObjectFilter = every_object,
        scope: WatchScope = EVERYTHING,
        page_size: int = PAGE_SIZE,
        idle_timeout: float = WATCH_IDLE_TIMEOUT,
        absent_recheck: float = ABSENT_RECHECK,
        backoff: Backoff = Backoff(first=0.2, longest=30.0),  # noqa: B008 - frozen
        sleep: Sleep = asyncio.sleep,
        clock: Clock = time.monotonic,
        jitter: Jitter = random.random,
    ) -> None:
        self.resource = resource
        self.kind = kind
        self.known: dict[str, SeenVersion] = {}
        self.version = ""
        """The resource version up to which all events were seen; empty if a list is due."""
        self.synced = asyncio.Event()
        """Set after the first complete list, or once it is known that the kind is not installed."""
        self.installed: bool | None = None
        self.problem = ""
        """Why listing or watching fails at the moment."""
        self.lists = self.watches = self.events = 0
        self._client = client
        self._sink = sink
        self._wanted = wanted
        self.scope = scope
        self._page_size = page_size
        self._idle_timeout = idle_timeout
        self._absent_recheck = absent_recheck
        self._backoff = backoff
        self._sleep = sleep
        self._clock = clock
        self._jitter = jitter
        self._event_decoder = WatchEventDecoder(kind)
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
                pause = self._handle_api_error(error)
            except NoResponse as error:
                pause = self._failed(str(error))
            except ValueError as error:  # if the watch were resumed, the same bytes would come again
                self.version = ""
                pause = self._failed(str(error))
            except Exception as error:
                log.exception("%s: unexpected", self.resource)
                self.version = ""
                pause = self._failed(f"{type(error).__name__}: {error}")
            if pause:
                await self._sleep(pause)

    # -- failures

    def _failed(self, why: str, retry_after: float | None = None) -> float:
        """How long to wait. A watch that breaks now and then is normal; failing twice in a row is worth a warning."""
        self._failures += 1
        if why and (self._failures == 2 or why != self.problem):
            level = logging.INFO if self._failures == 1 else logging.WARNING
            log.log(level, "%s: %s; trying again", self.resource, why)
        self.problem = why
        return self._backoff.pause(self._failures, retry_after)

    def _handle_api_error(self, error: ApiError) -> float:
        if error.status == 404:
            self._not_installed()
            return self._absent_recheck * (0.5 + 0.5 * self._jitter())
        if error.status in (401, 403):
            remedy = "see deploy/ for the permissions that are needed"
            return self._failed(f"not permitted to list and watch it: {error}; {remedy}")
        if error.status == 410:
            self.version = ""
        return self._failed(str(error), error.retry_after)

    def _not_installed(self) -> None:
        """The kind is not installed, or not any more, so there are no such objects."""
        if self.installed is not False:
            log.log(self.absence_level, "%s", absence(self.resource))
        self.installed, self.version, self.problem = False, "", ""
        self._drop_all_but(set())
        self.synced.set()

    def _recovered(self) -> None:
        if self.problem or self.installed is False:
            log.info("%s: recovered", self.resource)
        self.installed, self.problem, self._failures = True, "", 0

    # -- list

    async def _list(self) -> None:
        listed: set[str] = set()
        version = ""
        async for page in list_pages(self._client, self.resource, self.kind, self._page_size, self.scope):
            for decoded in page.objects:
                listed.add(decoded.key)
                self._put(decoded)
            version = page.resource_version
            await self._sink.wait_for_room()
        self._drop_all_but(listed)
        self.version = version
        self.lists += 1
        self._recovered()
        self.synced.set()

    def _drop_all_but(self, listed: set[str]) -> None:
        for key in [key for key in self.known if key not in listed]:
            self._drop(key)

    # -- watch

    async def _watch(self) -> None:
        begun = self._clock()
        before = self.events
        shortest, longest = WATCH_SECONDS
        query: dict[str, str | int] = {
            "watch": "true",
            "fieldSelector": self.scope.field_selector,
            "resourceVersion": self.version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": int(shortest + (longest - shortest) * self._jitter()),
        }
        self.watches += 1
        splitter = LineSplitter()
        path = with_query(self.resource.path(self.scope.namespace), query)
        async with self._client.stream(path, self._idle_timeout) as pieces:
            async for piece in pieces:
                for line in splitter.feed(piece):
                    self._handle(self._event_decoder.decode(line))
                await self._sink.wait_for_room()
        if self.events == before and self._clock() - begun < SHORT_WATCH:
            raise NoResponse("the watch ended at once")

    def _handle(self, event: WatchEvent) -> None:
        type, decoded, status = event
        if type == "ERROR":
            assert status is not None
            if status.code == 410 or status.reason in ("Expired", "Gone"):
                raise Expired(status.message or "the resource version is too old")
            raise ApiError(status.code or 500, status.reason, status.message)
        if type == "DELETED":
            before = self.known.get(decoded.key)
            if before is not None and before.uid == decoded.metadata.uid:
                self._drop(decoded.key)
        elif type != "BOOKMARK":
            self._put(decoded)
        self.version = event.resource_version or self.version
        self.events += 1
        if self._failures:
            self._recovered()

    # -- objects seen

    def _put(self, decoded: DecodedObject) -> None:
        key, metadata = decoded.key, decoded.metadata
        now = SeenVersion(metadata.uid, metadata.resource_version)
        before = self.known.get(key)
        if before == now:
            return
        if before is not None and before.uid != now.uid:
            self._drop(key)
            before = None
        if decoded.error is not None:
            text = ": ".join(part for part in (decoded.error.field, decoded.error.problem) if part)
            self._sink.unusable(
                UnusableObject(self.kind.__name__, metadata.namespace, metadata.name, metadata.uid, text)
            )
        if decoded.object is not None and self._wanted(decoded.object):
            self._sink.put(decoded.object, new=before is None)
        elif before is not None and decoded.error is None:
            self._sink.drop(self._stub(key, before))
        if key:
            self.known[key] = now

    def _drop(self, key: str) -> None:
        self._sink.drop(self._stub(key, self.known.pop(key)))

    def _stub(self, key: str, known: SeenVersion) -> Object:
        namespace, _, name = key.rpartition("/")
        return self.kind(metadata=ObjectMeta(name=name, namespace=namespace, uid=known.uid))
