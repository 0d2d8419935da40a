"""A pod worker runs a pod on a real node: volumes, init containers, containers, restarts, termination."""

from __future__ import annotations

import asyncio
import logging
import math
from contextlib import suppress
from pathlib import Path

from stromboli.api import names
from stromboli.embedded.nodes import pod_status_patches
from stromboli.embedded.nodes.node_types import NodePod
from stromboli.embedded.nodes.pod_status_patches import Termination
from stromboli.embedded.nodes.real.container_environment import ContainerError, Fetch, command, environment
from stromboli.embedded.nodes.real.container_logs import LogFile, delete_log, log_file
from stromboli.embedded.nodes.real.container_process import ContainerProcess
from stromboli.embedded.nodes.real.containers import Container, NodeContext, StatusManager
from stromboli.embedded.nodes.real.pod_volumes import PodVolumes
from stromboli.embedded.nodes.real.process_guardian import ROOT, kill_marked
from stromboli.kube.timestamps import timestamp

log = logging.getLogger(__name__)

GRACE = 30.0
SIDECAR_GRACE = 5.0
KEPT_LOGS = 2
"""Of each container, the log of its last run and the one before."""
CREATE_RETRY = 2.0
"""Seconds until a container that could not be created is tried again: what it refers to may be created."""
BACKOFF_RESET = 600.0
"""A container that ran longer than these seconds starts with the first backoff again."""


