"""The network: HyperNodes as a tree with what is in use below each, and a page for each of them."""

from __future__ import annotations

from collections.abc import Sequence

from stromboli.cli.dashboard.pages.job_links import row_address
from stromboli.cli.dashboard.pages.network.heat_map_markup import (
    NodeGroup,
    chosen_resource,
    heat_map_names,
    map_card,
    node_groups,
    resource_tabs,
)
from stromboli.cli.dashboard.pages.network.hyper_node_tree_view import (
    CHILDREN_SHOWN,
    OPEN_ALL,
    TreeView,
    by_name,
    hyper_node_table,
)
from stromboli.cli.dashboard.pages.network.node_elements import (
    NODES_PAGE,
    SizedRoom,
    gang_card,
    sight_notes,
    tier_text,
    title_of,
    usage_bar,
)
from stromboli.cli.dashboard.pages.network.node_list_page import VACANT_STATE, nodes_in
from stromboli.cli.dashboard.pages.page_content import (
    NotThere,
    PageContent,
    PageRoute,
    ViewRequest,
    address,
    hyper_node_address,
    queue_address,
)
from stromboli.cli.dashboard.pages.page_elements import (
    Row,
    TableColumn,
    card,
    data_table,
    facts,
    link,
    notes,
    number_link,
    phase,
    plain_table,
    short_text,
    tabs,
)
from stromboli.cli.dashboard.topology.domain_rooms import (
    DomainRooms,
    ResourceUse,
    TierSummary,
    node_names,
)
from stromboli.cli.dashboard.topology.gang_room import TierRoom
from stromboli.cli.dashboard.topology.node_occupancy import NodeOccupancy
from stromboli.model.topology.domain import Domain
from stromboli.simulator.reports.page.markup import Markup, element, joined, shortened

TOPOLOGY_PAGE = "/topology"
FREE = "free"
FULL = "full-of-"
"""With a resource: the HyperNodes that are full of it."""
PROBLEMS_SHOWN = 50
MEANING = (
    "A node is free if it accepts new pods and no pod of a job is on it. A HyperNode is free if all its nodes are,"
    " and full of a resource if none of the resource is free on nodes that accept new pods."
)
NO_HYPER_NODES = (
    "There are no HyperNodes: the network is one whole. docs/topology.md tells how to describe it,"
    " so that gangs are kept close together."
)


# -- the whole network


async def topology(request: ViewRequest) -> PageContent:
    """All HyperNodes as a tree, or those of a tier as a table."""
    occupancy = request.view.nodes.occupancy()
    sized = SizedRoom(request, occupancy)
    if not request.records.hyper_nodes:
        return PageContent(
            "Topology", {"topology-notes": sight_notes(request), "hyper-nodes": notes([NO_HYPER_NODES])}
        )
    rooms = DomainRooms(occupancy, request.content.resources, sized.room)
    return PageContent(
        "Topology",
        {
            "topology-notes": sight_notes(request),
            "topology-tiers": _tiers_card(request, rooms, sized),
            "topology-problems": _problems(occupancy),
            "hyper-nodes": _hyper_nodes(request, rooms, sized),
            "topology-gang": gang_card(request, sized),
        },
    )


def _tiers_card(request: ViewRequest, rooms: DomainRooms, sized: SizedRoom) -> Markup:
    largest = {tier.tier: tier for tier in sized.room.tiers}

    def cells(tier: TierSummary) -> list[object]:
        best = largest[tier.tier]
        return [
            tier_text(tier.tier, tier.name),
            number_link(tier.hyper_nodes, request.address(tier=tier.tier, room="", page="")),
            sized.count(tier.free, request.address(tier=tier.tier, room=FREE, page="")),
            joined([sized.count(tier.free_nodes, _free_nodes(tier)), " of ", _nodes(tier)]),
            *(use_cell(tier, resource, use) for resource, use in tier.uses.items()),
            _largest(best, sized),
        ]

    def use_cell(tier: TierSummary, resource: str, use: ResourceUse) -> Markup:
        """What is in use of a resource, and how many HyperNodes are full of it."""
        bar = usage_bar(use.used if sized.is_known else None, use.has, resource)
        target = request.address(tier=tier.tier, room=f"{FULL}{resource}", page="")
        return joined([bar, *([" ", sized.count(use.full, target), " full"] if use.has else [])])

    titles = (
        "Tier",
        "HyperNodes",
        "Free",
        "Free nodes",
        *map(title_of, rooms.resources),
        f"Most pods of {sized.text} in one",
    )
    table = plain_table("tiers of HyperNodes", titles, [cells(tier) for tier in rooms.tiers()])
    return card("Tiers", table, note=MEANING, wide=True)


def _largest(best: TierRoom, sized: SizedRoom) -> Markup:
    """How many pods fit in the HyperNode that takes most of them."""
    number = sized.fitting(best.largest, best.domain.name)
    return joined([number, *([" in ", _link(best.domain)] if best.largest and sized.is_known else [])])


