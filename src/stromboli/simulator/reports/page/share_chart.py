"""What queues and users had of the cluster, against what they deserved."""

from __future__ import annotations

from typing import Any

from stromboli.simulator.reports.page.chart_scales import amounts, shares
from stromboli.simulator.reports.page.figure import figure
from stromboli.simulator.reports.page.markup import Markup, element, number
from stromboli.simulator.reports.page.svg_chart import SvgChart, legend

ROWS = 15
"""Queues or users that are drawn: those with the most resource-time."""
ROW, EDGES = 26.0, 44.0


def share_chart(title: str, note: str, rows: dict[str, dict[str, Any]]) -> Markup:
    """A bar for what each had on average, a mark for what it deserved."""
    drawn = list(rows.items())[:ROWS]
    deserved = [row["deserved"] for _, row in drawn if row["deserved"] is not None]
    highest = max([row["used"] for _, row in drawn] + deserved)
    chart = SvgChart(shares(highest), amounts(1), EDGES + ROW * len(drawn), left=170.0)
    chart.axes([name or "-" for name, _ in drawn])
    for place, (name, row) in enumerate(drawn):
        y = chart.row_middle(place, len(drawn))
        words = (
            f"{name}: had {_percent(row['used'])}, deserved {_percent(row['deserved'])}; {row['jobs']:,} jobs"
        )
        chart.box(
            chart.left, y - 8, max(float(chart.at_x(row["used"])) - chart.left, 1.0), 16.0, "fill s1", words
        )
        if row["deserved"] is not None:
            x = float(chart.at_x(row["deserved"]))
            line = f"M{number(x)} {number(y - 11)}V{number(y + 11)}"
            chart.add(element("path", element("title", words), d=line, class_="mark"))
    more = f" The {len(drawn)} with the most of {len(rows)}." if len(rows) > len(drawn) else ""
    described = "; ".join(f"{name or '-'} had {_percent(row['used'])}" for name, row in drawn[:5])
    swatches = [("fill s1", "had, on average"), *([("mark", "deserved")] if deserved else [])]
    return figure(title, note + more, legend(swatches), chart.svg(title, described))


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f} %"
