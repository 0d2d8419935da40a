"""The process: from flags to a scheduler that runs until somebody says stop (spec 05 1.3)."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
import uuid
from contextlib import AsyncExitStack, suppress
from functools import partial

from stromboli.daemon.endpoints import Endpoints
from stromboli.daemon.log_format import about
from stromboli.daemon.log_level_socket import LogLevel
from stromboli.daemon.shutdown import UntilStopped
from stromboli.engine.catalog import Catalog
from stromboli.kube.api_client import Client
from stromboli.kube.cluster_access import Access
from stromboli.kube.counting_client import CountingClient
from stromboli.kube.election import Election
from stromboli.kube.rate_limits import RateLimiter
from stromboli.policy.policy import Policy
from stromboli.policy.policy_file import PolicyFile
from stromboli.scheduler.cycle_metrics import Measuring
from stromboli.scheduler.debug_endpoints import Debugging
from stromboli.scheduler.decision_log import became_leader
from stromboli.scheduler.default_queues import NoQueues, ensure_queues
from stromboli.scheduler.introspection import Showing
from stromboli.scheduler.options import Options
from stromboli.scheduler.replica import Duty, in_step
from stromboli.scheduler.scheduler_metrics import Metrics

log = logging.getLogger(__name__)

SWITCH = 0.001
"""How long a cycle keeps Python's lock while the event loop wants it; the usual 5 ms cost every answer that much."""


class Process:
    """One scheduler, from start to end."""

    def __init__(self, options: Options, access: Access, catalog: Catalog, policy: Policy | PolicyFile):
        self.options = options
        self._access = access
        self._catalog = catalog
        self._policy = policy
        self._stopping = asyncio.Event()

    async def run(self) -> int:
        """Until a signal, or until the lease is lost; the exit status."""
        for note in self.options.notes:
            log.info("%s", note)
        sys.setswitchinterval(SWITCH)
        async with AsyncExitStack() as stack:
            measuring = Measuring(Metrics())
            client, lease_client = [
                await stack.enter_async_context(self._client(measuring)) for _ in range(2)
            ]
            identity = f"{socket.gethostname()}_{uuid.uuid4()}"
            terms = self.options.terms(identity)
            election = Election(lease_client, terms) if terms is not None else None
            may_write = election.may_write if election is not None else lambda: True
            duty = Duty(self.options, client, identity, may_write, self._catalog, self._policy, measuring)
            showing = Showing(self.options, client, duty, election, measuring.metrics)
            self._listen_to_signals(duty, showing)
            level = LogLevel(os.environ, self.options.v)
            stack.push_async_callback(level.stop)
            await level.start()
            debugging = Debugging(showing).add_to if self.options.enable_pprof else None
            endpoints = Endpoints(self.options, showing, debugging)
            stack.push_async_callback(endpoints.stop)
            await endpoints.start()
            log.info("serving", extra=about(**endpoints.ports))
            await stack.enter_async_context(duty)
            ending = asyncio.create_task(self._end_with(duty))
            stack.callback(ending.cancel)
            if election is None:
                return await self._lead(duty, client, None)
            return await self._elected(duty, client, election)

    def _client(self, measuring: Measuring) -> Client:
        limiter = RateLimiter(self.options.kube_api_qps, self.options.kube_api_burst)
        host = self._access.server.partition("://")[2]
        return CountingClient(self._access, limiter, partial(measuring.asked, host))

    async def _end_with(self, duty: Duty) -> None:
        """A replica whose loop or watches broke down ends, also while it stands by."""
        await duty.loop.ended.wait()
        self._stopping.set()

    # -- leading

    async def _elected(self, duty: Duty, client: Client, election: Election) -> int:
        """Wait for our turn, lead, and step down."""
        log.info(
            "waiting for the lease",
            extra=about(lease=f"{election.settings.namespace}/{election.settings.name}"),
        )
        async with self._until_stopped():
            await election.acquire()
        if not election.may_write():
            return duty.status
        keeping = asyncio.create_task(election.renew_until_lost())
        leading = asyncio.create_task(self._lead(duty, client, election))
        try:
            await asyncio.wait({keeping, leading}, return_when=asyncio.FIRST_COMPLETED)
            if not leading.done():
                duty.stop()
                log.error("the lease is lost: leaving at once")
                return 1
            return leading.result()
        finally:
            for task in (leading, keeping):
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
            await election.release()

    async def _lead(self, duty: Duty, client: Client, election: Election | None) -> int:
        """See that there are queues, and that nothing is decided blindly."""
        try:
            async with self._until_stopped():
                await ensure_queues(client, self.options.default_queue)
                await in_step(duty.mirror, self.options.resource_sync_timeout)
        except NoQueues as error:
            log.error("%s", error)
            return 1
        if self._stopping.is_set():
            return duty.status
        return await duty.lead([became_leader(election)] if election is not None else [])

    # -- signals

    def _listen_to_signals(self, duty: Duty, showing: Showing) -> None:
        def stop() -> None:
            """Finish what is under way and end; a second time, end at once."""
            if self._stopping.is_set():
                log.error("told to stop twice: leaving at once")
                os._exit(1)
            log.info("stopping")
            self._stopping.set()
            showing.stopping = True
            duty.stop()

        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop)
        if self.options.cache_dumper:
            for number in (signal.SIGUSR1, signal.SIGUSR2):
                loop.add_signal_handler(number, showing.dump_soon)

    def _until_stopped(self) -> UntilStopped:
        return UntilStopped(self._stopping)
