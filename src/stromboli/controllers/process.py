"""`stromboli controllers`: the controllers in a process of their own, with leader election, endpoints and signals."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import socket
import uuid
from contextlib import AsyncExitStack, suppress

from stromboli.controllers.api_writer import TIMEOUT
from stromboli.controllers.controller_metrics import Metrics
from stromboli.controllers.options import Options
from stromboli.controllers.runner import ControllerRunner
from stromboli.daemon.endpoints import Endpoints
from stromboli.daemon.log_format import about
from stromboli.daemon.shutdown import UntilStopped
from stromboli.kube.api_client import Client
from stromboli.kube.cluster_access import Access
from stromboli.kube.election import Election, LeaseSettings
from stromboli.kube.rate_limits import RateLimiter

log = logging.getLogger(__name__)


def terms(options: Options, identity: str) -> LeaseSettings:
    """Which lease we ask for, and how."""
    return LeaseSettings(
        options.lease_namespace,
        options.leader_elect_resource_name,
        identity,
        options.leader_elect_lease_duration,
        options.leader_elect_renew_deadline,
        options.leader_elect_retry_period,
    )


class Process:
    """From start to end."""

    def __init__(self, options: Options, access: Access) -> None:
        self.options = options
        self._access = access
        self._identity = f"{socket.gethostname()}_{uuid.uuid4()}"
        self._metrics = Metrics()
        self._stopping = asyncio.Event()
        self._election: Election | None = None
        self._runner: ControllerRunner | None = None

    async def run(self) -> int:
        """Until a signal, or until the lease is lost; the exit status."""
        for note in self.options.notes:
            log.info("%s", note)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)
        async with AsyncExitStack() as stack:
            limiter = RateLimiter(self.options.kube_api_qps, self.options.kube_api_burst)
            client = await stack.enter_async_context(Client(self._access, limiter))
            lease_client = await stack.enter_async_context(Client(self._access))
            endpoints = Endpoints(self.options, self)
            stack.push_async_callback(endpoints.stop)
            await endpoints.start()
            log.info("serving", extra=about(**endpoints.ports))
            return await self._elected(client, lease_client)

    async def _elected(self, client: Client, lease_client: Client) -> int:
        """Wait for our turn, lead, and step down."""
        if not self.options.leader_elect:
            return await self._lead(client)
        election = self._election = Election(lease_client, terms(self.options, self._identity))
        log.info(
            "waiting for the lease",
            extra=about(lease=f"{election.settings.namespace}/{election.settings.name}"),
        )
        async with UntilStopped(self._stopping):
            await election.acquire()
        if not election.may_write():
            return 0
        keeping = asyncio.create_task(election.renew_until_lost())
        leading = asyncio.create_task(self._lead(client))
        try:
            await asyncio.wait({keeping, leading}, return_when=asyncio.FIRST_COMPLETED)
            if leading.done():
                return leading.result()
            log.error("the lease is lost: leaving at once")
            return 1
        finally:
            for task in (leading, keeping):
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
            await election.release()

    async def _lead(self, client: Client) -> int:
        """Let the runner work until we are told to stop."""
        if self._election is None:
            timeout = TIMEOUT
        else:  # a write that we began while we led must be over before another one may lead
            timeout = max(1.0, self._election.settings.duration - self._election.settings.deadline)
        runner = self._runner = ControllerRunner(
            client, self.options, self._may_write, self._metrics, self._identity, timeout
        )
        stopping = asyncio.create_task(self._stop_when_told(runner))
        gc.freeze()  # what was imported stays for long
        try:
            await runner.run()
        finally:
            stopping.cancel()
        log.info("stopped")
        return 0

    async def _stop_when_told(self, runner: ControllerRunner) -> None:
        await self._stopping.wait()
        runner.stop()

    def _may_write(self) -> bool:
        return self._election is None or self._election.may_write()

    def stop(self) -> None:
        """Finish what is under way and end; a second time, end at once."""
        if self._stopping.is_set():
            log.error("told to stop twice: leaving at once")
            os._exit(1)
        log.info("stopping")
        self._stopping.set()

    # -- what there is to be shown

    def alive(self) -> str:
        return ""

    def ready(self) -> str:
        if self._stopping.is_set():
            return "stopping"
        if self._election is not None and not self._election.may_write():
            return "" if self._election.leader else "the lease was not read yet"
        if self._runner is None:
            return "not started yet"
        left = self._runner.unsynced
        return f"not in step with the API server yet: {', '.join(left)}" if left else ""

    async def metrics(self) -> bytes:
        self._metrics.leader.set(1 if self._runner is not None and self._may_write() else 0)
        if self._runner is not None:
            self._runner.measure()
        return self._metrics.text()
