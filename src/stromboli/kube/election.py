"""Leader election on a Lease: one of several replicas writes, the others wait.

A leader that could not renew the lease within the renew deadline stops writing (`may_write`) well before another
replica may take the lease, and its last requests time out by then (`write_time_left`). Both sides measure with
monotonic clocks how long they saw no change; the times written in the lease are never compared.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from stromboli.api.go_scalars import micro_time
from stromboli.kube.api_resources import LEASES
from stromboli.kube.request import Api, ApiError, NoResponse, Request

log = logging.getLogger(__name__)

JITTER = 1.2
"""The renew deadline must be longer than the retry period by this factor."""


@dataclass(frozen=True, slots=True)
class LeaseSettings:
    """Which lease, our identity, and the durations of the election."""

    namespace: str
    name: str
    identity: str
    duration: float = 15.0
    deadline: float = 10.0
    retry: float = 2.0

    def problem(self) -> str | None:
        """Why these settings are refused, if they are."""
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
    """The fields of a Lease that we use."""

    metadata: _Meta = msgspec.field(default_factory=_Meta)
    spec: _Spec = msgspec.field(default_factory=_Spec)


class Election:
    """The part of one replica in the election."""

    def __init__(
        self,
        api: Api,
        settings: LeaseSettings,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        problem: Callable[[], str] = lambda: "",
    ):
        """`problem`: why another replica should lead; empty as long as this one works."""
        self.settings = settings
        self.leader = ""
        """Identity of the leader, as last read."""
        self.uid = ""
        """The lease's, once it was read."""
        self._api = api
        self._clock = clock
        self._wall = wall
        self._sleep = sleep
        self._problem = problem
        self._lease: Lease | None = None
        self._observed: tuple[str, float] = ("", 0.0)
        """The lease's resource version last observed, and when it was first observed."""
        self._renewed: float | None = None
        """When the request was sent that last acquired or renewed the lease; None unless we lead."""

    def may_write(self) -> bool:
        """Whether we lead, and no other replica can be leading yet."""
        return self._renewed is not None and self._clock() < self._renewed + self.settings.deadline

    def write_time_left(self) -> float:
        """Seconds until another replica may lead, within which a write must end; zero if we must not write."""
        if self._renewed is None or not self.may_write():
            return 0.0
        return self._renewed + self.settings.duration - self._clock()

    async def acquire(self) -> None:
        """Wait until we lead."""
        while not await self._try_acquire_or_renew():
            await self._sleep(self.settings.retry)
        log.info("became leader: lease %s/%s", self.settings.namespace, self.settings.name)

    async def renew_until_lost(self) -> None:
        """Renew the lease until that fails or there is a `problem`."""
        problem = ""
        while self.may_write():
            await self._sleep(self.settings.retry)
            problem = self._problem()
            if self._renewed is None or not self.may_write() or problem:
                break
            if not await self._try_acquire_or_renew() and self._is_held_by_another():
                break
        self._renewed = None
        if problem:
            why = f"as it is no longer renewed: {problem}"
        else:
            why = f"to {self.leader}" if self._is_held_by_another() else "as it was not renewed in time"
        log.error("lost the lease %s/%s %s", self.settings.namespace, self.settings.name, why)

    async def release(self) -> None:
        """Release the lease, so that another replica can lead at once. Call it after the last write."""
        led, self._renewed = self.may_write(), None
        if not led or self._lease is None:
            return
        spec = msgspec.structs.replace(self._lease.spec, holder_identity="", lease_duration_seconds=1)
        try:
            await self._put(self._lease, spec)
        except (ApiError, NoResponse) as error:
            log.warning("the lease could not be released: %s", error)

    # -- one attempt

    async def _try_acquire_or_renew(self) -> bool:
        """False if another replica holds the lease, a request failed, or the renewal came too late."""
        led, began = self._renewed is not None, self._clock()
        try:
            self._lease = await self._read_or_create()
            if self._is_available(self._lease):
                self._lease = await self._put(self._lease, self._own_spec(self._lease.spec))
        except (ApiError, NoResponse, msgspec.MsgspecError) as error:
            if not (isinstance(error, ApiError) and error.status in (404, 409)):
                log.warning("lease %s/%s: %s", self.settings.namespace, self.settings.name, error)
            return False
        self.uid = self._lease.metadata.uid
        self.leader = self._lease.spec.holder_identity or ""
        if self.leader != self.settings.identity or (led and not self.may_write()):
            return False  # once `may_write` was false it stays so: writes were left out meanwhile
        self._renewed = began
        return True

    async def _read_or_create(self) -> Lease:
        try:
            return await self._send(Request("GET", self._path))
        except ApiError as error:
            if error.status != 404:
                raise
        body = self._body({}, self._own_spec(_Spec()))
        return await self._send(Request("POST", self._path.rpartition("/")[0], body))

    def _is_available(self, lease: Lease) -> bool:
        """Whether the lease is ours or free, or was not renewed for its whole duration while we observed it."""
        holder = lease.spec.holder_identity
        if not holder or holder == self.settings.identity:
            return True
        duration = max(lease.spec.lease_duration_seconds or 0, self.settings.duration)
        return self._clock() >= self._observed[1] + duration

    def _is_held_by_another(self) -> bool:
        return self.leader not in ("", self.settings.identity)

    def _own_spec(self, spec: _Spec) -> _Spec:
        now = micro_time(self._wall())
        same = spec.holder_identity == self.settings.identity
        return _Spec(
            holder_identity=self.settings.identity,
            lease_duration_seconds=max(int(self.settings.duration), 1),
            acquire_time=spec.acquire_time if same else now,
            renew_time=now,
            lease_transitions=(spec.lease_transitions or 0) + (not same and spec.holder_identity is not None),
        )

    async def _put(self, lease: Lease, spec: _Spec) -> Lease:
        """Update the lease; fails with a conflict if it was changed since it was read."""
        body = self._body({"resourceVersion": lease.metadata.resource_version}, spec)
        return await self._send(Request("PUT", self._path, body))

    async def _send(self, request: Request) -> Lease:
        body = await self._api.send(request, max(self.settings.deadline / 2, 1.0))
        lease = msgspec.json.decode(body, type=Lease)
        if lease.metadata.resource_version != self._observed[0]:
            self._observed = (lease.metadata.resource_version, self._clock())
        return lease

    def _body(self, metadata: dict[str, Any], spec: _Spec) -> bytes:
        full_metadata = {"namespace": self.settings.namespace, "name": self.settings.name, **metadata}
        return msgspec.json.encode(
            {"apiVersion": LEASES.api_version, "kind": LEASES.kind, "metadata": full_metadata, "spec": spec}
        )

    @property
    def _path(self) -> str:
        return LEASES.path(self.settings.namespace, self.settings.name)
