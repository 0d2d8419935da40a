"""Queues: the tree with what each uses, deserves, is guaranteed and may have, and who borrows from whom."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from stromboli.api import names
from stromboli.cli.dashboard.pages.action_links import done_note, queue_actions
from stromboli.cli.dashboard.pages.object_elements import command_line
from stromboli.cli.dashboard.pages.page_content import (
    NotThere,
    PageContent,
    PageRoute,
    ViewRequest,
    address,
    queue_address,
)
from stromboli.cli.dashboard.pages.page_elements import (
    CEILING,
    FLOOR,
    LINE,
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
    plain_table,
    search_rows,
)
from stromboli.simulator.reports.page.markup import Markup, element, joined

DEEPEST = 32
"""Levels of a tree of queues that are followed."""
DEEPEST_INDENT = 6
"""Levels that are told apart by their indentation."""
BORROWERS_SHOWN = 20

POD_SUMS = ("used", "pending")
"""Parts of a queue that are sums over its pods."""
SHARES = {
    "deserved": ("deserved", LINE),
    "guarantee": ("guaranteed", FLOOR),
    "capability": ("at most", CEILING),
}
"""What a queue is to have, in words and by its mark on a bar."""


class Loan(NamedTuple):
    """What a queue uses beyond what it deserves, or leaves of it to others."""

    queue: Row
    amount: float


class Exchange(NamedTuple):
    """Queues below the same parent of which some use more of a resource than they deserve, the largest first."""

    parent: str
    """Empty for those at the top."""
    resource: str
    borrowers: list[Loan]
    lenders: list[Loan]


def running_address(queue: str = "") -> str:
    """The jobs that run, or those of a queue."""
    return address("/jobs", queue=queue, scheduling=names.GROUP_RUNNING)


def waiting_address(queue: str = "") -> str:
    """The jobs that wait for room."""
    return address("/jobs", queue=queue, waiting=1)


def use_address(row: Row, resource: str) -> str:
    """Who uses what a queue uses: the queues below it, or its jobs with the largest first."""
    if row["children"]:
        return f"{queue_address(row['name'])}#region-below"
    return address("/jobs", queue=row["name"], sort=f"-by-{resource}")


def pending_address(row: Row, resource: str) -> str:
    """The jobs of a queue of which pods wait, those that want most first."""
    return address("/jobs", queue=row["name"], pending=1, sort=f"-by-{resource}")


# -- all queues


async def queue_list(request: ViewRequest) -> PageContent:
    rows = list(queue_tree(request.content.queues()))
    chosen = search_rows(rows, request.query.get("q", ""), lambda row: str(row["name"]))
    fields = [FilterField("q", "Search")]
    table = data_table(request, "Queues", _columns(request.content.resources), chosen)
    legend = (
        "What each uses of what it deserves. A line on the bar is what it deserves, a triangle below what it is"
        " guaranteed, one above what it may have at most. Orange: more than it deserves. A share by weight ends at"
        " what a queue asks for: its jobs that run or wait."
    )
    return PageContent(
        "Queues",
        {
            "filters": filter_form(request, fields),
            "queues": card("The tree of queues", table, note=legend, wide=True),
            "loans": element("div", _loans(rows, request.content.resources), class_="cards"),
        },
    )


def queue_tree(rows: Sequence[Row]) -> Iterator[Row]:
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
            lambda row: number_link(row["running"], running_address(row["name"])),
            lambda row: row["running"],
            "number",
        ),
        TableColumn(
            "Waiting",
            lambda row: number_link(row["waiting"], waiting_address(row["name"])),
            lambda row: row["waiting"],
            "number",
        ),
        *(_usage_column(resource) for resource in resources),
    ]


def _usage_column(resource: str) -> TableColumn:
    return TableColumn(
        TITLES.get(resource, resource),
        lambda row: usage_cell(row, resource),
        lambda row: row["used"].get(resource, 0.0) / (row["deserved"].get(resource) or 1e-9),
        name=resource,
    )


def _name(row: Row) -> Markup:
    name = link(queue_address(row["name"]), row["name"])
    return element("span", name, class_=f"depth-{min(row['depth'], DEEPEST_INDENT)}")


def share_bar(row: Row, resource: str) -> Markup:
    """What a queue uses, with marks for what it deserves, is guaranteed and may have; nothing if none is told."""
    used, deserved = row["used"].get(resource, 0.0), row["deserved"].get(resource)
    whole = row["capability"].get(resource) if deserved is None else deserved
    if whole is None:
        return Markup("")
    marks = [
        BarMark(row[part][resource], f"{words} {amount(row[part][resource], resource)}", shape)
        for part, (words, shape) in SHARES.items()
        if _is_told(row, part, resource)
    ]
    words = f"{amount(used, resource)} used, {amount(deserved, resource)} deserved"
    return bar(used, whole, words, marks)


def _is_told(row: Row, part: str, resource: str) -> bool:
    """A guarantee of nothing is none."""
    return resource in row[part] and (part != "guarantee" or row[part][resource] > 0)


def usage_cell(row: Row, resource: str) -> Markup:
    """The bar and, in words, what it shows."""
    bounds = "".join(
        f", {SHARES[part][0]} {amount(row[part][resource], resource)}"
        for part in ("guarantee", "capability")
        if _is_told(row, part, resource)
    )
    number = _amount_link(row, "used", resource, use_address(row, resource))
    deserved = row["deserved"].get(resource)
    whole = f" of {amount(deserved, resource)}" if deserved is not None else ""
    return element(
        "span", share_bar(row, resource), " ", element("small", number, whole, bounds), class_="share"
    )


# -- who borrows from whom


def exchanges(rows: Sequence[Row], resource: str) -> list[Exchange]:
    """Where queues borrow, by parent: a queue can have only what those beside it leave."""
    families: dict[str, list[Row]] = {}
    for row in rows:
        if row["name"] != names.ROOT_QUEUE and resource in row["deserved"]:
            parent = "" if row["parent"] == names.ROOT_QUEUE else row["parent"]
            families.setdefault(parent, []).append(row)
    return [
        Exchange(parent, resource, borrowers, _loans_of(family, resource, -1))
        for parent, family in sorted(families.items())
        if (borrowers := _loans_of(family, resource, 1))
    ]


def _loans_of(rows: Sequence[Row], resource: str, sign: int) -> list[Loan]:
    """What is used beyond what is deserved, or with -1 what is left of it."""
    loans = [Loan(row, sign * (row["used"].get(resource, 0.0) - row["deserved"][resource])) for row in rows]
    return sorted(
        (loan for loan in loans if loan.amount > 0), key=lambda loan: (-loan.amount, loan.queue["name"])
    )


def _loans(rows: Sequence[Row], resources: Sequence[str]) -> Markup:
    cards = [
        card(
            f"Who borrows {TITLES.get(resource, resource)} from whom",
            *map(exchange_list, there[:BORROWERS_SHOWN]),
            note="Among queues below the same parent.",
        )
        for resource in resources
        if (there := exchanges(rows, resource))
    ]
    return joined(cards) if cards else card("Who borrows", note="No queue uses more than it deserves.")


def exchange_list(exchange: Exchange) -> Markup:
    """Who borrows, and from whom."""
    parent, resource, borrowers, lenders = exchange
    lines = [_borrower(loan, resource) for loan in borrowers[:BORROWERS_SHOWN]]
    lines += [_lender(loan, resource) for loan in lenders[:BORROWERS_SHOWN]]
    if not lenders:
        lines.append(element("li", "No queue beside them leaves anything: it is deserved by none of them."))
    title = [element("h3", "Below ", link(queue_address(parent), parent))] if parent else []
    return joined([*title, element("ul", *lines)])


def _borrower(loan: Loan, resource: str) -> Markup:
    return element(
        "li",
        link(queue_address(loan.queue["name"]), loan.queue["name"]),
        " borrows ",
        link(use_address(loan.queue, resource), amount(loan.amount, resource)),
    )


def _lender(loan: Loan, resource: str) -> Markup:
    waiting = link(pending_address(loan.queue, resource), "pods that wait")
    wants = loan.queue["pending"].get(resource, 0.0) > 0
    return element(
        "li",
        link(queue_address(loan.queue["name"]), loan.queue["name"]),
        f" leaves {amount(loan.amount, resource)} of what it deserves",
        *([" and has ", waiting, " for it: they may reclaim it"] if wants else []),
    )


# -- one queue


async def queue_page(request: ViewRequest) -> PageContent:
    name = request.names["queue"]
    rows = {row["name"]: row for row in queue_tree(request.content.queues())}
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
            "why": _why(row),
        },
    )


def _facts(row: Row) -> list[tuple[str, object]]:
    name, parent = row["name"], row["parent"]
    return [
        ("State", phase(row["state"] or names.QUEUE_OPEN)),
        ("Weight", row["weight"]),
        *([("Below", link(queue_address(parent), parent))] if parent and parent != name else []),
        ("Jobs running", number_link(row["running"], running_address(name))),
        ("Jobs waiting", number_link(row["waiting"], waiting_address(name))),
        ("All its jobs", link(address("/jobs", queue=name), "list")),
    ]


def _amounts(row: Row, resources: Sequence[str]) -> Markup:
    parts = ("used", *SHARES, "pending")
    named = dict.fromkeys((*resources, *(name for part in parts for name in row[part])))
    titles = ("Resource", "Share", "In use", "Deserved", "Guaranteed", "At most", "Waiting for")
    rows = [
        [
            TITLES.get(resource, resource),
            share_bar(row, resource),
            _amount_link(row, "used", resource, use_address(row, resource)),
            _amount_link(row, "deserved", resource, "/policy"),
            *(amount(row[part].get(resource), resource) for part in ("guarantee", "capability")),
            _amount_link(row, "pending", resource, pending_address(row, resource)),
        ]
        for resource in named
    ]
    return plain_table("amounts of the queue", titles, rows, numbers=titles[2:])


def _amount_link(row: Row, part: str, resource: str, target: str) -> Markup | str:
    """With who is behind it, if it is anything; what pods have and wait for is always known."""
    text = amount(row[part].get(resource, 0.0 if part in POD_SUMS else None), resource)
    return link(target, text) if row[part].get(resource) else text


def _below(request: ViewRequest, rows: list[Row]) -> Markup:
    if not rows:
        return joined([])
    flat = [{**row, "depth": 0} for row in rows]
    return card(
        "Queues below it",
        data_table(request, "Queues below it", _columns(request.content.resources), flat),
        wide=True,
    )


def _why(row: Row) -> Markup:
    """How to learn it, where any of its jobs or pods wait."""
    if not (row["waiting"] or any(row["pending"].values())):
        return Markup("")
    command = f"stromboli explain queue/{row['name']}"
    return card(
        "Why its jobs wait",
        notes(["In full, with what would help:"]),
        command_line(command),
        wide=True,
    )


ROUTES = (
    PageRoute("/queues", queue_list, "queues", refresh=3.0),
    PageRoute("/queues/{queue}", queue_page, "queues", refresh=3.0),
)
