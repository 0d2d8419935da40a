"""The containers of a pod on a real node, and the pod status that follows from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from stromboli.api import names
from stromboli.embedded.nodes import pod_status_patches
from stromboli.embedded.nodes.node_types import Content, NodePod
from stromboli.embedded.nodes.pod_addresses import LOCAL
from stromboli.embedded.nodes.real.container_process import ContainerProcess
from stromboli.kube.timestamps import timestamp


@dataclass(slots=True)
class Container:
    """A container and its state."""

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
    def terminated(self) -> Content | None:
        return self.state.get("terminated")

    @property
    def succeeded(self) -> bool:
        return self.terminated is not None and not self.terminated["exitCode"]

    @property
    def sidecar(self) -> bool:
        return self.spec.get("restartPolicy") == names.RESTART_ALWAYS


class StatusManager:
    """Computes the status of a pod from its containers; remembers the transition times of conditions."""

    def __init__(self, inits: list[Container], mains: list[Container], clock: Callable[[], float]) -> None:
        self._inits = inits
        self._mains = mains
        self._clock = clock
        self._started = clock()
        self._transitions: dict[str, tuple[str, str]] = {}

    def status(self, pod: NodePod, initialised: bool, stopping: bool) -> Content:
        """The status of a pod that has not finished."""
        now = self._clock()
        waiting = [main for main in self._mains if "waiting" in main.state and not main.last]
        started = initialised and not waiting
        ready = not stopping and all(container.process is not None for container in self._mains)
        uninitialised = "" if initialised else "ContainersNotInitialized"
        reason = "" if ready else "ContainersNotReady"
        conditions = [
            pod_status_patches.pod_condition("PodReadyToStartContainers", True, now),
            pod_status_patches.pod_condition("Initialized", initialised, now, uninitialised),
            pod_status_patches.pod_condition("Ready", ready, now, reason),
            pod_status_patches.pod_condition("ContainersReady", ready, now, reason),
        ]
        return self._pod_status(pod, "Running" if started else "Pending", conditions)

    def final_status(self, pod: NodePod, failed: bool, expired: bool) -> Content:
        """The status of a finished pod. A container that never started has failed."""
        for container in [*self._inits, *self._mains]:
            if "waiting" in container.state:
                container.state = container.last or container.state
        failed = failed or not all(container.succeeded for container in self._mains)
        conditions = pod_status_patches.terminal_conditions(self._clock(), failed)
        status = self._pod_status(pod, "Failed" if failed else "Succeeded", conditions)
        return status | pod_status_patches.DEADLINE_EXCEEDED if expired else status

    def _pod_status(self, pod: NodePod, phase: str, conditions: list[Content]) -> Content:
        status: Content = {
            "phase": phase,
            "startTime": timestamp(self._started),
            **pod_status_patches.pod_ips(LOCAL, LOCAL),
            "conditions": [self._with_transition_time(condition) for condition in conditions],
            "containerStatuses": self._container_statuses(pod, self._mains),
        }
        if self._inits:
            status["initContainerStatuses"] = self._container_statuses(pod, self._inits)
        return status

    def _with_transition_time(self, condition: Content) -> Content:
        """A condition whose status is unchanged keeps its transition time."""
        type, status = condition["type"], condition["status"]
        previous, time = self._transitions.get(type, ("", ""))
        if previous != status:
            time = condition["lastTransitionTime"]
            self._transitions[type] = status, time
        return {"reason": None, "message": None, **condition, "lastTransitionTime": time}

    @staticmethod
    def _container_statuses(pod: NodePod, containers: list[Container]) -> list[Content]:
        return [
            pod_status_patches.container_status(pod, each.spec, each.state, each.restarts, each.last)
            for each in containers
        ]
