"""Rows of workloads: deployments, jobs and other kinds that create pods."""

from __future__ import annotations

from stromboli.embedded.tables.age_text import age, ago, duration_text, instant
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


def _images(content: Content, *path: str) -> Cells:
    """The names and the images of its containers."""
    containers = nested_map(content, *path, "template", "spec").get("containers") or []
    columns = ([str(container.get(key, "")) for container in containers] for key in ("name", "image"))
    return [",".join(column) or NONE for column in columns]


def _deployment(deployment: Content, now: float) -> Cells:
    spec, status = nested_map(deployment, "spec"), nested_map(deployment, "status")
    return [
        name_of(deployment),
        f"{status.get('readyReplicas') or 0}/{spec.get('replicas', 1)}",
        status.get("updatedReplicas") or 0,
        status.get("availableReplicas") or 0,
        age(deployment, now),
        *_images(deployment, "spec"),
        selector_text(spec.get("selector")),
    ]


def _replica_set(replica_set: Content, now: float) -> Cells:
    spec, status = nested_map(replica_set, "spec"), nested_map(replica_set, "status")
    selector = spec.get("selector")
    plain = replica_set.get("kind") == "ReplicationController"
    return [
        name_of(replica_set),
        spec.get("replicas", 1),
        status.get("replicas") or 0,
        status.get("readyReplicas") or 0,
        age(replica_set, now),
        *_images(replica_set, "spec"),
        format_labels(selector) if plain else selector_text(selector),
    ]


def _stateful_set(stateful_set: Content, now: float) -> Cells:
    spec, status = nested_map(stateful_set, "spec"), nested_map(stateful_set, "status")
    ready = f"{status.get('readyReplicas') or 0}/{spec.get('replicas', 1)}"
    return [name_of(stateful_set), ready, age(stateful_set, now), *_images(stateful_set, "spec")]


def _daemon_set(daemon_set: Content, now: float) -> Cells:
    spec, status = nested_map(daemon_set, "spec"), nested_map(daemon_set, "status")
    counts = ["desiredNumberScheduled", "currentNumberScheduled", "numberReady"]
    counts += ["updatedNumberScheduled", "numberAvailable"]
    return [
        name_of(daemon_set),
        *(status.get(count) or 0 for count in counts),
        format_labels(nested_map(spec, "template", "spec").get("nodeSelector")),
        age(daemon_set, now),
        *_images(daemon_set, "spec"),
        selector_text(spec.get("selector")),
    ]


def _job(job: Content, now: float) -> Cells:
    spec, status = nested_map(job, "spec"), nested_map(job, "status")
    return [
        name_of(job),
        _job_state(job),
        _completions(spec, status),
        _job_duration(job, now),
        age(job, now),
        *_images(job, "spec"),
        selector_text(spec.get("selector")),
    ]


_JOB_STATES = ("Complete", "Failed", "Suspended", "FailureTarget", "SuccessCriteriaMet")


def _job_state(job: Content) -> str:
    if nested_map(job, "metadata").get("deletionTimestamp"):
        return "Terminating"
    return next((type for type in _JOB_STATES if condition(job, type).get("status") == "True"), "Running")


def _completions(spec: Content, status: Content) -> str:
    done, completions = status.get("succeeded") or 0, spec.get("completions")
    if completions is not None:
        return f"{done}/{completions}"
    parallel = spec.get("parallelism") or 0
    return f"{done}/1 of {parallel}" if parallel > 1 else f"{done}/1"


def _job_duration(job: Content, now: float) -> str:
    status = nested_map(job, "status")
    begin = instant(status.get("startTime"))
    if begin is None:
        return ""
    end = instant(status.get("completionTime")) or instant(condition(job, "Failed").get("lastTransitionTime"))
    return duration_text((end or now) - begin)


def _cron_job(cron_job: Content, now: float) -> Cells:
    spec, status = nested_map(cron_job, "spec"), nested_map(cron_job, "status")
    last = status.get("lastScheduleTime")
    return [
        name_of(cron_job),
        spec.get("schedule", ""),
        spec.get("timeZone") or NONE,
        "True" if spec.get("suspend") else "False",
        len(status.get("active") or ()),
        ago(last, now) if last else NONE,
        age(cron_job, now),
        *_images(cron_job, "spec", "jobTemplate", "spec"),
        selector_text(nested_map(spec, "jobTemplate", "spec").get("selector")),
    ]


REPLICA_SETS = printer(
    "Name | Desired# | Current# | Ready# | Age | Containers+ | Images+ | Selector+", _replica_set
)
PRINTERS = {
    "deployments.apps": printer(
        "Name | Ready | Up-to-date | Available | Age | Containers+ | Images+ | Selector+", _deployment
    ),
    "replicasets.apps": REPLICA_SETS,
    "replicationcontrollers": REPLICA_SETS,
    "statefulsets.apps": printer("Name | Ready | Age | Containers+ | Images+", _stateful_set),
    "daemonsets.apps": printer(
        "Name | Desired# | Current# | Ready# | Up-to-date# | Available# | Node Selector | Age"
        " | Containers+ | Images+ | Selector+",
        _daemon_set,
    ),
    "jobs.batch": printer(
        "Name | Status | Completions | Duration | Age | Containers+ | Images+ | Selector+", _job
    ),
    "cronjobs.batch": printer(
        "Name | Schedule | Timezone | Suspend | Active# | Last Schedule | Age | Containers+ | Images+ | Selector+",
        _cron_job,
    ),
}
