"""The row of a pod: what it does, told in one word taken from its containers."""

from __future__ import annotations

from typing import Any

from stromboli.embedded.tables.age_text import age, ago, instant
from stromboli.embedded.tables.table_printer import (
    NONE,
    Cells,
    Content,
    TablePrinter,
    condition,
    name_of,
    nested_map,
    printer,
)

FINISHED = ("Succeeded", "Failed")


def _fill(pod: Content, now: float) -> Cells:
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


PODS: TablePrinter = printer(
    "Name | Ready | Status | Restarts | Age | IP+ | Node+ | Nominated Node+ | Readiness Gates+", _fill
)


def state_text(pod: Content) -> str:
    """What stands under STATUS: the phase, or what says more than the phase does."""
    status = nested_map(pod, "status")
    phase = status.get("phase") or "Unknown"
    shown = str(status.get("reason") or phase)
    if condition(pod, "PodScheduled").get("reason") == "SchedulingGated":
        shown = "SchedulingGated"
    initialising = _initialising(pod)
    if initialising:
        shown = initialising
    if not initialising or condition(pod, "Initialized").get("status") == "True":
        shown = _containers(pod, shown)
    if nested_map(pod, "metadata").get("deletionTimestamp"):
        if status.get("reason") == "NodeLost":
            return "Unknown"
        return shown if phase in FINISHED else "Terminating"
    return shown


def _initialising(pod: Content) -> str:
    """How far the init containers are; empty when they are through."""
    wanted = nested_map(pod, "spec").get("initContainers") or []
    sidecars = _sidecars(pod)
    for index, status in enumerate(nested_map(pod, "status").get("initContainerStatuses") or ()):
        state = status.get("state") or {}
        over, waits = state.get("terminated"), state.get("waiting")
        if over is not None and not over.get("exitCode"):
            continue
        if status.get("name") in sidecars and status.get("started"):
            continue
        if over is not None:
            return f"Init:{_ending(over)}"
        if waits is not None and waits.get("reason") not in (None, "", "PodInitializing"):
            return f"Init:{waits['reason']}"
        return f"Init:{index}/{len(wanted)}"
    return ""


def _containers(pod: Content, shown: str) -> str:
    """The first container that has something to say speaks for all."""
    running = False
    for status in reversed(nested_map(pod, "status").get("containerStatuses") or []):
        state = status.get("state") or {}
        waits, over = state.get("waiting"), state.get("terminated")
        if waits is not None and waits.get("reason"):
            shown = str(waits["reason"])
        elif over is not None:
            shown = _ending(over)
        elif status.get("ready") and state.get("running") is not None:
            running = True
    if shown == "Completed" and running:
        return "Running" if condition(pod, "Ready").get("status") == "True" else "NotReady"
    return shown


def _ending(over: Content) -> str:
    if over.get("reason"):
        return str(over["reason"])
    return f"Signal:{over['signal']}" if over.get("signal") else f"ExitCode:{over.get('exitCode', 0)}"


def _sidecars(pod: Content) -> set[Any]:
    """Init containers that stay."""
    return {
        container.get("name")
        for container in nested_map(pod, "spec").get("initContainers") or ()
        if container.get("restartPolicy") == "Always"
    }


def _ready(pod: Content) -> tuple[int, int]:
    spec, status = nested_map(pod, "spec"), nested_map(pod, "status")
    sidecars = _sidecars(pod)
    statuses = [
        status for status in status.get("initContainerStatuses") or () if status.get("name") in sidecars
    ]
    statuses += status.get("containerStatuses") or []
    ready = sum(
        1
        for status in statuses
        if status.get("ready") and (status.get("state") or {}).get("running") is not None
    )
    return ready, len(spec.get("containers") or ()) + len(sidecars)


def _restarts(pod: Content, now: float) -> str:
    status = nested_map(pod, "status")
    statuses = status.get("containerStatuses") or []
    if _initialising(pod):
        statuses = status.get("initContainerStatuses") or []
    count = sum(int(status.get("restartCount") or 0) for status in statuses)
    ends = [
        end
        for status in statuses
        if (end := ((status.get("lastState") or {}).get("terminated") or {}).get("finishedAt")) is not None
        and instant(end) is not None
    ]
    if not count or not ends:
        return str(count)
    return f"{count} ({ago(max(ends, key=lambda end: instant(end) or 0), now)} ago)"


def _gates(pod: Content) -> str:
    gates = nested_map(pod, "spec").get("readinessGates") or []
    if not gates:
        return NONE
    true = sum(condition(pod, gate.get("conditionType", "")).get("status") == "True" for gate in gates)
    return f"{true}/{len(gates)}"
