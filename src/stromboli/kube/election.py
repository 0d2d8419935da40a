"""Leader election on a Lease: one of several schedulers writes, the others wait.

Safe hand-over: a leader that could not renew within the deadline stops writing (`may_write`) well before anybody else
may take the lease, by clocks that nobody can set. Others go by how long they themselves have seen no change, never by
the times in the lease, so clocks that differ do no harm.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import msgspec

from stromboli.kube.request import Api, ApiError, NoResponse, Request
from stromboli.kube.timestamps import micro_time

log = logging.getLogger(__name__)

JITTER = 1.2
"""The lease must outlast the deadline, and the deadline several tries, by this factor."""


@dataclass(frozen=True, slots=True)
class Terms:
    """Which lease, who we are, and how patient everybody is."""

    namespace: str
    name: str
    identity: str
    duration: float = 15.0
    deadline: float = 10.0
    retry: float = 2.0

    def problem(self) -> str | None:
        """Why these terms make no sense, if they do not."""
        if min(self.duration, self.deadline, self.retry) <= 0:
            return "leader election: lease duration, renew deadline and retry period must be positive"
        if self.duration <= self.deadline:
            return "leader election: the lease duration must be longer than the renew deadline"
        if self.deadline <= JITTER * self.retry:
            return f"leader election: the renew deadline must be longer than {JITTER} times the retry period"
        if not self.name or not self.namespace:
            return "leader election: the lease needs a name and a namespace"
        return None


class _Meta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    uid: str = ""


class _Spec(msgspec.Struct, rename="camel"):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class Lease(msgspec.Struct, rename="camel"):
    """A lease as it stands on the API server."""

    metadata: _Meta = msgspec.field(default_factory=_Meta)
    spec: _Spec = msgspec.field(default_factory=_Spec)


class Election:
    """One candidate."""

    def __init__(
        self,
        api: Api,
        terms: Terms,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ):
        self.terms = terms
        self.leader = ""
        """Who leads, as far as we know."""
        self.uid = ""
        """The lease's, once it is known."""
        self._api = api
        self._clock = clock
        self._wall = wall
        self._sleep = sleep
        self._lease: Lease | None = None
        self._seen: tuple[str, float] = ("", 0.0)
        """The version of the lease that we saw last, and when we first saw it."""
        self._renewed: float | None = None
        """When the request was sent with which we last got or kept the lease; None unless we lead."""

    def may_write(self) -> bool:
        """Whether we lead, and surely nobody else does by now."""
        return self._renewed is not None and self._clock() < self._renewed + self.terms.deadline

    async def win(self) -> None:
        """Wait until we lead."""
        while not await self._attempt():
            await self._sleep(self.terms.retry)
        log.info("became leader: lease %s/%s", self.terms.namespace, self.terms.name)

    async def keep(self) -> None:
        """Renew the lease as long as that goes well; returns when it is lost."""
        while self.may_write():
            await self._sleep(self.terms.retry)
            if self._renewed is None or not self.may_write():
                break
            if not await self._attempt() and self._lease_is_anothers():
                break
        self._renewed = None
        why = f"to {self.leader}" if self._lease_is_anothers() else "as it was not renewed in time"
        log.error("lost the lease %s/%s %s", self.terms.namespace, self.terms.name, why)

    async def resign(self) -> None:
        """Let the next one lead at once. Only after the last write."""
        leading, self._renewed = self.may_write(), None
        if not leading or self._lease is None:
            return
        spec = msgspec.structs.replace(self._lease.spec, holder_identity="", lease_duration_seconds=1)
        try:
            await self._put(self._lease, spec)
        except (ApiError, NoResponse) as error:
            log.warning("the lease could not be handed back: %s", error)

    # -- one attempt

    async def _attempt(self) -> bool:
        """Get or renew the lease; False if another holds it, the API server is out of reach, or it came too late."""
        led, began = self._renewed is not None, self._clock()
        try:
            self._lease = await self._read_or_create()
            if self._free(self._lease):
                self._lease = await self._put(self._lease, self._ours(self._lease.spec))
        except (ApiError, NoResponse, msgspec.MsgspecError) as error:
            if not (isinstance(error, ApiError) and error.status in (404, 409)):
                log.warning("lease %s/%s: %s", self.terms.namespace, self.terms.name, error)
            return False
        self.uid = self._lease.metadata.uid
        self.leader = self._lease.spec.holder_identity or ""
        if self.leader != self.terms.identity or (led and not self.may_write()):
            return False  # whoever was once told not to write is not told otherwise: what it left out is lost
        self._renewed = began
        return True

    async def _read_or_create(self) -> Lease:
        try:
            lease = _lease(await self._ask(Request("GET", self._path)))
        except ApiError as error:
            if error.status != 404:
                raise
            body = self._body({}, self._ours(_Spec()))
            folder = self._path.rpartition("/")[0]
            lease = _lease(await self._ask(Request("POST", folder, body)))
        self._see(lease)
        return lease

    def _see(self, lease: Lease) -> None:
        if lease.metadata.resource_version != self._seen[0]:
            self._seen = (lease.metadata.resource_version, self._clock())

    def _free(self, lease: Lease) -> bool:
        """Ours to renew, nobody's, or not renewed for its whole duration while we watched."""
        holder = lease.spec.holder_identity
        if not holder or holder == self.terms.identity:
            return True
        duration = max(lease.spec.lease_duration_seconds or 0, self.terms.duration)
        return self._clock() >= self._seen[1] + duration

    def _lease_is_anothers(self) -> bool:
        return self.leader not in ("", self.terms.identity)

    def _ours(self, spec: _Spec) -> _Spec:
        now = micro_time(self._wall())
        same = spec.holder_identity == self.terms.identity
        return _Spec(
            holder_identity=self.terms.identity,
            lease_duration_seconds=max(int(self.terms.duration), 1),
            acquire_time=spec.acquire_time if same else now,
            renew_time=now,
            lease_transitions=(spec.lease_transitions or 0) + (not same and spec.holder_identity is not None),
        )

    async def _put(self, lease: Lease, spec: _Spec) -> Lease:
        """Replace the lease, unless somebody else did since it was read."""
        body = self._body({"resourceVersion": lease.metadata.resource_version}, spec)
        written = _lease(await self._ask(Request("PUT", self._path, body)))
        self._see(written)
        return written

    async def _ask(self, request: Request) -> bytes:
        return await self._api.ask(request, max(self.terms.deadline / 2, 1.0))

    def _body(self, metadata: dict[str, Any], spec: _Spec) -> bytes:
        named = {"namespace": self.terms.namespace, "name": self.terms.name, **metadata}
        return msgspec.json.encode(
            {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": named, "spec": spec}
        )

    @property
    def _path(self) -> str:
        namespace, name = quote(self.terms.namespace, safe=""), quote(self.terms.name, safe="")
        return f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}"


def _lease(answer: bytes) -> Lease:
    return msgspec.json.decode(answer, type=Lease)
