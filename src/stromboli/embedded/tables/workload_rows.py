"""Rows of what makes pods: jobs, deployments and their kin."""

from __future__ import annotations

from stromboli.embedded.tables.age_text import age, ago, between, duration_text, instant
from stromboli.embedded.tables.table_printer import (
    NONE,
    Cells,
    Content,
    condition,
    format_labels,
    name_of,
    nested_map,
    printer,
    selector_text,
)


def _images(thing: Content, *path: str) -> Cells:
    """The names and the images of its containers."""
    containers = nested_map(thing, *path, "template", "spec").get("containers") or []
    return [
        ",".join(str(container.get(field, "")) for container in containers) or NONE
        for field in ("name", "image")
    ]


def _deployment(thing: Content, now: float) -> Cells:
    spec, status = nested_map(thing, "spec"), nested_map(thing, "status")
    return [
        name_of(thing),
        f"{status.get('readyReplicas') or 0}/{spec.get('replicas', 1)}",
        status.get("updatedReplicas") or 0,
        status.get("availableReplicas") or 0,
        age(thing, now),
        *_images(thing, "spec"),
        selector_text(spec.get("selector")),
    ]


def _replica_set(thing: Content, now: float) -> Cells:
    spec, status = nested_map(thing, "spec"), nested_map(thing, "status")
    wanted = spec.get("selector")
    plain = thing.get("kind") == "ReplicationController"
    return [
        name_of(thing),
        spec.get("replicas", 1),
        status.get("replicas") or 0,
        status.get("readyReplicas") or 0,
        age(thing, now),
        *_images(thing, "spec"),
        format_labels(wanted) if plain else selector_text(wanted),
    ]


def _stateful_set(thing: Content, now: float) -> Cells:
    spec, status = nested_map(thing, "spec"), nested_map(thing, "status")
    ready = f"{status.get('readyReplicas') or 0}/{spec.get('replicas', 1)}"
    return [name_of(thing), ready, age(thing, now), *_images(thing, "spec")]


def _daemon_set(thing: Content, now: float) -> Cells:
    spec, status = nested_map(thing, "spec"), nested_map(thing, "status")
    counts = ["desiredNumberScheduled", "currentNumberScheduled", "numberReady"]
    counts += ["updatedNumberScheduled", "numberAvailable"]
    return [
        name_of(thing),
        *(status.get(count) or 0 for count in counts),
        format_labels(nested_map(spec, "template", "spec").get("nodeSelector")),
        age(thing, now),
        *_images(thing, "spec"),
        selector_text(spec.get("selector")),
    ]


def _job(thing: Content, now: float) -> Cells:
    spec, status = nested_map(thing, "spec"), nested_map(thing, "status")
    return [
        name_of(thing),
        _job_state(thing),
        _completions(spec, status),
        _job_duration(thing, now),
        age(thing, now),
        *_images(thing, "spec"),
        selector_text(spec.get("selector")),
    ]


_JOB_STATES = {
    "Complete": "Complete",
    "Failed": "Failed",
    "Suspended": "Suspended",
    "FailureTarget": "FailureTarget",
    "SuccessCriteriaMet": "SuccessCriteriaMet",
}


def _job_state(thing: Content) -> str:
    if nested_map(thing, "metadata").get("deletionTimestamp"):
        return "Terminating"
    return next(
        (text for type, text in _JOB_STATES.items() if condition(thing, type).get("status") == "True"),
        "Running",
    )


def _completions(spec: Content, status: Content) -> str:
    done, wanted = status.get("succeeded") or 0, spec.get("completions")
    if wanted is not None:
        return f"{done}/{wanted}"
    parallel = spec.get("parallelism") or 0
    return f"{done}/1 of {parallel}" if parallel > 1 else f"{done}/1"


def _job_duration(thing: Content, now: float) -> str:
    status = nested_map(thing, "status")
    begin = instant(status.get("startTime"))
    if begin is None:
        return ""
    if status.get("completionTime"):
        return between(status["startTime"], status["completionTime"])
    ended = instant(condition(thing, "Failed").get("lastTransitionTime"))
    return duration_text((ended or now) - begin)


def _cron_job(thing: Content, now: float) -> Cells:
    spec, status = nested_map(thing, "spec"), nested_map(thing, "status")
    last = status.get("lastScheduleTime")
    return [
        name_of(thing),
        spec.get("schedule", ""),
        spec.get("timeZone") or NONE,
        "True" if spec.get("suspend") else "False",
        len(status.get("active") or ()),
        ago(last, now) if last else NONE,
        age(thing, now),
        *_images(thing, "spec", "jobTemplate", "spec"),
        selector_text(nested_map(spec, "jobTemplate", "spec").get("selector")),
    ]


DEPLOYMENTS = printer(
    "Name | Ready | Up-to-date | Available | Age | Containers+ | Images+ | Selector+", _deployment
)
REPLICA_SETS = printer(
    "Name | Desired# | Current# | Ready# | Age | Containers+ | Images+ | Selector+", _replica_set
)
STATEFUL_SETS = printer("Name | Ready | Age | Containers+ | Images+", _stateful_set)
DAEMON_SETS = printer(
    "Name | Desired# | Current# | Ready# | Up-to-date# | Available# | Node Selector | Age"
    " | Containers+ | Images+ | Selector+",
    _daemon_set,
)
JOBS = printer("Name | Status | Completions | Duration | Age | Containers+ | Images+ | Selector+", _job)
CRON_JOBS = printer(
    "Name | Schedule | Timezone | Suspend | Active# | Last Schedule | Age | Containers+ | Images+ | Selector+",
    _cron_job,
)
