"""Runs a single container of a pod on a real node: start, restarts, back-off, failures to create it."""

from __future__ import annotations

from dataclasses import replace

from stromboli.api import names
from stromboli.embedded.nodes import pod_status_patches
from stromboli.embedded.nodes.pod_status_patches import Termination
from stromboli.embedded.nodes.real.container_environment import ContainerError
from stromboli.embedded.nodes.real.container_launch import container_launch
from stromboli.embedded.nodes.real.container_logs import LogFile, delete_log, log_file
from stromboli.embedded.nodes.real.container_process import ContainerProcess
from stromboli.embedded.nodes.real.container_run import ContainerRun
from stromboli.embedded.nodes.real.containers import Container
from stromboli.embedded.nodes.real.pod_sandbox import PodSandbox
from stromboli.embedded.nodes.real.process_start import NO_ROOM
from stromboli.embedded.nodes.real.restart_policy import NEVER, is_restarted
from stromboli.embedded.nodes.real.termination_message import clear_message, message_path, read_message

KEPT_LOGS = 2
"""Of each container, the log of its last run and the one before."""
CREATE_RETRY = 2.0
"""Seconds until a container that could not be created is tried again: what it refers to may be created."""
BACKOFF_RESET = 600.0
"""A container that ran longer than these seconds starts with the first backoff again."""


class ContainerRunner:
    """Runs a container until it need not be restarted, or its pod stops."""

    def __init__(self, container: Container, sandbox: PodSandbox, policy: str) -> None:
        """`policy` is its restart policy."""
        self.container = container
        self._sandbox = sandbox
        self.policy = policy
        self._run: ContainerRun | None = None

    async def run(self) -> None:
        """Run the container, with restarts as its policy says."""
        try:
            while not self._sandbox.stopping.is_set():
                termination = await self._run_once()
                if termination is not None and not await self._restarts(termination):
                    return
        finally:  # nobody waits for it any longer
            self.container.launched.set()
            self.container.started.set()

    def stop(self) -> None:
        """Stop the container within the grace period of the pod; once more, if that got shorter."""
        if self._run is not None:
            self._run.stop(f"Stopping container {self.container.name}", self._sandbox.kill_at)

    def kill_in_time(self) -> None:
        """Have the container killed at the end of the grace period, and not stopped before."""
        if self._run is not None:
            self._run.kill_at(self._sandbox.kill_at)

    def kill(self) -> None:
        if self._run is not None:
            self._run.kill()

    @property
    def id(self) -> str:
        container = self.container
        return pod_status_patches.container_id(self._sandbox.pod, container.name, container.restarts)

    # -- a run

    async def _run_once(self) -> Termination | None:
        """A run of the container; None if it could not be created."""
        sandbox = self._sandbox
        try:
            process = await self._start()
        except (ContainerError, OSError) as error:
            return await self._create_failed(error)
        self._run = ContainerRun(self.container, sandbox, process, self.policy != NEVER)
        if sandbox.stopping.is_set():
            self.stop()
        termination = await self._run.wait()
        return self._terminated(termination._replace(message=self._message(termination)))

    async def _start(self) -> ContainerProcess:
        container, sandbox = self.container, self._sandbox
        launch = container_launch(sandbox, container.spec)
        clear_message(sandbox.mounted_volumes.path(message_path(container.spec)))
        delete_log(log_file(sandbox.folder, container.name, container.restarts - KEPT_LOGS))
        cgroup = await sandbox.resources.create_cgroup(container.spec)
        try:
            file = LogFile(
                log_file(sandbox.folder, container.name, container.restarts), sandbox.context.clock
            )
            return await ContainerProcess.start(
                replace(launch, cgroup=cgroup), sandbox.context.guardian, file
            )
        except BaseException:
            if cgroup is not None:
                await cgroup.remove()
            raise

    def _message(self, termination: Termination) -> str:
        container, pod = self.container, self._sandbox.pod
        count = len(pod.spec.containers) + len(pod.spec.init_containers or ())
        path = self._sandbox.mounted_volumes.path(message_path(container.spec))
        log = log_file(self._sandbox.folder, container.name, container.restarts)
        return read_message(container.spec, path, log, termination.code != 0, count)

    async def _create_failed(self, error: Exception) -> Termination | None:
        """Report why a container cannot be created; one without a command never can, others may later.

        A full disk, say, has room again at some time.
        """
        reason = error.reason if isinstance(error, ContainerError) else NO_ROOM
        self._sandbox.record(names.WARNING, "Failed", f"Error: {error}")
        self.container.launched.set()
        if reason == "RunContainerError":
            now = self._sandbox.context.clock()
            return self._terminated(Termination(128, now, now, message=str(error), not_started=True))
        self.container.state = {"waiting": {"reason": reason, "message": str(error)}}
        self._sandbox.report()
        await self._sandbox.pause(CREATE_RETRY)
        await self._sandbox.fetch_again()
        return None

    def _terminated(self, termination: Termination) -> Termination:
        self.container.state = termination.state(self.id)
        self._sandbox.report()
        return termination

    # -- restarts

    async def _restarts(self, termination: Termination) -> bool:
        """Whether a terminated container is restarted; if so, after its back-off."""
        container, stopping = self.container, self._sandbox.stopping
        unhealthy, self._run = self._run is not None and self._run.unhealthy, None
        restarted = (unhealthy and self.policy != NEVER) or is_restarted(
            container.spec, self.policy, termination.code
        )
        if stopping.is_set() or not restarted:
            return False
        if termination.at - termination.started > BACKOFF_RESET:
            container.failures = 0
        container.failures += 1
        container.last = termination.state(self.id)
        await self._back_off()
        if stopping.is_set():
            container.state = container.last
            return False
        container.restarts += 1
        return True

    async def _back_off(self) -> None:
        """Wait before a restart, unless it is the first."""
        container, sandbox = self.container, self._sandbox
        seconds = self._backoff(container.failures)
        if seconds:
            message = f"Back-off restarting failed container {container.name} in pod {sandbox.pod.key}"
            container.state = {
                "waiting": {"reason": "CrashLoopBackOff", "message": f"{seconds:g}s: {message}"}
            }
            sandbox.record(names.WARNING, "BackOff", message)
            sandbox.report()
        await sandbox.pause(seconds)

    def _backoff(self, failures: int) -> float:
        """Seconds before a restart: none before the first, then doubling."""
        if failures <= 1:
            return 0.0
        context = self._sandbox.context
        return float(min(context.max_backoff, context.first_backoff * 2.0 ** min(failures - 2, 20)))
