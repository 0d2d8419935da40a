"""A text from outside with line numbers, each of which can be linked to."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from stromboli.simulator.reports.page.markup import Markup, element, joined, shortened

LINES_SHOWN = 2000
LINE_LENGTH = 1000
"""Characters of a line that are shown."""
MARKUP_SHOWN = 200_000
"""Characters of all lines as markup, after which the rest is left out."""


def numbered_text(text: str, prefix: str, marked: Collection[int] = ()) -> Markup:
    """Lines with the ids `L1`, `L2` ... if `prefix` is `L`; those that are marked stand out."""
    return element("pre", joined(_lines(text, prefix, marked)), class_="numbered", tabindex="0")


def _lines(text: str, prefix: str, marked: Collection[int]) -> Iterator[Markup]:
    size = 0
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    for number, line in enumerate(lines, 1):
        if number > LINES_SHOWN or size > MARKUP_SHOWN:
            yield element("span", f"... {len(lines) - number + 1:,} more lines", class_="none")
            return
        shown = _line(line.removesuffix("\r"), number, prefix, number in marked)
        size += len(shown)
        yield shown


def _line(line: str, number: int, prefix: str, is_marked: bool) -> Markup:
    mark = "▶" if is_marked else " "
    anchor = f"{prefix}{number}"
    gutter = element("a", f"{mark}{number:>4} ", href=f"#{anchor}", class_="gutter")
    class_ = "marked" if is_marked else None
    return joined(
        [element("span", gutter, shortened(line, LINE_LENGTH), id=anchor, class_=class_), Markup("\n")]
    )
