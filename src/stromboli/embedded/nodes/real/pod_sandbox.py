"""What the containers of a pod on a real node share."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from stromboli.embedded.nodes.node_types import NodePod
from stromboli.embedded.nodes.real.container_environment import ContainerError, Fetch
from stromboli.embedded.nodes.real.pod_volumes import PodVolumes
from stromboli.embedded.nodes.real.process_guardian import ProcessGuardian
from stromboli.embedded.nodes.real.resources.pod_resources import NodeResources, PodResources
from stromboli.embedded.nodes.write_queue import WriteQueue

DEFAULT_GRACE = 30.0


@dataclass(frozen=True, slots=True)
class NodeContext:
    """What the pod workers of all nodes share."""

    pods: Path
    claims: Path
    guardian: ProcessGuardian
    writes: WriteQueue
    fetch_all: Callable[[NodePod], Awaitable[Fetch]]
    resources: NodeResources
    first_backoff: float = 1.0
    max_backoff: float = 60.0
    clock: Callable[[], float] = time.time


class PodSandbox:
    """The pod as it is now, its folder and volumes, whether it is to stop, and where its status goes."""

    def __init__(self, pod: NodePod, folder: Path, context: NodeContext, report: Callable[[], None]) -> None:
        """`report` writes the pod's status."""
        self.pod = pod
        self.folder = folder
        self.context = context
        self.report = report
        self.volumes: PodVolumes | None = None
        self.fetch: Fetch = lambda kind, name: None
        """What the pod refers to, as it was fetched last."""
        self.resources = PodResources(pod, folder, context.resources, self.record)
        self.stopping = asyncio.Event()
        self.kill_at = math.inf
        """Time of the event loop at which whatever runs is killed."""
        self.quiet = False
        """Report nothing any more: the node itself ends."""

    @property
    def grace(self) -> float:
        """Seconds from SIGTERM to SIGKILL, unless whoever deletes the pod says otherwise."""
        seconds = self.pod.spec.termination_grace_period_seconds
        return DEFAULT_GRACE if seconds is None else float(seconds)

    @property
    def mounted_volumes(self) -> PodVolumes:
        """The volumes, which are there before the first container is created."""
        assert self.volumes is not None
        return self.volumes

    async def create_volumes(self) -> None:
        """`ContainerError` or `OSError` says what is missing."""
        self.fetch = await self.context.fetch_all(self.pod)
        self.volumes = PodVolumes(self.pod, self.folder, self.context.claims, self.fetch)
        await asyncio.to_thread(self.volumes.create)

    async def fetch_again(self) -> None:
        """What a container refers to may have been created; else what was fetched at the start stays."""
        with suppress(ContainerError):
            self.fetch = await self.context.fetch_all(self.pod)

    async def pause(self, seconds: float) -> None:
        """Wait, unless the pod is to stop."""
        try:
            await asyncio.wait_for(self.stopping.wait(), seconds)
        except TimeoutError:
            return

    def record(self, type: str, reason: str, message: str) -> None:
        self.context.writes.record_event(self.pod, type, reason, message)
