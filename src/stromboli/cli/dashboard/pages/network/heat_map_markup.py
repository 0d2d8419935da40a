"""Nodes as a heat map: a character per node for `assets/heat_map.js`, which draws them on a canvas.

Names and groups are in a region of their own, as they hardly ever change; what changes all the time is one attribute.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import msgspec
import numpy as np

from stromboli.api import names
from stromboli.cli.dashboard.pages.network.node_elements import title_of
from stromboli.cli.dashboard.pages.page_content import ViewRequest
from stromboli.cli.dashboard.pages.page_elements import card, tabs
from stromboli.cli.dashboard.topology.node_occupancy import NodeOccupancy, resource_names
from stromboli.model.topology.display_names import natural_order
from stromboli.simulator.reports.page.markup import Markup, element, shortened

LEVELS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxy"
"""The share in use, from nothing to all of it."""
ABSENT, UNKNOWN = ".", "?"
"""The node does not have the resource; nobody may tell the viewer."""
GROUPS_SHOWN = 400
TITLE_LENGTH = 60
SHORT_TITLE = 12
"""Characters for which there is always room above a group."""
SEPARATORS = "-._/"
REST = "other groups"
RESOURCES_SHOWN = 12
NAMES_ID = "heat-map-node-names"


class NodeGroup(NamedTuple):
    """Nodes that stand together under a title, by their places in the occupancy."""

    title: str
    places: tuple[int, ...]
    label: str = ""
    """The part of the title that tells it from the others, where that is less than all of it."""


def node_groups(titles: Mapping[int, str], places: Sequence[int], untitled: str) -> list[NodeGroup]:
    """Groups by title, in order of titles; those of no title, or of too many, come last."""
    members: dict[str, list[int]] = {}
    for place in places:
        members.setdefault(titles.get(place, ""), []).append(place)
    rest = members.pop("", [])
    ordered = sorted(members.items(), key=lambda item: natural_order(item[0][:TITLE_LENGTH]))
    shared = _shared_beginning(list(members))
    groups = [
        NodeGroup(title, tuple(inside), title[shared:] if shared else "")
        for title, inside in ordered[:GROUPS_SHOWN]
    ]
    if more := tuple(place for _, inside in ordered[GROUPS_SHOWN:] for place in inside):
        groups.append(NodeGroup(REST, more))
    return [*groups, NodeGroup(untitled, tuple(rest))] if rest else groups


def _shared_beginning(titles: list[str]) -> int:
    """Characters up to a separator that all titles begin with; none where all of them are short anyway."""
    if len(titles) < 2 or max(map(len, titles)) <= SHORT_TITLE:
        return 0
    first, last = min(titles), max(titles)
    same = next(
        (place for place, pair in enumerate(zip(first, last, strict=False)) if pair[0] != pair[1]), len(first)
    )
    return 1 + max(first.rfind(separator, 0, same) for separator in SEPARATORS)


def heat_map_names(occupancy: NodeOccupancy, groups: Sequence[NodeGroup]) -> Markup:
    """The names of the nodes in the order of the cells; what stands above each group, its size and its title."""
    return _names(occupancy.names, tuple(groups))


@lru_cache(maxsize=16)
def _names(nodes: tuple[str, ...], groups: tuple[NodeGroup, ...]) -> Markup:
    listed = ("·".join(nodes[place].split()) for group in groups for place in group.places)
    sizes = [
        [
            shortened(group.label or group.title, TITLE_LENGTH),
            len(group.places),
            shortened(group.title, TITLE_LENGTH),
        ]
        for group in groups
    ]
    return element(
        "div",
        id=NAMES_ID,
        hidden="",
        data_names=" ".join(listed),
        data_groups=msgspec.json.encode(sizes).decode(),
    )


def chosen_resource(request: ViewRequest) -> str:
    """That of the address, or CPU."""
    return request.choice("resource", tuple(resource_names(request.records)))


def resource_tabs(request: ViewRequest, chosen: str) -> Markup:
    """Links to the same map of other resources."""
    resources = resource_names(request.records)[:RESOURCES_SHOWN]
    resources += [chosen] if chosen not in resources else []
    return tabs(
        [
            (shortened(title_of(each), TITLE_LENGTH), request.address(resource=each), each == chosen)
            for each in resources
        ],
        "resource of the heat map",
    )


def map_card(occupancy: NodeOccupancy, groups: Sequence[NodeGroup], resource: str, known: bool) -> Markup:
    """The map with what its cells mean."""
    count = sum(len(group.places) for group in groups)
    drawing = _heat_map(occupancy, groups, resource, known) if count else element("p", "No nodes.")
    return card(f"{title_of(resource)} in use", drawing, _legend(), wide=True)


def _legend() -> Markup:
    shades = [
        element("rect", x=14.0 * step, width=14.0, height=12.0, class_=f"heat-{step}") for step in range(5)
    ]
    entries = [
        ("in use: none to all", element("svg", *shades, viewBox="0 0 70 12", class_="key wide-key")),
        ("free of jobs", _key(element("rect", x=0.5, y=0.5, width=11.0, height=11.0, class_="key-hollow"))),
        ("cordoned", _key(element("path", d="M1 11L11 1", class_="key-ink"))),
        ("not ready", _key(element("path", d="M1 11L11 1M1 1L11 11", class_="key-bad"))),
        ("has none of it", _key(element("rect", x=5.0, y=5.0, width=2.0, height=2.0, class_="key-dot"))),
    ]
    return element(
        "p",
        *(element("span", drawing, text) for text, drawing in entries),
        class_="legend",
        aria_hidden="true",
    )


def _key(drawing: Markup) -> Markup:
    return element("svg", drawing, viewBox="0 0 12 12", class_="key")


def _heat_map(
    occupancy: NodeOccupancy, groups: Sequence[NodeGroup], resource: str, use_is_known: bool
) -> Markup:
    """The cells; a screen reader is told the summary and, by arrow keys, each node; a table has them as well."""
    order = [place for group in groups for place in group.places]
    states = [occupancy.states[place] for place in order]
    title = title_of(resource)
    return element(
        "heat-map",
        role="application",
        tabindex="0",
        aria_label=_summary(occupancy, order, resource, title, use_is_known),
        names=NAMES_ID,
        resource=shortened(title, TITLE_LENGTH),
        shares=_shares(occupancy, order, resource) if use_is_known else UNKNOWN * len(order),
        vacant=_bits(occupancy, order) if use_is_known else "",
        cordoned=_numbers(
            number for number, state in enumerate(states) if state.endswith("SchedulingDisabled")
        ),
        not_ready=_numbers(number for number, state in enumerate(states) if state.startswith("NotReady")),
    )


def _numbers(numbers: Iterable[int]) -> str:
    return " ".join(map(str, numbers))


def _shares(occupancy: NodeOccupancy, order: Sequence[int], resource: str) -> str:
    columns = occupancy.columns(resource)
    highest = len(LEVELS) - 1
    shares, has = columns.share.tolist(), columns.has.tolist()
    return "".join(LEVELS[_level(shares[place], highest)] if has[place] else ABSENT for place in order)


def _bits(occupancy: NodeOccupancy, order: Sequence[int]) -> str:
    """Which nodes no job is on, a bit for each, as hexadecimal digits."""
    return np.packbits(occupancy.vacant[list(order)]).tobytes().hex()


def _level(share: float, highest: int) -> int:
    """Nothing and everything are exact: what is in between is never shown as either."""
    if share <= 0.0 or share >= 1.0:
        return highest if share >= 1.0 else 0
    return min(max(round(share * highest), 1), highest - 1)


def _summary(
    occupancy: NodeOccupancy, order: Sequence[int], resource: str, title: str, use_is_known: bool
) -> str:
    count = f"{len(order):,} node{'' if len(order) == 1 else 's'}"
    if not use_is_known:
        return f"Heat map of {count}; what is in use is not known"
    columns, usable = occupancy.columns(resource), occupancy.usable
    has = float(columns.has[list(order)].sum())
    share = float(columns.used[list(order)].sum()) / has if has else 0.0
    vacant = int((occupancy.free_nodes[list(order)]).sum())
    closed = len(order) - int(usable[list(order)].sum())
    unit = "pods that they may have" if resource == names.PODS else title
    return (
        f"Heat map of {count}: {share:.0%} of the {unit} in use, {vacant:,} free of jobs,"
        f" {closed:,} take no new pods. Arrow keys lead from node to node, Enter opens one; a table below has them too."
    )
