"""`stromboli scheduler`: a replica in a process, with leader election, endpoints and signals (spec 05 1.3)."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from contextlib import AsyncExitStack
from functools import partial

from stromboli.daemon.delegated_authorization import DelegatedAuthorization
from stromboli.daemon.log_level_socket import LogLevel
from stromboli.daemon.process_shell import ElectedProcess
from stromboli.engine.catalog import Catalog
from stromboli.kube.api_client import Client
from stromboli.kube.cluster_access import Access
from stromboli.policy.policy import Policy
from stromboli.policy.policy_file import PolicyFile
from stromboli.scheduler.cycle_metrics import CycleMetrics
from stromboli.scheduler.debug_endpoints import add_debug_routes
from stromboli.scheduler.decision_log import leader_event
from stromboli.scheduler.default_queues import NoQueues, ensure_queues
from stromboli.scheduler.introspection import Introspection
from stromboli.scheduler.options import Options
from stromboli.scheduler.replica import Replica, wait_until_synced
from stromboli.scheduler.scheduler_metrics import Metrics

log = logging.getLogger(__name__)

SWITCH_INTERVAL = 0.001
"""Seconds that a cycle holds the GIL while the event loop wants it; the default of 5 ms delays every response."""


class Process(ElectedProcess[Options]):
    """Runs a replica, which schedules while it leads."""

    def __init__(self, options: Options, access: Access, catalog: Catalog, policy: Policy | PolicyFile):
        super().__init__(options, access)
        self._catalog = catalog
        self._policy = policy
        self._replica: Replica | None = None
        self._introspection: Introspection | None = None

    async def _run(self, stack: AsyncExitStack) -> int:
        sys.setswitchinterval(SWITCH_INTERVAL)
        options, cycle_metrics = self.options, CycleMetrics(Metrics())
        count = partial(cycle_metrics.request_sent, self._access.server.partition("://")[2])
        client, lease_client = [await self._open_client(stack, count) for _ in range(2)]
        self._join_election(lease_client)
        replica = self._replica = Replica(
            options, client, self._identity, self._write_time_left, self._catalog, self._policy, cycle_metrics
        )
        introspection = self._introspection = Introspection(
            options, client, replica, self._election, cycle_metrics.metrics
        )
        if options.cache_dumper:
            for number in (signal.SIGUSR1, signal.SIGUSR2):
                asyncio.get_running_loop().add_signal_handler(number, introspection.dump_soon)
        level = LogLevel(os.environ, options.v)
        stack.push_async_callback(level.stop)
        await level.start()
        debugging = partial(add_debug_routes, introspection, DelegatedAuthorization(client))
        await self._serve_endpoints(stack, introspection, debugging if options.enable_pprof else None)
        await stack.enter_async_context(replica)
        ending = asyncio.create_task(self._stop_with(replica))
        stack.callback(ending.cancel)
        return await self._lead(partial(self._schedule, replica, client))

    async def _stop_with(self, replica: Replica) -> None:
        """Stop the process when the cycle thread or the watches crashed, also while on standby."""
        await replica.thread.ended.wait()
        self._stopping.set()

    async def _schedule(self, replica: Replica, client: Client) -> int:
        """Lead once the default queues exist and the mirror is in sync."""
        try:
            await self._unless_stopped(self._prepare(replica, client))
        except NoQueues as error:
            log.error("%s", error)
            return 1
        if self._stopping.is_set():
            return replica.status
        return await replica.lead([leader_event(self._election)] if self._election is not None else [])

    async def _prepare(self, replica: Replica, client: Client) -> None:
        await ensure_queues(client, self.options.default_queue)
        await wait_until_synced(replica.mirror, self.options.resource_sync_timeout)

    # -- stopping

    def stop(self) -> None:
        super().stop()
        if self._replica is not None and self._introspection is not None:
            self._introspection.stopping = True
            self._replica.stop()

    def _exit_status(self) -> int:
        return self._replica.status if self._replica is not None else 0

    def _problem(self) -> str:
        return self._replica.thread.problem if self._replica is not None else ""

    def _lease_lost(self) -> None:
        if self._replica is not None:
            self._replica.stop()
