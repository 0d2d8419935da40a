"""`stromboli controllers`: the controllers in a process of their own, with leader election, endpoints and signals."""

from __future__ import annotations

import asyncio
import gc
import logging
from contextlib import AsyncExitStack
from functools import partial

from stromboli.controllers.controller_metrics import Metrics
from stromboli.controllers.options import Options
from stromboli.controllers.runner import ControllerRunner
from stromboli.controllers.volcano_controllers import CONTROLLERS
from stromboli.daemon.process_shell import ElectedProcess
from stromboli.daemon.telemetry_guard import TelemetryGuard
from stromboli.kube.api_client import Client
from stromboli.kube.cluster_access import Access

log = logging.getLogger(__name__)


class Process(ElectedProcess[Options]):
    """Runs the controllers while it leads."""

    def __init__(self, options: Options, access: Access) -> None:
        super().__init__(options, access)
        self._metrics = Metrics()
        self._runner: ControllerRunner | None = None

    async def _run(self, stack: AsyncExitStack) -> int:
        client = await self._open_client(stack)
        self._join_election(await stack.enter_async_context(Client(self._access)))
        await self._serve_endpoints(stack, self)
        return await self._lead(partial(self._run_controllers, client))

    async def _run_controllers(self, client: Client) -> int:
        runner = self._runner = ControllerRunner(
            client, CONTROLLERS, self.options, self._write_time_left, self._metrics, self._identity
        )
        stopping = asyncio.create_task(self._stop_with_process(runner))
        gc.freeze()  # imported modules are never collected
        try:
            await runner.run()
        finally:
            stopping.cancel()
        log.info("stopped")
        return 0

    async def _stop_with_process(self, runner: ControllerRunner) -> None:
        await self._stopping.wait()
        runner.stop()

    # -- what the endpoints show

    @property
    def guard(self) -> TelemetryGuard:
        return self._metrics.guard

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
        with self.guard("process metrics"):
            self._metrics.leader.set(1 if self._runner is not None and self._write_time_left() > 0 else 0)
            if self._runner is not None:
                self._runner.measure()
        return self._metrics.text()
