"""A run of a container: its postStart hook, its probes, and its end with preStop hook, SIGTERM and SIGKILL."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import Any

from stromboli.api import names
from stromboli.api.go_scalars import timestamp
from stromboli.embedded.nodes.node_types import Content
from stromboli.embedded.nodes.pod_status_patches import Termination
from stromboli.embedded.nodes.real.container_process import ContainerProcess
from stromboli.embedded.nodes.real.containers import Container
from stromboli.embedded.nodes.real.pod_sandbox import PodSandbox
from stromboli.embedded.nodes.real.probes.lifecycle_hooks import lifecycle_hook, run_hook
from stromboli.embedded.nodes.real.probes.probe_handlers import HandlerError
from stromboli.embedded.nodes.real.probes.probe_spec import ProbeType, container_probes
from stromboli.embedded.nodes.real.probes.prober import Prober
from stromboli.embedded.nodes.real.process_guardian import END_TIMEOUT

log = logging.getLogger(__name__)

SHORTEST_GRACE = 2.0
"""Seconds that a container has from SIGTERM on, however long its preStop hook took."""


class ContainerRun:
    """A process that was started, until it has ended."""

    def __init__(
        self, container: Container, sandbox: PodSandbox, process: ContainerProcess, restartable: bool
    ) -> None:
        """`restartable` says whether its policy has it restarted if a probe fails."""
        self.container = container
        self.unhealthy = False
        """A probe failed, and the container was killed for it."""
        self._sandbox = sandbox
        self._process = process
        self._restartable = restartable
        self._began = sandbox.context.clock()
        self._probes = container_probes(container.spec)
        self._prober = Prober(container.spec, self._probes, sandbox, self._health_changed)
        self._is_stopping = False
        self._tasks: set[asyncio.Task[Any]] = set()
        self._timers: list[asyncio.TimerHandle] = []

    async def wait(self) -> Termination:
        """How the process ended; nothing of the run is left then."""
        self.container.process = self._process
        self._sandbox.record(names.NORMAL, "Started", f"Started container {self.container.name}")
        hook = lifecycle_hook(self.container.spec, "postStart")
        if hook is None:
            self._begin()
        if hook is not None or self._probes:
            self._start(self._attend(hook))
        try:
            code, number = await self._process.wait()
            out_of_memory = await self._sandbox.resources.end_container(
                self.container.name, self._process.group.leader, self._process.launch.cgroup
            )
        except BaseException:  # cancelled, say: nothing of it goes on
            self.kill()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._process.wait(), END_TIMEOUT)
            raise
        finally:
            await self._clean_up()
        ended = self._sandbox.context.clock()
        return Termination(code, ended, self._began, number, out_of_memory=out_of_memory)

    def stop(self, message: str, kill_at: float) -> None:
        """The preStop hook, SIGTERM, and SIGKILL at this time of the event loop; only that, if it is called again."""
        loop = asyncio.get_running_loop()
        if self._is_stopping:
            self.kill_at(kill_at)
            return
        self._is_stopping = True
        self._record(names.NORMAL, "Killing", message)
        hook = lifecycle_hook(self.container.spec, "preStop")
        if hook is not None and kill_at > loop.time():
            self._start(self._stop_after(hook, kill_at))
        else:
            self._terminate(kill_at)

    def kill_at(self, time: float) -> None:
        """Kill it at this time of the event loop, if it still runs then."""
        self._timers.append(asyncio.get_running_loop().call_at(time, self._process.kill))

    def kill(self) -> None:
        self._process.kill()

    # -- its life

    async def _attend(self, post_start: Content | None) -> None:
        """The postStart hook, before whose end the container does not count as running; then probes."""
        if post_start is not None:
            if not await self._run_hook(post_start, "PostStartHook"):
                self.stop("FailedPostStartHook", self._end_of_grace())
                return
            self._begin()
        await self._prober.run(self._process)

    async def _run_hook(self, hook: Content, name: str) -> bool:
        """Whether the hook succeeded."""
        try:
            await run_hook(hook, self.container.spec, self._process)
            return True
        except HandlerError as error:
            if not self._process.exited:  # else it ended with its container
                self._record(names.WARNING, f"Failed{name}", f"{name} failed: {error}")
        except Exception:
            log.exception("pod %s: %s of container %s", self._sandbox.pod.key, name, self.container.name)
        return False

    def _begin(self) -> None:
        self.container.state = {"running": {"startedAt": timestamp(self._began)}}
        self.container.health = self._prober.health
        self._health_changed()
        self.container.launched.set()

    def _health_changed(self) -> None:
        health = self._prober.health
        if health.started:
            self.container.started.set()
        if health.failed is not None and not self._is_stopping:
            self.unhealthy = True
            message = f"Container {self.container.name} failed {health.failed.lower()} probe"
            self.stop(message + ", will be restarted" * self._restartable, self._end_of_grace(health.failed))
        self._sandbox.report()

    def _end_of_grace(self, failed: ProbeType | None = None) -> float:
        """When a container that is stopped alone is killed: by the grace period of the failed probe, or the pod's."""
        grace = self._probes[failed].termination_grace if failed is not None else None
        return asyncio.get_running_loop().time() + (self._sandbox.grace if grace is None else grace)

    # -- its end

    async def _stop_after(self, pre_stop: Content, kill_at: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout_at(kill_at):
                await self._run_hook(pre_stop, "PreStopHook")
        self._terminate(max(kill_at, asyncio.get_running_loop().time() + SHORTEST_GRACE))

    def _terminate(self, kill_at: float) -> None:
        self._process.terminate()
        self.kill_at(kill_at)

    async def _clean_up(self) -> None:
        self.container.process = self.container.health = None
        for timer in self._timers:
            timer.cancel()
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _start(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _record(self, type: str, reason: str, message: str) -> None:
        if not self._sandbox.quiet:
            self._sandbox.record(type, reason, message)
