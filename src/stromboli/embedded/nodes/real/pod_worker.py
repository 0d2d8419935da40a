"""The life of one pod on a real node: volumes, init containers, containers, restarts, and the end."""

from __future__ import annotations

import asyncio
import logging
import math
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
UNUSABLE_AGAIN = 2.0
"""Seconds until a container that could not be made is tried again: what it lacks may come."""
STABLE = 600.0
"""Seconds after which a container that ran so long is forgiven its earlier ends."""


class PodWorker:
    """A pod that runs here. `pod` is kept up by whoever hears of changes."""

    def __init__(self, pod: NodePod, folder: Path, around: NodeContext) -> None:
        self.pod = pod
        self.folder = folder
        self._around = around
        self.quiet = False
        """Nothing is told any more: the node itself ends."""
        self._stopping = asyncio.Event()
        self._latest = math.inf
        """When the loop's clock says so, whatever runs is killed."""
        self._expired = False
        self._inits = [Container(spec) for spec in pod.spec.init_containers or ()]
        self._mains = [Container(spec) for spec in pod.spec.containers]
        self._standing = StatusManager(self._inits, self._mains, around.clock)
        self._volumes: PodVolumes | None = None
        self._fetch: Fetch = lambda kind, name: None
        self._initialised = False
        self._sidecars: list[asyncio.Task[None]] = []
        self._adopt()
        self.task = asyncio.create_task(self._live())

    # -- from outside

    def stop(self, grace: float) -> None:
        """Ask everything to end, and end it after the grace."""
        first = not self._stopping.is_set()
        self._stopping.set()
        self._latest = min(self._latest, asyncio.get_running_loop().time() + max(0.0, grace))
        for container in self._all:
            if container.process is not None:
                self._end(container, container.process, first)

    def _end(self, container: Container, process: ContainerProcess, ask: bool = True) -> None:
        if ask:
            process.terminate()
            self._tell_killing(container)
        asyncio.get_running_loop().call_at(self._latest, self._kill_one, container, process)

    def _tell_killing(self, container: Container) -> None:
        if not self.quiet:
            self._around.writes.tell(
                self.pod, names.NORMAL, "Killing", f"Stopping container {container.name}"
            )

    def kill(self) -> None:
        """End everything at once; nothing is told of it."""
        self.quiet = True
        self._stopping.set()
        self._latest = -math.inf
        for container in self._all:
            if container.process is not None:
                container.process.kill()

    def runs(self, container: str) -> bool:
        return any(candidate.name == container and candidate.process is not None for candidate in self._all)

    @staticmethod
    def _kill_one(container: Container, process: ContainerProcess) -> None:
        if container.process is process:
            process.kill()

    @property
    def _all(self) -> list[Container]:
        return [*self._inits, *self._mains]

    # -- its life

    async def _live(self) -> None:
        """From the start to the last status; a pod that was deleted is let go at the end."""
        deadline = self.pod.spec.active_deadline_seconds
        timer = None
        if deadline is not None:
            timer = asyncio.get_running_loop().call_later(max(0, deadline), self._expire)
        try:
            failed = self._lost or not await self._initialise()
            if not failed:
                await asyncio.gather(
                    *(
                        self._keep(container, self._policy)
                        for container in self._mains
                        if container.ending is None
                    )
                )
            await self._dismiss()
            if self._volumes is not None:  # somebody may have left the group of his container
                await asyncio.to_thread(kill_marked, str(self._volumes.root))
            self._finish()
        except Exception:
            log.exception("pod %s: its run broke down", self.pod.key)
        finally:
            if timer is not None:
                timer.cancel()

    async def _dismiss(self) -> None:
        """Sidecars go when the others are through."""
        if self._sidecars:
            self.stop(SIDECAR_GRACE)
            await asyncio.wait(self._sidecars)

    @property
    def _policy(self) -> str:
        return self.pod.spec.restart_policy

    def _expire(self) -> None:
        self._expired = True
        self.stop(0.0)

    def _adopt(self) -> None:
        """What the status tells of an earlier life: what ran is over, what was through stays so, restarts count on."""
        before = {status.get("name"): status for status in self.pod.status.container_statuses or ()}
        ran = False
        for container in self._mains:
            old = before.get(container.name) or {}
            state = old.get("state") or {}
            container.restarts = int(old.get("restartCount") or 0)
            container.last = old.get("lastState") or None
            if "running" in state:
                ran = True
                now = self._around.clock()
                state = Termination(137, now, now, 9, "the node was restarted").state(self._id(container))
            if "terminated" in state:
                if _stays_ended(self._policy, state["terminated"].get("exitCode")):
                    container.state = state
                    continue
                container.last = state
            container.restarts += container.last is not None
        self._lost = ran and self._policy == "Never"

    async def _initialise(self) -> bool:
        """Volumes and init containers; whether all went well."""
        if not await self._prepare():
            return False
        for container in self._inits:
            if container.sidecar:
                self._sidecars.append(asyncio.create_task(self._keep(container, names.RESTART_ALWAYS)))
            else:
                policy = "Never" if self._policy == "Never" else "OnFailure"
                await self._keep(container, policy)
                if self._stopping.is_set() or container.ending is None or container.ending["exitCode"]:
                    return False
        self._initialised = True
        return True

    async def _prepare(self) -> bool:
        """All volumes, however long it takes until what they show exists."""
        while not self._stopping.is_set():
            try:
                self._fetch = await self._around.fetch_all(self.pod)
                self._volumes = PodVolumes(self.pod, self.folder, self._around.claims, self._fetch)
                await asyncio.to_thread(self._volumes.make)
                return True
            except (ContainerError, OSError) as error:
                reason = error.reason if isinstance(error, ContainerError) else "FailedMount"
                self._around.writes.tell(self.pod, names.WARNING, reason, str(error))
                self._report()
                await self._pause(UNUSABLE_AGAIN)
        return False

    async def _keep(self, container: Container, policy: str) -> None:
        """Run a container, again and again if its policy says so."""
        while not self._stopping.is_set():
            ending = await self._once(container)
            if ending is None:
                continue
            if self._stopping.is_set() or _stays_ended(policy, ending.code):
                return
            container.failures = 1 if ending.at - ending.begun > STABLE else container.failures + 1
            container.last = ending.state(self._id(container))
            pause = self._restart_pause(container.failures)
            if pause:
                message = f"Back-off restarting failed container {container.name} in pod {self.pod.key}"
                container.state = {
                    "waiting": {"reason": "CrashLoopBackOff", "message": f"{pause:g}s: {message}"}
                }
                self._around.writes.tell(self.pod, names.WARNING, "BackOff", message)
                self._report()
            await self._pause(pause)
            if self._stopping.is_set():
                container.state = container.last
                return
            container.restarts += 1

    def _restart_pause(self, failures: int) -> float:
        """The first restart comes at once, the later ones after pauses that double."""
        around = self._around
        if failures <= 1:
            return 0.0
        return float(min(around.longest_pause, around.first_pause * 2.0 ** min(failures - 2, 20)))

    async def _once(self, container: Container) -> Termination | None:
        """One run of a container; None if it could not begin."""
        around = self._around
        assert self._volumes is not None
        root = self._volumes.root
        try:
            variables = environment(self.pod, container.spec, self._fetch, {ROOT: str(root)})
            words = command(container.spec, variables)
            place = self._place(container)
            delete_log(log_file(self.folder, container.name, container.restarts - KEPT_LOGS))
            file = LogFile(log_file(self.folder, container.name, container.restarts), around.clock)
            process = await ContainerProcess.start(words, place, variables, around.guardian, file)
        except (ContainerError, OSError) as error:
            return await self._unusable(container, error)
        begun = around.clock()
        container.process = process
        container.state = {"running": {"startedAt": timestamp(begun)}}
        around.writes.tell(self.pod, names.NORMAL, "Started", f"Started container {container.name}")
        if self._stopping.is_set():
            self._end(container, process)
        self._report()
        code, number = await process.ended()
        container.process = None
        ending = Termination(code, around.clock(), begun, number)
        container.state = ending.state(self._id(container))
        self._report()
        return ending

    async def _unusable(self, container: Container, error: Exception) -> Termination | None:
        """Tell why a container cannot begin; what has no command never will, the rest may."""
        reason = error.reason if isinstance(error, ContainerError) else "RunContainerError"
        self._around.writes.tell(self.pod, names.WARNING, "Failed", f"Error: {error}")
        if reason == "RunContainerError":
            now = self._around.clock()
            ending = Termination(128, now, now, message=str(error))
            container.state = ending.state(self._id(container))
            self._report()
            return ending
        container.state = {"waiting": {"reason": reason, "message": str(error)}}
        self._report()
        await self._pause(UNUSABLE_AGAIN)
        self._fetch = await self._around.fetch_all(self.pod)
        return None

    def _place(self, container: Container) -> Path:
        """Where the process begins: its working directory below the root if it has one there, else on the machine."""
        assert self._volumes is not None
        wanted = str(container.spec.get("workingDir") or "")
        if not wanted:
            return self._volumes.root
        inside = self._volumes.path(wanted)
        if inside.exists():
            return inside
        if Path(wanted).is_dir():
            return Path(wanted)
        inside.mkdir(parents=True)
        return inside

    async def _pause(self, seconds: float) -> None:
        """Wait, unless the pod is to stop."""
        try:
            await asyncio.wait_for(self._stopping.wait(), seconds)
        except TimeoutError:
            return

    # -- what is told

    def _id(self, container: Container) -> str:
        return pod_status_patches.container_id(self.pod, container.name, container.restarts)

    def _report(self) -> None:
        if not self.quiet:
            stopping = self._stopping.is_set()
            self._around.writes.status(self.pod, self._standing.now(self.pod, self._initialised, stopping))

    def _finish(self) -> None:
        """The end: Succeeded if every container did what it should, else Failed."""
        if not self.quiet:
            failed = not self._initialised or self._expired
            self._around.writes.status(self.pod, self._standing.end(self.pod, failed, self._expired))


def _stays_ended(policy: str, code: int | None) -> bool:
    """Whether a container that ended is not to run again."""
    return policy == "Never" or (policy == "OnFailure" and not code)
