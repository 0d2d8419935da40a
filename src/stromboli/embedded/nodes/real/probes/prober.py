"""Probes a running container: a task for each probe, so that none waits for another."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from stromboli.api import names
from stromboli.embedded.nodes.node_types import Content
from stromboli.embedded.nodes.real.container_process import ContainerProcess
from stromboli.embedded.nodes.real.pod_sandbox import PodSandbox
from stromboli.embedded.nodes.real.probes.container_health import ContainerHealth
from stromboli.embedded.nodes.real.probes.probe_handlers import HandlerError, run_handler
from stromboli.embedded.nodes.real.probes.probe_spec import Probe, ProbeType

log = logging.getLogger(__name__)


class Prober:
    """Runs the probes of one run of a container, and keeps its health up to date."""

    def __init__(
        self,
        spec: Content,
        probes: dict[ProbeType, Probe],
        sandbox: PodSandbox,
        changed: Callable[[], None],
    ) -> None:
        """`changed` is called when the health may have changed."""
        self.health = ContainerHealth(probes)
        self._spec = spec
        self._probes = probes
        self._sandbox = sandbox
        self._changed = changed
        self._startup = asyncio.Event()
        if self.health.started:
            self._startup.set()

    async def run(self, process: ContainerProcess) -> None:
        """Until cancelled, or there is nothing more to probe."""
        began = asyncio.get_running_loop().time()
        async with asyncio.TaskGroup() as group:
            for type, probe in self._probes.items():
                group.create_task(self._run(type, probe, process, began))

    async def _run(self, type: ProbeType, probe: Probe, process: ContainerProcess, began: float) -> None:
        loop, stopping = asyncio.get_running_loop(), self._sandbox.stopping
        if type is not ProbeType.STARTUP:
            await self._startup.wait()
        due = max(loop.time(), began + probe.initial_delay)
        while self.health.is_probed(type, stopping.is_set()):
            await asyncio.sleep(due - loop.time())
            if self.health.is_probed(type, stopping.is_set()):
                await self._probe(type, probe, process)
            due = max(due + probe.period, loop.time())

    async def _probe(self, type: ProbeType, probe: Probe, process: ContainerProcess) -> None:
        success = await self._outcome(type, probe, process)
        before = self.health.started, self.health.ready, self.health.failed
        self.health.observe(type, success)
        if self.health.started:
            self._startup.set()
        if before != (self.health.started, self.health.ready, self.health.failed):
            self._changed()

    async def _outcome(self, type: ProbeType, probe: Probe, process: ContainerProcess) -> bool | None:
        """Whether a probe succeeded; None if it could not run."""
        try:
            outcome = await run_handler(probe.handler, self._spec, process, probe.timeout)
        except HandlerError as error:
            self._record("Unhealthy", f"{type} probe errored and resulted in unknown state: {error}")
            return None
        except Exception:
            log.exception("pod %s: %s probe", self._sandbox.pod.key, type)
            return None
        if process.exited:  # which is what it saw
            return None
        if not outcome.success:
            self._record("Unhealthy", f"{type} probe failed: {outcome.output}")
        elif outcome.warning:
            self._record("ProbeWarning", f"{type} probe warning: {outcome.output}")
        return outcome.success

    def _record(self, reason: str, message: str) -> None:
        if not self._sandbox.quiet:
            self._sandbox.record(names.WARNING, reason, message)
