"""A job, or another gang by its PodGroup: facts, tasks, what happened, pods, why it waits, logs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

from stromboli.api import names
from stromboli.api.pods import PHASES
from stromboli.api.predecessors import ENDED
from stromboli.cli.cluster.cluster_kinds import JOBS, POD_GROUPS, Manifest, name_of
from stromboli.cli.dashboard.pages.action_links import done_note, job_actions
from stromboli.cli.dashboard.pages.object_elements import READ_SECONDS, event_table, gap_notes
from stromboli.cli.dashboard.pages.page_content import (
    PageContent,
    PageRoute,
    ViewRequest,
    address,
    node_address,
    pod_address,
)
from stromboli.cli.dashboard.pages.page_elements import (
    FilterField,
    Row,
    TableColumn,
    age,
    card,
    data_table,
    facts,
    filter_form,
    link,
    notes,
    number_link,
    phase,
    plain_table,
    short_text,
    tabs,
)
from stromboli.cli.dashboard.pages.workloads.explanation_view import explanation_regions, wait_card
from stromboli.cli.dashboard.pages.workloads.job_facts import facts_of, topology_text
from stromboli.cli.dashboard.pages.workloads.job_timeline import timeline
from stromboli.cli.dashboard.pages.workloads.log_view import log_regions
from stromboli.cli.dashboard.pages.workloads.manifest_view import manifest_card
from stromboli.cli.dashboard.reading.gang_events import MOST_EVENTS_READ, MOST_PODS_ASKED
from stromboli.cli.dashboard.reading.gang_reading import (
    MOST_MEMBERS_READ,
    MOST_PODS_READ,
    GangReading,
    KnownMembers,
    PodChoice,
    PodSummary,
    read_group,
    read_job,
)
from stromboli.cli.following.job_wait import message_of
from stromboli.cli.job.job_columns import (
    shown_phase,
    spec_of,
    status_of_job,
    tasks_of,
    total_pods,
    whole_number,
)
from stromboli.cli.job.task_requests import images_text, requests_text
from stromboli.simulator.reports.page.markup import Markup, element, joined

TABS = ("overview", "pods", "explanation", "logs", "events", "manifest")
TASKS_SHOWN = 100
MEMBERS_SECONDS = 600.0
"""After which all pods of a PodGroup are read again."""
TROUBLES_SHOWN = 10
"""Pods with trouble on the overview."""
EVENTS_SHOWN = 8
"""On the overview, the latest."""
Regions = dict[str, Markup]


async def job_page(request: ViewRequest) -> PageContent:
    """A Job of Volcano's."""
    namespace, name = request.names["namespace"], request.names["name"]
    row = _row(
        request, lambda row: row["kind"] == "job" and (row["namespace"], row["name"]) == (namespace, name)
    )
    choice = PodChoice(request.query.get("task", ""), request.choice("phase", ("", *PHASES)))
    session = request.session_in(namespace)

    async def read() -> GangReading:
        return await read_job(session, namespace, name, choice)

    reading = await _kept(request, ("jobs", namespace, name, *choice), row, read)
    return await _page(request, reading, row)


async def group_page(request: ViewRequest) -> PageContent:
    """A PodGroup, whoever owns it."""
    namespace, name = request.names["namespace"], request.names["name"]
    group = f"{namespace}/{name}"
    row = _row(request, lambda row: row["group"] == group)
    session = request.session_in(namespace)
    known = await request.cluster.reads.read(
        (request.viewer.key, "members", namespace, name), MEMBERS_SECONDS, None, _no_members
    )

    async def read() -> GangReading:
        members = {
            key.partition("/")[2]: pod for key, pod in request.records.pods.items() if pod.group == group
        }
        return await read_group(session, namespace, name, members, known)

    reading = await _kept(request, ("podgroups", namespace, name), row, read)
    return await _page(request, reading, row)


async def _no_members() -> KnownMembers:
    return KnownMembers()


def _row(request: ViewRequest, is_wanted: Callable[[Row], bool]) -> Row | None:
    return next(filter(is_wanted, request.content.all_jobs()), None)


async def _kept(
    request: ViewRequest,
    subject: tuple[str, ...],
    row: Row | None,
    read: Callable[[], Awaitable[GangReading]],
) -> GangReading:
    """As it was read a moment ago, unless its record has changed since."""
    key = (request.viewer.key, *subject)
    return await request.cluster.reads.read(key, READ_SECONDS, row, read)


async def _page(request: ViewRequest, reading: GangReading, row: Row | None) -> PageContent:
    tab = request.choice("tab", TABS)
    head = {"job-head": _head(request, reading, tab)}
    if reading.gaps:
        head["job-gaps"] = gap_notes(reading.gaps)
    return PageContent(
        f"{_kind(reading)} {name_of(reading.subject)}",
        {**head, **await _RENDERED[tab](request, reading, row)},
    )


