"""What the processes of scheduler, controllers and admission have in common: signals, election, endpoints."""

from __future__ import annotations

import asyncio
import logging
import math
import os
import signal
import socket
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from stromboli.daemon.common_options import CommonOptions, ElectedOptions
from stromboli.daemon.connection_limits import raise_descriptor_limit
from stromboli.daemon.endpoint_sockets import EndpointSockets
from stromboli.daemon.log_format import about
from stromboli.kube.api_client import Client
from stromboli.kube.cluster_access import Access
from stromboli.kube.election import Election
from stromboli.kube.request import RateLimiter

if TYPE_CHECKING:
    from aiohttp import web

    from stromboli.daemon.endpoints import Status

log = logging.getLogger(__name__)

AnyOptions = TypeVar("AnyOptions", bound=CommonOptions)
AnyElectedOptions = TypeVar("AnyElectedOptions", bound=ElectedOptions)


class DaemonProcess(ABC, Generic[AnyOptions]):
    """A process that runs until a signal."""

    def __init__(self, options: AnyOptions, access: Access) -> None:
        self.options = options
        self._access = access
        self._stopping = asyncio.Event()

    async def run(self) -> int:
        """Until a signal, or until the lease is lost; the exit status."""
        raise_descriptor_limit()
        for note in self.options.notes:
            log.info("%s", note)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)
        async with AsyncExitStack() as stack:
            return await self._run(stack)

    @abstractmethod
    async def _run(self, stack: AsyncExitStack) -> int:
        """Do the work until `_stopping`; what has to be cleaned up goes on the stack."""

    def stop(self) -> None:
        """Finish what is under way and end; a second time, end at once."""
        if self._stopping.is_set():
            log.error("told to stop twice: leaving at once")
            os._exit(1)
        log.info("stopping")
        self._stopping.set()

    async def _unless_stopped(self, work: Coroutine[Any, Any, object]) -> None:
        """Do some work, or cancel it when the process is to stop."""
        working, stopping = asyncio.create_task(work), asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await cancel(stopping)
            await cancel(working)

    async def _open_client(
        self, stack: AsyncExitStack, count: Callable[[str, str], None] = lambda method, status: None
    ) -> Client:
        limiter = RateLimiter(self.options.kube_api_qps, self.options.kube_api_burst)
        return await stack.enter_async_context(Client(self._access, limiter, count=count))

    async def _open_endpoints(self, stack: AsyncExitStack, debugging: bool = False) -> EndpointSockets:
        """Listen without serving yet: whoever connects waits."""
        sockets = EndpointSockets(self.options, debugging)
        stack.callback(sockets.close)
        await sockets.open()
        return sockets

    async def _serve_endpoints(
        self,
        stack: AsyncExitStack,
        status: Status,
        add_routes: Callable[[web.Application], None] | None = None,
        sockets: EndpointSockets | None = None,
    ) -> None:
        from stromboli.daemon.endpoints import Endpoints

        endpoints = Endpoints(self.options, status, add_routes, sockets)
        stack.push_async_callback(endpoints.stop)
        await endpoints.start()
        log.info("serving", extra=about(**endpoints.ports))


class ElectedProcess(DaemonProcess[AnyElectedOptions]):
    """A process that works while it holds the lease, if the options ask for an election."""

    def __init__(self, options: AnyElectedOptions, access: Access) -> None:
        super().__init__(options, access)
        self._identity = f"{socket.gethostname()}_{uuid.uuid4()}"
        self._election: Election | None = None

    def _write_time_left(self) -> float:
        """The seconds for which surely no other replica leads; zero if we must not write."""
        return math.inf if self._election is None else self._election.write_time_left()

    def _join_election(self, lease_client: Client) -> None:
        settings = self.options.lease_settings(self._identity)
        if settings is not None:
            self._election = Election(lease_client, settings, problem=self._problem)

    async def _lead(self, work: Callable[[], Coroutine[Any, Any, int]]) -> int:
        """Acquire the lease, work while it is kept, release it; the exit status."""
        election = self._election
        if election is None:
            return await work()
        lease = f"{election.settings.namespace}/{election.settings.name}"
        log.info("waiting for the lease", extra=about(lease=lease))
        await self._unless_stopped(election.acquire())
        if not election.may_write():
            return self._exit_status()
        renewing = asyncio.create_task(election.renew_until_lost())
        working = asyncio.create_task(work())
        try:
            await asyncio.wait({renewing, working}, return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                return working.result()
            self._lease_lost()
            log.error("the lease is lost: leaving at once")
            return 1
        finally:  # however the work ends, the lease is released, and only after the last write
            working.cancel()
            renewing.cancel()
            await asyncio.gather(working, renewing, return_exceptions=True)
            await election.release()

    def _exit_status(self) -> int:
        """Of a process that is stopped before it leads."""
        return 0

    def _problem(self) -> str:
        """Why another replica should lead: the lease is not renewed then. Empty if all is well."""
        return ""

    def _lease_lost(self) -> None:
        """Called before the work is cancelled."""


async def cancel(task: asyncio.Task[Any]) -> None:
    """Cancel a task and wait for its end."""
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
