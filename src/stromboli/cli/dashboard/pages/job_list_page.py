"""The jobs of the cluster: searched, filtered by where they are and what they do, counted by phase."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from stromboli.api.predecessors import FINISHED
from stromboli.cli.dashboard.pages.action_links import done_note
from stromboli.cli.dashboard.pages.job_links import row_address
from stromboli.cli.dashboard.pages.page_content import (
    PageContent,
    PageRoute,
    ViewRequest,
    address,
    queue_address,
)
from stromboli.cli.dashboard.pages.page_elements import (
    TITLES,
    FilterField,
    Row,
    TableColumn,
    age,
    amount,
    card,
    data_table,
    filter_form,
    link,
    notes,
    phase,
    search_rows,
    short_text,
    tabs,
)
from stromboli.cli.dashboard.pages.waiting_causes import waiting_causes, waits_for_cause
from stromboli.cli.live.cluster_content import WAITING as WAITING_PHASES
from stromboli.cli.live.cluster_records import JobRecord
from stromboli.simulator.reports.page.markup import Markup, element, joined

JOBS_PAGE = "/jobs"
CHOICES_SHOWN = 300
"""Namespaces or queues that are offered in a list; where there are more, the name is typed."""
EXACT = ("namespace", "queue", "scheduling")
"""Filters by the value of a row."""
WAITING, PENDING = "waiting", "pending"
"""Filters that are on if they are 1: jobs that wait for room, and jobs of which pods wait."""


async def job_list(request: ViewRequest) -> PageContent:
    """All jobs that the viewer may see and that the address asks for."""
    rows = request.content.all_jobs()
    among = _filtered(request, rows)
    shown = [row for row in among if _has_phase(request, row)]
    return PageContent(
        "Jobs",
        {
            "job-done": done_note(request),
            "job-filters": _filters(request, rows),
            "job-cause": _cause(request, among),
            "job-phases": _phases(request, among),
            "job-list": _table(request, shown, len(rows)),
        },
    )


# -- which jobs


def _filtered(request: ViewRequest, rows: list[Row]) -> list[Row]:
    """Those of all phases that the rest of the address asks for."""
    for name in EXACT:
        if wanted := request.query.get(name, ""):
            rows = [row for row in rows if row[name] == wanted]
    if node := request.query.get("node", ""):
        there = {pod.group for pod in request.records.pods.values() if pod.node == node and not pod.finished}
        rows = [row for row in rows if row["group"] in there]
    if cause := request.query.get("cause", ""):
        rows = [row for row in rows if waits_for_cause(row, cause)]
    if wanted := request.query.get("q", ""):
        rows = search_rows(rows, wanted, _words)
    return rows


def _words(row: Row) -> str:
    return f"{row['namespace']}/{row['name']} {row['queue']} {row['phase']} {row['waitsFor']}"


def _has_phase(request: ViewRequest, row: Row) -> bool:
    wanted = request.query.get("phase", "")
    return (
        (not wanted or row["phase"] == wanted)
        and (not _is_on(request, WAITING) or row["scheduling"] in WAITING_PHASES)
        and (not _is_on(request, PENDING) or row["pending"] > 0)
    )


def _is_on(request: ViewRequest, name: str) -> bool:
    return request.query.get(name, "") == "1"


def _cause(request: ViewRequest, rows: list[Row]) -> Markup:
    """For what the jobs of the list wait, where the address names that."""
    if not request.query.get("cause", ""):
        return Markup("")
    texts = [cause.text for cause in waiting_causes(rows)] or ["nothing any more"]
    every = link(request.address(cause="", waiting="1", page=""), "all that wait")
    return notes([joined(["Jobs that wait for the same: ", short_text(texts[0]), " (", every, ")"])])


def _filters(request: ViewRequest, rows: list[Row]) -> Markup:
    fields = [
        FilterField("q", "Search"),
        FilterField("namespace", "Namespace", _choices(row["namespace"] for row in rows)),
        FilterField("queue", "Queue", _choices(row["queue"] for row in rows)),
        FilterField("scheduling", "PodGroup", _choices(row["scheduling"] for row in rows if row["group"])),
        FilterField("node", "Node"),
    ]
    return filter_form(request, fields)


def _choices(values: Iterable[str]) -> list[str]:
    """Those that are offered; none if there are too many, so that one is typed."""
    distinct = sorted(set(values))
    return distinct if len(distinct) <= CHOICES_SHOWN else []


def _phases(request: ViewRequest, rows: list[Row]) -> Markup:
    """How many jobs there are in each phase, as links to them."""
    counts = Counter(row["phase"] for row in rows)
    waiting = sum(row["scheduling"] in WAITING_PHASES for row in rows)
    pending = sum(row["pending"] > 0 for row in rows)
    current = next((name for name in (WAITING, PENDING) if _is_on(request, name)), "")
    wanted = "" if current else request.query.get("phase", "")
    entries = [
        (f"All {len(rows):,}", _phase_address(request), not wanted and not current),
        *(
            (f"{name} {count:,}", _phase_address(request, phase=name), wanted == name)
            for name, count in sorted(counts.items())
        ),
        (f"Waiting for room {waiting:,}", _phase_address(request, waiting="1"), current == WAITING),
        (f"With pods that wait {pending:,}", _phase_address(request, pending="1"), current == PENDING),
    ]
    return tabs(entries, "jobs by phase")


def _phase_address(request: ViewRequest, phase: str = "", waiting: str = "", pending: str = "") -> str:
    return request.address(phase=phase, waiting=waiting, pending=pending, page="")


# -- what is shown of a job


def _table(request: ViewRequest, rows: list[Row], among: int) -> Markup:
    title = f"{len(rows):,} of {among:,} jobs"
    pending, to_come = sum(row["pending"] for row in rows), sum(row["toCome"] for row in rows)
    more = f", {to_come:,} are to come" if to_come else ""
    note = f"{pending:,} of their pods wait{more}; amounts are used / wanted"
    table = data_table(request, f"{title}, {note}", _columns(request), rows, "age")
    return card(title, table, note=note, wide=True)


def _columns(request: ViewRequest) -> list[TableColumn]:
    now = request.now
    return [
        TableColumn("Job", lambda row: _name(request, row), lambda row: (row["name"], row["namespace"])),
        TableColumn("Namespace", lambda row: _namespace(request, row), lambda row: row["namespace"]),
        TableColumn(
            "Queue", lambda row: link(queue_address(row["queue"]), row["queue"]), lambda row: row["queue"]
        ),
        TableColumn("Phase", lambda row: phase(row["phase"]), lambda row: row["phase"]),
        TableColumn(
            "Pods", lambda row: _pods(request, row), lambda row: (row["running"], row["pods"]), "number"
        ),
        TableColumn("Min", lambda row: row["minMember"], lambda row: row["minMember"], "number"),
        *(_resource_column(resource) for resource in request.content.resources),
        TableColumn("Age", lambda row: age(row["created"], now), lambda row: -row["created"], "number"),
        TableColumn(
            "Why it waits", lambda row: _reason(request, row), lambda row: row["waitsFor"], "text", "why"
        ),
    ]


def _name(request: ViewRequest, row: Row) -> Markup:
    kind = [] if row["kind"] in ("job", "podgroup") else [" ", element("small", row["kind"])]
    return element("span", link(row_address(request.records, row), row["name"]), *kind)


def _namespace(request: ViewRequest, row: Row) -> Markup:
    return link(address(JOBS_PAGE, namespace=row["namespace"]), row["namespace"])


def _pods(request: ViewRequest, row: Row) -> Markup:
    """Running and all pods, those that do not exist yet too; once the job has ended, how they ended."""
    job = request.records.jobs.get(f"{row['namespace']}/{row['name']}") if row["kind"] == "job" else None
    target = address(row_address(request.records, row), tab="pods")
    if row["phase"] in FINISHED and not row["pods"]:
        return link(target, _ends(job))
    total = max(row["pods"], row["toCome"], job.replicas if job is not None else 0)
    return link(target, f"{row['running']}/{total}")


def _ends(job: JobRecord | None) -> str:
    """`succeeded 3`; a dash where nothing is known."""
    ends = {"succeeded": job.succeeded, "failed": job.failed} if job is not None else {}
    return ", ".join(f"{how} {pods:,}" for how, pods in ends.items() if pods > 0) or "-"


def _resource_column(resource: str) -> TableColumn:
    return TableColumn(
        TITLES[resource], lambda row: _amounts(row, resource), _wanted(resource), "number", f"by-{resource}"
    )


def _wanted(resource: str) -> Callable[[Row], float]:
    parts = ("used", "waiting", "asks")
    return lambda row: sum(row[part].get(resource, 0) for part in parts)


def _amounts(row: Row, resource: str) -> str:
    """What it uses and wants; of a gang that has no pods yet, what it asks for."""
    if asked := row["asks"].get(resource, 0):
        return f"asks for {amount(asked, resource)}"
    used, waiting = row["used"].get(resource, 0), row["waiting"].get(resource, 0)
    if not used and not waiting:
        return ""
    return (
        amount(used, resource)
        if not waiting
        else f"{amount(used, resource)} / {amount(used + waiting, resource)}"
    )


def _reason(request: ViewRequest, row: Row) -> Markup | str:
    if not row["waitsFor"]:
        return ""
    return link(
        address(row_address(request.records, row), tab="explanation"), short_text(row["waitsFor"], 160)
    )


ROUTES = (PageRoute(JOBS_PAGE, job_list, "jobs"),)