def _kind(reading: GangReading) -> str:
    return "Job" if reading.job is not None else "PodGroup"


def _phase(reading: GangReading) -> str:
    if reading.job is not None:
        return shown_phase(reading.job)
    return str((reading.subject.get("status") or {}).get("phase") or names.GROUP_PENDING)


def _head(request: ViewRequest, reading: GangReading, tab: str) -> Markup:
    """Its phase, what can be done with it, and the tabs."""
    message = message_of(reading.job) if reading.job is not None else ""
    state = element("p", phase(_phase(reading)), " ", short_text(message, 200))
    actions = job_actions(reading.job) if reading.job is not None else Markup("")
    entries = (
        (name.capitalize(), address(request.path, tab="" if name == TABS[0] else name), name == tab)
        for name in TABS
    )
    return joined([done_note(request), state, actions, tabs(entries, "parts of this page")])


# -- the overview


async def _overview(request: ViewRequest, reading: GangReading, row: Row | None) -> Regions:
    regions = {}
    if row is not None and row["waitsFor"]:
        group = row["group"].partition("/")[2]
        regions["job-wait"] = await wait_card(request, row["namespace"], group, row["waitsFor"])
    regions["job-facts"] = card("Facts", facts(facts_of(request, reading)), wide=True)
    regions["job-gang"] = _gang(request, reading)
    regions["job-timeline"] = card("Timeline", timeline(reading, request.now), wide=True)
    troubled = [pod for pod in reading.pods or () if pod.trouble]
    if troubled:
        table = _pod_table(request, troubled[:TROUBLES_SHOWN], "pods with trouble")
        more = link(request.address(tab="pods"), f"all {len(reading.pods or ()):,} pods")
        regions["job-trouble"] = card("Pods with trouble", table, note=more, wide=True)
    if reading.events:
        namespace = request.names["namespace"]
        table = event_table(reading.events[-EVENTS_SHOWN:], namespace, request.now)
        more = joined([link(request.address(tab="events"), "all events"), " ", _events_note(reading)])
        regions["job-recent"] = card("Latest events", table, note=more, wide=True)
    return regions


# -- the gang


def _gang(request: ViewRequest, reading: GangReading) -> Markup:
    if reading.job is not None:
        minimum, total = whole_number(spec_of(reading.job).get("minAvailable")), total_pods(reading.job)
        rows = [_task_row(request, reading.job, task) for task in tasks_of(reading.job)[:TASKS_SHOWN]]
    else:
        minimum = whole_number(spec_of(reading.subject).get("minMember"))
        total = len(reading.pods or ())
        rows = [_member_row(request, reading.pods or [])]
    together = f"{minimum:,} of {total:,} pods start together."
    left_out = len(tasks_of(reading.subject)) - TASKS_SHOWN
    more = f" {left_out:,} more tasks are not shown." if left_out > 0 else ""
    return card("Gang", _task_table(rows), note=together + more, wide=True)


def _task_row(request: ViewRequest, job: Manifest, task: Manifest) -> list[object]:
    name = str(task.get("name") or "")
    counts = status_of_job(job).get("taskStatusCount")
    known = (counts.get(name) if isinstance(counts, dict) else None) or {}
    phases = known.get("phase") or {}
    partition = task.get("partitionPolicy")
    return [
        link(_pods_address(request, task=name), short_text(name, 80)),
        number_link(whole_number(task.get("replicas")), _pods_address(request, task=name)),
        "-" if task.get("minAvailable") is None else whole_number(task["minAvailable"]),
        *(
            number_link(whole_number(phases.get(each)), _pods_address(request, task=name, phase=each))
            for each in PHASES
        ),
        short_text(requests_text(task), 120),
        short_text(images_text(task), 120),
        _partitions(partition) if isinstance(partition, dict) else "",
    ]


def _partitions(policy: dict[str, Any]) -> str:
    total, size = whole_number(policy.get("totalPartitions")), whole_number(policy.get("partitionSize"))
    return f"{total} partitions of {size}, {topology_text(policy.get('networkTopology'))}"


def _member_row(request: ViewRequest, pods: list[PodSummary]) -> list[object]:
    counts = Counter(pod.phase for pod in pods)
    numbers = (number_link(counts[each], _pods_address(request, phase=each)) for each in PHASES)
    return ["members", number_link(len(pods), _pods_address(request)), "-", *numbers, "", "", ""]


def _pods_address(request: ViewRequest, **query: str) -> str:
    return address(request.path, tab="pods", **query)


