"""Cycles in words and in pictures: when they were, what they took, action by action, and what came of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

from stromboli.api import names
from stromboli.cli.dashboard.pages.page_content import address
from stromboli.cli.dashboard.pages.page_elements import link
from stromboli.cli.dashboard.pages.usage_charts import time_until_now
from stromboli.scheduler.explain.cycle_documents import CycleEntry
from stromboli.simulator.reports.page.chart_scales import amounts
from stromboli.simulator.reports.page.markup import Markup, element, joined, shortened
from stromboli.simulator.reports.page.svg_chart import SvgChart, colour, legend

DECISIONS_PAGE = "/decisions"
WAITING_JOBS, PENDING_JOBS = address("/jobs", scheduling=names.GROUP_PENDING), address("/jobs", pending=1)
"""Jobs that wait for their queues now, and jobs with pods that wait for nodes."""
PARTS_SHOWN = 12
"""Parts of a cycle that are drawn and told apart; the others are told together."""
FRAME = ("open", "close")
"""The parts of a cycle that are no actions."""
OTHERS = "others"
BARS_DRAWN = 240
"""Of the chart; where there are more cycles, of each few the slowest."""
NAME_LENGTH = 60
BAR_WIDTH, BAR_HEIGHT = 160.0, 12.0
CHART_WIDTH, CHART_HEIGHT = 1180.0, 190.0
TIME_LABELS = 9
NOW_STEP = 10.0
"""Seconds by which the right end of the chart moves on, so that it does not change all the time."""
LATEST_MOMENT = 253_402_300_799.0
"""The last second of the year 9999, after which there are no dates."""


def cycle_address(entry: CycleEntry, since: float, kind: str = "") -> str:
    """The page of a cycle, or its decisions of a kind; `since` tells the leader that counted it from others."""
    chosen = f"&kind={kind}" if kind else ""
    return f"{DECISIONS_PAGE}?cycle={entry.number}&leader={since:.0f}{chosen}"


def numbers_text(entry: CycleEntry) -> str:
    """`12`, or `12 to 40` of a run."""
    last = max(entry.last_number, entry.number)
    return f"{entry.number:,}" if last == entry.number else f"{entry.number:,} to {last:,}"


def mean_seconds(entry: CycleEntry) -> float:
    """What a cycle took; of a run, on average."""
    return entry.seconds / max(entry.cycles, 1)


def last_moment(entry: CycleEntry) -> float:
    return max(entry.last_time, entry.time)


def seconds_text(seconds: float) -> str:
    """`0.4 ms`, `12 ms`, `1.25 s`."""
    if seconds >= 1:
        return f"{seconds:,.3g} s" if seconds < 1000 else f"{seconds:,.0f} s"
    return f"{1000 * seconds:.3g} ms"


def moment(seconds: float) -> Markup:
    """A time of day in UTC, with the date for those who point at it."""
    at = datetime.fromtimestamp(min(max(seconds, 0.0), LATEST_MOMENT), UTC)
    return element(
        "time", f"{at:%H:%M:%S}", datetime=f"{at:%Y-%m-%dT%H:%M:%SZ}", title=f"{at:%Y-%m-%d %H:%M:%S} UTC"
    )


def outcome_text(entry: CycleEntry) -> str:
    """What came of a cycle, in words."""
    if entry.kind == "lost":
        return f"lost: {lost_text(entry)}"
    if entry.kind == "idle":
        held = f"{entry.pipelined:,} pod{'' if entry.pipelined == 1 else 's'} held for nodes that are being freed"
        return f"nothing new, {held}" if entry.pipelined > 0 else "nothing to decide"
    counts = (
        (entry.let_in, "let in"),
        (entry.bound, "bound"),
        (entry.evicted - entry.moved, "evicted"),
        (entry.moved, "moved"),
        (entry.released, "let out of their gates"),
    )
    return ", ".join(f"{count:,} {what}" for count, what in counts if count > 0) or "decided"


def lost_text(entry: CycleEntry) -> str:
    """Why a cycle came to nothing."""
    if entry.lost is None:
        return "it is not known why"
    lost = entry.lost
    blame = f"plugin {lost.plugin} failed{f' at {lost.point}' if lost.point else ''}: " if lost.plugin else ""
    return blame + lost.message


# -- parts of cycles


def part_colours(entries: Iterable[CycleEntry]) -> dict[str, str]:
    """The class of each part of cycles, in the order in which they run; colours are for actions."""
    names: dict[str, None] = {}
    for entry in entries:
        for name in entry.parts:
            if len(names) >= PARTS_SHOWN:
                break
            names[name] = None
    actions = [name for name in names if name not in FRAME]
    return {name: colour(actions.index(name)) if name in actions else "s0" for name in names}


def mean_parts(entry: CycleEntry, colours: Mapping[str, str]) -> dict[str, float]:
    """Seconds of each part of a cycle, of a run on average; those without a class are told together."""
    parts: dict[str, float] = {}
    for name, seconds in entry.parts.items():
        told = name if name in colours else OTHERS
        parts[told] = parts.get(told, 0.0) + seconds / max(entry.cycles, 1)
    return parts


def parts_text(parts: Mapping[str, float]) -> str:
    """`open 1 ms, allocate 12 ms, close 2 ms`."""
    return ", ".join(
        f"{shortened(name, NAME_LENGTH)} {seconds_text(seconds)}" for name, seconds in parts.items()
    )


def parts_bar(parts: Mapping[str, float], colours: Mapping[str, str], whole: float) -> Markup:
    """The parts of a cycle side by side; `whole` is what the full width stands for."""
    words, place, boxes = parts_text(parts), 0.0, []
    for name, seconds in parts.items():
        width = BAR_WIDTH * max(seconds, 0.0) / max(whole, 1e-9)
        if width >= 0.1:
            class_ = f"fill {colours.get(name, 's0')}"
            boxes.append(element("rect", x=place, width=width, height=BAR_HEIGHT, class_=class_))
        place += width
    return element(
        "svg",
        element("title", words),
        *boxes,
        viewBox=f"0 0 {BAR_WIDTH:g} {BAR_HEIGHT:g}",
        preserveAspectRatio="none",
        class_="parts",
        role="img",
        aria_label=words,
    )


def parts_legend(colours: Mapping[str, str]) -> Markup:
    return legend((class_, name) for name, class_ in colours.items())


# -- over time


def duration_chart(entries: Sequence[CycleEntry], since: float, now: float) -> Markup:
    """What cycles took, over time up to now; each bar leads to its cycle."""
    if not entries:
        return element("p", "There is a chart once a cycle has ended.", class_="note")
    latest = max(*map(last_moment, entries), math.ceil(now / NOW_STEP) * NOW_STEP)
    span = max(latest - min(entry.time for entry in entries), 10.0)
    slowest = max(map(mean_seconds, entries))
    durations = amounts(1000 * max(slowest, 1e-6), " ms")
    chart = SvgChart(time_until_now(span, TIME_LABELS), durations, CHART_HEIGHT, width=CHART_WIDTH)
    chart.axes()
    floor = float(chart.at_y(0.0))
    for entry in _slowest_of_each(entries, BARS_DRAWN):
        left = float(chart.at_x(entry.time - latest))
        width = max(float(chart.at_x(last_moment(entry) - latest)) - left, 2.0)
        top = min(float(chart.at_y(1000 * mean_seconds(entry))), floor - 1.0)
        box = element(
            "rect", x=left, y=top, width=width, height=floor - top, class_=f"fill {_KIND_COLOURS[entry.kind]}"
        )
        chart.add(link(cycle_address(entry, since), element("title", _bar_text(entry)), box, tabindex=-1))
    entries_of_legend = [(class_, kind) for kind, class_ in _KIND_COLOURS.items()]
    words = f"{len(entries):,} entries over {seconds_text(span)}, the slowest took {seconds_text(slowest)}"
    return element("div", legend(entries_of_legend), chart.svg("What cycles took", words), class_="chart")


_KIND_COLOURS = {"decided": "s1", "idle": "s0", "lost": "s2"}


def _slowest_of_each(entries: Sequence[CycleEntry], most: int) -> list[CycleEntry]:
    step = -(-len(entries) // most)
    return [
        max(entries[first : first + step], key=mean_seconds) for first in range(0, len(entries), max(step, 1))
    ]


def _bar_text(entry: CycleEntry) -> str:
    text = f"cycle {numbers_text(entry)}: {seconds_text(mean_seconds(entry))}, {outcome_text(entry)}"
    return shortened(text, 200)


def cycle_link(entry: CycleEntry, since: float) -> Markup:
    more = [" ", element("small", f"{entry.cycles:,} cycles")] if entry.cycles > 1 else []
    return joined([link(cycle_address(entry, since), numbers_text(entry)), *more])