def _free_nodes(tier: TierSummary) -> str:
    return address(NODES_PAGE, tier=tier.tier, state=VACANT_STATE)


def _nodes(tier: TierSummary) -> Markup:
    return number_link(tier.nodes, address(NODES_PAGE, tier=tier.tier))


def _problems(occupancy: NodeOccupancy) -> Markup:
    """HyperNodes that are left out or not as somebody meant them, and why."""
    tree = occupancy.network.tree
    names = tree.with_notices()
    if not names:
        return Markup("")
    entries = [
        element(
            "li",
            link(hyper_node_address(name), shortened(tree.titles.of(name), 60)),
            ": ",
            short_text("; ".join(tree.notices(name).values())),
        )
        for name in names[:PROBLEMS_SHOWN]
    ]
    more = [f"and {len(names) - PROBLEMS_SHOWN:,} more"] if len(names) > PROBLEMS_SHOWN else []
    return card("Problems", element("ul", *entries), notes(more), wide=True)


def _hyper_nodes(request: ViewRequest, rooms: DomainRooms, sized: SizedRoom) -> Markup:
    """As a tree, or as a table of those that the tiers count."""
    tier = request.query.get("tier", "")
    room = request.query.get("room", "") if sized.is_known else ""
    if not tier and not room:
        return _tree_card(request, rooms, sized, rooms.network.tree.top)
    domains = [
        domain
        for place, domain in enumerate(rooms.network.domains)
        if rooms.nodes[place] and tier in ("", str(domain.tier)) and _is_chosen(rooms, place, room)
    ]
    plural = "" if len(domains) == 1 else "s"
    caption = f"{len(domains):,} HyperNode{plural}" + (f" of tier {shortened(tier, 20)}" if tier else "")
    back = link(request.address(tier="", room="", page=""), "all as a tree")
    return card(
        f"{caption}{', ' + _room_text(room) if room else ''}",
        hyper_node_table(request, caption, domains, rooms, sized),
        note=back,
        wide=True,
    )


def _is_chosen(rooms: DomainRooms, place: int, room: str) -> bool:
    """Whether a HyperNode is among those that an address asks for: all, free ones, or those full of a resource."""
    resource = room.removeprefix(FULL)
    if room.startswith(FULL) and resource in rooms.resources:
        return rooms.is_full(place, resource)
    return not room or (room == FREE and rooms.is_free(place))


def _room_text(room: str) -> str:
    if room.startswith(FULL):
        return f"full of {shortened(title_of(room.removeprefix(FULL)), 40)}"
    return shortened(room, 20)


