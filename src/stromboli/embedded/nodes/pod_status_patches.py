"""What a node tells about a pod, in the form in which kubelets tell it: a patch of the pod's status."""

from __future__ import annotations

from typing import Any, NamedTuple

from stromboli.embedded.nodes.node_types import Content, NodePod
from stromboli.kube.timestamps import timestamp

READY_CONDITIONS = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady")

EXPIRED = "Pod was active on the node longer than the specified deadline"


class Termination(NamedTuple):
    """How a container came to its end."""

    code: int
    at: float
    begun: float
    signal: int = 0
    message: str = ""

    @property
    def reason(self) -> str:
        return "Error" if self.code or self.signal else "Completed"

    def state(self, id: str) -> Content:
        terminated: Content = {
            "exitCode": self.code,
            "reason": self.reason,
            "startedAt": timestamp(self.begun),
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


def condition(type: str, true: bool, now: float, reason: str = "", message: str = "") -> Content:
    made: Content = {
        "type": type,
        "status": "True" if true else "False",
        "lastProbeTime": None,
        "lastTransitionTime": timestamp(now),
    }
    if reason:
        made["reason"] = reason
    if message:
        made["message"] = message
    return made


def changed(pod: NodePod, wanted: list[Content]) -> list[Content]:
    """Of conditions, those that say something new: an unchanged one keeps the time at which it came to hold."""
    old = {
        old_condition.type: (old_condition.status, old_condition.reason, old_condition.message)
        for old_condition in pod.status.conditions or ()
    }
    return [
        condition
        for condition in wanted
        if old.get(condition["type"])
        != (condition["status"], condition.get("reason", ""), condition.get("message", ""))
    ]


def container(
    pod: NodePod, spec: Content, state: Content, restarts: int = 0, last: Content | None = None
) -> Content:
    """The status of one container."""
    name, runs = str(spec.get("name", "")), "running" in state
    made: Content = {
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
        made["containerID"] = container_id(pod, name, restarts)
    return made


def running(pod: NodePod, now: float, ip: str, host: str) -> Content:
    """All containers run, and those before them are through."""
    started = {"running": {"startedAt": timestamp(now)}}
    done = Termination(0, now, now)
    status: Content = {
        "phase": "Running",
        "startTime": timestamp(now),
        "hostIP": host,
        "hostIPs": [{"ip": host}],
        "podIP": ip,
        "podIPs": [{"ip": ip}],
        "conditions": changed(pod, [condition(type, True, now) for type in READY_CONDITIONS]),
        "containerStatuses": [container(pod, spec, started) for spec in pod.spec.containers],
    }
    if pod.spec.init_containers:
        status["initContainerStatuses"] = [
            container(
                pod, spec, started if _sidecar(spec) else done.state(container_id(pod, str(spec.get("name"))))
            )
            for spec in pod.spec.init_containers
        ]
    return status


def finished(pod: NodePod, now: float, begun: float, code: int) -> Content:
    """All containers came to the same end."""
    ending = Termination(code, now, begun)
    return {
        "phase": "Failed" if code else "Succeeded",
        "conditions": over(pod, now, failed=bool(code)),
        "containerStatuses": [
            container(pod, spec, ending.state(container_id(pod, str(spec.get("name")))))
            for spec in pod.spec.containers
        ],
    }


def expired(pod: NodePod, now: float, begun: float) -> Content:
    """It ran longer than `activeDeadlineSeconds` allows."""
    return {**finished(pod, now, begun, 137), "reason": "DeadlineExceeded", "message": EXPIRED}


def over(pod: NodePod, now: float, failed: bool) -> list[Content]:
    """What is new about the conditions of a pod that is at its end."""
    return changed(pod, ending(now, failed))


def ending(now: float, failed: bool) -> list[Content]:
    """Conditions of a pod that is at its end."""
    reason = "PodFailed" if failed else "PodCompleted"
    return [
        condition("PodReadyToStartContainers", False, now),
        condition("Initialized", True, now, "" if failed else reason),
        condition("Ready", False, now, reason),
        condition("ContainersReady", False, now, reason),
    ]


def lost(pod: NodePod, now: float, node: str) -> Content:
    """Its node is dead, and it with it."""
    message = f"Node {node} which was running the pod is not reachable"
    return {
        "phase": "Failed",
        "reason": "NodeLost",
        "message": message,
        "conditions": [
            condition("Ready", False, now, "NodeNotReady", message),
            condition("ContainersReady", False, now, "NodeNotReady", message),
            condition(
                "DisruptionTarget",
                True,
                now,
                "DeletionByTaintManager",
                "Taint manager: deleting due to NoExecute taint",
            ),
        ],
    }


def unready(now: float) -> Content:
    """Its node does not answer; nobody knows what became of it."""
    return {"conditions": [condition("Ready", False, now, "NodeNotReady")]}


def _sidecar(spec: Content) -> bool:
    return bool(spec.get("restartPolicy") == "Always")


def patch(status: Content, uid: str) -> dict[str, Any]:
    """For this very pod, not for another one of its name."""
    return {"metadata": {"uid": uid}, "status": status}
