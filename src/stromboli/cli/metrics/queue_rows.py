"""What metrics say of queues: allocated, deserved, share and what waits, side by side."""

from __future__ import annotations

from typing import NamedTuple

from stromboli.api.node_state import is_gpu
from stromboli.cli.metrics import metric_names as names
from stromboli.cli.metrics.measure_text import (
    bytes_text,
    count_text,
    cpu_text,
    duration_text,
    number,
    share_text,
)
from stromboli.cli.metrics.metric_samples import Samples
from stromboli.cli.metrics.summary_line import Numbers, SummaryLine, judged

MOST_NAMED = 3
"""Queues that the line names."""
ROUNDING = 1e-9
"""By which a share may be above 1 without being more than deserved."""
_BY_QUEUE = (
    names.QUEUE_SHARE,
    names.QUEUE_OVERUSED,
    names.QUEUE_WEIGHT,
    names.PENDING_JOBS,
    names.PENDING_PODS,
    names.OLDEST,
)

Amounts = dict[str, float]
"""Thousandths of CPUs and GPUs, and bytes of memory, by family: `allocated`, `deserved`, `request`, `inqueue`."""


class QueueRow(NamedTuple):
    name: str
    share: float | None
    is_overused: bool
    weight: float | None
    cpu: Amounts
    memory: Amounts
    gpu: Amounts
    jobs: float | None
    """That wait."""
    pods: float | None
    oldest: float | None
    """Seconds."""

    @property
    def waits_below_share(self) -> bool:
        return bool(self.jobs) and self.share is not None and self.share < 1 - ROUNDING

    @property
    def numbers(self) -> Numbers:
        resources = {"milliCpu": self.cpu, "memoryBytes": self.memory, "milliGpu": self.gpu}
        found: Numbers = {"name": self.name, "overused": self.is_overused}
        for key, value in (("share", self.share), ("weight", self.weight)):
            found |= {} if value is None else {key: number(value)}
        for family in names.AMOUNT_FAMILIES:
            amounts = {key: number(each[family]) for key, each in resources.items() if family in each}
            found |= {family: amounts} if amounts else {}
        for key, value in (
            ("waitingJobs", self.jobs),
            ("waitingPods", self.pods),
            ("oldestSeconds", self.oldest),
        ):
            found |= {} if value is None else {key: number(value)}
        return found


def queue_rows(samples: Samples) -> list[QueueRow]:
    """Those with the largest part of their share first, and of those the ones in which most waits."""
    by_queue = {name: samples.by_label(name, "queue_name") for name in _BY_QUEUE}
    cpu, memory = _amounts(samples, "milli_cpu"), _amounts(samples, "memory_bytes")
    gpu = _gpu_amounts(samples)
    queues = set(cpu).union(memory, *by_queue.values())
    rows = [
        QueueRow(
            queue,
            by_queue[names.QUEUE_SHARE].get(queue),
            by_queue[names.QUEUE_OVERUSED].get(queue, 0.0) > 0,
            by_queue[names.QUEUE_WEIGHT].get(queue),
            cpu.get(queue, {}),
            memory.get(queue, {}),
            gpu.get(queue, {}),
            by_queue[names.PENDING_JOBS].get(queue),
            by_queue[names.PENDING_PODS].get(queue),
            by_queue[names.OLDEST].get(queue),
        )
        for queue in queues
    ]
    return sorted(rows, key=lambda row: (-(row.share or 0.0), -(row.jobs or 0.0), row.name))


def _amounts(samples: Samples, unit: str) -> dict[str, Amounts]:
    amounts: dict[str, Amounts] = {}
    for family in names.AMOUNT_FAMILIES:
        for queue, value in samples.by_label(f"volcano_queue_{family}_{unit}", "queue_name").items():
            amounts.setdefault(queue, {})[family] = value
    return amounts


def _gpu_amounts(samples: Samples) -> dict[str, Amounts]:
    amounts: dict[str, Amounts] = {}
    for family in names.AMOUNT_FAMILIES:
        metric = f"volcano_queue_{family}_scalar_resources"
        for (queue, resource), value in samples.by_labels(metric, "queue_name", "resource").items():
            if is_gpu(resource):
                of_queue = amounts.setdefault(queue, {})
                of_queue[family] = of_queue.get(family, 0.0) + value
    return amounts


def queues_line(rows: list[QueueRow]) -> SummaryLine | None:
    """Fine unless a queue waits with less than it deserves while another has more."""
    if not rows:
        return None
    over, below = [row for row in rows if row.is_overused], [row for row in rows if row.waits_below_share]
    text = f"{count_text(len(over))} of {count_text(len(rows))} have more than they deserve{_named(over)}"
    if below:
        text += f"; {count_text(len(below))} wait with less{_named(below)}"
    return judged(
        not (over and below),
        "queues",
        text,
        {
            "count": len(rows),
            "overused": [row.name for row in over],
            "waitingBelowShare": [row.name for row in below],
        },
        "does the policy have the action `reclaim`, and may their pods be reclaimed? `stromboli queue list`,"
        " `stromboli policy show --in-force`",
    )


def _named(rows: list[QueueRow]) -> str:
    if not rows:
        return ""
    named = [f"{row.name} {share_text(row.share or 0.0)}" for row in rows[:MOST_NAMED]]
    more = [f"{len(rows) - MOST_NAMED} more"] if len(rows) > MOST_NAMED else []
    return f" ({', '.join(named + more)})"


def queue_table(rows: list[QueueRow], wide: bool) -> tuple[list[str], list[list[str]]]:
    """Titles and cells."""
    families = names.AMOUNT_FAMILIES if wide else names.AMOUNT_FAMILIES[:2]
    resources = ["CPU", "MEMORY", *(["GPU"] if any(row.gpu for row in rows) else [])]
    titles = ["QUEUE", "SHARE", "OVERUSED", *(["WEIGHT"] if wide else [])]
    titles += [f"{resource} {family.upper()}" for resource in resources for family in families]
    titles += ["WAITING JOBS", "PODS", "OLDEST"]
    return titles, [_cells(row, families, "GPU" in resources, wide) for row in rows]


def _cells(row: QueueRow, families: tuple[str, ...], with_gpus: bool, wide: bool) -> list[str]:
    cells = [
        row.name,
        "-" if row.share is None else share_text(row.share),
        "yes" if row.is_overused else "no",
    ]
    cells += ["-" if row.weight is None else count_text(row.weight)] if wide else []
    cells += [cpu_text(row.cpu.get(family)) for family in families]
    cells += [bytes_text(row.memory.get(family)) for family in families]
    cells += [cpu_text(row.gpu.get(family, 0.0)) for family in families] if with_gpus else []
    cells += ["-" if value is None else count_text(value) for value in (row.jobs, row.pods)]
    return [*cells, duration_text(row.oldest) if row.oldest else "-"]
