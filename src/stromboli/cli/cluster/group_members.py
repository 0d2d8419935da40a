"""PodGroups and their pods: which belong together, in which queue they are, and why they wait."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from stromboli.api import names
from stromboli.api.wait_messages import headline
from stromboli.cli.cluster.cluster_kinds import Manifest, name_of

UNSCHEDULABLE = "Unschedulable"


def marks_of(manifest: Manifest) -> dict[str, str]:
    """What controllers noted on an object: its labels and, before them, its annotations."""
    metadata = manifest.get("metadata") or {}
    return {**(metadata.get("labels") or {}), **(metadata.get("annotations") or {})}


def group_of(pod: Manifest) -> str:
    """The name of a pod's PodGroup; empty if it has none."""
    return str(((pod.get("metadata") or {}).get("annotations") or {}).get(names.GROUP_NAME) or "")


def job_of_pod(pod: Manifest) -> str:
    """The name of a pod's job; empty if it belongs to none."""
    return str(marks_of(pod).get(names.JOB_NAME) or "")


def queue_of_pod(pod: Manifest) -> str:
    """The queue that is noted on a pod; empty if none is."""
    marks = marks_of(pod)
    return str(marks.get(names.JOB_QUEUE_NAME) or marks.get(names.QUEUE_NAME) or "")


def queue_of(group: Manifest) -> str:
    return str((group.get("spec") or {}).get("queue") or names.DEFAULT_QUEUE)


def members_of(group: Manifest, pods: Iterable[Manifest]) -> list[Manifest]:
    """The pods of a PodGroup, by name."""
    name = name_of(group)
    return sorted((pod for pod in pods if group_of(pod) == name), key=name_of)


def condition_message(conditions: object) -> str:
    """What the scheduler last said about why pods are not placed; empty once they are."""
    listed = conditions if isinstance(conditions, list) else []
    holding = [each for each in listed if isinstance(each, dict) and each.get("status") == "True"]
    latest = max(holding, key=lambda each: str(each.get("lastTransitionTime") or ""), default={})
    return str(latest.get("message") or "") if latest.get("type") == UNSCHEDULABLE else ""


def wait_reason(group: Manifest, members: Sequence[Manifest] | None = None) -> str:
    """Why a PodGroup waits, in a few words; empty if it does not. `members` are its pods, if they are known."""
    status, spec = group.get("status") or {}, group.get("spec") or {}
    phase, minimum = status.get("phase") or names.GROUP_PENDING, spec.get("minMember") or 0
    if phase not in (names.GROUP_PENDING, names.GROUP_INQUEUE):
        return ""
    if said := headline(condition_message(status.get("conditions"))):
        return said
    if members is not None and len(members) < minimum and phase == names.GROUP_INQUEUE:
        return f"{len(members)} of the {minimum} pods that must start together exist"
    if phase == names.GROUP_PENDING:
        return f"queue {queue_of(group)} has not let it in yet"
    return "it was let in, and its pods are not placed yet"