def _task_table(rows: list[list[object]]) -> Markup:
    titles = ("Task", "Pods", "Min", *PHASES, "Requests", "Image", "Partitions")
    return plain_table("tasks", titles, rows, numbers=("Pods", "Min", *PHASES))


# -- the other tabs


async def _pods(request: ViewRequest, reading: GangReading, row: Row | None) -> Regions:
    pods = reading.pods or []
    wanted = request.choice("phase", ("", *PHASES))
    shown = [pod for pod in pods if wanted in ("", pod.phase)]
    fields = [FilterField("phase", "Phase", PHASES)]
    if reading.job is not None:
        fields.insert(
            0,
            FilterField(
                "task", "Task", [str(each.get("name") or "") for each in tasks_of(reading.job)[:TASKS_SHOWN]]
            ),
        )
    bound = MOST_PODS_READ if reading.job is not None else MOST_MEMBERS_READ
    note = f"Only the first {bound} are read: choose a task or a phase." if len(pods) >= bound else ""
    table = _pod_table(request, shown, f"{len(shown):,} pods")
    return {
        "pod-filters": filter_form(request, fields),
        "job-pods": card("Pods", table, note=note, wide=True),
    }


def _pod_table(request: ViewRequest, pods: list[PodSummary], caption: str) -> Markup:
    namespace, now = request.names["namespace"], request.now
    columns = [
        TableColumn(
            "Pod", lambda pod: link(pod_address(namespace, pod["name"]), pod["name"]), lambda pod: pod["name"]
        ),
        TableColumn("Task", lambda pod: short_text(pod["task"], 80), lambda pod: (pod["task"], pod["place"])),
        TableColumn("Index", lambda pod: pod["place"], lambda pod: pod["place"], "number"),
        TableColumn("Phase", lambda pod: phase(pod["state"]), lambda pod: pod["state"]),
        TableColumn("Node", _node, lambda pod: pod["node"]),
        TableColumn("Restarts", lambda pod: pod["restarts"], lambda pod: pod["restarts"], "number"),
        TableColumn("Age", lambda pod: age(pod["created"], now), lambda pod: -pod["created"], "number"),
        TableColumn("Log", lambda pod: link(address(request.path, tab="logs", pod=pod["name"]), "log")),
        TableColumn(
            "Reason", lambda pod: short_text(pod["trouble"], 200), lambda pod: pod["trouble"], "text"
        ),
    ]
    return data_table(request, caption, columns, [pod._asdict() for pod in pods])


def _node(pod: Row) -> Markup | str:
    return link(node_address(pod["node"]), pod["node"]) if pod["node"] else "-"


async def _explanation(request: ViewRequest, reading: GangReading, row: Row | None) -> Regions:
    kind = "job" if reading.job is not None else "podgroup"
    return await explanation_regions(
        request, request.names["namespace"], f"{kind}/{name_of(reading.subject)}"
    )


async def _logs(request: ViewRequest, reading: GangReading, row: Row | None) -> Regions:
    pods = {pod.name: pod for pod in reading.pods or ()}
    if not pods:
        ended = _phase(reading) in ENDED
        return {
            "log": card("Log", notes(["Its pods are gone." if ended else "It has no pods yet."]), wide=True)
        }
    first = next((pod for pod in pods.values() if pod.started), next(iter(pods.values())))
    pod = pods.get(request.query.get("pod", ""), first)
    return await log_regions(request, request.names["namespace"], pod.name, pod.containers, list(pods))


async def _events(request: ViewRequest, reading: GangReading, row: Row | None) -> Regions:
    table = event_table(reading.events or [], request.names["namespace"], request.now)
    return {"job-events": card("Events", table, note=_events_note(reading), wide=True)}


def _events_note(reading: GangReading) -> str:
    if reading.has_all_events:
        return ""
    return (
        f"Some may be missing: only {MOST_EVENTS_READ:,} of a list are read, and where the namespace has more, those of"
        f" {MOST_PODS_ASKED} pods with trouble."
    )


async def _manifest(request: ViewRequest, reading: GangReading, row: Row | None) -> Regions:
    resource = JOBS if reading.job is not None else POD_GROUPS
    return {"manifest": manifest_card(resource, reading.subject, request.names["namespace"])}


_RENDERED: dict[str, Callable[[ViewRequest, GangReading, Row | None], Awaitable[Regions]]] = {
    "overview": _overview,
    "pods": _pods,
    "explanation": _explanation,
    "logs": _logs,
    "events": _events,
    "manifest": _manifest,
}
ROUTES = (
    PageRoute("/jobs/{namespace}/{name}", job_page, "jobs", personal=True, refresh=READ_SECONDS),
    PageRoute("/podgroups/{namespace}/{name}", group_page, "jobs", personal=True, refresh=READ_SECONDS),
)
