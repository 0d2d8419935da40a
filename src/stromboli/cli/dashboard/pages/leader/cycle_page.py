"""One cycle in full: what it took, and each decision with the objects that it is about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from stromboli.cli.dashboard.pages.job_links import job_link
from stromboli.cli.dashboard.pages.leader.cycle_elements import (
    DECISIONS_PAGE,
    NAME_LENGTH,
    PENDING_JOBS,
    WAITING_JOBS,
    cycle_address,
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
from stromboli.cli.dashboard.pages.page_content import (
    NotThere,
    PageContent,
    ViewRequest,
    node_address,
    pod_address,
    queue_address,
)
from stromboli.cli.dashboard.pages.page_elements import (
    Row,
    TableColumn,
    age,
    card,
    data_table,
    facts,
    link,
    notes,
    plain_table,
    short_text,
    tabs,
)
from stromboli.scheduler.explain.cycle_documents import CycleDecision, CycleEntry, CycleList
from stromboli.simulator.reports.page.markup import Markup, element, joined, shortened

DECISION_KINDS = {
    "let-in": "let in",
    "gate-removed": "let out of its gate",
    "bound": "bound",
    "evicted": "evicted",
    "moved": "moved",
}
"""Kinds of decisions in words, by the value of `kind` in the address."""


def cycle_page(request: ViewRequest, told: CycleList) -> PageContent:
    """The cycle whose number the address has; `NotThere` if it is not remembered."""
    place = _place(request, told)
    entry = told.cycles[place]
    colours = part_colours([entry])
    return PageContent(
        f"Cycle {numbers_text(entry)}",
        {
            "cycle-steps": _steps(told, place),
            "cycle": _facts(request, entry),
            "cycle-parts": _parts(entry, colours),
            "cycle-decisions": _decisions(request, entry),
        },
    )


def _place(request: ViewRequest, told: CycleList) -> int:
    """Where the entry is that has the cycle."""
    leader = request.query.get("leader", "")
    if leader and leader != f"{told.since:.0f}":
        raise NotThere("Another leader decided this cycle: it went, and what it remembered went with it")
    given = request.query.get("cycle", "")
    if not (given.isdecimal() and len(given) < 10):
        raise NotThere(f"{shortened(given, 40)!r} is no number of a cycle")
    number = request.number("cycle", 0, 999_999_999)
    for place, entry in enumerate(told.cycles):
        if entry.number <= number <= max(entry.last_number, entry.number):
            return place
    raise NotThere(
        f"Cycle {number:,} is not remembered: the leader remembers cycles {told.oldest:,} to {told.newest:,}"
    )


def _steps(told: CycleList, place: int) -> Markup:
    """Links to the cycles before and after, and to all."""
    steps = [("Earlier", place - 1), ("Later", place + 1)]
    links = [
        link(cycle_address(told.cycles[other], told.since), f"{title}: {numbers_text(told.cycles[other])}")
        for title, other in steps
        if 0 <= other < len(told.cycles)
    ]
    return element(
        "nav", joined([link(DECISIONS_PAGE, "All cycles"), *links], " "), class_="pages", aria_label="cycles"
    )


def _facts(request: ViewRequest, entry: CycleEntry) -> Markup:
    since = joined([moment(entry.time), " UTC, ", age(entry.time, request.now), " ago"])
    run = [
        ("Cycles", f"{entry.cycles:,}, none of which decided anything"),
        ("Last of them", joined([moment(last_moment(entry)), " UTC"])),
    ]
    took = seconds_text(mean_seconds(entry)) + (" on average" if entry.cycles > 1 else "")
    told = facts(
        [
            ("Began", since),
            *(run if entry.cycles > 1 else []),
            ("Took", took),
            ("Outcome", short_text(outcome_text(entry))),
            ("Pods held for nodes that are being freed", _then(entry.pipelined, PENDING_JOBS)),
            ("Jobs for which it found no node", _then(entry.refused, PENDING_JOBS)),
            ("Jobs that wait for their queues", _then(entry.waiting, WAITING_JOBS)),
            ("Jobs with pods that wait for nodes", _then(entry.pending, PENDING_JOBS)),
        ]
    )
    lost = (
        [notes([short_text(f"It was lost: {lost_text(entry)}", 2000)], "warn")]
        if entry.kind == "lost"
        else []
    )
    return card(f"Cycle {numbers_text(entry)}", *lost, told, wide=True)


def _then(number: int, target: str) -> Markup:
    """A number of the cycle, which did not keep the names, with those of whom the same is true now."""
    return joined([f"{number:,} (", link(target, "now"), ")"])


def _parts(entry: CycleEntry, colours: dict[str, str]) -> Markup:
    """What each action took."""
    parts = mean_parts(entry, colours)
    whole = max(sum(parts.values()), 1e-9)
    rows = [
        (shortened(name, NAME_LENGTH), seconds_text(seconds), f"{100 * seconds / whole:.0f} %")
        for name, seconds in parts.items()
    ]
    titles = ("Action", "Took", "Share")
    table = plain_table("time by action", titles, rows, numbers=titles[1:])
    return card("Time by action", parts_legend(colours), parts_bar(parts, colours, whole), table)


# -- decisions


def _decisions(request: ViewRequest, entry: CycleEntry) -> Markup:
    if not entry.decisions and not entry.left_out:
        return Markup("")
    counts: Counter[str] = Counter(decision.kind for decision in entry.decisions)
    kind = request.choice("kind", ("", *DECISION_KINDS))
    shown = [decision for decision in entry.decisions if not kind or decision.kind == kind]
    left_out = (
        [notes([f"{entry.left_out:,} more decisions are not named: the first ones of each action are."])]
        if entry.left_out
        else []
    )
    return card(
        "Decisions",
        _kinds(request, counts, len(entry.decisions), kind),
        _table(request, shown),
        *left_out,
        wide=True,
    )


def _kinds(request: ViewRequest, counts: Counter[str], total: int, chosen: str) -> Markup:
    entries = [(f"All {total:,}", request.address(kind="", page=""), not chosen)]
    entries += [
        (f"{words} {counts[kind]:,}", request.address(kind=kind, page=""), kind == chosen)
        for kind, words in DECISION_KINDS.items()
        if counts[kind] or kind == chosen
    ]
    return tabs(entries, "decisions by kind")


def _table(request: ViewRequest, decisions: Sequence[CycleDecision]) -> Markup:
    rows: list[Row] = [{"decision": decision} for decision in decisions]
    columns = [
        TableColumn("What", lambda row: DECISION_KINDS.get(row["decision"].kind, row["decision"].kind)),
        TableColumn("Pod or job", lambda row: _subject(request, row["decision"])),
        TableColumn("Job", lambda row: _job(request, row["decision"])),
        TableColumn("Queue", lambda row: _queue(request, row["decision"].queue)),
        TableColumn("Node", lambda row: _node(request, row["decision"].node)),
        TableColumn("Action", lambda row: short_text(row["decision"].action, NAME_LENGTH)),
        TableColumn("Why", lambda row: _why(request, row["decision"]), class_="text"),
    ]
    return data_table(request, f"{len(rows):,} decisions, in order", columns, rows)


def _subject(request: ViewRequest, decision: CycleDecision) -> Markup | str:
    """The pod, or the job that was let in."""
    key = f"{decision.namespace}/{decision.name}"
    if decision.kind == "let-in":
        return job_link(request.records, key)
    if key in request.records.pods:
        return link(pod_address(decision.namespace, decision.name), short_text(key, NAME_LENGTH * 2))
    return short_text(key, NAME_LENGTH * 2)


def _job(request: ViewRequest, decision: CycleDecision) -> Markup | str:
    """The job of the pod."""
    return job_link(request.records, decision.job) if decision.kind != "let-in" else ""


def _queue(request: ViewRequest, name: str) -> Markup | str:
    text = short_text(name, NAME_LENGTH)
    return link(queue_address(name), text) if name in request.records.queues else text


def _node(request: ViewRequest, name: str) -> Markup | str:
    text = short_text(name, NAME_LENGTH)
    return link(node_address(name), text) if name in request.records.nodes else text


def _why(request: ViewRequest, decision: CycleDecision) -> Markup:
    """For whom room is made, who chose the pod, and where it starts again."""
    parts: list[Markup] = []
    if decision.beneficiary:
        parts.append(joined(["for ", job_link(request.records, decision.beneficiary)]))
    if decision.chosen_by:
        parts.append(joined(["chosen by ", short_text(decision.chosen_by)]))
    if decision.destination:
        parts.append(joined(["starts again on ", _node(request, decision.destination)]))
    return joined(parts, ", ")
