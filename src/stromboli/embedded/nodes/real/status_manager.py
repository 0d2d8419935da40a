"""The status of a pod on a real node, as it follows from its containers: phase, conditions, container statuses."""

from __future__ import annotations

from collections.abc import Callable

from stromboli.api import names
from stromboli.api.go_scalars import timestamp
from stromboli.embedded.nodes import pod_status_patches
from stromboli.embedded.nodes.node_types import Content, NodePod
from stromboli.embedded.nodes.pod_addresses import LOCAL
from stromboli.embedded.nodes.pod_status_patches import pod_condition
from stromboli.embedded.nodes.real.containers import Container
from stromboli.embedded.nodes.real.restart_policy import is_sidecar

READINESS_GATES_NOT_READY = "ReadinessGatesNotReady"


class StatusManager:
    """Computes the status of a pod from its containers; remembers the transition times of conditions."""

    def __init__(
        self, pod: NodePod, inits: list[Container], mains: list[Container], clock: Callable[[], float]
    ) -> None:
        self._inits = inits
        self._mains = mains
        self._clock = clock
        self.limits_problem = ""
        """Why limits of CPU and memory are not enforced."""
        began = pod.status.start_time
        self.started = began.timestamp() if began is not None else clock()
        """When a node first had the pod."""
        self._transitions = {
            old.type: (old.status, timestamp(old.last_transition_time.timestamp()))
            for old in pod.status.conditions or ()
            if old.last_transition_time is not None
        }

    def status(self, pod: NodePod, initialised: bool) -> Content:
        """The status of a pod that has not finished."""
        waiting = [main for main in self._mains if "waiting" in main.state and not main.last]
        conditions = self._conditions(pod, initialised)
        return self._pod_status(
            pod, names.POD_RUNNING if initialised and not waiting else names.POD_PENDING, conditions
        )

    def final_status(self, pod: NodePod, failed: bool, expired: bool) -> Content:
        """The status of a finished pod. A container that never started has failed."""
        for container in [*self._inits, *self._mains]:
            if "waiting" in container.state:
                container.state = container.last or container.state
        failed = failed or not all(container.succeeded for container in self._mains)
        conditions = pod_status_patches.terminal_conditions(self._clock(), failed)
        status = self._pod_status(pod, names.POD_FAILED if failed else names.POD_SUCCEEDED, conditions)
        return status | pod_status_patches.DEADLINE_EXCEEDED if expired else status

    def _conditions(self, pod: NodePod, initialised: bool) -> list[Content]:
        now = self._clock()
        incomplete = [init.name for init in self._inits if not (init.succeeded or init.started.is_set())]
        sidecars = [init for init in self._inits if is_sidecar(init.spec)]
        unready = [container.name for container in [*sidecars, *self._mains] if not container.ready]
        problem = ("ContainersNotReady", f"containers with unready status: {_listed(unready)}")
        containers = problem if unready else ("", "")
        gates = unmet_gates(pod)
        ready = containers if unready or not gates else (READINESS_GATES_NOT_READY, "; ".join(gates))
        uninitialised = (
            "ContainersNotInitialized",
            f"containers with incomplete status: {_listed(incomplete)}",
        )
        return [
            pod_condition("PodReadyToStartContainers", True, now),
            pod_condition("Initialized", initialised, now, *(() if initialised else uninitialised)),
            pod_condition("Ready", not ready[0], now, *ready),
            pod_condition("ContainersReady", not unready, now, *containers),
        ]

    def _pod_status(self, pod: NodePod, phase: str, conditions: list[Content]) -> Content:
        if self.limits_problem:
            reason = names.LIMITS_NOT_ENFORCED
            conditions.append(
                pod_condition(
                    names.CONDITION_LIMITS_ENFORCED, False, self._clock(), reason, self.limits_problem
                )
            )
        status: Content = {
            "phase": phase,
            "startTime": timestamp(self.started),
            **pod_status_patches.pod_ips(LOCAL, LOCAL),
            "conditions": [self._with_transition_time(condition) for condition in conditions],
            "containerStatuses": [container.status(pod) for container in self._mains],
        }
        if self._inits:
            status["initContainerStatuses"] = [container.status(pod, init=True) for container in self._inits]
        return status

    def _with_transition_time(self, condition: Content) -> Content:
        """A condition whose status is unchanged keeps its transition time."""
        type, status = condition["type"], condition["status"]
        previous, time = self._transitions.get(type, ("", ""))
        if previous != status:
            time = condition["lastTransitionTime"]
            self._transitions[type] = status, time
        return {"reason": None, "message": None, **condition, "lastTransitionTime": time}


def unmet_gates(pod: NodePod) -> list[str]:
    """Of `spec.readinessGates` those whose conditions, which others set, are not True."""
    statuses = {condition.type: condition.status for condition in pod.status.conditions or ()}
    unmet = []
    for gate in pod.spec.readiness_gates or ():
        type = str(gate.get("conditionType", ""))
        if type not in statuses:
            unmet.append(f'corresponding condition of pod readiness gate "{type}" does not exist.')
        elif statuses[type] != "True":
            unmet.append(f'the status of pod readiness gate "{type}" is not "True", but {statuses[type]}')
    return unmet


def _listed(names: list[str]) -> str:
    return f"[{' '.join(names)}]"
