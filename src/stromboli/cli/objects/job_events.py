"""Which events are about a job: its own, and those of its PodGroup, its pods and its queue."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from stromboli.api import names
from stromboli.cli.cli_errors import Usage
from stromboli.cli.cluster.cluster_errors import shown
from stromboli.cli.cluster.cluster_kinds import (
    CRON_JOBS,
    HYPER_NODES,
    JOB_FLOWS,
    JOB_TEMPLATES,
    JOBS,
    NAMESPACES,
    NODES,
    POD_GROUPS,
    PODS,
    QUEUES,
    Manifest,
    kind_names,
)
from stromboli.cli.objects.common_columns import items, nested
from stromboli.kube.api_resources import Resource

if TYPE_CHECKING:
    from stromboli.cli.cluster.cluster_session import ClusterSession

KINDS = (JOBS, PODS, POD_GROUPS, QUEUES, NODES, HYPER_NODES, JOB_FLOWS, JOB_TEMPLATES, CRON_JOBS, NAMESPACES)
SHORT_NAMES = {"vj": JOBS, "vcjob": JOBS, "po": PODS, "pg": POD_GROUPS, "q": QUEUES, "no": NODES}
CLUSTER_SCOPED_EVENTS = "default"
"""The namespace of events about what has no namespace."""
UID_AT_END = re.compile(r"(?<=.)-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")
"""How the name of a job's PodGroup ends."""
IMPLIED_GROUP = "podgroup-"
"""How the names of PodGroups begin that the controllers make for pods without one; their owner's uid follows."""


class EventScope(NamedTuple):
    """Events of a namespace that are listed and watched, and which of them are shown."""

    namespace: str
    fields: str = ""
    shown: Callable[[Manifest], bool] = lambda _: True
    optional: bool = False
    """Whether the rest is told to who may not read these."""


def resource_named(kind: str) -> Resource:
    """`pod`, `pods`, `po`, `job.batch.volcano.sh`."""
    wanted = kind.lower()
    for resource in KINDS:
        if wanted in kind_names(resource):
            return resource
    if wanted in SHORT_NAMES:
        return SHORT_NAMES[wanted]
    listed = ", ".join(sorted(resource.kind.lower() for resource in KINDS))
    raise Usage(shown(f'"{kind}" is no kind that has events here: write {listed}, or the name of a job'))


async def scopes_of(session: ClusterSession, subject: str) -> list[EventScope]:
    """Where the events of a job, of KIND/NAME, or of a namespace are."""
    if not subject:
        return [EventScope(session.scope)]
    kind, slash, name = subject.partition("/")
    resource = resource_named(kind) if slash else JOBS
    name = name if slash else subject
    if resource is JOBS:
        return await _of_job(session, name)
    where = session.namespace if resource.namespaced else CLUSTER_SCOPED_EVENTS
    return [EventScope(where, _fields(resource, name))]


async def _of_job(session: ClusterSession, name: str) -> list[EventScope]:
    """A job that is gone still has events; without them it does not exist."""
    job = await session.find(JOBS, name)
    if job is None:
        return [EventScope(session.namespace, shown=lambda event: _is_about(event, name, None))]
    queue = str(nested(job, "spec", "queue") or names.DEFAULT_QUEUE)
    return [
        EventScope(session.namespace, shown=lambda event: _is_about(event, name, job)),
        EventScope(CLUSTER_SCOPED_EVENTS, _fields(QUEUES, queue), optional=True),
    ]


def _fields(resource: Resource, name: str) -> str:
    return f"involvedObject.kind={resource.kind},involvedObject.name={name}"


def _is_about(event: Manifest, job_name: str, job: Manifest | None) -> bool:
    """Whether an event is about a job, its PodGroup, or one of its pods, also one that is gone."""
    about = event.get("involvedObject") or {}
    kind, name = about.get("kind"), str(about.get("name") or "")
    if kind == JOBS.kind:
        return name == job_name and str(about.get("apiVersion") or JOBS.group).startswith(JOBS.group)
    if kind == POD_GROUPS.kind:
        uid = nested(job or {}, "metadata", "uid")
        return name in (job_name, f"{job_name}-{uid}") if job else _is_with_uid(name, job_name)
    if kind == PODS.kind:
        return _is_pod_name(name, job_name, job)
    return False


def _is_with_uid(name: str, job_name: str) -> bool:
    return name == job_name or UID_AT_END.sub("", name) == job_name


def job_of_group(name: str) -> str:
    """The job of a PodGroup by the name that its user gave it; a PodGroup that is no job's has its own name."""
    return name if name.startswith(IMPLIED_GROUP) else UID_AT_END.sub("", name)


def _is_pod_name(name: str, job_name: str, job: Manifest | None) -> bool:
    """`<job>-<task>-<index>`."""
    task, _, index = name.removeprefix(f"{job_name}-").rpartition("-")
    if not name.startswith(f"{job_name}-") or not index.isdecimal():
        return False
    return job is None or task in {str(each.get("name")) for each in items(nested(job, "spec", "tasks"))}
