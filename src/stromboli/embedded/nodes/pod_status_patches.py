"""Patches of a pod's status, as kubelets write them."""

from __future__ import annotations

from typing import Any, NamedTuple

from stromboli.api import names
from stromboli.api.go_scalars import timestamp
from stromboli.embedded.nodes.node_types import Content, NodePod

READY_CONDITIONS = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady")

_TAINT_EVICTION = "Taint manager: deleting due to NoExecute taint"
_EXPIRED = "Pod was active on the node longer than the specified deadline"
KILLED = 137
"""Exit code of a container that was killed."""
DEADLINE_EXCEEDED = {"reason": "DeadlineExceeded", "message": _EXPIRED}


class Termination(NamedTuple):
    """How a container terminated."""

    code: int
    at: float
    started: float
    signal: int = 0
    message: str = ""
    out_of_memory: bool = False
    """The kernel killed it, as it wanted more memory than its limit."""
    not_started: bool = False
    """Its command could not be started."""

    @property
    def reason(self) -> str:
        if self.not_started:
            return "StartError"
        if self.out_of_memory:
            return "OOMKilled"
        return "Error" if self.code or self.signal else "Completed"

    def state(self, id: str) -> Content:
        terminated: Content = {
            "exitCode": self.code,
            "reason": self.reason,
            "startedAt": timestamp(self.started),
            "finishedAt": timestamp(self.at),
            "containerID": id,
        }
        if self.signal:
            terminated["signal"] = self.signal
        if self.message:
            terminated["message"] = self.message
        return {"terminated": terminated}


def container_id(pod: NodePod, name: str, restarts: int = 0) -> str:
    return f"stromboli://{pod.uid}-{name}-{restarts}"


def pod_condition(type: str, true: bool, now: float, reason: str = "", message: str = "") -> Content:
    condition: Content = {
        "type": type,
        "status": "True" if true else "False",
        "lastTransitionTime": timestamp(now),
    }
    if reason:
        condition["reason"] = reason
    if message:
        condition["message"] = message
    return condition


def changed(pod: NodePod, conditions: list[Content]) -> list[Content]:
    """Those conditions that differ from the pod's: an unchanged one keeps its transition time."""
    current = {old.type: (old.status, old.reason, old.message) for old in pod.status.conditions or ()}
    return [
        new
        for new in conditions
        if current.get(new["type"]) != (new["status"], new.get("reason", ""), new.get("message", ""))
    ]


def container_status(
    pod: NodePod, spec: Content, state: Content, restarts: int = 0, last: Content | None = None
) -> Content:
    name, runs = str(spec.get("name", "")), "running" in state
    status: Content = {
        "name": name,
        "image": str(spec.get("image", "")),
        "imageID": "",
        "ready": runs,
        "started": runs,
        "restartCount": restarts,
        "state": state,
        "lastState": last or {},
    }
    if "waiting" not in state:
        status["containerID"] = container_id(pod, name, restarts)
    return status


def init_container_status(
    pod: NodePod, spec: Content, state: Content, restarts: int = 0, last: Content | None = None
) -> Content:
    """As of any container, but one that is no sidecar is ready when it has succeeded."""
    status = container_status(pod, spec, state, restarts, last)
    if spec.get("restartPolicy") != names.RESTART_ALWAYS:
        status["ready"] = state.get("terminated", {}).get("exitCode") == 0
    return status


def allocated_gpus(cards: tuple[str, ...]) -> Content:
    """The GPUs of a container, as its status tells them."""
    if not cards:
        return {}
    resources = [{"resourceID": card, "health": "Healthy"} for card in cards]
    return {"allocatedResourcesStatus": [{"name": names.NVIDIA_GPU, "resources": resources}]}


def pod_ips(ip: str, host: str) -> Content:
    return {"hostIP": host, "hostIPs": [{"ip": host}], "podIP": ip, "podIPs": [{"ip": ip}]}


def running(pod: NodePod, now: float, ip: str, host: str) -> Content:
    """All containers run, and all init containers completed."""
    started = {"running": {"startedAt": timestamp(now)}}
    completed = Termination(0, now, now)
    status: Content = {
        "phase": names.POD_RUNNING,
        "startTime": timestamp(now),
        **pod_ips(ip, host),
        "conditions": changed(pod, [pod_condition(type, True, now) for type in READY_CONDITIONS]),
        "containerStatuses": [container_status(pod, spec, started) for spec in pod.spec.containers],
    }
    if pod.spec.init_containers:
        status["initContainerStatuses"] = [
            init_container_status(
                pod,
                spec,
                started if spec.get("restartPolicy") == "Always" else _terminated(pod, spec, completed),
            )
            for spec in pod.spec.init_containers
        ]
    return status


def finished(pod: NodePod, now: float, started: float, code: int) -> Content:
    """All containers terminated with this exit code."""
    termination = Termination(code, now, started)
    return {
        "phase": names.POD_FAILED if code else names.POD_SUCCEEDED,
        "conditions": changed(pod, terminal_conditions(now, failed=bool(code))),
        "containerStatuses": [
            container_status(pod, spec, _terminated(pod, spec, termination)) for spec in pod.spec.containers
        ],
    }


def killed(pod: NodePod, now: float, started: float) -> Content:
    """Its containers were killed, because it is being deleted."""
    return finished(pod, now, started, KILLED)


def expired(pod: NodePod, now: float, started: float) -> Content:
    """It ran longer than `activeDeadlineSeconds` allows."""
    return {**finished(pod, now, started, KILLED), **DEADLINE_EXCEEDED}


def terminal_conditions(now: float, failed: bool) -> list[Content]:
    """Conditions of a pod that succeeded or failed."""
    reason = "PodFailed" if failed else "PodCompleted"
    return [
        pod_condition("PodReadyToStartContainers", False, now),
        pod_condition("Initialized", True, now, "" if failed else reason),
        pod_condition("Ready", False, now, reason),
        pod_condition("ContainersReady", False, now, reason),
    ]


def node_lost(now: float, node: str) -> Content:
    """Its node failed, and the pod with it."""
    message = f"Node {node} which was running the pod is not reachable"
    return {
        "phase": names.POD_FAILED,
        "reason": "NodeLost",
        "message": message,
        "conditions": [
            pod_condition("Ready", False, now, "NodeNotReady", message),
            pod_condition("ContainersReady", False, now, "NodeNotReady", message),
            pod_condition("DisruptionTarget", True, now, "DeletionByTaintManager", _TAINT_EVICTION),
        ],
    }


def unready(now: float) -> Content:
    """Its node is unreachable, and the pod's state unknown."""
    return {"conditions": [pod_condition("Ready", False, now, "NodeNotReady")]}


def _terminated(pod: NodePod, spec: Content, termination: Termination) -> Content:
    return termination.state(container_id(pod, str(spec.get("name"))))


def patch(status: Content, uid: str) -> dict[str, Any]:
    """A patch that applies to the pod with this uid alone, not to a later one of its name."""
    return {"metadata": {"uid": uid}, "status": status}
