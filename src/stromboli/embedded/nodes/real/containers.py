"""The containers of a pod on a real node, with their state and status."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from stromboli.embedded.nodes import pod_status_patches
from stromboli.embedded.nodes.node_types import Content, NodePod
from stromboli.embedded.nodes.real.container_process import ContainerProcess
from stromboli.embedded.nodes.real.probes.container_health import ContainerHealth
from stromboli.embedded.nodes.real.restart_policy import is_sidecar


@dataclass(slots=True)
class Container:
    """A container and its state."""

    spec: Content
    restarts: int = 0
    state: Content = field(default_factory=lambda: {"waiting": {"reason": "PodInitializing"}})
    last: Content | None = None
    process: ContainerProcess | None = None
    failures: int = 0
    cards: tuple[str, ...] = ()
    """The UUIDs of its GPUs."""
    health: ContainerHealth | None = None
    """While it runs, and its postStart hook has ended."""
    launched: asyncio.Event = field(default_factory=asyncio.Event)
    """It has run, with its postStart hook, or could not be created."""
    started: asyncio.Event = field(default_factory=asyncio.Event)
    """Its startup probe has succeeded, or there is none."""

    @property
    def name(self) -> str:
        return str(self.spec.get("name", ""))

    @property
    def terminated(self) -> Content | None:
        return self.state.get("terminated")

    @property
    def succeeded(self) -> bool:
        return self.terminated is not None and not self.terminated["exitCode"]

    @property
    def ready(self) -> bool:
        return self.health is not None and self.health.ready

    def status(self, pod: NodePod, init: bool = False) -> Content:
        """An init container is ready when it has succeeded."""
        status = pod_status_patches.container_status(pod, self.spec, self.state, self.restarts, self.last)
        status["started"] = self.health is not None and self.health.started
        status["ready"] = self.succeeded if init and not is_sidecar(self.spec) else self.ready
        return status | pod_status_patches.allocated_gpus(self.cards)
