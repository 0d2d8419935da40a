"""A job or another gang as its viewer may read it: the objects, its pods in short, and what happened."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from stromboli.api import names
from stromboli.api.pods import FINISHED
from stromboli.api.wait_messages import headline
from stromboli.cli.cluster.cluster_kinds import JOBS, POD_GROUPS, PODS, Manifest, name_of
from stromboli.cli.cluster.object_events import Happening
from stromboli.cli.cluster.readable_parts import ReadableParts
from stromboli.cli.dashboard.reading.gang_events import read_events
from stromboli.cli.following.pod_trouble import ended_at, trouble
from stromboli.cli.following.rank_prefix import task_and_index
from stromboli.cli.job.job_columns import tasks_of
from stromboli.cli.job.job_description import find_group, is_owned, restarts_of
from stromboli.embedded.tables.age_text import instant
from stromboli.embedded.tables.pod_rows import state_text
from stromboli.embedded.tables.table_printer import condition

if TYPE_CHECKING:
    from stromboli.cli.cluster.cluster_session import ClusterSession
    from stromboli.cli.live.cluster_records import PodRecord

MOST_PODS_READ = 500
"""Of one job; a task or a phase that is asked for narrows them down."""
MOST_MEMBERS_READ = 100
"""Of a PodGroup that is no job's: each is read by itself, as no label tells them."""
MEMBERS_AT_ONCE = 8
MOST_CONTAINERS = 50
"""Of a pod, whose logs are offered."""
LONGEST_TROUBLE = 300
"""Characters of what is wrong with a pod."""


class PodSummary(NamedTuple):
    """What is shown of a pod among others."""

    name: str
    task: str
    place: int
    """The index in its task."""
    phase: str
    state: str
    """The phase, or something more precise, as kubectl shows it."""
    node: str
    restarts: int
    trouble: str
    created: float
    scheduled: float
    """When it was given a node; 0 if it was not, as all that has not happened."""
    started: float
    ended: float
    containers: tuple[str, ...]
    """Names of those that may have a log, init containers last."""
    uid: str = ""


class PodChoice(NamedTuple):
    """Which pods of a job are wanted; all by default."""

    task: str = ""
    phase: str = ""


class GangReading(NamedTuple):
    """A job, its PodGroup, its pods and its events; None for what the viewer may not read or what is not there."""

    job: Manifest | None
    group: Manifest | None
    pods: list[PodSummary] | None
    events: list[Happening] | None
    gaps: tuple[str, ...]
    """What could not be read, and which right is missing."""
    has_all_events: bool = True
    """Whether none may be missing, because there are too many."""

    @property
    def subject(self) -> Manifest:
        """What the page is about."""
        return self.job if self.job is not None else self.group or {}


async def read_job(session: ClusterSession, namespace: str, name: str, choice: PodChoice) -> GangReading:
    """A Job of Volcano's; `ClusterError` if there is none."""
    parts = ReadableParts()
    job = await session.get(JOBS, name, namespace)
    group = await parts.read("no PodGroup", find_group(session, job, namespace), None)
    tasks = {str(task.get("name") or "") for task in tasks_of(job)} - {""}
    labels = f"{names.JOB_NAME}={name}" + (
        f",{names.TASK_SPEC}={choice.task}" if choice.task in tasks else ""
    )
    fields = f"status.phase={choice.phase}" if choice.phase else ""
    listed = await parts.list(
        "no pods", session, PODS, namespace, MOST_PODS_READ, labels=labels, fields=fields
    )
    uid = job["metadata"].get("uid")
    own = (pod_summary(pod) for pod in listed or () if is_owned(pod, uid))
    pods = None if listed is None else _ordered(own, job)
    return await _with_events(session, namespace, parts, GangReading(job, group, pods, None, ()))


async def read_group(
    session: ClusterSession, namespace: str, name: str, members: Mapping[str, PodRecord], known: KnownMembers
) -> GangReading:
    """A PodGroup, with its pods by name; `ClusterError` if there is none."""
    parts = ReadableParts()
    group = await session.get(POD_GROUPS, name, namespace)
    pods = await parts.read("no pods", known.read(session, namespace, members), None)
    return await _with_events(session, namespace, parts, GangReading(None, group, pods, None, ()))


