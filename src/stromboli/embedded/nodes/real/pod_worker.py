"""A pod worker runs a pod on a real node: volumes, init containers, containers, sidecars, the final status."""

from __future__ import annotations

import asyncio
import logging
import math
from pathlib import Path

from stromboli.api import names
from stromboli.embedded.nodes.node_types import NodePod
from stromboli.embedded.nodes.pod_status_patches import Termination
from stromboli.embedded.nodes.real.container_environment import ContainerError
from stromboli.embedded.nodes.real.container_runner import CREATE_RETRY, ContainerRunner, stays_terminated
from stromboli.embedded.nodes.real.containers import Container, StatusManager
from stromboli.embedded.nodes.real.pod_sandbox import NodeContext, PodSandbox
from stromboli.embedded.nodes.real.process_guardian import kill_marked

log = logging.getLogger(__name__)

GRACE = 30.0
SIDECAR_GRACE = 5.0


class PodWorker:
    """Runs a pod."""

    def __init__(self, pod: NodePod, folder: Path, context: NodeContext) -> None:
        self.sandbox = PodSandbox(pod, folder, context, self._report)
        self._expired = False
        inits = [Container(spec) for spec in pod.spec.init_containers or ()]
        mains = [Container(spec) for spec in pod.spec.containers]
        self._statuses = StatusManager(inits, mains, context.clock)
        self._inits = [ContainerRunner(container, self.sandbox) for container in inits]
        self._mains = [ContainerRunner(container, self.sandbox) for container in mains]
        self._initialised = False
        self._sidecars: list[asyncio.Task[None]] = []
        self._interrupted = self._restore()
        self.task = asyncio.create_task(self._run())

    # -- called by the runtime

    def update(self, pod: NodePod) -> None:
        self.sandbox.pod = pod

    def stop(self, grace: float) -> None:
        """Terminate all containers, and kill them after the grace period."""
        sandbox = self.sandbox
        first = not sandbox.stopping.is_set()
        sandbox.stopping.set()
        sandbox.kill_at = min(sandbox.kill_at, asyncio.get_running_loop().time() + max(0.0, grace))
        for runner in self._runners:
            runner.stop(first)

    def close(self, grace: float) -> None:
        """Stop all containers, and report nothing: the node itself ends."""
        self.sandbox.quiet = True
        self.stop(grace)

    def kill(self) -> None:
        """Kill all containers at once, and report nothing."""
        self.sandbox.quiet = True
        self.sandbox.stopping.set()
        self.sandbox.kill_at = -math.inf
        for runner in self._runners:
            runner.kill()

    def container(self, name: str) -> Container | None:
        return next((runner.container for runner in self._runners if runner.container.name == name), None)

    def runs(self, name: str) -> bool:
        container = self.container(name)
        return container is not None and container.process is not None

    @property
    def _runners(self) -> list[ContainerRunner]:
        return [*self._inits, *self._mains]

    # -- its task

    async def _run(self) -> None:
        """From the first volume to the final status."""
        deadline = self.sandbox.pod.spec.active_deadline_seconds
        timer = None
        if deadline is not None:
            timer = asyncio.get_running_loop().call_later(max(0, deadline), self._expire)
        try:
            if not self._interrupted and await self._initialise():
                await self._run_containers()
            await self._stop_sidecars()
            if self.sandbox.volumes is not None:  # processes that left their group
                await asyncio.to_thread(kill_marked, str(self.sandbox.volumes.root))
            self._finish()
        except Exception:
            log.exception("pod %s: its worker failed", self.sandbox.pod.key)
        finally:
            if timer is not None:
                timer.cancel()

    async def _run_containers(self) -> None:
        policy = self.sandbox.pod.spec.restart_policy
        left = [runner for runner in self._mains if runner.container.terminated is None]
        await asyncio.gather(*(runner.run(policy) for runner in left))

    async def _stop_sidecars(self) -> None:
        """Sidecars end after all other containers."""
        if self._sidecars:
            self.stop(SIDECAR_GRACE)
            await asyncio.wait(self._sidecars)

    def _expire(self) -> None:
        self._expired = True
        self.stop(0.0)

    def _restore(self) -> bool:
        """Continue from the status before a restart of the node; whether that interrupted the pod for good.

        Containers that ran were killed, and restarts count on.
        """
        pod = self.sandbox.pod
        statuses = {status.get("name"): status for status in pod.status.container_statuses or ()}
        interrupted = False
        for runner in self._mains:
            container = runner.container
            old = statuses.get(container.name) or {}
            state = old.get("state") or {}
            container.restarts = int(old.get("restartCount") or 0)
            container.last = old.get("lastState") or None
            if "running" in state:
                interrupted = True
                now = self.sandbox.context.clock()
                state = Termination(137, now, now, 9, "the node was restarted").state(runner.id)
            if "terminated" in state:
                if stays_terminated(pod.spec.restart_policy, state["terminated"].get("exitCode")):
                    container.state = state
                    continue
                container.last = state
            container.restarts += container.last is not None
        return interrupted and pod.spec.restart_policy == "Never"

    async def _initialise(self) -> bool:
        """Create volumes and run init containers; whether all succeeded."""
        if not await self._create_volumes():
            return False
        for runner in self._inits:
            if runner.container.sidecar:
                self._sidecars.append(asyncio.create_task(runner.run(names.RESTART_ALWAYS)))
                continue
            await runner.run("Never" if self.sandbox.pod.spec.restart_policy == "Never" else "OnFailure")
            if self.sandbox.stopping.is_set() or not runner.container.succeeded:
                return False
        self._initialised = True
        return True

    async def _create_volumes(self) -> bool:
        """Create all volumes, once everything that they refer to exists; False if the pod is stopped before."""
        sandbox = self.sandbox
        while not sandbox.stopping.is_set():
            try:
                await sandbox.create_volumes()
                return True
            except (ContainerError, OSError) as error:
                reason = error.reason if isinstance(error, ContainerError) else "FailedMount"
                sandbox.record(names.WARNING, reason, str(error))
                self._report()
                await sandbox.pause(CREATE_RETRY)
        return False

    # -- reports

    def _report(self) -> None:
        sandbox = self.sandbox
        if not sandbox.quiet:
            status = self._statuses.status(sandbox.pod, self._initialised, sandbox.stopping.is_set())
            sandbox.context.writes.patch_status(sandbox.pod, status)

    def _finish(self) -> None:
        """Report the final status: Succeeded if every container succeeded, else Failed."""
        sandbox = self.sandbox
        if not sandbox.quiet:
            failed = not self._initialised or self._expired
            status = self._statuses.final_status(sandbox.pod, failed, self._expired)
            sandbox.context.writes.patch_status(sandbox.pod, status)
