"""What tables show of a job, and how it is read from the object."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from stromboli.api import names
from stromboli.api.predecessors import ENDED
from stromboli.api.wait_messages import headline
from stromboli.cli.cluster.cluster_kinds import Manifest, name_of
from stromboli.cli.cluster.object_output import NAME_COLUMN, NONE, Column
from stromboli.cli.following.job_wait import message_of, phase_of, state_of, wait_sentence
from stromboli.embedded.tables.age_text import age, duration_text, instant

PENDING = "Pending"
RUNNING = "Running"
WAITING = ("", PENDING, "Restarting")
NO_GROUPS: Mapping[str, Manifest] = {}


def spec_of(manifest: Manifest) -> Manifest:
    return _map(manifest.get("spec"))


def status_of_job(job: Manifest) -> Manifest:
    return _map(job.get("status"))


def _map(value: object) -> Manifest:
    return value if isinstance(value, dict) else {}


def tasks_of(job: Manifest) -> list[Manifest]:
    tasks = spec_of(job).get("tasks")
    return [task for task in tasks if isinstance(task, dict)] if isinstance(tasks, list) else []


def whole_number(value: object) -> int:
    """A number of an object; 0 for what is none."""
    return value if isinstance(value, int) else 0


def total_pods(job: Manifest) -> int:
    return sum(whole_number(task.get("replicas")) for task in tasks_of(job))


def shown_phase(job: Manifest) -> str:
    """The phase, `Pending` until a controller has seen the job; `Deleting` while it is."""
    if job["metadata"].get("deletionTimestamp"):
        return "Deleting"
    return phase_of(job) or PENDING


def queue_of(job: Manifest) -> str:
    return str(spec_of(job).get("queue") or names.DEFAULT_QUEUE)


def pods_text(job: Manifest) -> str:
    """Running and all pods."""
    return f"{whole_number(status_of_job(job).get('running'))}/{total_pods(job)}"


def duration_of(job: Manifest) -> str:
    """How long it has run, or ran; a job that waits to start again has not."""
    started = instant(transition_time(job, RUNNING))
    if started is None or phase_of(job) in WAITING:
        return NONE
    end = instant(state_of(job).get("lastTransitionTime")) if phase_of(job) in ENDED else None
    return duration_text(max(0.0, (time.time() if end is None else end) - started))


def transition_time(job: Manifest, phase: str) -> Any:
    """When a job last entered a phase."""
    for condition in status_of_job(job).get("conditions") or ():
        if isinstance(condition, dict) and condition.get("status") == phase:
            return condition.get("lastTransitionTime")
    return None


def owner_of(manifest: Manifest) -> str:
    """`JobFlow/nightly`, if another object owns it."""
    for owner in manifest["metadata"].get("ownerReferences") or ():
        return f"{owner.get('kind')}/{owner.get('name')}"
    return NONE


def group_name(job: Manifest) -> str:
    """The name of its PodGroup."""
    return f"{name_of(job)}-{job['metadata'].get('uid')}"


def reason_of(job: Manifest, group: Manifest | None, pods: list[Manifest] | None = None) -> str:
    """Why it waits, or why it is in its phase."""
    if phase_of(job) in ("", PENDING):
        sentence = wait_sentence(job, group, pods or [])
        return headline(sentence.partition(": ")[2]) or NONE
    return message_of(job) or NONE


def job_columns(groups: Mapping[str, Manifest] = NO_GROUPS) -> tuple[Column, ...]:
    """The columns of a list of jobs; `groups` are their PodGroups by name, for the reasons."""
    return (
        NAME_COLUMN,
        Column("STATUS", shown_phase),
        Column("QUEUE", queue_of),
        Column("PODS", pods_text),
        Column("MIN", lambda job: whole_number(spec_of(job).get("minAvailable"))),
        Column("AGE", lambda job: age(job, time.time())),
        Column("DURATION", duration_of),
        Column("PRIORITY", lambda job: spec_of(job).get("priorityClassName") or NONE, wide=True),
        Column("OWNER", owner_of, wide=True),
        Column("RETRIES", lambda job: whole_number(status_of_job(job).get("retryCount")), wide=True),
        Column("SCHEDULER", lambda job: spec_of(job).get("schedulerName") or NONE, wide=True),
        Column("REASON", lambda job: reason_of(job, groups.get(group_name(job))), wide=True),
    )
