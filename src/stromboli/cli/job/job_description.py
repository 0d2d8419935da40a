"""`stromboli job describe`: a job with its tasks, PodGroup, queue, pods and what happened, and why it waits."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

import typer

from stromboli.api import names
from stromboli.api.pods import PHASES
from stromboli.api.wait_messages import headline
from stromboli.cli.cluster.chosen_objects import Failures, chosen
from stromboli.cli.cluster.cluster_kinds import (
    EVENTS,
    JOBS,
    POD_GROUPS,
    PODS,
    QUEUES,
    Manifest,
    name_of,
    namespace_of,
)
from stromboli.cli.cluster.description import Description
from stromboli.cli.cluster.object_events import Happening, event_lines, happening, merged
from stromboli.cli.cluster.object_output import NONE
from stromboli.cli.cluster.on_cluster import on_cluster
from stromboli.cli.cluster.readable_parts import ReadableParts
from stromboli.cli.following.job_wait import message_of, wait_sentence
from stromboli.cli.following.pod_trouble import joined, trouble
from stromboli.cli.following.rank_prefix import PodRanks
from stromboli.cli.job.job_columns import (
    duration_of,
    group_name,
    owner_of,
    queue_of,
    shown_phase,
    spec_of,
    status_of_job,
    tasks_of,
    total_pods,
    whole_number,
)
from stromboli.cli.job.job_names import JOB_NAMES
from stromboli.cli.job.task_requests import images_text, requests_text
from stromboli.embedded.tables.age_text import age, ago
from stromboli.embedded.tables.pod_rows import state_text

if TYPE_CHECKING:
    from stromboli.cli.cluster.cluster_session import ClusterSession

SOME_POD = "pod"
MOST_PODS = 100
"""Pods that are listed, those with trouble first where there are more."""


class JobParts(NamedTuple):
    """A job and what belongs to it; None for what the user may not read."""

    job: Manifest
    group: Manifest | None
    queue: Manifest | None
    pods: list[Manifest] | None
    events: list[Happening] | None


@on_cluster()
async def describe(session: ClusterSession, job_names: list[str] = JOB_NAMES) -> None:
    """Say everything about jobs: tasks, gang, queue, why they wait, pods, and what happened.

    What the user may not read is left out, and the right that is missing is named.

    Exit status 0, 1 if one does not exist or the cluster refuses, 2 for a wrong command line.
    """
    failures, parts = Failures(), ReadableParts()
    for number, job in enumerate(await chosen(session, JOBS, job_names, failures=failures)):
        if number:
            typer.echo()
        described = await failures.attempt(read_parts(session, job, parts))
        if described is not None:
            job_description(described).print()
    parts.tell()
    failures.end()


async def read_parts(session: ClusterSession, job: Manifest, parts: ReadableParts) -> JobParts:
    """What belongs to a job, as far as it may be read."""
    where = namespace_of(job) or session.namespace
    labels = f"{names.JOB_NAME}={name_of(job)}"
    group = await parts.read("no PodGroup", find_group(session, job, where), None)
    queue = await parts.read("no queue", session.find(QUEUES, queue_of(job)), None)
    pods = await parts.list("no pods", session, PODS, where, labels=labels)
    uid = job["metadata"].get("uid")
    own = None if pods is None else [pod for pod in pods if is_owned(pod, uid)]
    events = await parts.read("no events", events_of_job(session, job, group, own or []), None)
    return JobParts(job, group, queue, own, events)


async def find_group(session: ClusterSession, job: Manifest, where: str) -> Manifest | None:
    """The PodGroup of a job; older versions of Volcano give it the name of the job alone."""
    group = await session.find(POD_GROUPS, group_name(job), where)
    if group is not None:
        return group
    other = await session.find(POD_GROUPS, name_of(job), where)
    return other if other is not None and is_owned(other, job["metadata"].get("uid")) else None


def is_owned(manifest: Manifest, uid: object) -> bool:
    """Whether an object of that uid owns it."""
    return any(owner.get("uid") == uid for owner in manifest["metadata"].get("ownerReferences") or ())


async def events_of_job(
    session: ClusterSession,
    job: Manifest,
    group: Manifest | None,
    pods: list[Manifest],
) -> list[Happening]:
    """What happened to the job and its PodGroup, and what was wrong with its pods."""
    where, uids = namespace_of(job), {pod["metadata"].get("uid") for pod in pods}
    told: list[Happening] = []
    for owner in (job, group):
        if owner is not None:
            fields = f"involvedObject.uid={owner['metadata'].get('uid')}"
            told += map(happening, (await session.list(EVENTS, where, fields=fields)).items)
    if pods:
        listed = await session.list(EVENTS, where, fields="involvedObject.kind=Pod,type=Warning")
        mine = [event for event in listed.items if (event.get("involvedObject") or {}).get("uid") in uids]
        told += [
            happening(event)._replace(object=SOME_POD) for event in mine
        ]  # the same of many pods is told once
    return merged(told)


def job_description(parts: JobParts) -> Description:
    """The whole text."""
    text = Description()
    _head(text, parts)
    _tasks(text, parts.job)
    _group(text, parts.group)
    _phases(text, parts.job)
    _pods(text, parts)
    text.section("Events", event_lines(parts.events or []) or ([] if parts.events is None else [NONE]))
    return text


def _head(text: Description, parts: JobParts) -> None:
    job, spec, metadata = parts.job, spec_of(parts.job), parts.job["metadata"]
    text.field("Name", name_of(job))
    text.field("Namespace", namespace_of(job))
    text.entries("Labels", metadata.get("labels"))
    text.entries("Annotations", metadata.get("annotations"))
    text.field("Owner", owner_of(job) if metadata.get("ownerReferences") else "")
    text.field("Created", f"{metadata.get('creationTimestamp')} ({age(job, time.time())} ago)")
    text.field("Status", joined(shown_phase(job), message_of(job)))
    text.field("Waits", _why(parts))
    text.field("Queue", _queue(parts))
    text.field("Priority", spec.get("priorityClassName"))
    text.field("Scheduler", spec.get("schedulerName"))
    text.field("Gang", _gang(job))
    text.field("Run time", duration_of(job) if duration_of(job) != NONE else "")
    text.field("Time limit", (metadata.get("annotations") or {}).get(names.TIME_LIMIT))
    retries = whole_number(status_of_job(job).get("retryCount"))
    text.field("Retries", f"{retries} of {whole_number(spec.get('maxRetry'))}")
    text.field("Plugins", _plugins(spec.get("plugins")))
    text.field("Policies", "; ".join(map(_policy, spec.get("policies") or ())))
    ttl = spec.get("ttlSecondsAfterFinished")
    text.field("Kept", f"{ttl} seconds after its end" if ttl is not None else "")


def _why(parts: JobParts) -> str:
    """The sentence, without the name and the phase, which stand above it."""
    sentence = wait_sentence(parts.job, parts.group, parts.pods or []).partition(": ")[2]
    return sentence.removeprefix(f"Job {name_of(parts.job)} waits: ")


def _queue(parts: JobParts) -> str:
    name = queue_of(parts.job)
    if parts.queue is None:
        return name
    state = (parts.queue.get("status") or {}).get("state") or names.QUEUE_OPEN
    return f"{name} ({state})"


def _gang(job: Manifest) -> str:
    return f"{whole_number(spec_of(job).get('minAvailable'))} of {total_pods(job)} pods start together"


def _plugins(plugins: object) -> str:
    if not isinstance(plugins, dict):
        return ""
    texts = [" ".join([name, *map(str, arguments or ())]) for name, arguments in sorted(plugins.items())]
    return ", ".join(texts)


def _policy(policy: Manifest) -> str:
    events = policy.get("events") or [policy.get("event")]
    when = ", ".join(str(event) for event in events if event)
    if policy.get("exitCode") is not None:
        when = f"exit code {policy['exitCode']}"
    late = f" after {policy['timeout']}" if policy.get("timeout") else ""
    return f"{when}: {policy.get('action')}{late}"


def _tasks(text: Description, job: Manifest) -> None:
    counts = status_of_job(job).get("taskStatusCount")
    rows = []
    for task in tasks_of(job):
        name = str(task.get("name") or "")
        phases = ((counts.get(name) if isinstance(counts, dict) else None) or {}).get("phase") or {}
        rows.append(
            [
                name,
                whole_number(task.get("replicas")),
                NONE if task.get("minAvailable") is None else task["minAvailable"],
                *(whole_number(phases.get(phase)) for phase in PHASES),
                requests_text(task),
                images_text(task),
            ]
        )
    titles = ("NAME", "PODS", "MIN", "PENDING", "RUNNING", "SUCCEEDED", "FAILED", "REQUESTS", "IMAGE")
    text.table("Tasks", titles, rows)


def _group(text: Description, group: Manifest | None) -> None:
    if group is None:
        return
    spec, status = spec_of(group), group.get("status") or {}
    phase = status.get("phase") or "Pending"
    lines = [f"{name_of(group)} is {phase}, at least {whole_number(spec.get('minMember'))} pods"]
    if isinstance(spec.get("minResources"), dict):
        asked = ", ".join(f"{key} {value}" for key, value in sorted(spec["minResources"].items()))
        lines.append(f"asks for {asked}")
    for condition in status.get("conditions") or ():
        is_true = "" if condition.get("status") == "True" else f" ({condition.get('status')})"
        lines.append(
            joined(f"{condition.get('type')}{is_true}", condition.get("reason"), condition.get("message"))
        )
    text.section("PodGroup", lines)


def _phases(text: Description, job: Manifest) -> None:
    conditions = status_of_job(job).get("conditions") or ()
    rows = [
        [condition.get("status"), ago(condition.get("lastTransitionTime"), time.time())]
        for condition in conditions
        if isinstance(condition, dict)
    ]
    text.table("Phases", ("PHASE", "SINCE"), rows)


def _pods(text: Description, parts: JobParts) -> None:
    ranks, pods = PodRanks(parts.job), parts.pods or []
    troubles = {id(pod): headline(trouble(pod.get("status") or {})) for pod in pods}
    listed = sorted(pods, key=lambda pod: (ranks.rank(pod), name_of(pod)))
    if len(listed) > MOST_PODS:
        listed.sort(key=lambda pod: not troubles[id(pod)])
    rows = [
        [
            ranks.rank(pod),
            name_of(pod),
            state_text(pod),
            restarts_of(pod),
            (pod.get("spec") or {}).get("nodeName") or NONE,
            age(pod, time.time()),
            troubles[id(pod)],
        ]
        for pod in listed[:MOST_PODS]
    ]
    title = "Pods" if len(pods) <= MOST_PODS else f"Pods ({MOST_PODS} of {len(pods)})"
    text.table(title, ("RANK", "NAME", "STATUS", "RESTARTS", "NODE", "AGE", "TROUBLE"), rows)


def restarts_of(pod: Manifest) -> int:
    """Of all containers together."""
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    return sum(whole_number(status.get("restartCount")) for status in statuses)
