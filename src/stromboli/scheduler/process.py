"""The scheduler process: from flags to a replica that runs until it is stopped (spec 05 1.3)."""

from __future__ import annotations

import asyncio
import logging
import math
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
from stromboli.scheduler.cycle_metrics import CycleMetrics
from stromboli.scheduler.debug_endpoints import DebugEndpoints
from stromboli.scheduler.decision_log import leader_event
from stromboli.scheduler.default_queues import NoQueues, ensure_queues
from stromboli.scheduler.introspection import Introspection
from stromboli.scheduler.options import Options
from stromboli.scheduler.replica import Replica, wait_until_synced
from stromboli.scheduler.scheduler_metrics import Metrics

log = logging.getLogger(__name__)

SWITCH_INTERVAL = 0.001
"""Seconds that a cycle holds the GIL while the event loop wants it; the default of 5 ms delays every response."""


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
        sys.setswitchinterval(SWITCH_INTERVAL)
        async with AsyncExitStack() as stack:
            cycle_metrics = CycleMetrics(Metrics())
            client, lease_client = [
                await stack.enter_async_context(self._client(cycle_metrics)) for _ in range(2)
            ]
            identity = f"{socket.gethostname()}_{uuid.uuid4()}"
            settings = self.options.lease_settings(identity)
            election = Election(lease_client, settings) if settings is not None else None
            write_time_left = election.write_time_left if election is not None else lambda: math.inf
            replica = Replica(
                self.options, client, identity, write_time_left, self._catalog, self._policy, cycle_metrics
            )
            introspection = Introspection(self.options, client, replica, election, cycle_metrics.metrics)
            self._handle_signals(replica, introspection)
            level = LogLevel(os.environ, self.options.v)
            stack.push_async_callback(level.stop)
            await level.start()
            debugging = DebugEndpoints(introspection).add_to if self.options.enable_pprof else None
            endpoints = Endpoints(self.options, introspection, debugging)
            stack.push_async_callback(endpoints.stop)
            await endpoints.start()
            log.info("serving", extra=about(**endpoints.ports))
            await stack.enter_async_context(replica)
            ending = asyncio.create_task(self._stop_with(replica))
            stack.callback(ending.cancel)
            if election is None:
                return await self._lead(replica, client, None)
            return await self._elected(replica, client, election)

    def _client(self, cycle_metrics: CycleMetrics) -> Client:
        limiter = RateLimiter(self.options.kube_api_qps, self.options.kube_api_burst)
        host = self._access.server.partition("://")[2]
        return CountingClient(self._access, limiter, partial(cycle_metrics.request_sent, host))

    async def _stop_with(self, replica: Replica) -> None:
        """Stop the process when the cycle thread or the watches crashed, also while on standby."""
        await replica.thread.ended.wait()
        self._stopping.set()

    # -- leading

    async def _elected(self, replica: Replica, client: Client, election: Election) -> int:
        """Acquire the lease, lead, and release it."""
        log.info(
            "waiting for the lease",
            extra=about(lease=f"{election.settings.namespace}/{election.settings.name}"),
        )
        async with self._until_stopped():
            await election.acquire()
        if not election.may_write():
            return replica.status
        renewing = asyncio.create_task(election.renew_until_lost())
        leading = asyncio.create_task(self._lead(replica, client, election))
        try:
            await asyncio.wait({renewing, leading}, return_when=asyncio.FIRST_COMPLETED)
            if not leading.done():
                replica.stop()
                log.error("the lease is lost: leaving at once")
                return 1
            return leading.result()
        finally:
            for task in (leading, renewing):
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
            await election.release()

    async def _lead(self, replica: Replica, client: Client, election: Election | None) -> int:
        """Lead once the default queues exist and the mirror is in sync."""
        try:
            async with self._until_stopped():
                await ensure_queues(client, self.options.default_queue)
                await wait_until_synced(replica.mirror, self.options.resource_sync_timeout)
        except NoQueues as error:
            log.error("%s", error)
            return 1
        if self._stopping.is_set():
            return replica.status
        return await replica.lead([leader_event(election)] if election is not None else [])

    # -- signals

    def _handle_signals(self, replica: Replica, introspection: Introspection) -> None:
        def stop() -> None:
            """Finish writes in flight and end; a second signal ends at once."""
            if self._stopping.is_set():
                log.error("told to stop twice: leaving at once")
                os._exit(1)
            log.info("stopping")
            self._stopping.set()
            introspection.stopping = True
            replica.stop()

        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop)
        if self.options.cache_dumper:
            for number in (signal.SIGUSR1, signal.SIGUSR2):
                loop.add_signal_handler(number, introspection.dump_soon)

    def _until_stopped(self) -> UntilStopped:
        return UntilStopped(self._stopping)
