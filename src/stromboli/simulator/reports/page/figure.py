"""A figure of the page: a title, what it shows, a legend and a chart, or a sentence where there is nothing to draw."""

from __future__ import annotations

from stromboli.simulator.reports.page.markup import Markup, element


def figure(title: str, note: str, *content: Markup, wide: bool = False) -> Markup:
    """A card; its content scrolls sideways where the window is narrow."""
    scroll = element("div", *content, class_="scroll", tabindex=0, role="group", aria_label=title)
    return element(
        "section",
        element("h2", title),
        element("p", note, class_="note"),
        *([scroll] if content else []),
        class_="wide" if wide else None,
    )
