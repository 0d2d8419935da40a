"""The arguments of `fgd`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from stromboli.api import names
from stromboli.api.resources.quantity import QuantityError, exact
from stromboli.model.cards.gpu_demands import ANY_MODEL, WHOLE, GpuModels
from stromboli.model.cards.typical_tasks import COVERED, TypicalTask
from stromboli.policy.argument_checks import at_least
from stromboli.policy.arguments import arg


def _covers(value: float) -> str | None:
    return None if 0 < value <= 1 else "must be above 0 and at most 1"


@dataclass(frozen=True, slots=True)
class FgdArguments:
    """Which tasks count as typical, and how the score is made of the fragmentation."""

    weight: int = arg("fgd.weight", 1, "How much the score counts; 0 switches it off.", check=at_least(0))
    tasks: tuple[Mapping[str, object], ...] = arg(
        "fgd.tasks",
        (),
        "The tasks of the workload: maps of `cpu` (a quantity), `gpus`, `gpuMilli` (of each GPU, 1000 unless given), "
        "`models` (a list; none: any) and `count` (how many there are, 1 unless given). "
        "Without them, the tasks that jobs run and have pending are counted.",
    )
    covered: float = arg(
        "fgd.covered",
        COVERED,
        "The part of all tasks that the typical ones cover, the most frequent first.",
        check=_covers,
    )
    recount: float = arg(
        "fgd.recountSeconds",
        3600.0,
        "Count tasks again after so many seconds, or once their number has changed by a tenth.",
        check=at_least(1),
    )
    best_fit: float = arg(
        "fgd.bestFit",
        0.02,
        "How much a point of best fit counts beside a point of fragmentation, so that it decides "
        "between nodes that are nearly equal.",
        check=at_least(0),
    )
    published: bool = arg(
        "fgd.published",
        False,
        "Score as in the paper: whole points, without best fit, ties to the oldest node.",
    )
    resource: str = arg(
        "fgd.resource", names.NVIDIA_GPU, "The resource of whole GPUs, on nodes that do not share cards out."
    )

    def __post_init__(self) -> None:
        listed_tasks(self.tasks)


def listed_tasks(tasks: tuple[Mapping[str, object], ...]) -> Counter[TypicalTask]:
    """The tasks of a list, with how many there are of each; ValueError for what is none."""
    counts: Counter[TypicalTask] = Counter()
    for place, task in enumerate(tasks):
        if unknown := sorted(task.keys() - {"cpu", "gpus", "gpuMilli", "models", "count"}):
            raise ValueError(f"fgd.tasks[{place}]: unknown key {unknown[0]!r}")
        gpus = _whole(task, "gpus", 0, place)
        share = _whole(task, "gpuMilli", WHOLE, place) if gpus else 0
        if share > WHOLE or (gpus and not share):
            raise ValueError(f"fgd.tasks[{place}].gpuMilli: {share} is not between 1 and {WHOLE}")
        models = _models(task.get("models"), place)
        counts[TypicalTask(_cpu(task.get("cpu", 0), place), share, gpus, models)] += _whole(
            task, "count", 1, place
        )
    return +counts


def _whole(task: Mapping[str, object], key: str, default: int, place: int) -> int:
    value = task.get(key, default)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**31:
        raise ValueError(f"fgd.tasks[{place}].{key}: {value!r:.63} is no whole number from 0 on")
    return value


def _cpu(value: object, place: int) -> int:
    try:
        milli = exact(value) * 1000 if isinstance(value, str | int | float) else -1
    except QuantityError:
        milli = -1
    if not 0 <= milli < 2**52:
        raise ValueError(f"fgd.tasks[{place}].cpu: {value!r:.63} is no quantity from 0 on")
    return int(-(-milli // 1))


def _models(value: object, place: int) -> GpuModels:
    if value is None or value == ():
        return ANY_MODEL
    if isinstance(value, list | tuple) and all(isinstance(model, str) for model in value):
        return GpuModels(tuple(value)) if value else ANY_MODEL
    raise ValueError(f"fgd.tasks[{place}].models: {value!r:.63} is no list of texts")
