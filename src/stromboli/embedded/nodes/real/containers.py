"""The containers of a pod on a real node, how they stand, and what is told of them."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from stromboli.api import names
from stromboli.embedded.nodes import pod_status_patches
from stromboli.embedded.nodes.node_types import Content, NodePod
from stromboli.embedded.nodes.pod_addresses import LOCAL
from stromboli.embedded.nodes.real.container_environment import Fetch
from stromboli.embedded.nodes.real.container_process import ContainerProcess
from stromboli.embedded.nodes.real.process_guardian import ProcessGuardian
from stromboli.embedded.nodes.write_queue import WriteQueue
from stromboli.kube.timestamps import timestamp


@dataclass(frozen=True, slots=True)
class NodeContext:
    """What all pods of a node share."""

    pods: Path
    claims: Path
    guardian: ProcessGuardian
    writes: WriteQueue
    fetch_all: Callable[[NodePod], Awaitable[Fetch]]
    first_pause: float = 1.0
    longest_pause: float = 60.0
    clock: Callable[[], float] = time.time


@dataclass(slots=True)
class Container:
    """One container of the pod, and how it stands."""

    spec: Content
    restarts: int = 0
    state: Content = field(default_factory=lambda: {"waiting": {"reason": "PodInitializing"}})
    last: Content | None = None
    process: ContainerProcess | None = None
    failures: int = 0

    @property
    def name(self) -> str:
        return str(self.spec.get("name", ""))

    @property
    def ending(self) -> Content | None:
        return self.state.get("terminated")

    @property
    def sidecar(self) -> bool:
        return self.spec.get("restartPolicy") == names.RESTART_ALWAYS


class StatusManager:
    """Puts the statuses of a pod together; remembers since when each condition has held."""

    def __init__(self, inits: list[Container], mains: list[Container], clock: Callable[[], float]) -> None:
        self._inits = inits
        self._mains = mains
        self._clock = clock
        self._begun = clock()
        self._since: dict[str, tuple[str, str]] = {}

    def now(self, pod: NodePod, initialised: bool, stopping: bool) -> Content:
        """How the pod stands while it has not come to its end."""
        now = self._clock()
        started = initialised and all(
            "waiting" not in container.state or container.last for container in self._mains
        )
        ready = not stopping and all(container.process is not None for container in self._mains)
        waits = "" if initialised else "ContainersNotInitialized"
        reason = "" if ready else "ContainersNotReady"
        conditions = [
            pod_status_patches.condition("PodReadyToStartContainers", True, now),
            pod_status_patches.condition("Initialized", initialised, now, waits),
            pod_status_patches.condition("Ready", ready, now, reason),
            pod_status_patches.condition("ContainersReady", ready, now, reason),
        ]
        return self._whole(pod, "Running" if started else "Pending", conditions)

    def end(self, pod: NodePod, failed: bool, expired: bool) -> Content:
        """How the pod ended. A container that never began has failed."""
        for container in [*self._inits, *self._mains]:
            if "waiting" in container.state:
                container.state = container.last or container.state
        codes = [
            container.ending["exitCode"] if container.ending is not None else 137 for container in self._mains
        ]
        failed = failed or any(codes)
        conditions = pod_status_patches.ending(self._clock(), failed)
        status = self._whole(pod, "Failed" if failed else "Succeeded", conditions)
        return status | (
            {"reason": "DeadlineExceeded", "message": pod_status_patches.EXPIRED} if expired else {}
        )

    def _whole(self, pod: NodePod, phase: str, conditions: list[Content]) -> Content:
        status: Content = {
            "phase": phase,
            "startTime": timestamp(self._begun),
            "hostIP": LOCAL,
            "hostIPs": [{"ip": LOCAL}],
            "podIP": LOCAL,
            "podIPs": [{"ip": LOCAL}],
            "conditions": [self._stamped(condition) for condition in conditions],
            "containerStatuses": self._shown(pod, self._mains),
        }
        if self._inits:
            status["initContainerStatuses"] = self._shown(pod, self._inits)
        return status

    def _stamped(self, condition: Content) -> Content:
        """A condition that held before keeps the time at which it came to hold."""
        type, status = condition["type"], condition["status"]
        held, since = self._since.get(type, ("", ""))
        if held != status:
            since = condition["lastTransitionTime"]
            self._since[type] = status, since
        return {"reason": None, "message": None, **condition, "lastTransitionTime": since}

    @staticmethod
    def _shown(pod: NodePod, containers: list[Container]) -> list[Content]:
        return [
            pod_status_patches.container(
                pod, container.spec, container.state, container.restarts, container.last
            )
            for container in containers
        ]
