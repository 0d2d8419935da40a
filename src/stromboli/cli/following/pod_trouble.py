"""What is wrong with a pod, and with which exit code it failed, by its status."""

from __future__ import annotations

from typing import Any

from stromboli.api import names

Manifest = dict[str, Any]
_NORMAL = ("ContainerCreating", "PodInitializing", "Completed")


def trouble(status: Manifest) -> str:
    """What is wrong with a pod, with the reason that its node or the scheduler gives; empty if nothing is."""
    if status.get("phase") == names.POD_FAILED and (status.get("reason") or status.get("message")):
        return joined(status.get("reason") or names.POD_FAILED, status.get("message"))
    for container in status.get("containerStatuses") or ():
        state = container.get("state") or {}
        waiting, ended = state.get("waiting") or {}, state.get("terminated") or {}
        if ended.get("exitCode"):
            return joined(
                ended.get("reason") or "Error", ended.get("message"), f"exit code {ended['exitCode']}"
            )
        if waiting.get("reason") and waiting["reason"] not in _NORMAL:
            return joined(waiting["reason"], waiting.get("message"))
        last = (container.get("lastState") or {}).get("terminated") or {}
        if container.get("restartCount") and last:
            reason = last.get("reason") or f"exit code {last.get('exitCode')}"
            return f"restarted after {reason} ({container['restartCount']})"
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return joined(condition.get("reason") or "Unschedulable", condition.get("message"))
    return ""


def joined(*parts: object) -> str:
    return ": ".join(str(part) for part in parts if part)


def failure_code(status: Manifest) -> int:
    """The exit code of the container that failed; 1 for a pod that failed otherwise, 0 for one that did not."""
    for key in ("initContainerStatuses", "containerStatuses"):
        for container in status.get(key) or ():
            code = ((container.get("state") or {}).get("terminated") or {}).get("exitCode")
            if isinstance(code, int) and code:
                return code
    return 1 if status.get("phase") == names.POD_FAILED else 0


def ended_at(status: Manifest) -> str:
    """When the last container ended, as the API server writes it; empty if none has."""
    times = [
        str(((container.get("state") or {}).get("terminated") or {}).get("finishedAt") or "")
        for container in status.get("containerStatuses") or ()
    ]
    return max(times, default="")
