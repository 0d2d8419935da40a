"""The row of a pod; its status column is computed from its containers."""

from __future__ import annotations

from typing import Any

from stromboli.embedded.tables.age_text import age, duration_text, instant
from stromboli.embedded.tables.table_printer import (
    NONE,
    Cells,
    Content,
    condition,
    name_of,
    nested_map,
    printer,
)

FINISHED = ("Succeeded", "Failed")


def _print_row(pod: Content, now: float) -> Cells:
    spec, status = nested_map(pod, "spec"), nested_map(pod, "status")
    ready, total = _ready(pod)
    return [
        name_of(pod),
        f"{ready}/{total}",
        state_text(pod),
        _restarts(pod, now),
        age(pod, now),
        status.get("podIP") or NONE,
        spec.get("nodeName") or NONE,
        status.get("nominatedNodeName") or NONE,
        _gates(pod),
    ]


PODS = printer(
    "Name | Ready | Status | Restarts | Age | IP+ | Node+ | Nominated Node+ | Readiness Gates+", _print_row
)


def state_text(pod: Content) -> str:
    """The STATUS column: the phase, or something more precise."""
    status = nested_map(pod, "status")
    phase = status.get("phase") or "Unknown"
    text = str(status.get("reason") or phase)
    if condition(pod, "PodScheduled").get("reason") == "SchedulingGated":
        text = "SchedulingGated"
    initialising = _initialising(pod)
    if initialising:
        text = initialising
    if not initialising or condition(pod, "Initialized").get("status") == "True":
        text = _containers(pod, text)
    if nested_map(pod, "metadata").get("deletionTimestamp"):
        if status.get("reason") == "NodeLost":
            return "Unknown"
        return text if phase in FINISHED else "Terminating"
    return text


def _initialising(pod: Content) -> str:
    """The status of the init containers; empty when they have completed."""
    containers = nested_map(pod, "spec").get("initContainers") or []
    sidecars = _sidecars(pod)
    for index, status in enumerate(nested_map(pod, "status").get("initContainerStatuses") or ()):
        state = status.get("state") or {}
        terminated, waiting = state.get("terminated"), state.get("waiting")
        if terminated is not None and not terminated.get("exitCode"):
            continue
        if status.get("name") in sidecars and status.get("started"):
            continue
        if terminated is not None:
            return f"Init:{_termination(terminated)}"
        if waiting is not None and waiting.get("reason") not in (None, "", "PodInitializing"):
            return f"Init:{waiting['reason']}"
        return f"Init:{index}/{len(containers)}"
    return ""


def _containers(pod: Content, text: str) -> str:
    """The reason of the first container that waits or terminated, else the given status."""
    running = False
    for status in reversed(nested_map(pod, "status").get("containerStatuses") or []):
        state = status.get("state") or {}
        waiting, terminated = state.get("waiting"), state.get("terminated")
        if waiting is not None and waiting.get("reason"):
            text = str(waiting["reason"])
        elif terminated is not None:
            text = _termination(terminated)
        elif status.get("ready") and _runs(status):
            running = True
    if text == "Completed" and running:
        return "Running" if condition(pod, "Ready").get("status") == "True" else "NotReady"
    return text


def _termination(terminated: Content) -> str:
    if terminated.get("reason"):
        return str(terminated["reason"])
    if terminated.get("signal"):
        return f"Signal:{terminated['signal']}"
    return f"ExitCode:{terminated.get('exitCode', 0)}"


def _runs(status: Content) -> bool:
    return (status.get("state") or {}).get("running") is not None


def _sidecars(pod: Content) -> set[Any]:
    """Names of init containers that keep running."""
    return {
        container.get("name")
        for container in nested_map(pod, "spec").get("initContainers") or ()
        if container.get("restartPolicy") == "Always"
    }


def _ready(pod: Content) -> tuple[int, int]:
    spec, pod_status, sidecars = nested_map(pod, "spec"), nested_map(pod, "status"), _sidecars(pod)
    init_statuses = pod_status.get("initContainerStatuses") or ()
    statuses = [status for status in init_statuses if status.get("name") in sidecars]
    statuses += pod_status.get("containerStatuses") or []
    ready = sum(bool(status.get("ready")) and _runs(status) for status in statuses)
    return ready, len(spec.get("containers") or ()) + len(sidecars)


def _restarts(pod: Content, now: float) -> str:
    status = nested_map(pod, "status")
    statuses = status.get("containerStatuses") or []
    if _initialising(pod):
        statuses = status.get("initContainerStatuses") or []
    count = sum(int(status.get("restartCount") or 0) for status in statuses)
    ends = [instant(nested_map(status, "lastState", "terminated").get("finishedAt")) for status in statuses]
    last = max((end for end in ends if end is not None), default=None)
    return f"{count} ({duration_text(now - last)} ago)" if count and last is not None else str(count)


def _gates(pod: Content) -> str:
    gates = nested_map(pod, "spec").get("readinessGates") or []
    if not gates:
        return NONE
    true = sum(condition(pod, gate.get("conditionType", "")).get("status") == "True" for gate in gates)
    return f"{true}/{len(gates)}"
