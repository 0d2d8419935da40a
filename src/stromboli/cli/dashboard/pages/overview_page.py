"""The overview: how full the cluster is, what waits and why, what has just happened."""

from __future__ import annotations

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
    bar,
    card,
    link,
    number_link,
    short_text,
    tabs,
    tiles,
)
from stromboli.cli.dashboard.pages.usage_charts import jobs_chart, latest_rate, rates_chart, usage_chart
from stromboli.cli.dashboard.pages.waiting_causes import waiting_card
from stromboli.cli.live.usage_samples import LONG_SPAN, RECENT_SPAN
from stromboli.simulator.reports.page.markup import Markup, element, joined

SPANS = {"10m": 600.0, "1h": RECENT_SPAN, "24h": LONG_SPAN}
USUAL_SPAN = "1h"
NEWS_SHOWN = 12
QUEUES_SHOWN = 8


async def overview(request: ViewRequest) -> PageContent:
    content = request.content
    return PageContent(
        "Overview",
        {
            "tiles": _tiles(request),
            "charts": _charts(request),
            "waiting": waiting_card(content.jobs(), request.now),
            "queues": _queues(request),
            "news": _news(request),
        },
    )


def _tiles(request: ViewRequest) -> Markup:
    summary = request.content.summary()
    nodes, jobs, pods = summary["nodes"], summary["jobs"], summary["pods"]
    samples = request.view.history.samples(RECENT_SPAN)
    starts = latest_rate(samples, [sample.pod_starts for sample in samples])
    evictions = latest_rate(samples, [sample.evictions for sample in samples])
    used = [
        (f"{TITLES.get(name, name)} in use", _used(summary, name))
        for name in request.content.resources
        if summary["total"].get(name)
    ]
    others = sum(count for state, count in nodes.items() if state != "Ready")
    return tiles(
        [
            ("Nodes ready", number_link(nodes.get("Ready", 0), address("/nodes", state="Ready"))),
            *([("Nodes not ready", number_link(others, "/nodes?sort=state"))] if others else []),
            *used,
            ("Jobs running", number_link(jobs["running"], "/jobs?phase=Running")),
            ("Jobs waiting", number_link(jobs["waiting"], "/jobs?waiting=1")),
            ("Pods waiting", number_link(pods["waiting"], "/jobs?waiting=1")),
            ("Starts per minute", _rate(starts)),
            ("Evictions per minute", _rate(evictions)),
        ]
    )


def _used(summary: Row, resource: str) -> Markup:
    used, total = summary["used"].get(resource, 0.0), summary["total"][resource]
    words = f"{amount(used, resource)} of {amount(total, resource)}"
    return link(
        address("/nodes", resource=resource),
        f"{100 * used / total:.0f} %",
        element("small", words),
    )


def _rate(rate: float) -> Markup:
    return link("/decisions", f"{rate:,.0f}") if rate >= 0.5 else element("span", "0", class_="none")


def _charts(request: ViewRequest) -> Markup:
    chosen = request.choice("span", (USUAL_SPAN, *SPANS))
    span, now = SPANS[chosen], request.now
    samples = request.view.history.samples(span)
    choices = tabs(
        [(name, request.address(span=name), name == chosen) for name in SPANS], "time that charts show"
    )
    charts = [
        card("Utilisation", usage_chart(samples, now, span)),
        card("Jobs", jobs_chart(samples, now, span)),
        card("Starts and evictions per minute", rates_chart(samples, now, span)),
    ]
    return joined([choices, element("div", *charts, class_="cards")])


def _queues(request: ViewRequest) -> Markup:
    """The queues that use or want most."""
    resources = request.content.resources
    rows = [row for row in request.content.queues() if row["name"] != "root"]
    rows.sort(key=lambda row: (-row["waiting"] - row["running"], row["name"]))
    lines = [
        element(
            "tr",
            element("td", link(queue_address(row["name"]), row["name"])),
            element(
                "td",
                number_link(row["running"], address("/jobs", queue=row["name"], phase="Running")),
                class_="number",
            ),
            element(
                "td",
                number_link(row["waiting"], address("/jobs", queue=row["name"], waiting=1)),
                class_="number",
            ),
            *(element("td", usage_bar(row, name)) for name in resources),
        )
        for row in rows[:QUEUES_SHOWN]
    ]
    titles = ["Queue", "Running", "Waiting", *(TITLES.get(name, name) for name in resources)]
    head = element("tr", *(element("th", title, scope="col") for title in titles))
    table = element("table", element("thead", head), element("tbody", *lines))
    more = f"All {len(rows):,} queues" if len(rows) > QUEUES_SHOWN else "Queues in full"
    return card(
        "Queues",
        element("div", table, class_="scroll", tabindex="0", role="region", aria_label="queues"),
        element("p", link("/queues", more), class_="note"),
        note="In use, of what each deserves.",
    )


def usage_bar(row: Row, resource: str) -> Markup:
    """What a queue uses of what it deserves."""
    used, deserved = row["used"].get(resource, 0.0), row["deserved"].get(resource)
    words = f"{amount(used, resource)} of {amount(deserved, resource)}"
    return joined([bar(used, deserved, words), " ", element("small", words)])


def _news(request: ViewRequest) -> Markup:
    rows = request.content.news()[:NEWS_SHOWN]
    if not rows:
        return card(
            "Lately", note="Nothing has started, ended or been evicted since the dashboard began to watch."
        )
    lines = []
    for row in rows:
        namespace, _, name = row["subject"].partition("/")
        more = f" and {row['pods'] - 1:,} more pods" if row["pods"] > 1 else ""
        lines.append(
            element(
                "li",
                age(row["time"], request.now),
                " ",
                element("strong", row["what"]),
                " ",
                link(address("/jobs", namespace=namespace, q=name), row["subject"]),
                short_text(f"{more}: {row['text']}"),
            )
        )
    return card("Lately", element("ul", *lines, class_="news"))


ROUTES = (PageRoute("/", overview, "overview", refresh=10.0),)
