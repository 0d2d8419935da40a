"""What pages about nodes and about HyperNodes share: how much is in use, how much would fit, what cannot be seen."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from stromboli.api import names
from stromboli.cli.dashboard.pages.page_content import ViewRequest, address, hyper_node_address
from stromboli.cli.dashboard.pages.page_elements import (
    LONGEST_TITLE,
    TITLES,
    FilterField,
    amount,
    bar,
    card,
    filter_form,
    link,
    notes,
    number_link,
    tiles,
)
from stromboli.cli.dashboard.topology.gang_room import (
    SIZE_FIELDS,
    BadSize,
    GangRoom,
    PodSize,
    chosen_size,
    gang_room,
)
from stromboli.cli.dashboard.topology.node_occupancy import NodeOccupancy, unit
from stromboli.cli.live.cluster_content import GPU
from stromboli.cli.live.cluster_records import PODS
from stromboli.model.topology.domain import Domain
from stromboli.simulator.reports.page.markup import Markup, element, joined, shortened

NODES_PAGE = "/nodes"
TIER_LENGTH = 40
GANG_TITLE = "The largest gang that would still fit"


def title_of(resource: str) -> str:
    return {**TITLES, names.PODS: "Pods"}.get(resource, resource)


def tier_text(tier: int, name: str, unnamed: str = "") -> Markup:
    """`rack (tier 1)`: of a name that is a label its last part, with the whole for those who point at it."""
    last = shortened(name.rpartition("/")[2] or name, TIER_LENGTH) or unnamed
    text = f"{last} (tier {tier})" if last else f"tier {tier}"
    return element("span", text, title=shortened(name, LONGEST_TITLE) or None)


def shown_amount(value: float, resource: str) -> str:
    """An amount of records as people write it."""
    return amount(value / unit(resource), resource)


@lru_cache(maxsize=4096)
def usage_bar(used: float | None, has: float, resource: str) -> Markup | str:
    """A bar with its numbers beside it, `?` for what is not known; a dash where there is nothing of the resource."""
    if not has and not used:
        return "-"
    text = f"{UNKNOWN if used is None else shown_amount(used, resource)} / {shown_amount(has, resource)}"
    return element(
        "span",
        bar(used or 0.0, has, f"{text} {title_of(resource)} in use"),
        element("span", text, class_="bar-text"),
        class_="bar-cell",
    )


# -- what the viewer cannot see

UNKNOWN = "?"
"""In the place of a number that takes pods which may not be listed."""


def pods_are_seen(request: ViewRequest) -> bool:
    """Whether the viewer may list the pods of any namespace, and the dashboard too."""
    allowed = request.viewer.visibility.namespaces.get(PODS)
    refused = {each.resource.plural for each in request.cluster.watches.reflectors if each.refused}
    return (allowed is None or bool(allowed)) and PODS not in refused


def sight_notes(request: ViewRequest) -> Markup:
    """What a page about nodes cannot tell, because not all pods may be listed."""
    if not pods_are_seen(request):
        return notes(["Pods may not be listed: nodes are shown without what is in use on them."])
    if request.viewer.visibility.namespaces.get(PODS) is not None:
        return notes(
            ["Only the pods that you may see count: more may be in use, and less free, than is shown."]
        )
    return Markup("")


# -- the largest gang


class SizedRoom:
    """The size of a pod that an address chooses, and how many of it fit; or what is wrong with the choice."""

    def __init__(self, request: ViewRequest, occupancy: NodeOccupancy) -> None:
        self.problem = ""
        self.is_known = pods_are_seen(request)
        """Whether what is in use is known, and so what is free."""
        self._chosen = {name: text for name in SIZE_FIELDS if (text := request.query.get(name, ""))}
        try:
            self.size = chosen_size(request.query, occupancy.jobs)
        except BadSize as error:
            self.problem = str(error)
            self.size = chosen_size({}, occupancy.jobs)
        self.room: GangRoom = gang_room(occupancy, self.size.request)

    @property
    def text(self) -> str:
        return size_text(self.size)

    def count(self, number: int, target: str) -> Markup | str:
        """A number that takes what is in use, with the objects behind it."""
        return number_link(number, target) if self.is_known else UNKNOWN

    def fitting(self, number: int, hyper_node: str = "") -> Markup | str:
        """How many pods fit in the cluster or in a HyperNode, with its nodes: those that take most first."""
        return self.count(number, address(NODES_PAGE, hypernode=hyper_node, sort="-fits", **self._chosen))


def size_text(size: PodSize) -> str:
    """`4 CPU, 16Gi Memory, 1 GPU`."""
    parts = [
        f"{shown_amount(value, resource)} {title_of(resource)}"
        for resource, value in sorted(size.request.items(), key=_size_order)
        if value
    ]
    return ", ".join(parts) or "nothing"


def _size_order(item: tuple[str, int]) -> tuple[int, str]:
    name = item[0]
    return SIZE_FIELDS.index(name) if name in SIZE_FIELDS else len(SIZE_FIELDS), name


def gang_card(request: ViewRequest, sized: SizedRoom) -> Markup:
    """How many pods of one size would start now, and the form to choose another size."""
    if not sized.is_known:
        return card(GANG_TITLE, note="It is not known what is in use, and so what is free.", wide=True)
    entries: list[tuple[object, object]] = [("Whole cluster", sized.fitting(sized.room.total))]
    for tier in sized.room.tiers:
        name = joined(["Within one ", tier_text(tier.tier, tier.name, "HyperNode")])
        number = sized.fitting(tier.largest, tier.domain.name)
        entries.append((name, joined([number, _place(tier.largest, tier.domain)])))
    wrong = [element("p", sized.problem, class_="note bad")] if sized.problem else []
    return card(
        GANG_TITLE,
        *wrong,
        element("p", f"Pods of {sized.text} each ({sized.size.origin})."),
        tiles(entries),
        _size_form(request, sized.size),
        notes([_caveat()]),
        wide=True,
    )


def _place(largest: int, domain: Domain) -> Markup:
    return (
        element("small", " in ", link(hyper_node_address(domain.name), shortened(domain.title, 60)))
        if largest
        else element("small", " in any")
    )


def _caveat() -> Markup:
    return joined(
        [
            "By amounts alone, on nodes that are ready and not cordoned: taints, selectors, shares of queues and"
            " everything else that the policy looks at are left out. The policy itself answers ",
            element("code", "stromboli simulate --submit job.yaml"),
            " (when would it start, and whom would it delay) and, of a job that waits, ",
            element("code", "stromboli explain job/NAME"),
            ".",
        ]
    )


def _size_form(request: ViewRequest, size: PodSize) -> Markup:
    fields = [
        FilterField(names.CPU, "CPU per pod"),
        FilterField(names.MEMORY, "Memory per pod"),
        *([FilterField(GPU, "GPUs per pod")] if GPU in request.content.resources else []),
    ]
    filled = {
        field.name: shown_amount(value, field.name).replace(",", "")
        for field in fields
        if (value := size.request.get(field.name, 0))
    }
    given = any(request.query.get(field.name) for field in fields)
    query = request.query if given else {**request.query, **filled}
    return filter_form(replace(request, query=query), fields)
