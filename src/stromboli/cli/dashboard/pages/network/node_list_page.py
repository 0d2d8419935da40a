"""All nodes: a heat map of a resource, grouped by topology, the largest gang that would fit, and a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from stromboli.api import names
from stromboli.cli.dashboard.pages.network.heat_map_markup import (
    NodeGroup,
    chosen_resource,
    heat_map_names,
    map_card,
    node_groups,
    resource_tabs,
)
from stromboli.cli.dashboard.pages.network.node_elements import (
    NODES_PAGE,
    UNKNOWN,
    SizedRoom,
    gang_card,
    sight_notes,
    tier_text,
    title_of,
    usage_bar,
)
from stromboli.cli.dashboard.pages.page_content import (
    PageContent,
    PageRoute,
    ViewRequest,
    address,
    hyper_node_address,
    node_address,
)
from stromboli.cli.dashboard.pages.page_elements import (
    FilterField,
    Row,
    TableColumn,
    card,
    data_table,
    filter_form,
    link,
    number_link,
    phase,
    tabs,
)
from stromboli.cli.dashboard.topology.node_occupancy import Bools, NodeOccupancy, resource_names
from stromboli.simulator.reports.page.markup import Markup, joined, shortened

TABS_SHOWN = 12
LABELS = (
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "node.kubernetes.io/instance-type",
)
"""Labels by which nodes can be grouped with a click; any other one can be written into the address."""
BY_STATE, UNGROUPED, TIER = "state", "none", "tier:"
VACANT_STATE = "free of jobs"
"""A state to filter by, besides those that nodes report."""
NOT_READY, CORDONED = "NotReady", "SchedulingDisabled"
"""Parts of states, by which nodes are filtered whatever the rest of their state is."""


async def node_list(request: ViewRequest) -> PageContent:
    """The nodes that the address asks for, on a map and in a table."""
    occupancy = request.view.nodes.occupancy()
    sized = SizedRoom(request, occupancy)
    places = _filtered(request, occupancy, sized.is_known)
    resource = chosen_resource(request)
    group = _grouping(request, occupancy)
    groups = grouped_nodes(occupancy, places, group)
    return PageContent(
        "Nodes",
        {
            "node-notes": sight_notes(request),
            "node-filters": _filters(request, occupancy, sized.is_known),
            "node-choices": joined(
                [resource_tabs(request, resource), _group_tabs(request, occupancy, group)]
            ),
            "heat-map": map_card(occupancy, groups, resource, sized.is_known),
            "node-gang": gang_card(request, sized),
            "node-list": _table(request, occupancy, places, sized),
            "heat-names": heat_map_names(occupancy, groups),
        },
    )


# -- which nodes


def _filtered(request: ViewRequest, occupancy: NodeOccupancy, known: bool) -> list[int]:
    """The places of nodes that the filters leave; where use is not `known`, no node counts as free of jobs."""
    wanted = np.ones(len(occupancy), dtype=bool)
    if name := request.query.get("hypernode", ""):
        tree = occupancy.network.tree
        domain = tree.domains.get(tree.titles.resolve(name))
        wanted[:] = domain.mask(len(occupancy)) if domain is not None else False
    if tier := request.query.get("tier", ""):
        wanted &= _in_tier(occupancy, tier)
    if state := request.query.get("state", ""):
        wanted &= _in_state(occupancy, state) if known or state != VACANT_STATE else False
    words = request.query.get("q", "").lower().split()
    kept: list[int] = np.flatnonzero(wanted).tolist()
    for word in words:
        kept = [place for place in kept if word in occupancy.names[place].lower()]
    return kept


def _in_tier(occupancy: NodeOccupancy, wanted: str) -> Bools:
    """In any HyperNode of a tier."""
    network = occupancy.network
    tiers = [tier for tier in network.tiers if str(tier) == wanted]
    return network.in_tier(tiers[0]) if tiers else np.zeros(len(occupancy), dtype=bool)


def _in_state(occupancy: NodeOccupancy, state: str) -> Bools:
    if state == VACANT_STATE:
        return occupancy.free_nodes
    return np.array([has_state(each, state) for each in occupancy.states], dtype=bool)


def has_state(state: str, wanted: str) -> bool:
    """Whether the state of a node is the one that a filter wants, or has the part of it that is wanted."""
    return state == wanted or (wanted in (NOT_READY, CORDONED) and wanted in state.split(","))


def _filters(request: ViewRequest, occupancy: NodeOccupancy, known: bool) -> Markup:
    states = [*sorted(set(occupancy.states))[:TABS_SHOWN], *([VACANT_STATE] if known else [])]
    tiers = [str(tier) for tier in occupancy.network.tiers[:TABS_SHOWN]]
    fields = [
        FilterField("q", "Search"),
        FilterField("state", "State", states),
        *([FilterField("tier", "Tier", tiers), FilterField("hypernode", "HyperNode")] if tiers else []),
    ]
    return filter_form(request, fields)


# -- the map


def _grouping(request: ViewRequest, occupancy: NodeOccupancy) -> str:
    """By what nodes are grouped: the lowest tier of HyperNodes unless the address says something else."""
    tiers = [f"{TIER}{tier}" for tier in occupancy.network.tiers]
    wanted = request.query.get("group", "")
    if wanted in (*tiers, BY_STATE, UNGROUPED) or (wanted and occupancy.has_label(wanted)):
        return wanted
    return tiers[0] if tiers else UNGROUPED


def grouped_nodes(occupancy: NodeOccupancy, places: Sequence[int], group: str) -> list[NodeGroup]:
    """Nodes by HyperNode of a tier, by state, by the value of a label, or all together."""
    if group == UNGROUPED:
        return [NodeGroup("", tuple(places))]
    if group == BY_STATE:
        return node_groups(dict(enumerate(occupancy.states)), places, "unknown")
    if not group.startswith(TIER):
        return node_groups(dict(enumerate(occupancy.labels(group))), places, f"without {group}")
    titles: dict[int, str] = {}
    for domain in occupancy.network.of_tier(int(group.removeprefix(TIER))):
        for row in domain.rows.tolist():
            titles.setdefault(row, domain.title)
    return node_groups(titles, places, "in no HyperNode of this tier")


def _group_tabs(request: ViewRequest, occupancy: NodeOccupancy, group: str) -> Markup:
    network = occupancy.network
    groupings: list[tuple[str, object]] = [
        (f"{TIER}{tier}", tier_text(tier, network.tier_name(tier), "HyperNode"))
        for tier in network.tiers[:TABS_SHOWN]
    ]
    groupings += [(label, label.rpartition("/")[2]) for label in LABELS if occupancy.has_label(label)]
    groupings += [(BY_STATE, "State"), (UNGROUPED, "All together")]
    groupings += [(group, shortened(group, 60))] if group not in dict(groupings) else []
    entries = [(title, request.address(group=each), each == group) for each, title in groupings]
    return tabs(entries, "groups of the heat map")


# -- the table


def _table(request: ViewRequest, occupancy: NodeOccupancy, places: Sequence[int], sized: SizedRoom) -> Markup:
    """One page of these nodes."""
    states = Counter(occupancy.states[place] for place in places)
    listed = ", ".join(
        f"{count:,} {shortened(state, 40)}" for state, count in sorted(states.items())[:TABS_SHOWN]
    )
    title, told = f"{len(places):,} of {len(occupancy):,} nodes", [listed] if listed else []
    if sized.is_known:
        fitting = int(sized.room.by_node[list(places)].sum())
        told.append(f"{fitting:,} more pods of {sized.text} fit")
    note = "; ".join(told)
    rows: list[Row] = [{"place": place} for place in places]
    table = data_table(request, f"{title}: {note}", _columns(request, occupancy, sized), rows)
    return card(title, table, note=note, wide=True)


def _columns(request: ViewRequest, occupancy: NodeOccupancy, sized: SizedRoom) -> list[TableColumn]:
    known, fitting = sized.is_known, sized.room.by_node.astype(int).tolist()
    resources = request.content.resources
    chosen = request.query.get("resource", "")
    if chosen in resource_names(request.records) and chosen not in (*resources, names.PODS):
        resources = [*resources, chosen]
    return [
        TableColumn("Node", lambda row: _name(occupancy, row), lambda row: occupancy.names[row["place"]]),
        TableColumn(
            "State",
            lambda row: state_text(occupancy.states[row["place"]]),
            lambda row: occupancy.states[row["place"]],
        ),
        TableColumn(
            "Pods",
            lambda row: _pods(occupancy, row) if known else UNKNOWN,
            lambda row: occupancy.pods[row["place"]],
            "number",
        ),
        *(_resource_column(occupancy, resource, known) for resource in resources),
        TableColumn(
            "Fits",
            lambda row: f"{fitting[row['place']]:,}" if known else UNKNOWN,
            lambda row: fitting[row["place"]],
            "number",
        ),
        *([_hyper_node_column(occupancy)] if occupancy.network.tree else []),
    ]


def _name(occupancy: NodeOccupancy, row: Row) -> Markup:
    name = occupancy.names[row["place"]]
    return link(node_address(name), shortened(name, 80))


def state_text(state: str) -> Markup:
    """Readiness, and whether it is cordoned."""
    ready, *others = state.split(",")
    return joined([phase(ready), *(phase("cordoned") for each in others if each == CORDONED)], " ")


def _pods(occupancy: NodeOccupancy, row: Row) -> Markup:
    name = occupancy.names[row["place"]]
    return number_link(occupancy.pods[row["place"]], f"{node_address(name)}#region-node-pods")


def _resource_column(occupancy: NodeOccupancy, resource: str, known: bool) -> TableColumn:
    columns = occupancy.columns(resource)
    has, used, share = columns.has.tolist(), columns.used.tolist(), columns.share.tolist()
    return TableColumn(
        shortened(title_of(resource), 60),
        lambda row: usage_bar(used[row["place"]] if known else None, has[row["place"]], resource),
        lambda row: share[row["place"]],
        name=f"by-{resource}",
    )


def _hyper_node_column(occupancy: NodeOccupancy) -> TableColumn:
    tree = occupancy.network.tree

    def cell(row: Row) -> Markup | str:
        domain = tree.leaf_of(row["place"])
        return link(hyper_node_address(domain.name), shortened(domain.title, 60)) if domain else "-"

    def title(row: Row) -> str:
        domain = tree.leaf_of(row["place"])
        return domain.title if domain is not None else ""

    return TableColumn("HyperNode", cell, title)


def nodes_in(hyper_node: str, state: str = "") -> str:
    """The address of the nodes of a HyperNode, of those in some state alone."""
    return address(NODES_PAGE, hypernode=hyper_node, state=state)


ROUTES = (PageRoute(NODES_PAGE, node_list, "nodes"),)
