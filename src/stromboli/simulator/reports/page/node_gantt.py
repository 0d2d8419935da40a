"""Which pod ran on which node, and when: a Gantt chart that stays small however much there is."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from stromboli.simulator.reports.measure_titles import duration
from stromboli.simulator.reports.page.chart_scales import amounts, clock
from stromboli.simulator.reports.page.figure import figure
from stromboli.simulator.reports.page.markup import Markup
from stromboli.simulator.reports.page.node_lanes import lanes
from stromboli.simulator.reports.page.svg_chart import COLOURS, SvgChart, colour, legend
from stromboli.simulator.reports.record_columns import Floats, RecordColumns, codes
from stromboli.simulator.runs.run_record import PodRecord

NODES = 48
"""Rows; of more nodes, as many are drawn, at equal distances in the order of the record."""
PODS = 5_000
"""Boxes; of more pods, those with the largest area."""
SHADES = 5
"""Colours in turn where all jobs are of one queue."""
EDGES = 44.0
WIDE = 1440.0
SLIVER = 0.01
"""The share of a node that a pod is drawn with that asks for nothing."""


def gantt_chart(columns: RecordColumns) -> Markup:
    """A row for each node, a box for each pod: as long as it ran, as high as its share of the node."""
    title, record = "Nodes over time", columns.record
    if not record.pods or columns.makespan <= 0:
        return figure(title, "No pod ran on a node.", wide=True)
    nodes = list(record.nodes or dict.fromkeys(pod.node for pod in record.pods))
    drawn = [nodes[place] for place in np.unique(np.linspace(0, len(nodes) - 1, NODES).astype(np.int64))]
    share = _node_shares(columns)
    rows = _largest(columns, drawn, share)
    height = float(np.clip(520 / len(drawn), 14, 260))
    chart = SvgChart(
        clock(columns.begin, columns.end), amounts(1), EDGES + height * len(drawn), left=150.0, width=WIDE
    )
    chart.axes(drawn)
    colours, swatches = _colours(columns)
    for place, node in enumerate(drawn):
        _draw_row(
            chart,
            columns,
            rows[node],
            share,
            colours,
            chart.row_middle(place, len(drawn)) - height / 2,
            height,
        )
    count = sum(map(len, rows.values()))
    described = f"{count:,} pods on {len(drawn):,} nodes"
    note = f"Boxes are pods, as high as their share of the node. Shown: {_of(count, len(record.pods), 'pod')}"
    note += f" on {_of(len(drawn), len(nodes), 'node')}"
    note += (
        "."
        if count == len(record.pods)
        else "; of the pods on these nodes those with the most resource-time."
    )
    return figure(title, note, swatches, chart.svg(title, described), wide=True)


def _of(shown: int, there: int, what: str) -> str:
    if there == 1:
        return f"the only {what}"
    return f"all {there:,} {what}s" if shown == there else f"{shown:,} of {there:,} {what}s"


def _node_shares(columns: RecordColumns) -> Floats:
    """The largest share that each pod has of a resource of its node; a sliver where it asks for nothing."""
    record = columns.record
    largest: Floats = np.zeros(len(record.pods))
    by_job = [
        {name: amount / max(job.pods, 1) for name, amount in job.requests.items() if name != "pods"}
        for job in record.jobs
    ]
    for place, pod in enumerate(record.pods):
        has = record.nodes.get(pod.node, record.capacity)
        for name, amount in by_job[pod.job].items():
            if has.get(name, 0.0) > 0:
                largest[place] = max(largest[place], amount / has[name])
    largest[largest == 0] = SLIVER
    return np.minimum(largest, 1.0, out=largest)


def _largest(columns: RecordColumns, drawn: list[str], share: Floats) -> dict[str, list[int]]:
    """The pods that are drawn, by node."""
    pods, names = columns.record.pods, set(drawn)
    places = np.array([place for place, pod in enumerate(pods) if pod.node in names], np.int64)
    rows = columns.intervals
    area = share[places] * (rows.end - rows.start)[places]
    kept: dict[str, list[int]] = defaultdict(list)
    for place in places[np.argsort(-area, kind="stable")[:PODS]]:
        kept[pods[place].node].append(int(place))
    return kept


def _colours(columns: RecordColumns) -> tuple[list[str], Markup]:
    """The colour of each job: of its queue, or in turn where there is only one."""
    labels, group = codes([job.queue for job in columns.record.jobs])
    lost = ("lost", "evicted or failed")
    if len(labels) == 1:
        shades = [colour(place % SHADES) for place in range(len(columns.record.jobs))]
        return shades, legend([lost]) if columns.intervals.in_vain.any() else Markup("")
    entries = [(colour(place), label) for place, label in enumerate(labels[:COLOURS])]
    if len(labels) > COLOURS:
        entries.append((colour(COLOURS), f"{len(labels) - COLOURS} more queues"))
    return [colour(place) for place in group], legend([*entries, lost])


def _draw_row(
    chart: SvgChart,
    columns: RecordColumns,
    places: list[int],
    share: Floats,
    colours: list[str],
    top: float,
    height: float,
) -> None:
    pods = columns.record.pods
    spans = [
        (pods[place].started, max(pods[place].ended, pods[place].started), float(share[place]))
        for place in places
    ]
    for index, taken in lanes(spans):
        pod = pods[places[index]]
        left, right = (float(x) for x in chart.at_x(np.array(spans[index][:2])))
        style = f"pod {colours[pod.job]}{' lost' if columns.intervals.in_vain[places[index]] else ''}"
        words = _words(columns, pod)
        for low, high in taken:
            y = top + 1 + (1 - high) * (height - 2)
            thickness = max((high - low) * (height - 2), 0.6)
            thin = "" if thickness > 3 else " thin"
            chart.box(left, y, max(right - left, 0.6), thickness, style + thin, words)


def _words(columns: RecordColumns, pod: PodRecord) -> str:
    job = columns.record.jobs[pod.job]
    whose = f" of {job.user}" if job.user else ""
    queue = f", queue {job.queue}" if job.queue else ""
    ran = duration(max(pod.ended - pod.started, 0.0))
    return f"{pod.pod}{whose}{queue}: {pod.outcome} after {ran} on {pod.node}, from {duration(pod.started)}"
