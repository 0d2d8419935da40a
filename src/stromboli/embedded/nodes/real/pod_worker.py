"""A pod worker runs a pod on a real node: volumes, init containers, containers, sidecars, the final status."""

from __future__ import annotations

import asyncio
import logging
import math
from pathlib import Path

from stromboli.api import names
from stromboli.embedded.nodes.machine.gpu_allocator import GpusUnavailable
from stromboli.embedded.nodes.node_types import Content, NodePod
from stromboli.embedded.nodes.pod_status_patches import Termination
from stromboli.embedded.nodes.real.container_environment import ContainerError
from stromboli.embedded.nodes.real.container_process import ContainerProcess
from stromboli.embedded.nodes.real.container_runner import CREATE_RETRY, ContainerRunner
from stromboli.embedded.nodes.real.containers import Container
from stromboli.embedded.nodes.real.pod_sandbox import NodeContext, PodSandbox
from stromboli.embedded.nodes.real.restart_policy import NEVER, is_restarted, is_sidecar, restart_policy
from stromboli.embedded.nodes.real.status_manager import StatusManager, unmet_gates
from stromboli.embedded.nodes.real.termination_message import MAX_MESSAGE

log = logging.getLogger(__name__)


class PodWorker:
    """Runs a pod."""

    def __init__(self, pod: NodePod, folder: Path, context: NodeContext) -> None:
        self.sandbox = PodSandbox(pod, folder, context, self._report)
        self._expired = False
        self._refusal: Content = {}
        """Reason and message of a pod that is not run."""
        self._inits = [self._runner(spec, init=True) for spec in pod.spec.init_containers or ()]
        self._mains = [self._runner(spec) for spec in pod.spec.containers]
        inits, mains = ([each.container for each in group] for group in (self._inits, self._mains))
        self._statuses = StatusManager(pod, inits, mains, context.clock)
        self._initialised = False
        self._sidecars: list[tuple[ContainerRunner, asyncio.Task[None]]] = []
        self._interrupted = self._restore()
        self.task = asyncio.create_task(self._run())

    def _runner(self, spec: Content, init: bool = False) -> ContainerRunner:
        policy = restart_policy(spec, self.sandbox.pod.spec.restart_policy, init)
        return ContainerRunner(Container(spec), self.sandbox, policy)

    # -- called by the runtime

    def update(self, pod: NodePod) -> None:
        gates, self.sandbox.pod = unmet_gates(self.sandbox.pod), pod
        if gates != unmet_gates(pod) and not self.task.done():
            self._report()

    def stop(self, grace: float) -> None:
        """Terminate all containers but sidecars, which go last, and kill what runs after the grace period."""
        self._stop_within(grace)
        sidecars = [runner for runner, _ in self._sidecars]
        for runner in self._runners:
            if runner in sidecars:
                runner.kill_in_time()
            else:
                runner.stop()

    def close(self, grace: float) -> None:
        """Stop all containers, and report nothing: the node itself ends."""
        self.sandbox.quiet = True
        self.stop(grace)

    def kill(self) -> None:
        """Kill all containers at once, and report nothing."""
        self.sandbox.quiet = True
        self.sandbox.stopping.set()
        self.sandbox.kill_at = -math.inf
        self.sandbox.resources.leave()
        for runner in self._runners:
            runner.kill()

    def container(self, name: str) -> Container | None:
        return next((runner.container for runner in self._runners if runner.container.name == name), None)

    def runs(self, name: str) -> bool:
        container = self.container(name)
        return container is not None and container.process is not None

    def running(self) -> list[tuple[Container, ContainerProcess]]:
        """Containers that run, with their processes."""
        containers = (runner.container for runner in self._runners)
        return [(each, each.process) for each in containers if each.process is not None]

    @property
    def _runners(self) -> list[ContainerRunner]:
        return [*self._inits, *self._mains]

    def _stop_within(self, grace: float) -> None:
        sandbox = self.sandbox
        sandbox.stopping.set()
        sandbox.kill_at = min(sandbox.kill_at, asyncio.get_running_loop().time() + max(0.0, grace))

    # -- its task

    async def _run(self) -> None:
        """From the first volume to the final status."""
        timer = self._deadline_timer()
        try:
            if not self._interrupted and await self._admit() and await self._initialise():
                await self._run_containers()
            await self._stop_sidecars()
            await self._end_processes()
            self._finish()
        except Exception as error:
            log.exception("pod %s: its worker failed", self.sandbox.pod.key)
            await self._give_up(error)
        finally:
            if timer is not None:
                timer.cancel()

    async def _give_up(self, error: Exception) -> None:
        """Kill all containers, and let the pod fail: nobody would run it any more."""
        while isinstance(error, ExceptionGroup):
            error = error.exceptions[0]
        self._refusal = {"reason": "InternalError", "message": f"Pod cannot be run: {error!r}"[:MAX_MESSAGE]}
        quiet = self.sandbox.quiet
        self.kill()
        await self._end_processes()
        self.sandbox.quiet = quiet
        self._finish()

    async def _admit(self) -> bool:
        """Get the pod's GPUs; False if it is refused, as by a kubelet that cannot give a pod its devices."""
        sandbox = self.sandbox
        try:
            await sandbox.resources.allocate(sandbox.stopping)
        except GpusUnavailable as error:
            self._refusal = {"reason": "UnexpectedAdmissionError", "message": f"Pod was rejected: {error}"}
            sandbox.record(names.WARNING, "UnexpectedAdmissionError", str(error))
            return False
        self._statuses.limits_problem = sandbox.resources.limits_problem
        for runner in self._runners:
            runner.container.cards = sandbox.resources.cards(runner.container.name)
        return True

    async def _end_processes(self) -> None:
        """End processes that left their group."""
        volumes = self.sandbox.volumes
        await self.sandbox.resources.end("" if volumes is None else str(volumes.root))

    async def _run_containers(self) -> None:
        """Each starts when the postStart hook of the one before has ended."""
        async with asyncio.TaskGroup() as group:
            for runner in self._mains:
                if runner.container.terminated is None:
                    group.create_task(runner.run())
                    await runner.container.launched.wait()

    async def _stop_sidecars(self) -> None:
        """Sidecars end after all other containers, the last to start first."""
        if self._sidecars and not self.sandbox.stopping.is_set():
            self._stop_within(self.sandbox.grace)
        for runner, task in reversed(self._sidecars):
            runner.stop()
            await asyncio.wait({task})

    def _deadline_timer(self) -> asyncio.TimerHandle | None:
        deadline = self.sandbox.pod.spec.active_deadline_seconds
        if deadline is None:
            return None
        left = self._statuses.started + deadline - self.sandbox.context.clock()
        return asyncio.get_running_loop().call_later(max(0.0, left), self._expire)

    def _expire(self) -> None:
        self._expired = True
        self.stop(self.sandbox.grace)

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
                if not is_restarted(container.spec, runner.policy, state["terminated"].get("exitCode")):
                    container.state = state
                    continue
                container.last = state
            container.restarts += container.last is not None
        return interrupted and pod.spec.restart_policy == NEVER

    async def _initialise(self) -> bool:
        """Create volumes and run init containers; whether all succeeded."""
        if not await self._create_volumes():
            return False
        for runner in self._inits:
            if not await self._run_init(runner) or self.sandbox.stopping.is_set():
                return False
        self._initialised = True
        return True

    async def _run_init(self, runner: ContainerRunner) -> bool:
        """Run an init container to its end, or a sidecar until it has started; whether it succeeded."""
        container = runner.container
        if is_sidecar(container.spec):
            self._sidecars.append((runner, asyncio.create_task(runner.run())))
            await container.started.wait()
            return True
        await runner.run()
        return container.succeeded

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
            status = self._statuses.status(sandbox.pod, self._initialised)
            sandbox.context.writes.patch_status(sandbox.pod, status)

    def _finish(self) -> None:
        """Report the final status: Succeeded if every container succeeded, else Failed."""
        sandbox = self.sandbox
        if not sandbox.quiet:
            failed = not self._initialised or self._expired or bool(self._refusal)
            status = self._statuses.final_status(sandbox.pod, failed, self._expired) | self._refusal
            if self._refusal:  # so that its reason shows, and not that of a container
                status |= {"containerStatuses": None, "initContainerStatuses": None}
            sandbox.context.writes.patch_status(sandbox.pod, status)
