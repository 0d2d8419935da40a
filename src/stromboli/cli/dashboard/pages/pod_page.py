"""A pod: its facts, its containers and their states, why it waits, its events and logs."""

from __future__ import annotations

from typing import Any, NamedTuple

from stromboli.cli.cluster.cluster_kinds import PODS, Manifest
from stromboli.cli.cluster.group_members import group_of, job_of_pod, queue_of_pod
from stromboli.cli.cluster.object_events import Happening, events_of
from stromboli.cli.cluster.readable_parts import ReadableParts
from stromboli.cli.dashboard.pages.object_elements import READ_SECONDS, event_table, gap_notes
from stromboli.cli.dashboard.pages.page_content import (
    PageContent,
    PageRoute,
    ViewRequest,
    address,
    job_address,
    node_address,
    queue_address,
)
from stromboli.cli.dashboard.pages.page_elements import (
    age,
    card,
    facts,
    link,
    notes,
    phase,
    plain_table,
    short_text,
    tabs,
)
from stromboli.cli.dashboard.pages.workloads.log_view import log_regions
from stromboli.cli.dashboard.pages.workloads.manifest_view import manifest_card
from stromboli.cli.dashboard.reading.gang_reading import containers_of
from stromboli.cli.following.pod_trouble import trouble
from stromboli.cli.following.rank_prefix import task_and_index
from stromboli.cli.job.job_columns import owner_of, whole_number
from stromboli.embedded.tables.age_text import instant
from stromboli.embedded.tables.pod_rows import state_text
from stromboli.simulator.reports.page.markup import Markup, element, joined

TABS = ("overview", "logs", "events", "manifest")
CONTAINERS_SHOWN = 50
EVENTS_SHOWN = 8
"""On the overview, the latest."""
EVENTS_KEPT = 200
Regions = dict[str, Markup]


class PodReading(NamedTuple):
    """A pod, its events if the viewer may read them, and what he may not."""

    pod: Manifest
    events: list[Happening]
    gaps: tuple[str, ...]


async def pod_page(request: ViewRequest) -> PageContent:
    """A pod as its viewer may read it."""
    namespace, name = request.names["namespace"], request.names["name"]
    session = request.session_in(namespace)

    async def read() -> PodReading:
        parts = ReadableParts()
        pod = await session.get(PODS, name, namespace)
        none: list[Happening] = []
        events = await parts.read("no events", events_of(session, pod), none)
        return PodReading(pod, events[-EVENTS_KEPT:], parts.gaps)

    record = request.records.pods.get(f"{namespace}/{name}")
    key = (request.viewer.key, "pods", namespace, name)
    reading = await request.cluster.reads.read(key, READ_SECONDS, record, read)
    tab = request.choice("tab", TABS)
    regions = {"pod-head": _head(request, reading.pod, tab), **await _part(request, reading, tab)}
    if reading.gaps:
        regions["pod-gaps"] = gap_notes(reading.gaps)
    return PageContent(f"Pod {name}", regions)


async def _part(request: ViewRequest, reading: PodReading, tab: str) -> Regions:
    namespace, pod = request.names["namespace"], reading.pod
    if tab == "logs":
        return await log_regions(request, namespace, request.names["name"], containers_of(pod))
    if tab == "events":
        table = event_table(reading.events, namespace, request.now)
        return {"pod-events": card("Events", table, wide=True)}
    if tab == "manifest":
        return {"manifest": manifest_card(PODS, pod, namespace)}
    return _overview(request, reading)


def _head(request: ViewRequest, pod: Manifest, tab: str) -> Markup:
    entries = (
        (name.capitalize(), address(request.path, tab="" if name == TABS[0] else name), name == tab)
        for name in TABS
    )
    return joined([element("p", phase(state_text(pod))), tabs(entries, "parts of this page")])


def _overview(request: ViewRequest, reading: PodReading) -> Regions:
    pod, namespace = reading.pod, request.names["namespace"]
    regions = {}
    if wrong := trouble(pod.get("status") or {}):
        regions["pod-trouble"] = card("What is wrong", notes([short_text(wrong, 1000)], "reason"), wide=True)
    regions["pod-facts"] = card("Facts", facts(_facts(request, pod)), wide=True)
    regions["pod-containers"] = card("Containers", _containers(request, pod), wide=True)
    regions["pod-conditions"] = card("Conditions", _conditions(pod, request.now), wide=True)
    if reading.events:
        table = event_table(reading.events[-EVENTS_SHOWN:], namespace, request.now)
        more = link(request.address(tab="events"), "all events")
        regions["pod-recent"] = card("Latest events", table, note=more, wide=True)
    return regions


