"""The summary of a scheduler's metrics, as lines and tables of plain data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from stromboli.cli.metrics import metric_names as names
from stromboli.cli.metrics import process_lines, scheduler_lines
from stromboli.cli.metrics.measure_text import bytes_text, count_text, duration_text, number, quantile_text
from stromboli.cli.metrics.metric_samples import Distribution, Samples
from stromboli.cli.metrics.queue_rows import QueueRow, queue_rows, queues_line
from stromboli.cli.metrics.scheduler_lines import distribution_numbers
from stromboli.cli.metrics.summary_line import LineState, Numbers, SummaryLine

Line = Callable[[Samples], SummaryLine | None]
SCHEDULER: dict[str, Line] = {
    "leader": scheduler_lines.leader,
    "cycles": scheduler_lines.cycles,
    "lost cycles": scheduler_lines.lost_cycles,
    "plugins": scheduler_lines.plugins,
    "mirror": scheduler_lines.mirror,
    "pods": scheduler_lines.pods,
    "jobs": scheduler_lines.jobs,
    "attempts": scheduler_lines.attempts,
    "binds": scheduler_lines.binds,
    "evictions": scheduler_lines.evictions,
    "waiting": scheduler_lines.waiting,
    "writes": scheduler_lines.writes,
    "requests": process_lines.requests,
}
"""By topic, in the order in which they are shown; a topic that a scheduler does not tell is named as such."""
WHEN_THERE: tuple[Line, ...] = (scheduler_lines.hyper_nodes, process_lines.telemetry)
"""Lines that are there only if there is something to tell."""
CONTROLLERS: tuple[Line, ...] = (
    process_lines.pod_creation,
    process_lines.ended_jobs,
    process_lines.syncs,
)


class PartTime(NamedTuple):
    """How long an action or a plugin takes."""

    name: str
    taken: Distribution


@dataclass(frozen=True, slots=True)
class MetricsSummary:
    lines: list[SummaryLine]
    queues: list[QueueRow]
    actions: list[PartTime]
    plugins: list[PartTime]
    process: str
    """Since when it runs, and its memory."""
    seconds: float | None
    """Of the interval; None for the time since the start."""
    not_told: list[str] = field(default_factory=list)
    """Topics that a scheduler does not tell."""

    @property
    def is_fine(self) -> bool:
        return all(line.state is not LineState.LOOK for line in self.lines)

    @property
    def document(self) -> Numbers:
        """For programs."""
        return {
            "schema": 1,
            "fine": self.is_fine,
            "intervalSeconds": None if self.seconds is None else number(round(self.seconds, 3)),
            "lines": [
                {
                    "topic": line.topic,
                    "state": line.state.value,
                    "text": line.text,
                    "wayOut": line.remedy,
                    "numbers": line.numbers,
                }
                for line in self.lines
            ],
            "queues": [row.numbers for row in self.queues],
            "actions": [{"name": part.name, **distribution_numbers(part.taken)} for part in self.actions],
            "plugins": [{"name": part.name, **distribution_numbers(part.taken)} for part in self.plugins],
            "notTold": self.not_told,
        }


def summarise(samples: Samples, controllers: Samples | None, now: float) -> MetricsSummary:
    """A summary of a scheduler's metrics, and of those of controllers, which may be on the same page."""
    lines: list[SummaryLine] = []
    not_told: list[str] = []
    rows = queue_rows(samples)
    for topic, make in SCHEDULER.items():
        line = make(samples)
        if line is None:
            not_told.append(topic)
        else:
            lines.append(line)
        if topic == "waiting" and (of_queues := queues_line(rows)) is not None:
            lines.append(of_queues)
    lines += [line for make in WHEN_THERE if (line := make(samples)) is not None]
    of_controllers = samples if controllers is None else controllers
    lines += [line for make in CONTROLLERS if (line := make(of_controllers)) is not None]
    return MetricsSummary(
        lines,
        rows,
        _part_times(samples, names.ACTION, "action"),
        _part_times(samples, names.PLUGIN, "plugin"),
        _process(samples, now),
        samples.seconds,
        not_told if samples.has(names.CYCLE) else [],
    )


def _part_times(samples: Samples, metric: str, label: str) -> list[PartTime]:
    """The one that takes most time altogether first."""
    spent = samples.distributions(metric, label)
    return [
        PartTime(*entry) for entry in sorted(spent.items(), key=lambda entry: (-entry[1].total, entry[0]))
    ]


def _process(samples: Samples, now: float) -> str:
    started, memory = samples.value(names.STARTED), samples.value(names.MEMORY)
    parts = [] if started is None else [f"has run for {duration_text(max(now - started, 0.0))}"]
    parts += [] if memory is None else [f"{bytes_text(memory)} of memory"]
    return ", ".join(parts)


def part_table(title: str, parts: list[PartTime]) -> tuple[list[str], list[list[str]]]:
    """Titles and cells of actions or plugins."""
    rows = [
        [
            part.name,
            count_text(part.taken.observed),
            duration_text(part.taken.mean / 1000),
            quantile_text(part.taken.quantile(0.99)),
        ]
        for part in parts
    ]
    return [title, "CALLS", "MEAN", "P99"], rows
