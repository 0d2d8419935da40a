"""What the last cycles of the leader did: how long they took, action by action, and what was decided."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from stromboli.cli.dashboard.pages.leader.cycle_elements import (
    DECISIONS_PAGE,
    PENDING_JOBS,
    WAITING_JOBS,
    cycle_address,
    cycle_link,
    duration_chart,
    last_moment,
    lost_text,
    mean_parts,
    mean_seconds,
    moment,
    numbers_text,
    outcome_text,
    part_colours,
    parts_bar,
    parts_legend,
    seconds_text,
)
from stromboli.cli.dashboard.pages.leader.cycle_page import cycle_page
from stromboli.cli.dashboard.pages.leader.cycle_rates import RATE_MINUTES, CycleRates, cycle_rates
from stromboli.cli.dashboard.pages.leader.leader_silence import silence
from stromboli.cli.dashboard.pages.news_subjects import NO_NEWS, news_subject
from stromboli.cli.dashboard.pages.page_content import (
    PageContent,
    PageRoute,
    ViewRequest,
    address,
)
from stromboli.cli.dashboard.pages.page_elements import (
    Row,
    TableColumn,
    age,
    card,
    data_table,
    link,
    notes,
    number_link,
    short_text,
    tabs,
    tiles,
)
from stromboli.cli.leader.leader_query import Unreachable
from stromboli.embedded.tables.age_text import duration_text
from stromboli.scheduler.explain.cycle_documents import CycleEntry, CycleList
from stromboli.simulator.reports.page.markup import Markup, element, joined

KINDS: Mapping[str, tuple[str, Callable[[CycleEntry], bool]]] = {
    "": ("All", lambda entry: True),
    "decided": ("With decisions", lambda entry: entry.kind == "decided"),
    "starts": ("With starts", lambda entry: entry.bound > 0),
    "evictions": ("With evictions", lambda entry: entry.evicted > 0),
    "let-in": ("With jobs let in", lambda entry: entry.let_in > 0),
    "idle": ("Idle", lambda entry: entry.kind == "idle"),
    "lost": ("Lost", lambda entry: entry.kind == "lost"),
}
"""Filters of cycles by the value of `kind` in the address."""
NEWS = {"starts": "started", "evictions": "evicted"}
"""The same for what the cluster tells where the leader does not."""


async def decisions(request: ViewRequest) -> PageContent:
    told = await request.cluster.leader.cycles(request.viewer)
    if isinstance(told, Unreachable):
        return _without_leader(request, told)
    if request.query.get("cycle"):
        return cycle_page(request, told)
    finished, current = _current(told.cycles)
    kind = request.choice("kind", tuple(KINDS))
    shown = [entry for entry in finished if KINDS[kind][1](entry)]
    return PageContent(
        "Decisions",
        {
            "cycle-rates": _rates(told),
            "current-cycle": _latest(request, told, current),
            "cycle-chart": card(
                "What cycles took",
                duration_chart(finished, told.since, request.now),
                note="A run of cycles that goes on is told above, and drawn once it has ended.",
                wide=True,
            ),
            "cycle-kinds": _kinds(request, finished, kind),
            "cycle-list": _table(request, shown, told),
            "cycle-note": _note(request, told),
        },
    )


def _current(entries: Sequence[CycleEntry]) -> tuple[Sequence[CycleEntry], CycleEntry | None]:
    """The entries that stay as they are, and the run that goes on, which changes with each cycle."""
    if entries and entries[-1].kind != "decided":
        return entries[:-1], entries[-1]
    return entries, None


def _rates(told: CycleList) -> Markup:
    rates = cycle_rates(told)
    slowest = (
        link(cycle_address(rates.slowest, told.since), seconds_text(mean_seconds(rates.slowest)))
        if rates.slowest is not None
        else "-"
    )
    return tiles(
        [
            ("Cycles per minute", link(DECISIONS_PAGE, f"{rates.cycles:,.3g}")),
            ("Median cycle", link(address(DECISIONS_PAGE, sort="-took"), seconds_text(rates.median))),
            (f"Slowest of {RATE_MINUTES} minutes", slowest),
            ("Starts / min", _rate(rates, rates.starts, "starts")),
            ("Evictions / min", _rate(rates, rates.evictions, "evictions")),
        ]
    )


def _rate(rates: CycleRates, rate: float, kind: str) -> Markup:
    number = number_link(float(f"{rate:.3g}"), address(DECISIONS_PAGE, kind=kind))
    return joined([number, element("small", f"over {duration_text(rates.seconds)}")])


def _latest(request: ViewRequest, told: CycleList, current: CycleEntry | None) -> Markup:
    """What the leader does now: a run of cycles that goes on, or the last cycle that decided something."""
    if not told.cycles:
        return notes(["The leader has not ended a cycle yet."])
    entry = current or told.cycles[-1]
    begun = joined(["since ", moment(entry.time), " UTC"]) if entry.cycles > 1 else moment(entry.time)
    what = joined(
        [
            "Cycle ",
            link(cycle_address(entry, told.since), numbers_text(entry)),
            " (",
            begun,
            ", the last ",
            age(last_moment(entry), request.now),
            " ago): ",
            short_text(outcome_text(entry)),
            "; ",
            number_link(entry.waiting, WAITING_JOBS),
            " job waits for its queue, " if entry.waiting == 1 else " jobs wait for their queues, ",
            number_link(entry.pending, PENDING_JOBS),
            f" {'has' if entry.pending == 1 else 'have'} pods that wait for nodes.",
        ]
    )
    return notes([what], "warn" if entry.kind == "lost" else "note")


def _kinds(request: ViewRequest, entries: Sequence[CycleEntry], chosen: str) -> Markup:
    counted = [
        (name, title, sum(matches(entry) for entry in entries)) for name, (title, matches) in KINDS.items()
    ]
    return tabs(
        [
            (f"{title} {count:,}", request.address(kind=name, page=""), name == chosen)
            for name, title, count in counted
        ],
        "cycles by what they decided",
    )


# -- the list


def _table(request: ViewRequest, entries: Sequence[CycleEntry], told: CycleList) -> Markup:
    if not entries:
        return notes(["No cycle that is remembered is of this kind."])
    colours = part_colours(told.cycles)
    slowest = max(map(mean_seconds, entries))
    rows: list[Row] = [{"entry": entry} for entry in entries]
    columns = [
        TableColumn(
            "Cycle", lambda row: cycle_link(row["entry"], told.since), lambda row: row["entry"].number
        ),
        TableColumn("When (UTC)", lambda row: moment(row["entry"].time)),
        TableColumn(
            "Took", lambda row: _took(row["entry"]), lambda row: mean_seconds(row["entry"]), "number"
        ),
        TableColumn("By action", lambda row: parts_bar(mean_parts(row["entry"], colours), colours, slowest)),
        *(_count_column(title, count, kind, told.since) for title, count, kind in _COUNTS),
        TableColumn("Outcome", lambda row: _outcome(row["entry"]), class_="text"),
    ]
    caption = f"{len(entries):,} cycles and runs of cycles, the newest first"
    table = data_table(request, caption, columns, rows, "-cycle")
    return card(caption, parts_legend(colours), table, wide=True)


_COUNTS: tuple[tuple[str, Callable[[CycleEntry], int], str], ...] = (
    ("Let in", lambda entry: entry.let_in, "let-in"),
    ("Bound", lambda entry: entry.bound, "bound"),
    ("Pipelined", lambda entry: entry.pipelined, ""),
    ("Evicted", lambda entry: entry.evicted - entry.moved, "evicted"),
    ("Moved", lambda entry: entry.moved, "moved"),
    ("Waiting", lambda entry: entry.waiting, ""),
    ("Pending", lambda entry: entry.pending, ""),
)
"""Columns of numbers: the title, the number, and the kind of the decisions behind it."""


def _count_column(title: str, count: Callable[[CycleEntry], int], kind: str, since: float) -> TableColumn:
    return TableColumn(
        title,
        lambda row: number_link(count(row["entry"]), cycle_address(row["entry"], since, kind)),
        lambda row: count(row["entry"]),
        "number",
    )


def _took(entry: CycleEntry) -> str:
    return seconds_text(mean_seconds(entry)) + (" each" if entry.cycles > 1 else "")


def _outcome(entry: CycleEntry) -> Markup | str:
    if entry.kind == "lost":
        return element("span", "lost: ", short_text(lost_text(entry)), class_="warn")
    return short_text(outcome_text(entry))


def _note(request: ViewRequest, told: CycleList) -> Markup:
    text = joined(
        [
            f"Told by {told.leader[:100] or 'the leader'}, which began ",
            age(told.since, request.now),
            " ago and counts its cycles from then on. Waiting jobs wait for their queues, pending ones have pods"
            " that wait for nodes. In a terminal: ",
            element("code", "stromboli decisions"),
        ]
    )
    return notes([text])


# -- where the leader does not tell


def _without_leader(request: ViewRequest, why: Unreachable) -> PageContent:
    instead = "Shown instead: which jobs were seen to start and to end, and which pods were evicted."
    wanted = NEWS.get(request.query.get("kind", ""), "")
    rows = [row for row in request.content.news() if not wanted or row["what"] == wanted]
    return PageContent(
        "Decisions", {"silence": silence(why, "cycles", instead), "news": _news(request, rows)}
    )


def _news(request: ViewRequest, rows: list[Row]) -> Markup:
    if not rows:
        return notes([NO_NEWS])
    columns = [
        TableColumn("When", lambda row: age(row["time"], request.now), lambda row: -row["time"], "number"),
        TableColumn("What", lambda row: row["what"], lambda row: row["what"]),
        TableColumn("Subject", lambda row: news_subject(request.records, row), lambda row: row["subject"]),
        TableColumn("Pods", lambda row: f"{row['pods']:,}", lambda row: row["pods"], "number"),
        TableColumn("Why", lambda row: short_text(row["text"]), class_="text"),
    ]
    return data_table(request, f"{len(rows):,} events, the latest first", columns, rows)


ROUTES = (PageRoute(DECISIONS_PAGE, decisions, "decisions", personal=True, refresh=2.0),)
