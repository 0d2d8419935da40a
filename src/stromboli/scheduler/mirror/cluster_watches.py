"""The watches of a cluster: a reflector per kind, on the event loop.

They need neither the model nor the engine, so a process may start them before it has imported those.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from types import MappingProxyType

from stromboli.api.types.meta import Object
from stromboli.api.types.native_group import NativePodGroup
from stromboli.api.types.node import Node
from stromboli.api.types.pod import Pod
from stromboli.api.types.scheduling import PodGroup, Queue
from stromboli.daemon.log_format import about
from stromboli.kube.api_client import Client
from stromboli.kube.api_resources import RESOURCES, in_offered_version
from stromboli.kube.reflector import EVERYTHING, Expired, Reflector, WatchScope
from stromboli.kube.request import ApiError
from stromboli.kube.watch_decoding import DecodedObject
from stromboli.scheduler.thread_seam import ThreadSeam

log = logging.getLogger(__name__)

ESSENTIAL = (Pod, Node, PodGroup, Queue)
NO_SCOPES: Mapping[type[Object], WatchScope] = MappingProxyType({})


class NativeGroupReflector(Reflector):
    """Finds the offered version first; most servers offer none."""

    absence_level = logging.INFO

    async def _list(self) -> None:
        resource = await in_offered_version(self._client, self.resource)
        if resource is None:
            raise ApiError(404, "NotFound", "no version of it is offered")
        self.resource = resource
        await super()._list()

    async def _watch(self) -> None:
        try:
            await super()._watch()
        except ApiError as error:
            if error.status != 404:
                raise
            raise Expired("it is not offered in this version any more") from None

    def _put(self, decoded: DecodedObject) -> None:
        """Objects in a list do not carry their apiVersion."""
        if isinstance(decoded.object, NativePodGroup):
            decoded.object.api_version = self.resource.api_version
        super()._put(decoded)


class ClusterWatches:
    """Lists and watches kinds, and leaves what changed at a seam to the cycle's thread."""

    def __init__(
        self,
        client: Client,
        kinds: Iterable[type[Object]] = RESOURCES,
        seam: ThreadSeam | None = None,
        wanted: Callable[[Object], bool] = lambda _: True,
        reflector: Callable[..., Reflector] = Reflector,
        native_reflector: Callable[..., Reflector] = NativeGroupReflector,
    ) -> None:
        """`wanted` filters objects. More kinds may be added later."""
        self.client = client
        self.seam = seam if seam is not None else ThreadSeam()
        self.wanted = wanted
        self.reflectors: tuple[Reflector, ...] = ()
        self.running: asyncio.Task[None] | None = None
        """Ends when a reflector crashes."""
        self._group: asyncio.TaskGroup | None = None
        self._make_reflector = reflector
        self._make_native_reflector = native_reflector
        self.add(kinds)

    def add(
        self, kinds: Iterable[type[Object]], scopes: Mapping[type[Object], WatchScope] = NO_SCOPES
    ) -> None:
        """Watch these kinds as well; `scopes` says of which of them only some objects."""
        watched = {reflector.kind for reflector in self.reflectors}
        new = tuple(self._reflector(kind, scopes) for kind in kinds if kind not in watched)
        self.reflectors += new
        for reflector in new:
            self._start(reflector)

    def _reflector(self, kind: type[Object], scopes: Mapping[type[Object], WatchScope]) -> Reflector:
        make = self._make_native_reflector if kind is NativePodGroup else self._make_reflector
        scope = scopes.get(kind, EVERYTHING)
        return make(self.client, RESOURCES[kind], kind, self.seam.changes, wanted=self.wanted, scope=scope)

    def _start(self, reflector: Reflector) -> None:
        if self._group is not None:
            self._group.create_task(reflector.run(), name=f"watch {reflector.resource.plural}")

    async def __aenter__(self) -> ClusterWatches:
        """Watch until the block ends."""
        if self.running is None:
            self.running = asyncio.create_task(self._run(), name="watches")
        return self

    async def __aexit__(self, *_: object) -> None:
        running, self.running, self._group = self.running, None, None
        if running is not None:
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running

    async def _run(self) -> None:
        async with asyncio.TaskGroup() as self._group:
            for reflector in self.reflectors:
                self._start(reflector)
            await asyncio.Event().wait()  # kinds may be added later

    # -- the first lists

    async def synced(self) -> None:
        """Wait for the first list of every kind; the objects are in the model after the next sync."""
        for reflector in self.reflectors:
            await reflector.synced.wait()

    @property
    def _waiting(self) -> list[Reflector]:
        return [reflector for reflector in self.reflectors if not reflector.synced.is_set()]

    @property
    def loading(self) -> bool:
        """Whether only pods are still being listed: what they refer to is there."""
        return [waiting.kind for waiting in self._waiting] == [Pod]

    @property
    def unsynced(self) -> list[str]:
        """The kinds that were not listed yet, each with the reason."""
        return [f"{waiting.resource}: {waiting.problem or 'being listed'}" for waiting in self._waiting]

    @property
    def missing_essentials(self) -> list[str]:
        """Those of them without which no decision would be sound."""
        return [waiting.resource.plural for waiting in self._waiting if waiting.kind in ESSENTIAL]


async def wait_until_synced(watches: ClusterWatches, timeout: float) -> None:
    """Wait for the first lists: `timeout` seconds, but for ever for the kinds that decisions need."""
    begin = time.monotonic()
    while timeout > 0:
        try:
            await asyncio.wait_for(watches.synced(), timeout)
            break
        except TimeoutError:
            left = "; ".join(watches.unsynced)
            if not watches.missing_essentials:
                log.warning("not everything was listed within %gs: going on without: %s", timeout, left)
                break
            log.error("not scheduling before these can be listed and watched: %s", left)
    log.info("in step with the API server", extra=about(seconds=round(time.monotonic() - begin, 3)))
