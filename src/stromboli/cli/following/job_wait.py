"""Why a job does not run yet, in the words of its status, its PodGroup and its pods."""

from __future__ import annotations

from typing import Any

from stromboli.api import names
from stromboli.api.predecessors import ENDED
from stromboli.cli.following.pod_trouble import joined, trouble

Manifest = dict[str, Any]


def state_of(job: Manifest | None) -> Manifest:
    state = ((job or {}).get("status") or {}).get("state")
    return state if isinstance(state, dict) else {}


def phase_of(job: Manifest | None) -> str:
    """Of a job; empty until its controller has seen it."""
    return str(state_of(job).get("phase") or "")


def message_of(job: Manifest | None) -> str:
    """The reason and the message that a job gives for its phase."""
    state = state_of(job)
    return joined(state.get("reason"), state.get("message"))


def wait_sentence(job: Manifest, group: Manifest | None, pods: list[Manifest], told: str = "") -> str:
    """Why it waits; empty once it runs. `told` is the latest warning about the job, if nothing else says why."""
    name, phase = (job.get("metadata") or {}).get("name"), phase_of(job)
    if phase in (*ENDED, "Running"):
        return ""
    why = message_of(job) if phase in ("", "Pending") else ""
    why = why or _group_message(group) or _pod_trouble(pods) or told
    if not why and not phase and group is None:
        why = "no controller has seen it yet"
    elif not why and pods:
        running = sum((pod.get("status") or {}).get("phase") == names.POD_RUNNING for pod in pods)
        why = f"{running} of {len(pods)} pods run"
    return f"{name} {(phase or 'Pending').lower()}: {why}" if why else f"{name} {phase.lower()}"


def _group_message(group: Manifest | None) -> str:
    """The latest condition of the scheduler that says why its pods are not placed."""
    conditions = ((group or {}).get("status") or {}).get("conditions") or ()
    holding = [
        condition
        for condition in conditions
        if isinstance(condition, dict) and condition.get("status") == "True"
    ]
    if not holding:
        return ""
    latest = max(holding, key=lambda condition: str(condition.get("lastTransitionTime") or ""))
    return str(latest.get("message") or "") if latest.get("type") == "Unschedulable" else ""


def _pod_trouble(pods: list[Manifest]) -> str:
    """What is wrong with the first pod that something is wrong with."""
    for pod in pods:
        if text := trouble(pod.get("status") or {}):
            return f"pod {(pod.get('metadata') or {}).get('name')}: {text}"
    return ""