class PodWorker:
    """Runs a pod. The runtime sets `pod` when it changes."""

    def __init__(self, pod: NodePod, folder: Path, context: NodeContext) -> None:
        self.pod = pod
        self.folder = folder
        self._context = context
        self.quiet = False
        """Report nothing any more: the node itself ends."""
        self._stopping = asyncio.Event()
        self._kill_at = math.inf
        """Time of the event loop at which whatever runs is killed."""
        self._expired = False
        self._inits = [Container(spec) for spec in pod.spec.init_containers or ()]
        self._mains = [Container(spec) for spec in pod.spec.containers]
        self._containers = [*self._inits, *self._mains]
        self._statuses = StatusManager(self._inits, self._mains, context.clock)
        self._volumes: PodVolumes | None = None
        self._fetch: Fetch = lambda kind, name: None
        self._initialised = False
        self._sidecars: list[asyncio.Task[None]] = []
        self._restore()
        self.task = asyncio.create_task(self._run())

    # -- called by the runtime

    def stop(self, grace: float) -> None:
        """Terminate all containers, and kill them after the grace period."""
        first = not self._stopping.is_set()
        self._stopping.set()
        self._kill_at = min(self._kill_at, asyncio.get_running_loop().time() + max(0.0, grace))
        for container in self._containers:
            if container.process is not None:
                self._terminate(container, container.process, first)

    def _terminate(self, container: Container, process: ContainerProcess, first: bool = True) -> None:
        if first:
            process.terminate()
            if not self.quiet:
                self._record(names.NORMAL, "Killing", f"Stopping container {container.name}")
        asyncio.get_running_loop().call_at(self._kill_at, self._kill_process, container, process)

    def kill(self) -> None:
        """Kill all containers at once, and report nothing."""
        self.quiet = True
        self._stopping.set()
        self._kill_at = -math.inf
        for container in self._containers:
            if container.process is not None:
                container.process.kill()

    def runs(self, container: str) -> bool:
        return any(
            candidate.name == container and candidate.process is not None for candidate in self._containers
        )

    @staticmethod
    def _kill_process(container: Container, process: ContainerProcess) -> None:
        if container.process is process:
            process.kill()

    # -- its task

    async def _run(self) -> None:
        """From the first volume to the final status."""
        deadline = self.pod.spec.active_deadline_seconds
        timer = None
        if deadline is not None:
            timer = asyncio.get_running_loop().call_later(max(0, deadline), self._expire)
        try:
            failed = self._interrupted or not await self._initialise()
            if not failed:
                left = [container for container in self._mains if container.terminated is None]
                await asyncio.gather(
                    *(self._run_container(container, self.pod.spec.restart_policy) for container in left)
                )
            await self._stop_sidecars()
            if self._volumes is not None:  # processes that left their group
                await asyncio.to_thread(kill_marked, str(self._volumes.root))
            self._finish()
        except Exception:
            log.exception("pod %s: its worker failed", self.pod.key)
        finally:
            if timer is not None:
                timer.cancel()

    async def _stop_sidecars(self) -> None:
        """Sidecars end after all other containers."""
        if self._sidecars:
            self.stop(SIDECAR_GRACE)
            await asyncio.wait(self._sidecars)

    def _expire(self) -> None:
        self._expired = True
        self.stop(0.0)

    def _restore(self) -> None:
        """Continue from the status before a restart of the node: running containers were killed, restarts count on."""
        statuses = {status.get("name"): status for status in self.pod.status.container_statuses or ()}
        interrupted = False
        for container in self._mains:
            old = statuses.get(container.name) or {}
            state = old.get("state") or {}
            container.restarts = int(old.get("restartCount") or 0)
            container.last = old.get("lastState") or None
            if "running" in state:
                interrupted = True
                now = self._context.clock()
                state = Termination(137, now, now, 9, "the node was restarted").state(self._id(container))
            if "terminated" in state:
                if _stays_terminated(self.pod.spec.restart_policy, state["terminated"].get("exitCode")):
                    container.state = state
                    continue
                container.last = state
            container.restarts += container.last is not None
        self._interrupted = interrupted and self.pod.spec.restart_policy == "Never"

    async def _initialise(self) -> bool:
        """Create volumes and run init containers; whether all succeeded."""
        if not await self._create_volumes():
            return False
        for container in self._inits:
            if container.sidecar:
                sidecar = self._run_container(container, names.RESTART_ALWAYS)
                self._sidecars.append(asyncio.create_task(sidecar))
                continue
            await self._run_container(
                container, "Never" if self.pod.spec.restart_policy == "Never" else "OnFailure"
            )
            if self._stopping.is_set() or not container.succeeded:
                return False
        self._initialised = True
        return True

    async def _create_volumes(self) -> bool:
        """Create all volumes, once everything that they refer to exists; False if the pod is stopped before."""
        while not self._stopping.is_set():
            try:
                self._fetch = await self._context.fetch_all(self.pod)
                self._volumes = PodVolumes(self.pod, self.folder, self._context.claims, self._fetch)
                await asyncio.to_thread(self._volumes.create)
                return True
            except (ContainerError, OSError) as error:
                reason = error.reason if isinstance(error, ContainerError) else "FailedMount"
                self._record(names.WARNING, reason, str(error))
                self._report()
                await self._pause(CREATE_RETRY)
        return False

    async def _run_container(self, container: Container, policy: str) -> None:
        """Run a container, with restarts as its policy says."""
        while not self._stopping.is_set():
            termination = await self._run_once(container)
            if termination is None:
                continue
            if self._stopping.is_set() or _stays_terminated(policy, termination.code):
                return
            if termination.at - termination.started > BACKOFF_RESET:
                container.failures = 0
            container.failures += 1
            container.last = termination.state(self._id(container))
            backoff = self._backoff(container.failures)
            if backoff:
                message = f"Back-off restarting failed container {container.name} in pod {self.pod.key}"
                container.state = {
                    "waiting": {"reason": "CrashLoopBackOff", "message": f"{backoff:g}s: {message}"}
                }
                self._record(names.WARNING, "BackOff", message)
                self._report()
            await self._pause(backoff)
            if self._stopping.is_set():
                container.state = container.last
                return
            container.restarts += 1

    def _backoff(self, failures: int) -> float:
        """Seconds before a restart: none before the first, then doubling."""
        if failures <= 1:
            return 0.0
        context = self._context
        return float(min(context.max_backoff, context.first_backoff * 2.0 ** min(failures - 2, 20)))

    async def _run_once(self, container: Container) -> Termination | None:
        """One run of a container; None if it could not be created."""
        context = self._context
        assert self._volumes is not None
        try:
            variables = environment(self.pod, container.spec, self._fetch, {ROOT: str(self._volumes.root)})
            arguments = command(container.spec, variables)
            folder = self._volumes.working_dir(str(container.spec.get("workingDir") or ""))
            delete_log(log_file(self.folder, container.name, container.restarts - KEPT_LOGS))
            file = LogFile(log_file(self.folder, container.name, container.restarts), context.clock)
            process = await ContainerProcess.start(arguments, folder, variables, context.guardian, file)
        except (ContainerError, OSError) as error:
            return await self._create_failed(container, error)
        started = context.clock()
        container.process = process
        container.state = {"running": {"startedAt": timestamp(started)}}
        self._record(names.NORMAL, "Started", f"Started container {container.name}")
        if self._stopping.is_set():
            self._terminate(container, process)
        self._report()
        code, number = await process.wait()
        container.process = None
        termination = Termination(code, context.clock(), started, number)
        container.state = termination.state(self._id(container))
        self._report()
        return termination

    async def _create_failed(self, container: Container, error: Exception) -> Termination | None:
        """Report why a container cannot be created; one without a command never can, others may later."""
        reason = error.reason if isinstance(error, ContainerError) else "RunContainerError"
        self._record(names.WARNING, "Failed", f"Error: {error}")
        if reason == "RunContainerError":
            now = self._context.clock()
            termination = Termination(128, now, now, message=str(error))
            container.state = termination.state(self._id(container))
            self._report()
            return termination
        container.state = {"waiting": {"reason": reason, "message": str(error)}}
        self._report()
        await self._pause(CREATE_RETRY)
        with suppress(ContainerError):  # what it was given at the start stays
            self._fetch = await self._context.fetch_all(self.pod)
        return None

    async def _pause(self, seconds: float) -> None:
        """Wait, unless the pod is to stop."""
        try:
            await asyncio.wait_for(self._stopping.wait(), seconds)
        except TimeoutError:
            return

    # -- reports

    def _id(self, container: Container) -> str:
        return pod_status_patches.container_id(self.pod, container.name, container.restarts)

    def _record(self, type: str, reason: str, message: str) -> None:
        self._context.writes.record_event(self.pod, type, reason, message)

    def _report(self) -> None:
        if not self.quiet:
            status = self._statuses.status(self.pod, self._initialised, self._stopping.is_set())
            self._context.writes.patch_status(self.pod, status)

    def _finish(self) -> None:
        """Report the final status: Succeeded if every container succeeded, else Failed."""
        if not self.quiet:
            failed = not self._initialised or self._expired
            status = self._statuses.final_status(self.pod, failed, self._expired)
            self._context.writes.patch_status(self.pod, status)


def _stays_terminated(policy: str, code: int | None) -> bool:
    """Whether a terminated container is not restarted."""
    return policy == "Never" or (policy == "OnFailure" and not code)
