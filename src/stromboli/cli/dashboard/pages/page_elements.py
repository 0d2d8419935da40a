"""What pages are made of: links, tables that can be sorted and turned over, bars, notes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, NamedTuple

from stromboli.api import names
from stromboli.cli.dashboard.pages.page_content import ViewRequest
from stromboli.cli.live.cluster_content import GPU
from stromboli.cli.status.resource_columns import short_bytes
from stromboli.embedded.tables.age_text import duration_text
from stromboli.simulator.reports.page.markup import Markup, element, joined, shortened

ROWS_PER_PAGE = 100
MOST_PAGES = 100_000
LONGEST_SHOWN = 300
"""Characters of a text in a table; all of it is in its title, up to a bound."""
LONGEST_TITLE = 2_000
NO_ROWS = "None."
Row = dict[str, Any]
MEASURED_AS_MEMORY = (names.MEMORY, names.EPHEMERAL_STORAGE)
TITLES = {names.CPU: "CPU", names.MEMORY: "Memory", GPU: "GPU"}

# -- texts


def link(target: str, *content: object, **attributes: object) -> Markup:
    """A link within the dashboard."""
    return element("a", *content, href=target, **attributes)


def number_link(number: float, target: str) -> Markup:
    """A number that leads to the objects behind it; a plain one if there are none."""
    text = f"{number:,}" if isinstance(number, int) else f"{number:.4g}"
    return link(target, text) if number else element("span", text, class_="none")


def short_text(text: str, length: int = LONGEST_SHOWN) -> Markup | str:
    """A text from outside, shortened if it is long."""
    if len(text) <= length:
        return text
    return element("span", shortened(text, length), title=shortened(text, LONGEST_TITLE))


def amount(value: float | None, resource: str) -> str:
    """`12`, `1.5`, `64Gi`; a dash for what is not stated."""
    if value is None:
        return "-"
    if resource in MEASURED_AS_MEMORY or resource.startswith(names.HUGE_PAGES_PREFIX):
        return short_bytes(value)
    return f"{value:.4g}" if value < 1000 else f"{value:,.0f}"


def age(moment: float, now: float) -> Markup:
    """How long ago it was, with the moment itself for those who point at it."""
    if not moment:
        return element("span", "-")
    return element("time", duration_text(max(0.0, now - moment)), data_time=f"{moment:.0f}")


PHASES = {
    "Running": "good",
    "Completed": "done",
    "Ready": "good",
    "Open": "good",
    "Failed": "bad",
    "NotReady": "bad",
    "Warning": "bad",
    "Aborted": "idle",
    "Pending": "wait",
    "Inqueue": "wait",
}


def phase(text: str) -> Markup:
    """A phase or state, in the colour of its kind and always in words."""
    return element("span", shortened(text or "-", 40), class_=f"phase {PHASES.get(text, 'other')}")


# -- bars


BAR_WIDTH, BAR_HEIGHT = 120.0, 10.0
LINE, FLOOR, CEILING = "M-1 0H1V10H-1Z", "M-4 10H4L0 4Z", "M-4 0H4L0 6Z"
"""Shapes of marks: a line, a triangle that stands below, a triangle that hangs from above."""
MARK_HALF = 4.0
"""Half of the width of the widest shape."""


class BarMark(NamedTuple):
    """A mark on a bar, such as what a queue deserves."""

    value: float
    name: str
    shape: str = LINE


def bar(used: float, whole: float | None, text: str, marks: Sequence[BarMark] = ()) -> Markup:
    """How much of a whole is used; `text` says it in words, for those who do not see it."""
    scale = max(whole or 0.0, used, *(mark.value for mark in marks), 1e-9)
    over = whole is not None and used > whole
    parts = [
        element("rect", width=BAR_WIDTH, height=BAR_HEIGHT, class_="bar-room", rx=2.0),
        element(
            "rect",
            width=BAR_WIDTH * used / scale,
            height=BAR_HEIGHT,
            class_="bar-over" if over else "bar-used",
            rx=2.0,
        ),
    ]
    parts += [_mark(mark, scale) for mark in marks]
    return element(
        "svg",
        element("title", text),
        *parts,
        viewBox=f"0 0 {BAR_WIDTH:g} {BAR_HEIGHT:g}",
        class_="bar",
        role="img",
    )


def _mark(mark: BarMark, scale: float) -> Markup:
    """At its place, as far as all of it stays on the bar."""
    half = 1.0 if mark.shape == LINE else MARK_HALF
    place = min(max(BAR_WIDTH * mark.value / scale, half), BAR_WIDTH - half)
    return element(
        "path",
        element("title", mark.name),
        d=mark.shape,
        transform=f"translate({place:.4g} 0)",
        class_="bar-mark",
    )


# -- lists


class TableColumn(NamedTuple):
    """A column of a table."""

    title: str
    cell: Callable[[Row], object]
    sort: Callable[[Row], Any] | None = None
    """The key of rows, where the table can be sorted by this column."""
    class_: str | None = None
    """`number` stands to the right, `text` may be broken into lines."""
    name: str = ""
    """In the address; the title in lower case unless given."""

    @property
    def key(self) -> str:
        return self.name or self.title.lower().replace(" ", "-")


def data_table(
    request: ViewRequest,
    caption: str,
    columns: Sequence[TableColumn],
    rows: Sequence[Row],
    default_sort: str = "",
) -> Markup:
    """Rows in the order that the address says, one page of them, with links to the other orders and pages."""
    ordered, order, descending = _ordered(request, columns, rows, default_sort)
    pages = max(1, -(-len(rows) // ROWS_PER_PAGE))
    page = min(request.number("page", 1, MOST_PAGES), pages)
    shown = ordered[(page - 1) * ROWS_PER_PAGE : page * ROWS_PER_PAGE]
    head = element("tr", *(_heading(request, column, order, descending) for column in columns))
    body = (
        element("tr", *(element("td", column.cell(row), class_=column.class_) for column in columns))
        for row in shown
    )
    none = element("tr", element("td", NO_ROWS, colspan=str(len(columns))))
    table = element(
        "table",
        element("caption", caption, class_="quiet"),
        element("thead", head),
        element("tbody", joined(body, "\n") if shown else none),
    )
    turning = [_pages(request, page, pages, len(rows))] if pages > 1 else []
    return joined(
        [element("div", table, class_="scroll", tabindex="0", role="region", aria_label=caption), *turning]
    )


def _ordered(
    request: ViewRequest, columns: Sequence[TableColumn], rows: Sequence[Row], default: str
) -> tuple[list[Row], str, bool]:
    wanted = request.query.get("sort", "") or default
    descending = wanted.startswith("-")
    name = wanted.removeprefix("-")
    for column in columns:
        if column.key == name and column.sort is not None:
            return sorted(rows, key=column.sort, reverse=descending), name, descending
    return list(rows), "", False


def _heading(request: ViewRequest, column: TableColumn, order: str, descending: bool) -> Markup:
    if column.sort is None:
        return element("th", column.title, scope="col", class_=column.class_)
    current = column.key == order
    other = f"-{column.key}" if current and not descending else column.key
    arrow = (" ↓" if descending else " ↑") if current else ""
    target = request.address(sort=other, page="")
    state = ("descending" if descending else "ascending") if current else None
    return element(
        "th", link(target, column.title + arrow), scope="col", class_=column.class_, aria_sort=state
    )


def _pages(request: ViewRequest, page: int, pages: int, rows: int) -> Markup:
    steps = [("first", 1), ("previous", page - 1), ("next", page + 1), ("last", pages)]
    links = [
        link(request.address(page=target if target > 1 else ""), name)
        if 1 <= target <= pages and target != page
        else element("span", name, class_="none")
        for name, target in steps
    ]
    return element(
        "nav",
        f"Page {page:,} of {pages:,}, {rows:,} rows ",
        joined(links, " "),
        class_="pages",
        aria_label="pages",
    )


def plain_table(
    name: str,
    titles: Sequence[str],
    rows: Sequence[Sequence[object]],
    numbers: Collection[str] = (),
    text: Collection[str] = (),
    row_classes: Sequence[str | None] = (),
) -> Markup:
    """A short table in a fixed order; columns that are empty throughout are left out. Without rows it says so.

    Columns of `numbers` stand to the right, those of `text` may be broken into lines. `row_classes` are
    those of all rows, or none.
    """
    if not rows:
        return element("p", NO_ROWS, class_="note")
    kept = [place for place in range(len(titles)) if any(str(row[place]) for row in rows)]
    classes = dict.fromkeys(numbers, "number") | dict.fromkeys(text, "text")

    def cells(tag: str, row: Sequence[object], row_class: str | None = None, **attributes: str) -> Markup:
        marked = (element(tag, row[place], class_=classes.get(titles[place]), **attributes) for place in kept)
        return element("tr", *marked, class_=row_class)

    body = (
        cells("td", row, class_) for row, class_ in zip(rows, row_classes or [None] * len(rows), strict=True)
    )
    table = element(
        "table", element("thead", cells("th", titles, scope="col")), element("tbody", joined(body, "\n"))
    )
    return element("div", table, class_="scroll", tabindex="0", role="region", aria_label=name)


def facts(entries: Iterable[tuple[str, object]]) -> Markup:
    """Names and values of one object."""
    return _named_values(entries, "facts")


def tiles(entries: Iterable[tuple[object, object]]) -> Markup:
    """A few numbers, large."""
    return _named_values(entries, "tiles")


def _named_values(entries: Iterable[tuple[object, object]], class_: str) -> Markup:
    values = (element("div", element("dt", name), element("dd", value)) for name, value in entries)
    return element("dl", *values, class_=class_)


def card(title: object, *content: object, note: object = "", wide: bool = False) -> Markup:
    """A part of a page with a title of its own."""
    below = [element("p", note, class_="note")] if note else []
    return element("section", element("h2", title), *below, *content, class_="card wide" if wide else "card")


def notes(texts: Iterable[object], class_: str = "note") -> Markup:
    """A paragraph for each."""
    return joined(element("p", text, class_=class_) for text in texts)


def tabs(entries: Iterable[tuple[object, str, bool]], name: str) -> Markup:
    """Links of which the current one is marked: title, address, whether it is the current one."""
    links = (
        link(target, title, aria_current="true" if current else None) for title, target, current in entries
    )
    return element("nav", joined(links, " "), class_="tabs", aria_label=name)


class FilterField(NamedTuple):
    """A field by which rows are filtered: a choice of some values, or a text."""

    name: str
    title: str
    choices: Sequence[str] = ()


KEPT_PARAMETERS = frozenset(
    [
        "cause",
        "group",
        "hypernode",
        "kind",
        "namespace",
        "node",
        "open",
        "pending",
        "phase",
        "pod",
        "q",
        "queue",
        "resource",
        "room",
        "scheduling",
        "sort",
        "span",
        "state",
        "tab",
        "task",
        "tier",
        "waiting",
    ]
) | {names.CPU, names.MEMORY, GPU}
"""What forms keep of an address. A field of any other name could hide a property of its form from the script."""


def filter_form(request: ViewRequest, fields: Sequence[FilterField]) -> Markup:
    """A form that leads to the same page with other values in its address."""
    kept = [
        element("input", type="hidden", name=name, value=value)
        for name, value in request.query.items()
        if name in KEPT_PARAMETERS - {field.name for field in fields}
    ]
    parts = [_field(request, field) for field in fields]
    button = element("button", "Show", type="submit")
    return element(
        "form",
        *kept,
        *parts,
        button,
        method="get",
        action=request.path,
        class_="filters",
        role="search",
        autocomplete="off",
    )


def _field(request: ViewRequest, field: FilterField) -> Markup:
    value = request.query.get(field.name, "")
    if not field.choices:
        box = element(
            "input", type="search", name=field.name, value=value, autocomplete="off", maxlength="200"
        )
        return element("label", element("span", field.title), box)
    known = [*field.choices, *([value] if value and value not in field.choices else [])]
    options = [element("option", "all", value="")]
    options += [
        element("option", choice, value=choice, selected="" if choice == value else None) for choice in known
    ]
    return element("label", element("span", field.title), element("select", *options, name=field.name))


def search_rows(rows: Iterable[Row], wanted: str, words: Callable[[Row], str]) -> list[Row]:
    """The rows in which every word of a search occurs."""
    parts = wanted.lower().split()
    return [row for row in rows if all(part in words(row).lower() for part in parts)]
