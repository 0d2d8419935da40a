"""Policies that choose nodes and GPUs by one score alone, as published experiments do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import msgspec

from stromboli.api.manifests.yaml_lines import MAX_VALUES
from stromboli.model.cards.fragmentation import COVERED, NodeFragmentation, TypicalTask, most_frequent
from stromboli.model.cards.gpu_columns import GpuColumns, GpuModels
from stromboli.policy.policy import Policy, load_policy

if TYPE_CHECKING:
    from stromboli.engine.catalog import Catalog
    from stromboli.model.cluster import Cluster

SCORES = {
    "fgd": "fgd",
    "bestfit": "bestfit",
    "dotprod": "dotprod",
    "packing": "gpu-packing",
    "clustering": "gpu-clustering",
    "random": "random",
}
"""The plugin of each score, by its name on the command line."""
_ROOM_FOR_TASKS = MAX_VALUES - 100
"""Values that all tasks together may have in a policy."""
_PUBLISHED = ("fgd", "bestfit", "dotprod", "gpu-clustering")


def score_policy(
    score: str, tasks: Counter[TypicalTask], catalog: Catalog, seed: int = 0, published: bool = True
) -> Policy:
    """A policy that places every pod at once, by a score alone; `tasks` are those of the whole workload."""
    plugin = SCORES[score]
    arguments: dict[str, Any] = {f"{plugin}.published": published} if plugin in _PUBLISHED else {}
    if plugin == "fgd":
        arguments |= _task_arguments(tasks)
    if plugin == "random":
        arguments["random.seed"] = seed
    sharing = {"name": "deviceshare", "arguments": {"deviceshare.VGPUEnable": True}}
    plugins = [
        {"name": "gang"},
        {"name": "predicates"},
        sharing,
        {"name": plugin, "arguments": arguments},
    ]
    text = msgspec.json.encode({"actions": "allocate", "tiers": [{"plugins": plugins}]})
    return load_policy(text, catalog, f"--score {score}")


def _task_arguments(tasks: Counter[TypicalTask]) -> dict[str, Any]:
    """The tasks of a workload as arguments; the rarest are left out where a policy may not hold so many values."""
    listed: list[dict[str, Any]] = []
    values = counted = 0
    for task, count in tasks.most_common():
        entry = _listed(task, count)
        values += 1 + 2 * len(entry) + len(task.models.models)
        if values > _ROOM_FOR_TASKS:
            return {"fgd.tasks": listed, "fgd.covered": min(COVERED * tasks.total() / counted, 1.0)}
        listed.append(entry)
        counted += count
    return {"fgd.tasks": listed}


def _listed(task: TypicalTask, count: int) -> dict[str, Any]:
    """A typical task as an argument lists it."""
    listed: dict[str, Any] = {"cpu": f"{task.cpu}m", "count": count}
    if task.gpus:
        listed |= {"gpus": task.gpus, "gpuMilli": task.share}
    return listed | ({"models": list(task.models.models)} if task.models.models else {})


def typical_task(cpu_milli: int, gpu_milli: int, gpus: int, models: Iterable[str] = ()) -> TypicalTask:
    """A pod of a list as a task that may be typical."""
    return TypicalTask(cpu_milli, gpu_milli if gpus else 0, gpus, GpuModels(tuple(models)))


def fragmentation_gauge(tasks: Counter[TypicalTask]) -> Callable[[Cluster], float]:
    """Measures the part of all GPUs that is free and lost to the typical ones of these tasks."""
    typical = most_frequent(tasks)
    known: list[NodeFragmentation] = []

    def gauge(cluster: Cluster) -> float:
        if not known:
            known.append(NodeFragmentation(GpuColumns(cluster), typical))
        return known[0].share()

    return gauge
