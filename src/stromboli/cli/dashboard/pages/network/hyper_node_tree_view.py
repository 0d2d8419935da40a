"""HyperNodes as a tree that can be folded, a bounded part of it on each page, and as a table."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

from stromboli.api import names
from stromboli.cli.dashboard.pages.network.node_elements import SizedRoom, tier_text, title_of, usage_bar
from stromboli.cli.dashboard.pages.network.node_list_page import VACANT_STATE, nodes_in
from stromboli.cli.dashboard.pages.page_content import ViewRequest, hyper_node_address
from stromboli.cli.dashboard.pages.page_elements import Row, TableColumn, data_table, link, number_link
from stromboli.cli.dashboard.topology.domain_rooms import DomainRooms
from stromboli.model.topology.display_names import natural_order
from stromboli.model.topology.domain import Domain
from stromboli.simulator.reports.page.markup import Markup, element, joined, shortened

CHILDREN_SHOWN = 50
"""Of one HyperNode; the others are on its own page."""
LINES_SHOWN = 150
LEVELS_SHOWN = 8
NAME_LENGTH = 60
OPEN_ALL = "all"


class TreeView:
    """The part of the tree below some HyperNodes that a page shows."""

    def __init__(self, request: ViewRequest, rooms: DomainRooms, sized: SizedRoom) -> None:
        self._rooms = rooms
        self._sized = sized
        self._is_open = request.query.get("open", "") == OPEN_ALL

    def markup(self, roots: Sequence[Domain]) -> Markup:
        """These HyperNodes, each with those below it as far as there is room."""
        shown = _shown(roots)
        return element("ul", *(self._branch(domain, shown) for domain in roots), class_="tree")

    def _branch(self, domain: Domain, shown: dict[str, list[Domain]]) -> Markup:
        line = self._line(domain)
        below = shown.get(domain.name, [])
        id = f"tree-{shortened(domain.name, 253)}"
        if not domain.children:
            return element("li", element("div", line, class_="tree-line"), id=id)
        if not below:
            return element("li", element("div", line, _more(domain, 0), class_="tree-line"), id=id)
        rest = [element("li", _more(domain, len(below)))] if len(below) < len(domain.children) else []
        return element(
            "li",
            element(
                "details",
                element("summary", line, class_="tree-line"),
                element("ul", *(self._branch(child, shown) for child in below), *rest),
                open="" if self._is_open else None,
            ),
            id=id,
        )

    def _line(self, domain: Domain) -> Markup:
        """A HyperNode in one line; what is in it as links."""
        rooms, sized, place = self._rooms, self._sized, self._rooms.place[domain.name]
        fitting, jobs = rooms.fitting[place], rooms.jobs(place)
        name = link(hyper_node_address(domain.name), shortened(domain.title, NAME_LENGTH), class_="tree-name")
        parts = [
            name,
            element("span", tier_text(domain.tier, domain.tier_name), class_="tree-tier"),
            element(
                "span",
                number_link(rooms.nodes[place], nodes_in(domain.name)),
                f" {_plural(rooms.nodes[place], 'node')}, ",
                sized.count(rooms.free_nodes[place], nodes_in(domain.name, VACANT_STATE)),
                " free",
                class_="tree-nodes",
            ),
            *(_use(used[place], has[place], resource) for resource, used, has in _columns(rooms, sized)),
            element(
                "span",
                "fits ",
                sized.fitting(fitting, domain.name),
                f" {_plural(fitting, 'pod')}",
                class_="tree-fits",
            ),
            element(
                "span",
                sized.count(jobs, jobs_in(domain.name)),
                f" {_plural(jobs, 'job')}",
                class_="tree-jobs",
            ),
        ]
        return element("span", joined(parts, " "), class_="tree-cells")


def _use(used: float | None, has: float, resource: str) -> Markup:
    """A cell of its own where there is nothing of the resource, too, so that columns stay in line."""
    cell = [f"{title_of(resource)} ", usage_bar(used, has, resource)] if has else []
    return element("span", *cell, class_="tree-use tree-bytes" if resource == names.MEMORY else "tree-use")


def jobs_in(hyper_node: str) -> str:
    """The address of the jobs that have pods in a HyperNode."""
    return f"{hyper_node_address(hyper_node)}#region-hyper-node-jobs"


def _columns(rooms: DomainRooms, sized: SizedRoom) -> list[tuple[str, Sequence[float | None], list[float]]]:
    """What is in use of each resource, by HyperNode, and what there is."""
    unknown = [None] * len(rooms.nodes)
    return [
        (resource, rooms.used[resource] if sized.is_known else unknown, rooms.has[resource])
        for resource in rooms.resources
    ]


def _shown(roots: Sequence[Domain]) -> dict[str, list[Domain]]:
    """The children that are shown, by the name of their parent: level by level, until there are enough lines."""
    shown: dict[str, list[Domain]] = {}
    left = LINES_SHOWN - len(roots)
    waiting = deque((domain, 1) for domain in roots)
    while waiting:
        domain, level = waiting.popleft()
        below = by_name(domain.children)[:CHILDREN_SHOWN]
        if below and len(below) <= left and level < LEVELS_SHOWN:
            left -= len(below)
            shown[domain.name] = below
            waiting.extend((child, level + 1) for child in below)
    return shown


def _more(domain: Domain, shown: int) -> Markup:
    hidden = len(domain.children) - shown
    more = "more " if shown else ""
    return link(
        hyper_node_address(domain.name), f"{hidden:,} {more}HyperNode{'' if hidden == 1 else 's'} below"
    )


def by_name(domains: Iterable[Domain]) -> list[Domain]:
    """`rack-9` before `rack-10`."""
    return sorted(domains, key=lambda domain: natural_order(domain.title))


def _plural(count: int, noun: str) -> str:
    return noun if count == 1 else f"{noun}s"


def hyper_node_table(
    request: ViewRequest, caption: str, domains: Sequence[Domain], rooms: DomainRooms, sized: SizedRoom
) -> Markup:
    """HyperNodes as a table that can be sorted."""
    rows: list[Row] = [{"domain": domain, "place": rooms.place[domain.name]} for domain in domains]
    return data_table(request, caption, [*_name_columns(), *_room_columns(rooms, sized)], rows)


def _name_columns() -> list[TableColumn]:
    return [
        TableColumn(
            "HyperNode",
            lambda row: link(
                hyper_node_address(row["domain"].name), shortened(row["domain"].title, NAME_LENGTH)
            ),
            lambda row: natural_order(row["domain"].title),
        ),
        TableColumn(
            "Tier",
            lambda row: tier_text(row["domain"].tier, row["domain"].tier_name),
            lambda row: row["domain"].tier,
        ),
    ]


def _room_columns(rooms: DomainRooms, sized: SizedRoom) -> list[TableColumn]:
    nodes, free, fitting = rooms.nodes, rooms.free_nodes, rooms.fitting
    return [
        TableColumn(
            "Nodes",
            lambda row: number_link(nodes[row["place"]], nodes_in(row["domain"].name)),
            lambda row: nodes[row["place"]],
            "number",
        ),
        TableColumn(
            "Free nodes",
            lambda row: sized.count(free[row["place"]], nodes_in(row["domain"].name, VACANT_STATE)),
            lambda row: free[row["place"]],
            "number",
        ),
        *(_resource_column(resource, used, has) for resource, used, has in _columns(rooms, sized)),
        TableColumn(
            "Fits",
            lambda row: sized.fitting(fitting[row["place"]], row["domain"].name),
            lambda row: fitting[row["place"]],
            "number",
        ),
        TableColumn(
            "Jobs",
            lambda row: sized.count(rooms.jobs(row["place"]), jobs_in(row["domain"].name)),
            lambda row: rooms.jobs(row["place"]),
            "number",
        ),
    ]


def _resource_column(resource: str, used: Sequence[float | None], has: list[float]) -> TableColumn:
    return TableColumn(
        title_of(resource),
        lambda row: usage_bar(used[row["place"]], has[row["place"]], resource),
        lambda row: (used[row["place"]] or 0.0) / (has[row["place"]] or 1.0),
        name=f"by-{resource}",
    )