def _tree_card(request: ViewRequest, rooms: DomainRooms, sized: SizedRoom, root: Domain) -> Markup:
    """The HyperNodes below another, one page of them."""
    pages = max(1, -(-len(root.children) // CHILDREN_SHOWN))
    page = min(request.number("page", 1, 100_000), pages)
    roots = by_name(root.children)[(page - 1) * CHILDREN_SHOWN : page * CHILDREN_SHOWN]
    folding = [("Fold", request.address(open=""), False), ("Unfold", request.address(open=OPEN_ALL), False)]
    turning = [
        (
            f"{first + 1:,} to {min(first + CHILDREN_SHOWN, len(root.children)):,}",
            target,
            first // CHILDREN_SHOWN + 1 == page,
        )
        for first, target in _page_links(request, pages, page)
    ]
    parts = [tabs(folding, "folding")] if any(each.children for each in roots) else []
    parts += [tabs(turning, "pages")] if pages > 1 else []
    return card("HyperNodes", *parts, TreeView(request, rooms, sized).markup(roots), wide=True)


def _page_links(request: ViewRequest, pages: int, page: int) -> list[tuple[int, str]]:
    """The first HyperNode and the address of pages near this one, of the first and of the last."""
    near = sorted({1, pages, *range(max(1, page - 2), min(pages, page + 2) + 1)})
    return [((each - 1) * CHILDREN_SHOWN, request.address(page=each if each > 1 else "")) for each in near]


# -- one HyperNode


async def hyper_node(request: ViewRequest) -> PageContent:
    """A HyperNode: its place in the network, what is below it, and the jobs that lie in it."""
    occupancy = request.view.nodes.occupancy()
    name = occupancy.network.tree.titles.resolve(request.names["hypernode"])
    domain = occupancy.network.tree.domains.get(name)
    if domain is None:
        return _left_out(request, occupancy, name)
    sized = SizedRoom(request, occupancy)
    rooms = DomainRooms(occupancy, request.content.resources, sized.room)
    groups = _groups(domain)
    resource = chosen_resource(request)
    regions = {
        "topology-notes": sight_notes(request),
        "hyper-node": card("Facts", _facts(rooms, domain, sized), _notices(occupancy, name), wide=True),
        "hyper-node-resources": resource_tabs(request, resource),
        "heat-map": map_card(occupancy, groups, resource, sized.is_known),
    }
    if domain.children:
        regions["hyper-nodes"] = _tree_card(request, rooms, sized, domain)
    regions["hyper-node-jobs"] = _jobs(request, occupancy, domain)
    regions["heat-names"] = heat_map_names(occupancy, groups)
    return PageContent(f"HyperNode {shortened(domain.title, 80)}", regions)


def _left_out(request: ViewRequest, occupancy: NodeOccupancy, name: str) -> PageContent:
    """One that is no part of the tree, or none at all."""
    if name not in request.records.hyper_nodes:
        raise NotThere(f"There is no HyperNode {shortened(name, 100)}, or you may not see it.")
    spec = request.records.hyper_nodes[name].spec
    told = facts(
        [
            ("Tier", tier_text(spec.tier, spec.tier_name)),
            ("Members", f"{len(spec.members):,}"),
            ("Network", link(TOPOLOGY_PAGE, "all HyperNodes")),
        ]
    )
    return PageContent(
        f"HyperNode {shortened(name, 80)}",
        {"hyper-node": card("Facts", told, _notices(occupancy, name), wide=True)},
    )


def _notices(occupancy: NodeOccupancy, name: str) -> Markup:
    return notes(map(short_text, occupancy.network.tree.notices(name).values()), "warn")


def _facts(rooms: DomainRooms, domain: Domain, sized: SizedRoom) -> Markup:
    place = rooms.place[domain.name]
    above = [each for each in domain.ancestors() if each is not rooms.network.tree.top][1:]
    used = {name: rooms.used[name][place] if sized.is_known else None for name in rooms.resources}
    entries: list[tuple[str, object]] = [
        *([("Name", shortened(domain.name, 253))] if domain.title != domain.name else []),
        ("Tier", tier_text(domain.tier, domain.tier_name)),
        (
            "Within",
            joined([link(TOPOLOGY_PAGE, "the whole network"), *map(_link, reversed(above))], " / "),
        ),
        (
            "Nodes",
            joined(
                [
                    number_link(rooms.nodes[place], nodes_in(domain.name)),
                    ", ",
                    sized.count(rooms.free_nodes[place], nodes_in(domain.name, VACANT_STATE)),
                    " free",
                ]
            ),
        ),
        *(
            (title_of(resource), usage_bar(used[resource], rooms.has[resource][place], resource))
            for resource in rooms.resources
        ),
        (
            "Pods that fit",
            joined([sized.fitting(rooms.fitting[place], domain.name), f" of {sized.text}, by amounts alone"]),
        ),
    ]
    return facts(entries)


def _link(domain: Domain) -> Markup:
    return link(hyper_node_address(domain.name), shortened(domain.title, 60))


def _groups(domain: Domain) -> list[NodeGroup]:
    """Its nodes by the HyperNodes that it is made of."""
    places = domain.rows.tolist()
    titles = {row: child.title for child in reversed(domain.children) for row in child.rows.tolist()}
    return node_groups(titles, places, "" if not titles else "members of its own")


def _jobs(request: ViewRequest, occupancy: NodeOccupancy, domain: Domain) -> Markup:
    counts = occupancy.jobs.pods_by_job(node_names(occupancy, domain))
    rows = [
        {**row, "here": counts[row["group"]]} for row in request.content.all_jobs() if row["group"] in counts
    ]
    caption = f"{len(rows):,} job{'' if len(rows) == 1 else 's'} with pods in {shortened(domain.title, 60)}"
    table = (
        data_table(request, caption, _job_columns(request), rows, "-here")
        if rows
        else notes(["No job has a pod here."])
    )
    return card("Jobs", table, note=caption, wide=True)


def _job_columns(request: ViewRequest) -> Sequence[TableColumn]:
    def job(row: Row) -> Markup:
        return link(row_address(request.records, row), f"{row['namespace']}/{shortened(row['name'], 80)}")

    def pods(row: Row, name: str) -> Markup:
        return number_link(row[name], address(row_address(request.records, row), tab="pods"))

    return [
        TableColumn("Job", job, lambda row: (row["namespace"], row["name"])),
        TableColumn(
            "Queue", lambda row: link(queue_address(row["queue"]), row["queue"]), lambda row: row["queue"]
        ),
        TableColumn("Phase", lambda row: phase(row["phase"]), lambda row: row["phase"]),
        TableColumn("Pods here", lambda row: pods(row, "here"), lambda row: row["here"], "number", "here"),
        TableColumn("Pods", lambda row: pods(row, "pods"), lambda row: row["pods"], "number"),
    ]


ROUTES = (
    PageRoute(TOPOLOGY_PAGE, topology, "topology"),
    PageRoute(f"{TOPOLOGY_PAGE}/{{hypernode}}", hyper_node, "topology"),
)
