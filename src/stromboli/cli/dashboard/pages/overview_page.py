"""The overview: how full the cluster is, what waits and why, what has just happened."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stromboli.api import names
from stromboli.cli.dashboard.pages.network.node_elements import NODES_PAGE, pods_are_seen
from stromboli.cli.dashboard.pages.network.node_list_page import CORDONED, NOT_READY, has_state
from stromboli.cli.dashboard.pages.news_subjects import NO_NEWS, news_subject
from stromboli.cli.dashboard.pages.page_content import (
    PageContent,
    PageRoute,
    ViewRequest,
    address,
    queue_address,
)
from stromboli.cli.dashboard.pages.page_elements import (
    TITLES,
    Row,
    age,
    amount,
    card,
    link,
    number_link,
    plain_table,
    short_text,
    tabs,
    tiles,
)
from stromboli.cli.dashboard.pages.queue_pages import (
    queue_tree,
    running_address,
    usage_cell,
    waiting_address,
)
from stromboli.cli.dashboard.pages.usage_charts import (
    MINUTE,
    jobs_chart,
    latest_rate,
    rates_chart,
    usage_chart,
)
from stromboli.cli.dashboard.pages.waiting_causes import waiting_card
from stromboli.cli.live.cluster_records import GROUPS, NODES, PODS
from stromboli.cli.live.usage_samples import LONG_SPAN, RECENT_SPAN
from stromboli.embedded.tables.age_text import duration_text
from stromboli.simulator.reports.page.markup import Markup, element, joined

SPANS = {"10m": 600.0, "1h": RECENT_SPAN, "24h": LONG_SPAN}
USUAL_SPAN = "1h"
NEWS_SHOWN = 12
QUEUES_SHOWN = 8
NODE_TILES = {
    "Ready": "Nodes ready",
    NOT_READY: "Nodes not ready",
    CORDONED: "Nodes cordoned",
    "Unknown": "Nodes of unknown state",
}
"""By the state that the list of nodes is filtered by; the first is always shown, the others where there are any."""


async def overview(request: ViewRequest) -> PageContent:
    content = request.content
    return PageContent(
        "Overview",
        {
            "tiles": _tiles(request),
            "charts": _charts(request),
            "waiting": waiting_card(content.all_jobs(), request.now),
            "queues": _queues(request),
            "news": _news(request),
        },
    )


def _tiles(request: ViewRequest) -> Markup:
    summary = request.content.summary()
    jobs = summary["jobs"]
    samples = request.view.history.samples(RECENT_SPAN)
    starts = latest_rate(samples, [sample.pod_starts for sample in samples])
    evictions = latest_rate(samples, [sample.evictions for sample in samples])
    watched = min(samples[-1].time - samples[0].time, MINUTE) if samples else 0.0
    used = [
        (f"{TITLES.get(name, name)} in use", _used(request, summary, name))
        for name in request.content.resources
        if summary["total"].get(name)
    ]
    return tiles(
        [
            *_node_tiles(summary["nodes"]),
            *used,
            ("Jobs running", number_link(jobs["running"], running_address())),
            ("Jobs waiting", number_link(jobs["waiting"], waiting_address())),
            ("Pods waiting", _pods_waiting(request.content.all_jobs())),
            ("Starts / min", _rate(starts, "starts", watched)),
            ("Evictions / min", _rate(evictions, "evictions", watched)),
        ]
    )


def _pods_waiting(rows: Sequence[Row]) -> Markup:
    """With those to come of gangs that have no pods yet."""
    number = number_link(sum(row["pending"] for row in rows), "/jobs?pending=1")
    to_come = sum(row["toCome"] for row in rows)
    return joined([number, element("small", f"{to_come:,} to come")]) if to_come else number


def _node_tiles(states: dict[str, int]) -> Iterator[tuple[str, Markup]]:
    """A node that is cordoned and not ready is in both."""
    for wanted, title in NODE_TILES.items():
        count = sum(nodes for state, nodes in states.items() if has_state(state, wanted))
        if count or wanted == "Ready":
            yield title, number_link(count, address(NODES_PAGE, state=wanted))


def _used(request: ViewRequest, summary: Row, resource: str) -> Markup:
    used, total = summary["used"].get(resource, 0.0), summary["total"][resource]
    share, words = f"{100 * used / total:.0f} %", amount(used, resource)
    if not pods_are_seen(request):
        share, words = "?", "not known"
    return link(
        address(NODES_PAGE, resource=resource),
        share,
        element("small", f"{words} of {amount(total, resource)}"),
    )


def _rate(rate: float, kind: str, watched: float) -> Markup:
    """With the cycles behind it, and the seconds that it is of."""
    number = number_link(round(rate), address("/decisions", kind=kind))
    return joined([number, element("small", f"over {duration_text(watched)}")])


def _charts(request: ViewRequest) -> Markup:
    chosen = request.choice("span", (USUAL_SPAN, *SPANS))
    span = SPANS[chosen]
    samples = request.view.history.samples(span)
    choices = tabs(
        [(name, request.address(span=name), name == chosen) for name in SPANS], "time that charts show"
    )
    charts = [
        _chart(request, "Utilisation", usage_chart(samples, span), NODES, PODS),
        _chart(request, "Jobs", jobs_chart(samples, span), GROUPS),
        _chart(request, "Starts and evictions per minute", rates_chart(samples, span), PODS),
    ]
    return joined([choices, element("div", *charts, class_="cards")])


def _chart(request: ViewRequest, title: str, chart: Markup, *counted: str) -> Markup:
    """A chart of objects of some kinds, where the viewer may list them."""
    missing = [kind for kind in counted if kind in request.viewer.visibility.unlisted]
    if missing:
        return card(title, note=f"There is no chart, as you may not list {' and '.join(missing)}.")
    return card(title, chart)


def _queues(request: ViewRequest) -> Markup:
    """The queues that use or want most."""
    resources = request.content.resources
    rows = [row for row in queue_tree(request.content.queues()) if row["name"] != names.ROOT_QUEUE]
    rows.sort(key=lambda row: (-row["waiting"] - row["running"], row["name"]))
    table = [
        [
            link(queue_address(row["name"]), row["name"]),
            number_link(row["running"], running_address(row["name"])),
            number_link(row["waiting"], waiting_address(row["name"])),
            *(usage_cell(row, resource) for resource in resources),
        ]
        for row in rows[:QUEUES_SHOWN]
    ]
    titles = ("Queue", "Running", "Waiting", *(TITLES.get(name, name) for name in resources))
    more = f"All {len(rows):,} queues" if len(rows) > QUEUES_SHOWN else "Queues in full"
    return card(
        "Queues",
        plain_table("queues", titles, table, numbers=("Running", "Waiting")),
        element("p", link("/queues", more), class_="note"),
        note="In use, of what each deserves.",
    )


def _news(request: ViewRequest) -> Markup:
    rows = request.content.news()[:NEWS_SHOWN]
    if not rows:
        return card("Lately", note=NO_NEWS)
    return card("Lately", element("ul", *(_news_line(request, row) for row in rows), class_="news"))


def _news_line(request: ViewRequest, row: Row) -> Markup:
    """The pods that were evicted with the first are among the evictions of the leader's cycles."""
    others = row["pods"] - 1
    more = link(address("/decisions", kind="evictions"), f" and {others:,} more pods") if others > 0 else ""
    return element(
        "li",
        age(row["time"], request.now),
        " ",
        element("strong", row["what"]),
        " ",
        news_subject(request.records, row),
        more,
        ": ",
        short_text(row["text"]),
    )


ROUTES = (PageRoute("/", overview, "overview", refresh=10.0),)
