"""Draws `stromboli top`: lines of the terminal's width, as many as it has."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from stromboli.cli.cluster.cluster_errors import shown
from stromboli.cli.cluster.usage_bar import usage_bar
from stromboli.cli.live.cluster_content import ClusterContent
from stromboli.cli.top.top_views import TABS, TITLES, VIEWS, View, of_text

Content = dict[str, Any]
SMALLEST_WIDTH, SMALLEST_HEIGHT = 20, 6
WIDEST_CELL = 40
"""Of all columns but the last."""
KEYS = "q quit  Tab/←→ view  ↑↓ scroll  / filter  s sort  p pause"
NARROW_KEYS = "q quit  Tab view  / filter  s sort  p pause"


@dataclass
class ScreenState:
    """What the user chose."""

    tab: int = 0
    offset: int = 0
    """Rows that are scrolled past."""
    filter: str = ""
    typing: bool = False
    """Whether keys go into the filter."""
    paused: bool = False
    sortings: dict[str, int] = field(default_factory=dict)
    """By view."""
    problems: list[str] = field(default_factory=list)
    """Of watches."""
    where: str = ""

    @property
    def view(self) -> View | None:
        """The view; None for all of them in one."""
        return VIEWS[self.tab - 1] if self.tab else None

    def sorting(self, view: View) -> int:
        return self.sortings.get(view.title, 0) % len(view.sortings)


def draw(content: ClusterContent, state: ScreenState, width: int, height: int, now: float) -> list[Text]:
    """A frame: never more lines, nor wider ones."""
    width, height = max(width, SMALLEST_WIDTH), max(height, SMALLEST_HEIGHT)
    head = _head(content, state, width, now)
    room = height - len(head) - 1
    if state.view is None:
        body = _all(content, state, width, room, now)
    else:
        body = _table(content, state, state.view, width, room, now)
    body += [Text()] * (room - len(body))
    return [*head, *body[: max(0, room)], _foot(state, width)][:height]


# -- head and foot


def _head(content: ClusterContent, state: ScreenState, width: int, now: float) -> list[Text]:
    summary = content.summary()
    clock = time.strftime("%H:%M:%S", time.localtime(now)) + (" paused" if state.paused else "")
    title = fitted(shown(f"stromboli top  {state.where}"), width - len(clock) - 1)
    nodes, jobs, pods = summary["nodes"], summary["jobs"], summary["pods"]
    unready = sum(count for name, count in nodes.items() if name not in ("Ready", "Unknown"))
    counts = (
        f"Nodes {sum(nodes.values())}{f' ({unready} not usable)' if unready else ''}   "
        f"Jobs {jobs['running']} run, {jobs['waiting']} wait   "
        f"Pods {pods['running']} run, {pods['starting']} start, {pods['waiting']} wait"
    )
    bars = "   ".join(
        f"{TITLES[resource]} {_used_bar(summary, resource)} {of_text(summary, resource, 'total')}"
        for resource in content.resources
    )
    return [
        Text(f"{title} {clock}", style="bold"),
        Text(fitted(counts, width)),
        Text(fitted(bars, width), style="cyan"),
        _tabs(state, width),
    ]


def _used_bar(summary: Content, resource: str) -> str:
    return usage_bar(summary["used"].get(resource, 0.0), summary["total"].get(resource, 0.0), width=8)


def _tabs(state: ScreenState, width: int) -> Text:
    line = Text(no_wrap=True)
    for position, title in enumerate(TABS):
        line.append(f" {title} ", style="reverse" if position == state.tab else "dim")
    if (view := state.view) is not None:
        line.append(f"  by {view.sortings[state.sorting(view)].name}", style="dim")
    if state.filter:
        line.append(f"  /{shown(state.filter)}", style="yellow")
    line.truncate(width)
    return line


def _foot(state: ScreenState, width: int) -> Text:
    if state.typing:
        return Text(
            fitted(f"filter: {shown(state.filter)}_   (Enter: keep, Esc: none)", width), style="yellow"
        )
    if state.problems:
        return Text(fitted(shown(state.problems[0]), width), style="red")
    return Text(fitted(KEYS if width >= cell_len(KEYS) else NARROW_KEYS, width), style="dim")


# -- tables


def _all(content: ClusterContent, state: ScreenState, width: int, room: int, now: float) -> list[Text]:
    """All views below each other: each at least a few rows, what is left to those that have more."""
    views = list(VIEWS)
    wanted = [len(view.chosen(content, state.sorting(view), state.filter)) + 1 for view in views]
    sizes = _shared_out(wanted, room)
    lines: list[Text] = []
    for view, size in zip(views, sizes, strict=True):
        if size > 1:
            lines += _table(content, state, view, width, size, now, scrolled=False)
    return lines


def _shared_out(wanted: Sequence[int], room: int) -> list[int]:
    """Lines for each: by turns, until all have what they want or nothing is left. A title alone is of no use."""
    sizes = [0] * len(wanted)
    order = [place for place, want in enumerate(wanted) if want > 1]
    for place in order:
        if room >= 2:
            sizes[place], room = 2, room - 2
    while room > 0 and (open_ends := [place for place in order if 0 < sizes[place] < wanted[place]]):
        for place in open_ends[:room]:
            sizes[place] += 1
        room -= len(open_ends[:room])
    return sizes


def _table(
    content: ClusterContent,
    state: ScreenState,
    view: View,
    width: int,
    room: int,
    now: float,
    scrolled: bool = True,
) -> list[Text]:
    """The titles and as many rows as there is room for; the last line says how many more there are."""
    rows = view.chosen(content, state.sorting(view), state.filter)
    first = min(state.offset, max(0, len(rows) - (room - 1))) if scrolled else 0
    if scrolled:
        state.offset = first
    visible = rows[first : first + max(0, room - 1)]
    columns = view.columns(content.resources)
    cells = [[shown(column.text(row, now)) for column in columns] for row in visible]
    titles = [column.title for column in columns]
    if scrolled and len(rows) > len(visible):
        titles[-1] += f"   {first + 1}-{first + len(visible)} of {len(rows)}"
    elif len(rows) > len(visible):
        titles[-1] += f"   {len(visible)} of {len(rows)}"
    sizes = [
        min(WIDEST_CELL, max(cell_len(texts[place]) for texts in [titles, *cells]))
        for place in range(len(columns) - 1)
    ]
    lines = [Text(_line(titles, sizes, [False] * len(columns), width), style="bold underline")]
    right = [column.to_the_right for column in columns]
    for row, texts in zip(visible, cells, strict=True):
        lines.append(Text(_line(texts, sizes, right, width), style=view.style(row)))
    return lines


def _line(texts: Sequence[str], sizes: Sequence[int], right: Sequence[bool], width: int) -> str:
    """Cells behind each other; the last one has the room that is left."""
    parts = []
    for text, size, to_the_right in zip(texts[:-1], sizes, right, strict=False):
        padding = " " * max(0, size - cell_len(text))
        parts.append(padding + text if to_the_right and padding else fitted(text, size))
    return fitted(" ".join([*parts, texts[-1]]), width)


def fitted(text: str, width: int) -> str:
    """A text in exactly so many columns of a terminal, with … where it was cut."""
    if width <= 0:
        return ""
    if cell_len(text) > width:
        return set_cell_size(text, width - 1) + "…"
    return set_cell_size(text, width)
