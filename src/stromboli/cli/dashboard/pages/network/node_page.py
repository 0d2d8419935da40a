"""One node: what it has, who is on it, what it says of itself, and what the policy would let come to it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence

from stromboli.api import names
from stromboli.api.node_state import is_gpu
from stromboli.cli.dashboard.pages.job_links import row_address
from stromboli.cli.dashboard.pages.network.node_elements import (
    UNKNOWN,
    pods_are_seen,
    shown_amount,
    sight_notes,
    title_of,
    usage_bar,
)
from stromboli.cli.dashboard.pages.network.node_list_page import state_text
from stromboli.cli.dashboard.pages.object_elements import READ_SECONDS, command_line, event_table, gap_notes
from stromboli.cli.dashboard.pages.page_content import (
    NotThere,
    PageContent,
    PageRoute,
    ViewRequest,
    address,
    hyper_node_address,
    pod_address,
    queue_address,
)
from stromboli.cli.dashboard.pages.page_elements import (
    Row,
    TableColumn,
    age,
    card,
    data_table,
    facts,
    link,
    notes,
    phase,
    plain_table,
    short_text,
    tabs,
)
from stromboli.cli.dashboard.reading.kept_explanations import full_explanation
from stromboli.cli.dashboard.reading.node_reading import NodeReading, read_node
from stromboli.cli.dashboard.topology.node_occupancy import NodeOccupancy, unit
from stromboli.cli.live.cluster_records import NodeRecord, PodSums
from stromboli.simulator.explain.explanation_document import NodeExplanation
from stromboli.simulator.reports.page.markup import Markup, element, joined, shortened

LABELS_SHOWN = 40
RESOURCES_SHOWN = 30
TABS = PODS, EVENTS, EXPLANATION = "pods", "events", "explanation"
REFRESH = 15.0
_NONE = PodSums()


async def node_view(request: ViewRequest) -> PageContent:
    """A node of the records, with what its viewer may read of the object."""
    name, session = request.names["node"], request.viewer.session
    record = request.records.nodes.get(name)
    if record is None:
        raise NotThere(f"There is no node {shortened(name, 100)}, or you may not see it.")
    key = (request.viewer.key, "nodes", name)
    reading = await request.cluster.reads.read(key, READ_SECONDS, record, lambda: read_node(session, name))
    tab = request.choice("tab", TABS)
    if tab == EXPLANATION:
        part = {"node-explanation": await _explanation(request, name)}
    else:
        part = pod_regions(request, name) if tab == PODS else _event_regions(request, reading)
    return node_content(request, name, record, reading, part)


def node_content(
    request: ViewRequest, name: str, record: NodeRecord, reading: NodeReading, part: dict[str, Markup]
) -> PageContent:
    """The page around one part of it."""
    return PageContent(
        f"Node {shortened(name, 80)}",
        {
            "node-notes": sight_notes(request),
            "node-facts": _facts(request, name, record, reading),
            "node-resources": _resources(request, name, record, reading),
            "node-tabs": _tabs(request),
            **part,
            "node-labels": _labels(record),
            "node-commands": _commands(name),
        },
    )


def _tabs(request: ViewRequest) -> Markup:
    current = request.choice("tab", TABS)
    titles = {PODS: "Pods", EVENTS: "Conditions and events", EXPLANATION: "What the policy says"}
    entries = [
        (titles[each], address(request.path, tab=each if each != PODS else ""), each == current)
        for each in TABS
    ]
    return tabs(entries, "parts of the node")


# -- what it is


def _facts(request: ViewRequest, name: str, record: NodeRecord, reading: NodeReading) -> Markup:
    occupancy = request.view.nodes.occupancy()
    entries: list[tuple[str, object]] = [
        ("State", state_text(record.state)),
        ("Takes new pods", _objections(record, reading)),
        ("HyperNodes", _hyper_nodes(occupancy, name)),
        (
            "Taints",
            joined((element("code", shortened(taint, 200)) for taint in reading.taints), " ") or "none",
        ),
        ("Age", age(reading.created, request.now)),
        *((key, short_text(value, 100)) for key, value in reading.system),
    ]
    return card("Facts", facts(entries), gap_notes(reading.gaps), wide=True)


def _objections(record: NodeRecord, reading: NodeReading) -> str:
    """Yes, or why none come."""
    reasons = []
    if record.state.endswith("SchedulingDisabled"):
        reasons.append("it is cordoned")
    if record.state.startswith("NotReady"):
        reasons.append("it is not ready")
    keeping = [taint for taint in reading.taints if taint.rpartition(":")[2] in ("NoSchedule", "NoExecute")]
    if reasons:
        return f"no: {' and '.join(reasons)}"
    return "only those that tolerate its taints" if keeping else "yes"


def _hyper_nodes(occupancy: NodeOccupancy, name: str) -> Markup | str:
    domains = occupancy.network.containing(name)
    links = (
        element("div", link(hyper_node_address(each.name), shortened(each.title, 60)), f" (tier {each.tier})")
        for each in domains
    )
    return joined(links) if domains else "none"


def _resources(request: ViewRequest, name: str, record: NodeRecord, reading: NodeReading) -> Markup:
    """Allocatable and in use, resource by resource."""
    sums = request.records.of_node.get(name, _NONE)
    known = pods_are_seen(request)
    capacity = dict(reading.capacity)
    order = sorted(record.allocatable, key=_resource_order)
    rows = []
    for resource in order[:RESOURCES_SHOWN]:
        has = record.allocatable[resource]
        used = sums.placed if resource == names.PODS else sums.used.get(resource, 0)
        if has or used:
            rows.append(
                [
                    shortened(title_of(resource), 100),
                    usage_bar(used if known else None, has, resource),
                    shown_amount(max(has - used, 0), resource) if known else UNKNOWN,
                    short_text(capacity.get(resource, "-"), 30),
                ]
            )
    titles = ("Resource", "In use / allocatable", "Free", "Capacity")
    table = plain_table("resources", titles, rows, numbers=titles[2:])
    more = [f"and {len(order) - RESOURCES_SHOWN:,} more resources"] if len(order) > RESOURCES_SHOWN else []
    return card("Resources", table, notes(more), wide=True)


def _resource_order(resource: str) -> tuple[int, str]:
    first = [names.CPU, names.MEMORY]
    rank = first.index(resource) if resource in first else 2 if is_gpu(resource) else 3
    return rank, resource


def _labels(record: NodeRecord) -> Markup:
    entries = sorted(record.labels.items())
    lines = [
        element("li", element("code", f"{shortened(key, 120)}={shortened(value, 80)}"))
        for key, value in entries[:LABELS_SHOWN]
    ]
    more = [f"and {len(entries) - LABELS_SHOWN:,} more"] if len(entries) > LABELS_SHOWN else []
    content = element("ul", *lines) if lines else notes(["It has no labels."])
    return card("Labels", content, notes(more), wide=True)


def _commands(name: str) -> Markup:
    quoted = shlex.quote(name)
    return card(
        "On the command line",
        command_line(f"kubectl describe node {quoted}"),
        command_line(f"kubectl get pods -A --field-selector spec.nodeName={quoted}"),
        command_line(f"stromboli explain node/{quoted}"),
        wide=True,
    )


# -- who is on it


def pod_regions(request: ViewRequest, name: str) -> dict[str, Markup]:
    """The part with its pods."""
    return {"node-pods": _pods(request, name)}


def _pods(request: ViewRequest, name: str) -> Markup:
    groups = request.records.groups
    rows: list[Row] = []
    for key, pod in request.records.pods.items():
        if pod.node == name and not pod.finished:
            namespace, _, pod_name = key.partition("/")
            group = groups.get(pod.group)
            rows.append(
                {
                    "namespace": namespace,
                    "pod": pod_name,
                    "group": pod.group,
                    "kind": group.kind if group is not None else "",
                    "name": group.name if group is not None else "",
                    "queue": group.queue if group is not None else "",
                    "state": "Running" if pod.runs else "starting",
                    "request": pod.request,
                }
            )
    caption = f"{len(rows):,} pod{'' if len(rows) == 1 else 's'} on {shortened(name, 80)}"
    if not rows:
        return card("Pods", notes(["No pod that you may see is on it."]), wide=True)
    return card("Pods", data_table(request, caption, _pod_columns(request), rows, "pod"), wide=True)


def _pod_columns(request: ViewRequest) -> list[TableColumn]:
    resources = [names.CPU, names.MEMORY, *sorted(filter(is_gpu, request.records.total))][:RESOURCES_SHOWN]
    return [
        TableColumn(
            "Pod",
            lambda row: link(
                pod_address(row["namespace"], row["pod"]), f"{row['namespace']}/{shortened(row['pod'], 80)}"
            ),
            lambda row: (row["namespace"], row["pod"]),
        ),
        TableColumn(
            "Job",
            lambda row: (
                link(row_address(request.records, row), shortened(row["name"], 80)) if row["name"] else "-"
            ),
            lambda row: row["name"],
        ),
        TableColumn(
            "Queue",
            lambda row: link(queue_address(row["queue"]), row["queue"]) if row["queue"] else "-",
            lambda row: row["queue"],
        ),
        TableColumn("State", lambda row: phase(row["state"]), lambda row: row["state"]),
        *(_request_column(resource) for resource in resources),
    ]


def _request_column(resource: str) -> TableColumn:
    def asked(row: Row) -> float:
        return float(row["request"].get(resource, 0)) / unit(resource)

    return TableColumn(
        shortened(title_of(resource), 60),
        lambda row: shown_amount(row["request"][resource], resource) if resource in row["request"] else "-",
        asked,
        "number",
        f"by-{resource}",
    )


# -- what it says of itself


def _event_regions(request: ViewRequest, reading: NodeReading) -> dict[str, Markup]:
    return {
        "node-conditions": _conditions(request, reading),
        "node-events": card("Events", event_table(reading.events, "default", request.now), wide=True),
    }


def _conditions(request: ViewRequest, reading: NodeReading) -> Markup:
    rows = [
        (
            short_text(each.type, 60),
            short_text(each.status, 20),
            age(each.since, request.now),
            short_text(each.reason, 60),
            short_text(each.message),
        )
        for each in reading.conditions
    ]
    titles = ("Condition", "Status", "Since", "Reason", "Message")
    table = plain_table("conditions", titles, rows, numbers=("Since",), text=("Message",))
    return card("Conditions", table if rows else notes(["No conditions are known."]), wide=True)


# -- what the policy says


async def _explanation(request: ViewRequest, name: str) -> Markup:
    """As `stromboli explain node/NAME` has it, computed beside the page."""
    known = await full_explanation(
        request.cluster, request.viewer.session, request.viewer.key, f"node/{name}"
    )
    if known is None:
        return card(
            "What the policy says", notes(["It is being computed: it appears here in a moment."]), wide=True
        )
    nodes = (
        [each for each in known.document.subjects if isinstance(each, NodeExplanation)]
        if known.document
        else []
    )
    if not nodes:
        return card("What the policy says", notes([short_text(known.problem, 600)], "warn"), wide=True)
    explained = nodes[0]
    return card(
        "What the policy says",
        element("p", short_text(explained.summary, 600)),
        _listed("New pods do not come to it", map(short_text, explained.takes_nobody)),
        _listed(
            "Waiting jobs of which single pods have room on it now",
            (_waiting_text(each.job, each.pods, each.requests) for each in explained.could_fit),
        ),
        notes(map(short_text, explained.notes[:20])),
        note=joined(["As of ", age(known.computed, request.now), " ago."]),
        wide=True,
    )


def _waiting_text(job: str, pods: int, requests: dict[str, str]) -> str:
    asked = ", ".join(f"{value} {title_of(name)}" for name, value in list(requests.items())[:RESOURCES_SHOWN])
    return shortened(f"{job}: {pods:,} pods of {asked}", 300)


def _listed(title: str, entries: Iterable[object]) -> Markup:
    lines: Sequence[Markup] = [element("li", entry) for entry in entries]
    return joined([element("h3", title), element("ul", *lines)]) if lines else Markup("")


ROUTES = (PageRoute("/nodes/{node}", node_view, "nodes", personal=True, refresh=REFRESH),)
