"""Queues: the tree with what each uses, deserves, is guaranteed and may have, and who borrows from whom."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from stromboli.api import names
from stromboli.cli.dashboard.pages.action_links import done_note, queue_actions
from stromboli.cli.dashboard.pages.page_content import (
    NotThere,
    PageContent,
    PageRoute,
    ViewRequest,
    address,
    queue_address,
)
from stromboli.cli.dashboard.pages.page_elements import (
    TITLES,
    BarMark,
    FilterField,
    Row,
    TableColumn,
    amount,
    bar,
    card,
    data_table,
    facts,
    filter_form,
    link,
    notes,
    number_link,
    phase,
    search_rows,
)
from stromboli.simulator.reports.page.markup import Markup, element, joined

DEEPEST = 32
"""Levels of a tree of queues that are followed."""
DEEPEST_INDENT = 6
"""Levels that are told apart by their indentation."""
BORROWERS_SHOWN = 20
PARTS = ("used", "deserved", "guarantee", "capability", "pending")


class Loan(NamedTuple):
    """What a queue uses beyond what it deserves, or leaves of it to others."""

    queue: str
    resource: str
    amount: float


# -- all queues


async def queue_list(request: ViewRequest) -> PageContent:
    rows = list(_tree(request.content.queues()))
    chosen = search_rows(rows, request.query.get("q", ""), lambda row: str(row["name"]))
    fields = [FilterField("q", "Search")]
    table = data_table(request, "Queues", _columns(request.content.resources), chosen)
    legend = (
        "A bar shows what a queue uses; its marks what it deserves, is guaranteed (lower) and may have at most."
        " Orange: more than it deserves."
    )
    return PageContent(
        "Queues",
        {
            "filters": filter_form(request, fields),
            "queues": card("The tree of queues", table, note=legend, wide=True),
            "loans": element("div", _loans(request), class_="cards"),
        },
    )


def _tree(rows: Sequence[Row]) -> Iterator[Row]:
    """Queues below their parents, each with its depth; those without a parent, or in a circle, at the top."""
    known = {row["name"] for row in rows}
    below: dict[str, list[Row]] = {}
    for row in rows:
        parent = row["parent"] if row["parent"] in known and row["parent"] != row["name"] else ""
        below.setdefault(parent, []).append(row)
    seen: set[str] = set()

    def branch(parent: str, depth: int) -> Iterator[Row]:
        for row in below.get(parent, ()):
            if row["name"] in seen or depth > DEEPEST:
                continue
            seen.add(row["name"])
            yield {**row, "depth": depth, "children": len(below.get(row["name"], ()))}
            yield from branch(row["name"], depth + 1)

    yield from branch("", 0)
    yield from ({**row, "depth": 0, "children": 0} for row in rows if row["name"] not in seen)


def _columns(resources: Sequence[str]) -> list[TableColumn]:
    return [
        TableColumn("Queue", _name, lambda row: row["name"]),
        TableColumn("State", lambda row: phase(row["state"] or names.QUEUE_OPEN), lambda row: row["state"]),
        TableColumn("Weight", lambda row: row["weight"], lambda row: row["weight"], "number"),
        TableColumn(
            "Running",
            lambda row: number_link(row["running"], address("/jobs", queue=row["name"], phase="Running")),
            lambda row: row["running"],
            "number",
        ),
        TableColumn(
            "Waiting",
            lambda row: number_link(row["waiting"], address("/jobs", queue=row["name"], waiting=1)),
            lambda row: row["waiting"],
            "number",
        ),
        *(_usage_column(resource) for resource in resources),
    ]


def _usage_column(resource: str) -> TableColumn:
    return TableColumn(
        TITLES.get(resource, resource),
        lambda row: share_bar(row, resource),
        lambda row: row["used"].get(resource, 0.0) / (row["deserved"].get(resource) or 1e-9),
        name=resource,
    )


def _name(row: Row) -> Markup:
    name = link(queue_address(row["name"]), row["name"])
    return element("span", name, class_=f"depth-{min(row['depth'], DEEPEST_INDENT)}")


def share_bar(row: Row, resource: str) -> Markup:
    """What a queue uses, with marks for what it deserves, is guaranteed and may have."""
    used, deserved = row["used"].get(resource, 0.0), row["deserved"].get(resource)
    marks = [
        BarMark(row[part][resource], f"{part} {amount(row[part][resource], resource)}")
        for part in ("deserved", "guarantee", "capability")
        if resource in row[part]
    ]
    words = f"{amount(used, resource)} used, {amount(deserved, resource)} deserved"
    text = f"{amount(used, resource)}/{amount(deserved, resource)}"
    return joined([bar(used, deserved, words, marks), " ", element("small", text)])


# -- who borrows from whom


def loans(rows: Sequence[Row], resources: Sequence[str]) -> tuple[list[Loan], list[Loan]]:
    """Who uses more than he deserves, and who leaves something of what he deserves; queues with none below them."""
    parents = {row["parent"] for row in rows}
    borrowers, lenders = [], []
    for row in rows:
        if row["name"] in parents or not row["deserved"]:
            continue
        for resource in resources:
            if resource not in row["deserved"]:
                continue
            over = row["used"].get(resource, 0.0) - row["deserved"][resource]
            if over > 0:
                borrowers.append(Loan(row["name"], resource, over))
            elif over < 0:
                lenders.append(Loan(row["name"], resource, -over))
    return sorted(borrowers, key=_largest), sorted(lenders, key=_largest)


def _largest(loan: Loan) -> tuple[str, float, str]:
    return loan.resource, -loan.amount, loan.queue


def _loans(request: ViewRequest) -> Markup:
    rows, resources = request.content.queues(), request.content.resources
    borrowers, lenders = loans(rows, resources)
    wanting = {row["name"] for row in rows if any(row["pending"].values())}
    cards = []
    for resource in resources:
        taking = [loan for loan in borrowers if loan.resource == resource]
        leaving = [loan for loan in lenders if loan.resource == resource]
        if taking:
            cards.append(_loan_card(resource, taking, leaving, wanting))
    if not cards:
        return card("Who borrows", note="No queue uses more than it deserves.")
    return joined(cards)


def _loan_card(resource: str, taking: list[Loan], leaving: list[Loan], wanting: set[str]) -> Markup:
    total = sum(loan.amount for loan in taking)
    lines = [
        element(
            "li", link(queue_address(loan.queue), loan.queue), f" borrows {amount(loan.amount, resource)}"
        )
        for loan in taking[:BORROWERS_SHOWN]
    ]
    lenders = [
        element(
            "li",
            link(queue_address(loan.queue), loan.queue),
            f" leaves {amount(loan.amount, resource)} of what it deserves",
            " and has pods that wait: they may reclaim it" if loan.queue in wanting else "",
        )
        for loan in leaving[:BORROWERS_SHOWN]
    ]
    return card(
        f"Who borrows {TITLES.get(resource, resource)} from whom",
        element("ul", *lines, *lenders),
        note=f"{amount(total, resource)} beyond what is deserved, from what others leave.",
    )


# -- one queue


async def queue_page(request: ViewRequest) -> PageContent:
    name = request.names["queue"]
    rows = {row["name"]: row for row in _tree(request.content.queues())}
    row = rows.get(name)
    if row is None:
        raise NotThere(f"Queue {name} does not exist, or you may not list queues.")
    below = [each for each in rows.values() if each["parent"] == name and each["name"] != name]
    return PageContent(
        f"Queue {name}",
        {
            "done": done_note(request),
            "facts": card("What it is", facts(_facts(row)), queue_actions(row), wide=True),
            "amounts": card("What it has", _amounts(row, request.content.resources), wide=True),
            "below": _below(request, below),
            "why": _why(name),
        },
    )


def _facts(row: Row) -> list[tuple[str, object]]:
    name, parent = row["name"], row["parent"]
    running, waiting = address("/jobs", queue=name, phase="Running"), address("/jobs", queue=name, waiting=1)
    return [
        ("State", phase(row["state"] or names.QUEUE_OPEN)),
        ("Weight", row["weight"]),
        *([("Below", link(queue_address(parent), parent))] if parent and parent != name else []),
        ("Jobs running", number_link(row["running"], running)),
        ("Jobs waiting", number_link(row["waiting"], waiting)),
        ("All its jobs", link(address("/jobs", queue=name), "list")),
    ]


def _amounts(row: Row, resources: Sequence[str]) -> Markup:
    named = dict.fromkeys((*resources, *(name for part in PARTS for name in row[part])))
    lines = [
        element(
            "tr",
            element("th", TITLES.get(resource, resource), scope="row"),
            element("td", share_bar(row, resource)),
            *(element("td", amount(row[part].get(resource), resource), class_="number") for part in PARTS),
        )
        for resource in named
    ]
    titles = ("Resource", "", "In use", "Deserved", "Guaranteed", "At most", "Waiting for")
    head = element("tr", *(element("th", title, scope="col") for title in titles))
    table = element("table", element("thead", head), element("tbody", *lines))
    return element(
        "div", table, class_="scroll", tabindex="0", role="region", aria_label="amounts of the queue"
    )


def _below(request: ViewRequest, rows: list[Row]) -> Markup:
    if not rows:
        return joined([])
    flat = [{**row, "depth": 0} for row in rows]
    return card(
        "Queues below it",
        data_table(request, "Queues below it", _columns(request.content.resources), flat),
        wide=True,
    )


def _why(name: str) -> Markup:
    command = f"stromboli explain queue/{name}"
    return card(
        "Why its jobs wait",
        notes([joined(["In full, with what would help: ", element("code", command)])]),
        wide=True,
    )


ROUTES = (
    PageRoute("/queues", queue_list, "queues", refresh=3.0),
    PageRoute("/queues/{queue}", queue_page, "queues", refresh=3.0),
)
