"""A chart as SVG: axes, steps, areas, bars, marks and a legend, in classes that the page colours."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from stromboli.simulator.reports.page.chart_scales import Scale
from stromboli.simulator.reports.page.markup import Markup, element, joined, number, shortened
from stromboli.simulator.reports.record_columns import Floats

WIDTH, HEIGHT = 720.0, 250.0
LEFT, RIGHT, TOP, BOTTOM = 58.0, 18.0, 12.0, 28.0
TITLE_LENGTH = 300
"""Characters that a box says of itself."""
COLOURS = 8
"""Series that have a colour of their own."""


def colour(place: int) -> str:
    """The class of a series; those beyond the last colour are grey."""
    return f"s{place + 1}" if place < COLOURS else "s0"


class SvgChart:
    """A frame with two scales to draw into."""

    def __init__(
        self,
        x: Scale,
        y: Scale,
        height: float = HEIGHT,
        left: float = LEFT,
        width: float = WIDTH,
    ) -> None:
        self.x, self.y = x, y
        self.width, self.height, self.left, self.bottom = width, height, left, BOTTOM
        self._parts: list[Markup] = []

    def at_x(self, values: Floats | float) -> Floats:
        return self.left + self.x.place(values) * (self.width - RIGHT - self.left)

    def at_y(self, values: Floats | float) -> Floats:
        return self.height - self.bottom - self.y.place(values) * (self.height - TOP - self.bottom)

    def add(self, *parts: Markup) -> None:
        self._parts += parts

    def axes(self, rows: Sequence[str] = ()) -> None:
        """Grid lines with their ticks; with `rows`, names at the left take the place of the vertical ticks."""
        right, floor = self.width - RIGHT, self.height - self.bottom
        for value, text in self.x.ticks:
            x = float(self.at_x(value))
            self.add(element("path", d=f"M{number(x)} {number(TOP)}V{number(floor)}", class_="grid"))
            anchor = "middle" if x < right - 24 else "end"
            place = x if anchor == "middle" else min(x + 14, self.width - 2)
            self.add(element("text", text, x=place, y=floor + 18, class_="tick", text_anchor=anchor))
        for value, text in () if rows else self.y.ticks:
            y = float(self.at_y(value))
            self.add(element("path", d=f"M{number(self.left)} {number(y)}H{number(right)}", class_="grid"))
            self.add(element("text", text, x=self.left - 8, y=y + 4, class_="tick", text_anchor="end"))
        for place, name in enumerate(rows):
            y = float(self.row_middle(place, len(rows)))
            label = element(
                "text",
                shortened(name, 22),
                element("title", name),
                x=self.left - 8,
                y=y + 4,
                class_="label",
                text_anchor="end",
            )
            self.add(label)
        self.add(element("path", d=f"M{number(self.left)} {number(floor)}H{number(right)}", class_="axis"))

    def row_middle(self, place: int, rows: int) -> float:
        return TOP + (place + 0.5) * (self.height - TOP - self.bottom) / max(rows, 1)

    def steps(self, times: Floats, values: Floats, class_: str, title: str = "", area: bool = False) -> None:
        """Values that hold from their time to the next."""
        if not values.size:
            return
        x, y = self.at_x(times), self.at_y(values)
        path = f"M{number(x[0])} {number(y[0])}" + "".join(
            f"H{number(a)}V{number(b)}" for a, b in zip(x[1:], y[1:], strict=True)
        )
        path += f"H{number(float(self.at_x(self.x.high)))}"
        self._curve(path, float(x[0]), class_, title, area)

    def line(
        self, x_values: Floats, y_values: Floats, class_: str, title: str = "", area: bool = False
    ) -> None:
        if not x_values.size:
            return
        points = zip(self.at_x(x_values), self.at_y(y_values), strict=True)
        path = "M" + "L".join(f"{number(x)} {number(y)}" for x, y in points)
        self._curve(path, float(self.at_x(x_values[0])), class_, title, area)

    def _curve(self, path: str, begin: float, class_: str, title: str, area: bool) -> None:
        if area:
            floor = number(self.height - self.bottom)
            self.add(element("path", d=f"{path}V{floor}H{number(begin)}Z", class_=f"area {class_}"))
        self.add(element("path", element("title", title), d=path, class_=f"line {class_}"))

    def box(self, x: float, y: float, width: float, height: float, class_: str, title: str = "") -> None:
        self.add(
            element(
                "rect",
                *([element("title", shortened(title, TITLE_LENGTH))] if title else []),
                x=x,
                y=y,
                width=width,
                height=height,
                class_=class_,
            )
        )

    def svg(self, title: str, description: str) -> Markup:
        size = f"0 0 {number(self.width)} {number(self.height)}"
        return element(
            "svg",
            element("title", title),
            element("desc", description),
            *self._parts,
            viewBox=size,
            role="img",
            aria_label=f"{title}: {description}",
        )


def legend(entries: Iterable[tuple[str, str]]) -> Markup:
    """What colours and marks mean: the class of a swatch, and its text."""
    swatches = (
        element("span", element("i", class_=f"swatch {class_}"), shortened(text, 40))
        for class_, text in entries
    )
    return element("p", joined(swatches), class_="legend")


def thinned(times: Floats, values: Floats, most: int) -> tuple[Floats, Floats]:
    """At most so many points: of each run of equal length the highest, so that peaks stay."""
    if times.size <= most:
        return times, values
    edges = np.linspace(0, times.size, most + 1).astype(np.int64)
    return times[edges[:-1]], np.maximum.reduceat(values, edges[:-1])