def _facts(request: ViewRequest, pod: Manifest) -> list[tuple[str, object]]:
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    metadata, namespace = pod.get("metadata") or {}, request.names["namespace"]
    node, task = str(spec.get("nodeName") or ""), task_and_index(pod)
    created = instant(metadata.get("creationTimestamp")) or 0.0
    queue = queue_of_pod(pod)
    entries: list[tuple[str, object]] = [
        ("Namespace", link(address("/jobs", namespace=namespace), namespace)),
        ("Job", _job(request, pod)),
        ("Task", f"{task[0]}, index {task[1]}" if task[0] else "-"),
        ("Queue", link(queue_address(queue), short_text(queue, 80)) if queue else "-"),
        ("Node", link(node_address(node), short_text(node, 80)) if node else "none yet"),
        ("Created", element("span", age(created, request.now), " ago")),
        ("IP", str(status.get("podIP") or "-")),
        ("Owner", owner_of(pod) if metadata.get("ownerReferences") else "-"),
        ("Priority", f"{spec.get('priority', 0)} {spec.get('priorityClassName') or ''}"),
        ("Scheduler", str(spec.get("schedulerName") or "-")),
        ("Nominated node", str(status.get("nominatedNodeName") or "-")),
    ]
    return [(title, short_text(value) if isinstance(value, str) else value) for title, value in entries]


def _job(request: ViewRequest, pod: Manifest) -> object:
    namespace = request.names["namespace"]
    if (job := job_of_pod(pod)) and f"{namespace}/{job}" in request.records.jobs:
        return link(job_address(namespace, job), short_text(job, 80))
    if group := group_of(pod):
        return link(job_address(namespace, group, "podgroup"), short_text(group, 80))
    return "-"


# -- containers


def _containers(request: ViewRequest, pod: Manifest) -> Markup:
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    states = {
        str(each.get("name") or ""): each
        for key in ("initContainerStatuses", "containerStatuses")
        for each in status.get(key) or ()
    }
    listed = [("init ", each) for each in spec.get("initContainers") or ()]
    listed += [("", each) for each in spec.get("containers") or ()]
    rows = [
        _container(request, kind, each, states.get(str(each.get("name") or "")) or {})
        for kind, each in listed[:CONTAINERS_SHOWN]
    ]
    titles = ("Container", "State", "Ready", "Restarts", "Last end", "Image", "Requests", "Log")
    return plain_table("containers", titles, rows, numbers=("Restarts",), text=("State", "Last end"))


def _container(request: ViewRequest, kind: str, container: Manifest, status: dict[str, Any]) -> list[object]:
    name = str(container.get("name") or "")
    requests = (container.get("resources") or {}).get("requests") or {}
    return [
        element("span", kind, short_text(name, 80)),
        short_text(state_of_container(status.get("state")), 200),
        "yes" if status.get("ready") else "no",
        whole_number(status.get("restartCount")),
        short_text(state_of_container(status.get("lastState"), "-"), 200),
        short_text(str(container.get("image") or "-"), 120),
        short_text(", ".join(f"{key} {value}" for key, value in requests.items()) or "-", 120),
        link(address(request.path, tab="logs", container=name), "log"),
    ]


def state_of_container(state: object, unknown: str = "not started") -> str:
    """`running since ...`, `waiting: ImagePullBackOff: ...`, `ended with 1: Error`."""
    if not isinstance(state, dict) or not state:
        return unknown
    if running := state.get("running"):
        return f"running since {running.get('startedAt') or '?'}"
    if (ended := state.get("terminated")) is not None:
        why = ": ".join(str(part) for part in (ended.get("reason"), ended.get("message")) if part)
        return f"ended with {ended.get('exitCode', '?')}" + (f": {why}" if why else "")
    waiting = state.get("waiting") or {}
    why = ": ".join(str(part) for part in (waiting.get("reason"), waiting.get("message")) if part)
    return f"waiting: {why}" if why else "waiting"


def _conditions(pod: Manifest, now: float) -> Markup:
    rows = [
        [
            short_text(str(each.get("type") or ""), 80),
            str(each.get("status") or "")[:20],
            age(instant(each.get("lastTransitionTime")) or 0.0, now),
            short_text(": ".join(str(each[key]) for key in ("reason", "message") if each.get(key))),
        ]
        for each in ((pod.get("status") or {}).get("conditions") or ())[:CONTAINERS_SHOWN]
    ]
    return plain_table("conditions", ("Condition", "Status", "Since", "Why"), rows, text=("Why",))


ROUTES = (PageRoute("/pods/{namespace}/{name}", pod_page, "jobs", personal=True, refresh=READ_SECONDS),)
