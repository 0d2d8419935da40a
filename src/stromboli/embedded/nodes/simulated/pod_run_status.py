"""The status of a simulated pod, from its containers."""

from __future__ import annotations

from stromboli.api import names
from stromboli.api.go_scalars import timestamp
from stromboli.embedded.nodes.node_types import Content, NodePod
from stromboli.embedded.nodes.pod_status_patches import (
    container_status,
    init_container_status,
    pod_condition,
    pod_ips,
    terminal_conditions,
)
from stromboli.embedded.nodes.simulated.pod_run import PodRun


class PodRunStatus:
    """Computes statuses of a pod; remembers the transition times of its conditions.

    Every status is whole, as an earlier one may be replaced before it is sent.
    """

    def __init__(self, pod: NodePod, run: PodRun) -> None:
        self._run = run
        self._transitions = {
            condition.type: (condition.status, timestamp(condition.last_transition_time.timestamp()))
            for condition in pod.status.conditions or ()
            if condition.last_transition_time is not None
        }

    def status(
        self, pod: NodePod, now: float, addresses: tuple[str, str], code: int | None = None
    ) -> Content:
        """As it is now; `code` is the pod's exit code if it has finished."""
        run = self._run
        status: Content = {
            "phase": self._phase(code),
            "startTime": timestamp(run.started),
            **pod_ips(*addresses),
            "conditions": [self._with_transition_time(each) for each in self._conditions(now, code)],
            "containerStatuses": [
                container_status(pod, each.spec, each.state, each.restarts, each.last) for each in run.mains
            ],
        }
        if run.inits:
            status["initContainerStatuses"] = [
                init_container_status(pod, each.spec, each.state, each.restarts, each.last)
                for each in run.inits
            ]
        return status

    def _phase(self, code: int | None) -> str:
        if code is not None:
            return names.POD_FAILED if code else names.POD_SUCCEEDED
        return names.POD_RUNNING if self._run.initialized else names.POD_PENDING

    def _conditions(self, now: float, code: int | None) -> list[Content]:
        if code is not None:
            final = terminal_conditions(now, failed=bool(code))
            return [each if each["type"] != "Initialized" else self._initialized(now, each) for each in final]
        unready = [main.name for main in self._run.mains if not main.runs]
        message = f"containers with unready status: [{' '.join(unready)}]" if unready else ""
        reason = "ContainersNotReady" if unready else ""
        return [
            pod_condition("PodReadyToStartContainers", True, now),
            self._initialized(now, pod_condition("Initialized", True, now)),
            pod_condition("Ready", not unready, now, reason, message),
            pod_condition("ContainersReady", not unready, now, reason, message),
        ]

    def _initialized(self, now: float, initialized: Content) -> Content:
        """The condition Initialized; the given one if all init containers are done."""
        incomplete = " ".join(init.name for init in self._run.inits if not init.initialized)
        message = f"containers with incomplete status: [{incomplete}]"
        if not incomplete:
            return initialized
        return pod_condition("Initialized", False, now, "ContainersNotInitialized", message)

    def _with_transition_time(self, condition: Content) -> Content:
        """A condition whose status is unchanged keeps its transition time."""
        type, status = condition["type"], condition["status"]
        previous, time = self._transitions.get(type, ("", ""))
        if previous != status:
            time = condition["lastTransitionTime"]
            self._transitions[type] = status, time
        return {"reason": None, "message": None, **condition, "lastTransitionTime": time}
