"""The GPUs and cgroups of a pod, from its admission until its last process is gone."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from stromboli.api import names
from stromboli.embedded.nodes.machine.gpu_allocator import GpuGrant, GpusUnavailable, gpu_variables
from stromboli.embedded.nodes.machine.gpu_manager import GpuManager
from stromboli.embedded.nodes.node_types import Content, NodePod
from stromboli.embedded.nodes.real.leftovers.kill_until_gone import RETRY, kill_until_gone
from stromboli.embedded.nodes.real.leftovers.stray_processes import StrayProcesses
from stromboli.embedded.nodes.real.process_guardian import kill_group
from stromboli.embedded.nodes.real.resources.cgroups import CgroupTree, ContainerCgroup
from stromboli.embedded.nodes.real.resources.container_limits import cgroup_settings, has_limits

log = logging.getLogger(__name__)

SLOW_RETRY = 5.0
"""Seconds until GPUs that others still hold are looked at again; doubling up to these."""

Record = Callable[[str, str, str], None]
"""Records an event of the pod: type, reason, message."""


class NodeResources:
    """What all pods share."""

    def __init__(self, gpus: GpuManager) -> None:
        self.gpus = gpus
        self.strays = StrayProcesses()
        self.cgroups: CgroupTree | None = None
        self.no_cgroups = ""
        """Why there are none."""
        self._has_warned = False
        self.ready = asyncio.Event()
        """Set once cgroups were looked for, and the processes of a former run are gone."""

    def warn_of_limits(self) -> None:
        """Nobody enforces the limits of a container; logged once."""
        if self.no_cgroups and not self._has_warned:
            log.warning("limits of CPU and memory are not enforced here: %s", self.no_cgroups)
            self._has_warned = True


class PodResources:
    """Of one pod."""

    def __init__(self, pod: NodePod, folder: Path, node: NodeResources, record: Record) -> None:
        self._pod = pod
        self._folder = folder
        self._node = node
        self._record = record
        self._grant: GpuGrant | None = None
        self._has_warned = False

    async def allocate(self, stopping: asyncio.Event) -> None:
        """Get the pod's GPUs, or wait for them until it is to stop; `GpusUnavailable` if it is refused."""
        await self._node.ready.wait()
        told, pause = "", RETRY
        while not stopping.is_set():
            try:
                self._grant = await self._node.gpus.allocate(self._pod, self._folder)
                return
            except GpusUnavailable as error:
                if not error.temporary:
                    raise
                if str(error) != told:
                    told = str(error)
                    self._record(names.WARNING, "WaitingForGpus", told)
                with suppress(TimeoutError):
                    await asyncio.wait_for(stopping.wait(), pause)
                pause = min(SLOW_RETRY, pause * 2)

    def cards(self, container: str) -> tuple[str, ...]:
        """The UUIDs of the GPUs that a container has."""
        return self._grant.containers.get(container, ()) if self._grant is not None else ()

    def variables(self, container: str) -> Mapping[str, str]:
        """Which the container cannot set otherwise."""
        return gpu_variables(self.cards(container))

    def leave(self) -> None:
        """The pod is gone, and its processes are about to."""
        if self._grant is not None:
            self._node.gpus.leave(self._grant)

    async def create_cgroup(self, container: Content) -> ContainerCgroup | None:
        """The cgroup for a run of a container; None where there are none."""
        if self._node.cgroups is None:
            if has_limits(self._limited(container)):
                self._warn_of_limits()
            return None
        name, settings = str(container.get("name", "")), cgroup_settings(self._limited(container))
        return await asyncio.to_thread(self._node.cgroups.create, self._pod.uid, name, settings)

    @property
    def limits_problem(self) -> str:
        """Why the limits of the pod are not enforced; empty if they are, or if it has none."""
        spec = self._pod.spec
        containers = map(self._limited, [*(spec.init_containers or ()), *spec.containers])
        if not self._node.no_cgroups or not any(map(has_limits, containers)):
            return ""
        return (
            f"limits of CPU and memory are not enforced here: {self._node.no_cgroups}; as a service"
            " (`stromboli service install`) they are, on a machine with cgroups of version 2"
        )

    def _limited(self, container: Content) -> Content:
        """A container with the limits of its pod where it has none of its own."""
        limits = (self._pod.spec.resources or {}).get("limits")
        if not limits:
            return container
        resources = container.get("resources") or {}
        return {
            **container,
            "resources": {**resources, "limits": {**limits, **(resources.get("limits") or {})}},
        }

    def _warn_of_limits(self) -> None:
        """Once for a pod, however often its containers start."""
        self._node.warn_of_limits()
        if self._node.no_cgroups and not self._has_warned:
            self._has_warned = True
            self._record(names.WARNING, names.LIMITS_NOT_ENFORCED, self.limits_problem)

    async def end_container(self, container: str, group: int, cgroup: ContainerCgroup | None) -> bool:
        """End what a container's process left running; whether the kernel killed it for its memory.

        A container with GPUs has ended when no process of its group is left: until then they may be in use.
        """
        out_of_memory = False
        if cgroup is not None:
            out_of_memory = cgroup.was_out_of_memory()
            await cgroup.remove()
        if self.cards(container):
            owner = f"pod {self._pod.key}, container {container}"
            await kill_until_gone(lambda seconds: kill_group(group, seconds), owner)
        return out_of_memory

    async def end(self, root: str) -> None:
        """Kill processes that left their group, and let the GPUs go when no process is left."""
        while not await self._node.strays.kill(root) and self._grant is not None:
            await asyncio.sleep(RETRY)
        if self._grant is not None:
            self._node.gpus.release(self._grant)
            self._grant = None