async def _with_events(
    session: ClusterSession, namespace: str, parts: ReadableParts, reading: GangReading
) -> GangReading:
    owners = [each for each in (reading.job, reading.group) if each is not None]
    asked = read_events(session, namespace, owners, reading.pods or [])
    events = await parts.read("no events", asked, None)
    if events is None:
        return reading._replace(gaps=parts.gaps)
    return reading._replace(events=events.happenings, gaps=parts.gaps, has_all_events=events.are_all)


class KnownMembers:
    """The pods of a PodGroup as a viewer read them last: no label tells them, so each is read by itself.

    Those of which the record has changed are read again, and some of the others in turn, as a record does not hold all
    that is shown.
    """

    def __init__(self) -> None:
        self._known: dict[str, tuple[PodRecord, PodSummary | None]] = {}
        """The one that was read least recently first; without a summary if it was gone."""

    async def read(
        self, session: ClusterSession, namespace: str, members: Mapping[str, PodRecord]
    ) -> list[PodSummary]:
        """Those that still exist."""
        wanted = sorted(members)[:MOST_MEMBERS_READ]
        self._known = {name: known for name, known in self._known.items() if name in members}
        changed = [name for name in wanted if not self._knows(name, members[name])]
        in_turn = [name for name in self._known if name not in changed][:MEMBERS_AT_ONCE]
        turns = asyncio.Semaphore(MEMBERS_AT_ONCE)

        async def read(name: str) -> None:
            async with turns:
                pod = await session.find(PODS, name, namespace)
            self._known.pop(name, None)
            self._known[name] = members[name], None if pod is None else pod_summary(pod)

        await asyncio.gather(*map(read, [*changed, *in_turn]))
        summaries = (summary for name, (_, summary) in self._known.items() if name in wanted)
        return _ordered(pod for pod in summaries if pod is not None)

    def _knows(self, name: str, record: PodRecord) -> bool:
        return name in self._known and self._known[name][0] == record


def _ordered(pods: Iterable[PodSummary], job: Manifest | None = None) -> list[PodSummary]:
    """In the order of the tasks of the job, then of their indices."""
    order = {str(task.get("name") or ""): place for place, task in enumerate(tasks_of(job or {}))}
    return sorted(pods, key=lambda pod: (order.get(pod.task, len(order)), pod.task, pod.place, pod.name))


def pod_summary(pod: Manifest) -> PodSummary:
    """A pod in short."""
    status, (task, index) = pod.get("status") or {}, task_and_index(pod)
    placed = condition(pod, "PodScheduled")
    return PodSummary(
        name_of(pod),
        task,
        index,
        str(status.get("phase") or "Pending"),
        state_text(pod),
        str((pod.get("spec") or {}).get("nodeName") or ""),
        restarts_of(pod),
        headline(trouble(status))[:LONGEST_TROUBLE],
        _moment((pod.get("metadata") or {}).get("creationTimestamp")),
        _moment(placed.get("lastTransitionTime")) if placed.get("status") == "True" else 0.0,
        _started(status),
        _moment(ended_at(status)) if status.get("phase") in FINISHED else 0.0,
        containers_of(pod),
        str((pod.get("metadata") or {}).get("uid") or ""),
    )


def containers_of(pod: Manifest) -> tuple[str, ...]:
    """Names of its containers, init containers last."""
    spec = pod.get("spec") or {}
    listed = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    return tuple(str(container.get("name") or "") for container in listed[:MOST_CONTAINERS])


def _started(status: dict[str, Any]) -> float:
    """When its first container did; 0 if none has."""
    moments = []
    for container in status.get("containerStatuses") or ():
        state = container.get("state") or {}
        for kind in ("running", "terminated"):
            moments.append(_moment((state.get(kind) or {}).get("startedAt")))
    return min(filter(None, moments), default=0.0)


def _moment(text: object) -> float:
    return instant(text) or 0.0
