"""`stromboli scheduler`: a replica in a process, with leader election, endpoints and signals (spec 05 1.3).

Slow parts of the start run at the same time. First the watches ask the API server for all objects, which needs
few imports. While it answers, a thread imports the engine and the plugins and reads the policy. Health and metrics are
served once the first decisions are on their way, or after `SERVE_AFTER` seconds; their sockets are open from the start.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import traceback
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING

from stromboli.daemon.endpoint_sockets import EndpointSockets
from stromboli.daemon.memory_management import collect_rarely
from stromboli.daemon.process_shell import ElectedProcess, cancel
from stromboli.kube.api_client import Client
from stromboli.kube.cluster_access import Access
from stromboli.scheduler.mirror.cluster_watches import ClusterWatches, watch_cluster
from stromboli.scheduler.options import Options
from stromboli.scheduler.thread_seam import Unavailable

if TYPE_CHECKING:
    from aiohttp import web

    from stromboli.daemon.delegated_authorization import DelegatedAuthorization
    from stromboli.engine.catalog import Catalog
    from stromboli.policy.policy import Policy
    from stromboli.policy.policy_file import PolicyFile
    from stromboli.scheduler.introspection import Introspection
    from stromboli.scheduler.replica import Replica
    from stromboli.scheduler.scheduler_metrics import SchedulerMetrics

    PolicySource = Callable[[], tuple[Catalog, Policy | PolicyFile]]


log = logging.getLogger(__name__)

SWITCH_INTERVAL = 0.001
"""Seconds that a cycle holds the GIL while the event loop wants it; the default of 5 ms delays every response."""
SERVE_AFTER = 2.0
"""Seconds after which endpoints are served, whether or not a first cycle has come to its end."""


class Process(ElectedProcess[Options]):
    """Runs a replica, which schedules while it leads."""

    def __init__(self, options: Options, access: Access, load_policy: PolicySource):
        """`load_policy` is called in a thread of its own."""
        super().__init__(options, access)
        self._load_policy = load_policy
        self._replica: Replica | None = None
        self._introspection: Introspection | None = None
        self._metrics: SchedulerMetrics | None = None
        self._uncounted: list[tuple[str, str]] = []
        """Method and status of requests that were sent before there were metrics."""

    async def _run(self, stack: AsyncExitStack) -> int:
        collect_rarely()
        options = self.options
        sockets = await self._open_endpoints(stack, debugging=self._has_routes)
        client, lease_client = [await self._open_client(stack, self._count) for _ in range(2)]
        watches = await stack.enter_async_context(watch_cluster(options, client))
        self._join_election(lease_client)
        replica = await self._make_replica(client, watches)
        sys.setswitchinterval(SWITCH_INTERVAL)
        await stack.enter_async_context(replica)
        serving = asyncio.create_task(self._serve_soon(stack, replica, client, sockets))
        stack.push_async_callback(cancel, serving)
        ending = asyncio.create_task(self._stop_with(replica))
        stack.callback(ending.cancel)
        return await self._lead(partial(self._schedule, replica))

    async def _make_replica(self, client: Client, watches: ClusterWatches) -> Replica:
        """Import the engine and read the policy beside the watches, which have begun."""
        catalog, policy = await asyncio.to_thread(self._load)
        from stromboli.scheduler.introspection import Introspection
        from stromboli.scheduler.replica import Replica
        from stromboli.scheduler.scheduler_metrics import SchedulerMetrics

        metrics = self._metrics = SchedulerMetrics()
        for method, status in self._uncounted:
            self._count(method, status)
        replica = self._replica = Replica(
            self.options, client, self._identity, self._write_time_left, catalog, policy, metrics, watches
        )
        introspection = self._introspection = Introspection(
            self.options, client, replica, self._election, metrics
        )
        if self.options.cache_dumper:
            for number in (signal.SIGUSR1, signal.SIGUSR2):
                asyncio.get_running_loop().add_signal_handler(number, introspection.dump_soon)
        return replica

    def _load(self) -> tuple[Catalog, Policy | PolicyFile]:
        """In a thread of its own."""
        from stromboli.scheduler import introspection, replica  # noqa: F401 - imported here

        return self._load_policy()

    def _count(self, method: str, status: str) -> None:
        if self._metrics is None:
            self._uncounted.append((method, status))
        else:
            self._metrics.request_sent(self._access.server.partition("://")[2], method, status)

    async def _serve_soon(
        self, stack: AsyncExitStack, replica: Replica, client: Client, sockets: EndpointSockets
    ) -> None:
        """Serve health, metrics and debugging, which take long to import, after the first decisions."""
        with suppress(TimeoutError):
            await asyncio.wait_for(replica.thread.decided.wait(), SERVE_AFTER)
        try:
            await asyncio.to_thread(_import_endpoints)
            await self._serve(stack, client, sockets)
        except Exception:
            log.exception("health and metrics cannot be served")

    async def _serve(self, stack: AsyncExitStack, client: Client, sockets: EndpointSockets) -> None:
        from stromboli.daemon.delegated_authorization import DelegatedAuthorization
        from stromboli.daemon.log_level_socket import LogLevel
        from stromboli.scheduler.explain.explain_endpoint import PERMISSIONS, ExplainEndpoint

        introspection = self._introspection
        assert introspection is not None
        level = LogLevel(os.environ, self.options.v)
        stack.push_async_callback(level.stop)
        await level.start()

        def add_routes(app: web.Application) -> None:
            if self.options.enable_pprof:
                add_debug_routes(introspection, DelegatedAuthorization(client), app)
            replica = self._replica
            if replica is not None and replica.explanations is not None and replica.record is not None:
                authorization = DelegatedAuthorization(client, rights=PERMISSIONS)
                ExplainEndpoint(
                    replica.explanations,
                    replica.record,
                    authorization,
                    introspection.standing_by,
                    self._identity,
                    introspection.guard,
                ).add_routes(app)

        await self._serve_endpoints(stack, introspection, add_routes if self._has_routes else None, sockets)

    @property
    def _has_routes(self) -> bool:
        """Whether there are routes beside the metrics."""
        return self.options.enable_pprof or self.options.enable_explain

    async def _stop_with(self, replica: Replica) -> None:
        """Stop the process when the cycle thread or the watches crashed, also while on standby."""
        await replica.thread.ended.wait()
        self._stopping.set()

    async def _schedule(self, replica: Replica) -> int:
        """Lead once the default queues exist and the mirror is in sync."""
        from stromboli.scheduler.replica import NoQueues

        try:
            await self._unless_stopped(replica.prepare())
        except NoQueues as error:
            log.error("%s", error)
            return 1
        if self._stopping.is_set():
            return replica.status
        return await replica.lead(self._election)

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


def _import_endpoints() -> None:
    from stromboli.daemon import endpoints  # noqa: F401 - imported here


# -- the debug endpoints: consistency of the mirror, a dump of the state, stacks of all threads


def add_debug_routes(
    introspection: Introspection, authorization: DelegatedAuthorization, app: web.Application
) -> None:
    """Add the routes, for users with permission for the verb on the path: they show what the whole cluster runs."""

    from aiohttp import web

    async def consistency(_: web.Request) -> web.Response:
        try:
            differences = await introspection.consistency()
        except Unavailable as error:
            return web.json_response({"error": str(error)}, status=503)
        body = {"consistent": not differences, "differences": differences}
        return web.json_response(body, status=500 if differences else 200)

    async def dump(_: web.Request) -> web.Response:
        try:
            return web.json_response({"file": await introspection.dump()})
        except Unavailable as error:
            return web.json_response({"error": str(error)}, status=503)

    app.router.add_get("/debug/consistency", authorization.required(consistency))
    app.router.add_post("/debug/dump", authorization.required(dump))
    app.router.add_get("/debug/stacks", authorization.required(_stacks))


async def _stacks(_: web.Request) -> web.Response:
    """The stacks of all threads."""
    from aiohttp import web

    stacks = [
        f"thread {thread}\n{''.join(traceback.format_stack(frame))}"
        for thread, frame in sys._current_frames().items()
    ]
    return web.Response(text="\n".join(stacks))
