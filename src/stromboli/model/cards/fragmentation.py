"""How much of the free GPUs of nodes typical tasks cannot use, in thousandths of a GPU.

Typical tasks are the most frequent demands of a workload, until they cover nearly all tasks (Weng et al., "Beware of
Fragmentation", ATC '23). A node's free GPUs are lost to a task that needs none, that requests another model or more
CPU, or that finds too few GPUs with enough free. To a task that fits, those GPUs are lost that have less free than it
requests.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stromboli.api import card_names
from stromboli.model.cards.gpu_columns import ANY_MODEL, GpuModels, asked_models
from stromboli.model.status import Status

if TYPE_CHECKING:
    from stromboli.model.cards.gpu_columns import GpuColumns, GpuDemands
    from stromboli.model.cluster import Cluster
    from stromboli.model.node_columns import Bools, Ints


# -- typical tasks


MAX_TYPICAL_TASKS = 128
"""Maximum typical demands among the tasks of a cluster, even if they cover few tasks."""
MAX_LISTED_TASKS = 1024
"""The same among tasks that an argument lists."""
COVERED = 0.95
_ENDED = (Status.SUCCEEDED, Status.FAILED)


class TypicalTask(NamedTuple):
    """A demand that many tasks share: CPU, and thousandths of each of a number of GPUs, of some models."""

    cpu: int
    share: int = 0
    gpus: int = 0
    models: GpuModels = ANY_MODEL

    @property
    def _key(self) -> tuple[int, int, int, str]:
        return self.cpu, self.share, self.gpus, "|".join((*self.models.models, *self.models.types))


class WeightedTask(NamedTuple):
    """A typical task and its fraction of all typical tasks."""

    task: TypicalTask
    weight: float


def most_frequent(
    counts: Mapping[TypicalTask, int], covered: float = COVERED, most: int = MAX_LISTED_TASKS
) -> tuple[WeightedTask, ...]:
    """The most frequent demands, until a fraction of all tasks is covered; among equals the larger comes first."""
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
    """The number of running and pending tasks of each demand."""
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


# -- fragmentation


Floats = NDArray[np.float64]
MAX_STATES = 2**16
"""Maximum states of nodes whose fragmentation is cached."""


class Fragmentation:
    """The expected fragmentation of nodes over some typical tasks."""

    def __init__(self, tasks: Sequence[WeightedTask]):
        needing = [task for task in tasks if task.task.gpus]
        others = [task for task in tasks if not task.task.gpus]
        self._models = [each.task.models for each in needing]
        self._limited = [index for index, models in enumerate(self._models) if any(models)]
        self._cpu = np.array([each.task.cpu for each in needing], dtype=np.int64)[:, None]
        self._gpus = np.array([each.task.gpus for each in needing], dtype=np.int64)[:, None]
        self._weights = np.array([each.weight for each in needing])[:, None]
        shares = [each.task.share for each in needing]
        self._shares = np.array(sorted(set(shares)), dtype=np.int64)
        self._share_of = np.array([sorted(set(shares)).index(share) for share in shares], dtype=np.int64)
        self._other_cpu = np.array([each.task.cpu for each in others], dtype=np.int64)[:, None]
        self._other_weights = np.array([each.weight for each in others])[:, None]
        self.cpu_steps = np.array(sorted({each.task.cpu for each in tasks}), dtype=np.int64)
        """The CPU requests of typical tasks: between two of them, the free amount does not matter."""

    def allowed(self, gpus: GpuColumns) -> Bools | None:
        """Which typical tasks (rows) may run on which nodes by the models of their GPUs; none: all on all."""
        if not self._limited:
            return None
        return np.array([gpus.allow(models) for models in self._models], dtype=bool)

    def of(self, cpu: Ints, free: Ints, allowed: Bools | None = None) -> Floats:
        """The fragmentation of nodes with some free CPU and free thousandths of each GPU.

        Amounts are added cause by cause, each in the order of tasks: the published order, to the last bit.
        """
        total = free.sum(axis=1)
        lacks_gpu, lost = self._gpus_lacking(free, total)
        lacks_cpu = self._cpu > cpu
        lost = self._weights * np.where(lacks_gpu | lacks_cpu, total, lost)
        causes = [lacks_cpu & lacks_gpu, ~lacks_cpu, lacks_cpu & ~lacks_gpu]
        if allowed is not None:
            lost = np.where(allowed, lost, self._weights * total)
            causes = [*(cause & allowed for cause in causes), ~allowed]
        result = _sum(np.where(causes[0], lost, 0.0))
        result = result + _sum(np.where(causes[1], lost, 0.0))
        result = result + _sum(np.where(causes[2], lost, 0.0))
        other, fits = self._other_weights * total, self._other_cpu <= cpu
        result = result + _sum(np.where(fits, other, 0.0))
        result = result + _sum(np.where(fits, 0.0, other))
        return result if allowed is None else result + _sum(np.where(causes[3], lost, 0.0))

    def _gpus_lacking(self, free: Ints, total: Ints) -> tuple[Bools, Ints]:
        """The nodes with too few GPUs for tasks; and the free parts of GPUs that are too small for them."""
        enough = free >= self._shares[:, None, None]
        counts = enough.sum(axis=2)
        lost = total - np.where(enough, free, 0).sum(axis=2)
        return counts[self._share_of] < self._gpus, lost[self._share_of]


def _sum(column: Floats) -> Floats:
    """Rows added one after the other; for a single node, `sum` would add them in another order."""
    if not len(column):
        return np.zeros(column.shape[1])
    total: Floats = np.add.accumulate(column, axis=0)[-1]
    return total


class NodeFragmentation:
    """The fragmentation of the GPUs of each node, updated for nodes that change.

    Nodes return to the same states, so the fragmentation of a state is cached.
    """

    def __init__(self, gpus: GpuColumns, tasks: Sequence[WeightedTask]):
        self.gpus = gpus
        self._fragmentation = Fragmentation(tasks)
        self._allowed: Bools | None = None
        self._kinds: list[bytes] = []
        """The typical tasks that the model of each node allows; empty: all."""
        self._known: dict[tuple[int, bytes, bytes], float] = {}
        """The fragmentation by the step of the free CPU, the model, and what is free of GPUs in ascending order."""
        self._position = -1
        self.values: Floats = np.zeros(0)
        """In thousandths of a GPU."""

    def update(self) -> None:
        """Follow the nodes that changed."""
        gpus = self.gpus
        gpus.update()
        changed = gpus.changes.since(self._position)
        if changed is None:
            self._allowed = allowed = self._fragmentation.allowed(gpus)
            self._kinds = [] if allowed is None else [column.tobytes() for column in allowed.T]
            self._known.clear()
            self.values = self.of(np.arange(len(gpus.cpu)), gpus.cpu, gpus.free)
        elif changed:
            rows = np.fromiter(changed, dtype=np.int64)
            self.values[rows] = self.of(rows, gpus.cpu[rows], gpus.free[rows])
        self._position = gpus.changes.position

    def of(self, rows: Ints, cpu: Ints, free: Ints) -> Floats:
        """The fragmentation of these nodes if they had so much free."""
        steps = self._fragmentation.cpu_steps.searchsorted(cpu, side="right").tolist()
        ordered = np.sort(free, axis=1)
        kinds = [self._kinds[row] for row in rows.tolist()] if self._kinds else [b""] * len(steps)
        states = [*zip(steps, kinds, map(bytes, ordered), strict=True)]
        known = self._known
        if missing := [place for place, state in enumerate(states) if state not in known]:
            if len(known) > MAX_STATES:
                known.clear()
                missing = [*range(len(states))]
            first = [*{states[place]: place for place in missing}.values()]
            allowed = None if self._allowed is None else self._allowed[:, rows[first]]
            lost = self._fragmentation.of(cpu[first], free[first], allowed)
            known.update(zip((states[place] for place in first), lost.tolist(), strict=True))
        return np.array([known[state] for state in states])

    def share(self) -> float:
        """The part of all GPUs of the cluster that is free and lost to typical tasks, from 0 to 1."""
        self.update()
        capacity = int(self.gpus.count.sum())
        return float(self.values.sum()) / (1000 * capacity) if capacity else 0.0
