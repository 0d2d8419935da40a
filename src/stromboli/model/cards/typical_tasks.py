"""The typical tasks of a workload: the most frequent demands, until they cover nearly all tasks.

Fragmentation is what such tasks could not use of free GPUs (Weng et al., "Beware of Fragmentation", ATC '23).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from stromboli.api import card_names
from stromboli.model.cards.gpu_demands import ANY_MODEL, GpuModels, asked_models
from stromboli.model.status import Status

if TYPE_CHECKING:
    from stromboli.model.cards.gpu_columns import GpuColumns
    from stromboli.model.cards.gpu_demands import GpuDemands
    from stromboli.model.cluster import Cluster

MOST_TYPICAL_TASKS = 128
"""Demands that count as typical among the tasks of a cluster, at most, however few tasks they cover."""
MOST_LISTED_TASKS = 1024
"""The same among tasks that are listed for the purpose."""
COVERED = 0.95
_ENDED = (Status.SUCCEEDED, Status.FAILED)


class TypicalTask(NamedTuple):
    """A demand that many tasks share: CPU, so many thousandths of each of so many GPUs, on some models."""

    cpu: int
    share: int = 0
    gpus: int = 0
    models: GpuModels = ANY_MODEL

    @property
    def _key(self) -> tuple[int, int, int, str]:
        return self.cpu, self.share, self.gpus, "|".join((*self.models.models, *self.models.types))


class WeightedTask(NamedTuple):
    """A typical task and the part of all typical tasks that are such."""

    task: TypicalTask
    weight: float


def most_frequent(
    counts: Mapping[TypicalTask, int], covered: float = COVERED, most: int = MOST_LISTED_TASKS
) -> tuple[WeightedTask, ...]:
    """The most frequent demands, until so large a part of all tasks is covered; of equals the larger comes first."""
    total = sum(counts.values())
    ordered = sorted(counts, key=lambda task: (counts[task], task._key), reverse=True)
    chosen: list[TypicalTask] = []
    reached = 0
    for task in ordered[:most]:
        if reached >= covered * total:
            break
        chosen.append(task)
        reached += counts[task]
    return tuple(WeightedTask(task, (counts[task] / total) / (reached / total)) for task in chosen)


def counted_tasks(cluster: Cluster, gpus: GpuColumns, demands: GpuDemands) -> Counter[TypicalTask]:
    """How many tasks of each demand there are among those that jobs run and have pending."""
    by_shape: Counter[tuple[int, str | None]] = Counter()
    examples = {}
    for task in cluster.tasks.values():
        if task.job is not None and task.status not in _ENDED:
            key = (task.shape.id, task.annotations.get(card_names.USE_GPU_TYPE))
            by_shape[key] += 1
            examples[key] = task
    memory = gpus.usual_memory()
    counts: Counter[TypicalTask] = Counter()
    for key, count in by_shape.items():
        demand = demands.of(examples[key])
        models = asked_models(examples[key]) if demand.gpus else ANY_MODEL
        counts[TypicalTask(demand.cpu, demand.share_of(memory), demand.gpus, models)] += count
    return counts
