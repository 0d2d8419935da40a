"""What a cluster used, what waited, and what started and was evicted, over the time for which it was watched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from stromboli.cli.dashboard.pages.page_elements import TITLES
from stromboli.cli.live.usage_samples import UsageSample
from stromboli.simulator.reports.page.chart_scales import Scale, amounts, clock, shares
from stromboli.simulator.reports.page.markup import Markup, element
from stromboli.simulator.reports.page.svg_chart import SvgChart, colour, legend
from stromboli.simulator.reports.record_columns import Floats

WIDTH, HEIGHT, LEFT = 380.0, 170.0, 46.0
"""Three of them stand side by side."""
TIME_LABELS = 4
MOST_POINTS = 360
"""Of a line: as many as samples of every ten seconds in an hour make."""
MINUTE = 60.0


def usage_chart(samples: Sequence[UsageSample], span: float) -> Markup:
    """The part of each resource that pods had."""
    samples = thinned(samples)
    resources = list(samples[-1].used) if samples else []
    series = {
        TITLES.get(name, name): [sample.used.get(name, 0.0) for sample in samples] for name in resources
    }
    highest = max((value for values in series.values() for value in values), default=0.0)
    described = ", ".join(f"{name} {100 * values[-1]:.0f} %" for name, values in series.items())
    return _chart("Utilisation", f"now {described}", samples, series, shares(max(highest, 0.51)), span)


def jobs_chart(samples: Sequence[UsageSample], span: float) -> Markup:
    """Jobs that ran and jobs that waited."""
    samples = thinned(samples)
    series: dict[str, list[float]] = {
        "running": [sample.running_jobs for sample in samples],
        "waiting": [sample.waiting_jobs for sample in samples],
    }
    highest = max((value for values in series.values() for value in values), default=0.0)
    described = ", ".join(f"{values[-1]:,.0f} {name}" for name, values in series.items() if values)
    return _chart("Jobs", f"now {described}", samples, series, amounts(max(highest, 4.0)), span)


def rates_chart(samples: Sequence[UsageSample], span: float) -> Markup:
    """Pods that were given a node and pods that were evicted, per minute."""
    samples = thinned(samples)
    series = {
        "starts": rates(samples, [sample.pod_starts for sample in samples]),
        "evictions": rates(samples, [sample.evictions for sample in samples]),
    }
    highest = max((value for values in series.values() for value in values), default=0.0)
    described = ", ".join(f"{values[-1]:,.0f} {name} per minute" for name, values in series.items() if values)
    return _chart(
        "Starts and evictions per minute",
        f"now {described}",
        samples,
        series,
        amounts(max(highest, 4.0)),
        span,
    )


def thinned(samples: Sequence[UsageSample]) -> Sequence[UsageSample]:
    """All of them, or each so many-th up to the latest; counts that grow lose nothing between two of them."""
    step = -(-len(samples) // MOST_POINTS)
    return samples[(len(samples) - 1) % step :: step] if step > 1 else samples


def rates(samples: Sequence[UsageSample], counts: Sequence[int]) -> list[float]:
    """How fast a count has grown, per minute, from each sample to the next; the first is as good as the second."""
    grown = [
        MINUTE * (count - before) / max(sample.time - last.time, 1.0)
        for (last, sample), (before, count) in zip(pairwise(samples), pairwise(counts), strict=True)
    ]
    return [*(grown[:1] or [0.0] * len(samples[:1])), *grown]


def latest_rate(samples: Sequence[UsageSample], counts: Sequence[int]) -> float:
    """The same over the last minute."""
    if not samples:
        return 0.0
    begin = next(place for place, sample in enumerate(samples) if sample.time >= samples[-1].time - MINUTE)
    passed = samples[-1].time - samples[begin].time
    return MINUTE * (counts[-1] - counts[begin]) / passed if passed else 0.0


def time_until_now(span: float, most: int) -> Scale:
    """The seconds before the present, with at most so many ticks, of which the last is now."""
    scale = clock(-span, 0.0)
    step = -(-len(scale.ticks) // most)
    kept = scale.ticks[(len(scale.ticks) - 1) % step :: step]
    return replace(scale, ticks=[(moment, text if moment else "now") for moment, text in kept])


def _chart(
    title: str,
    described: str,
    samples: Sequence[UsageSample],
    series: Mapping[str, Sequence[float]],
    scale: Scale,
    span: float,
) -> Markup:
    if len(samples) < 2:
        return element("p", "There is a chart once the cluster has been watched for a while.", class_="note")
    latest = samples[-1].time
    chart = SvgChart(time_until_now(span, TIME_LABELS), scale, HEIGHT, LEFT, WIDTH)
    chart.axes()
    times: Floats = np.array([sample.time - latest for sample in samples])
    for place, (name, values) in enumerate(series.items()):
        points: Floats = np.array(values, np.float64)
        chart.line(times, points, colour(place), f"{name}: {points.max():.3g} at most", area=place == 0)
    entries = [(colour(place), name) for place, name in enumerate(series)]
    return element("div", legend(entries), chart.svg(title, described), class_="chart")
