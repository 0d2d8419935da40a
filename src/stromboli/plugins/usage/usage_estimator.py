"""The expected load of a pod, before any measurement shows it (spec 03 18)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple
from weakref import WeakKeyDictionary

from stromboli.api import names
from stromboli.api.errors import BadObject
from stromboli.api.resources.pod_totals import pod_total
from stromboli.api.resources.quantity import QuantityError, milli, whole
from stromboli.api.resources.resource_lists import amounts
from stromboli.api.types.meta import Quantity
from stromboli.api.types.pod import PodSpec
from stromboli.model.dimensions import CPU, MEMORY
from stromboli.model.shape import Shape
from stromboli.model.task import Task
from stromboli.policy.argument_checks import at_least, between
from stromboli.policy.arguments import arg

MIB = 1024 * 1024


class Load(NamedTuple):
    """Milli-CPU and bytes, whole numbers, so that sums can be undone exactly."""

    cpu: int
    memory: int


def _amount(value: int | str) -> str | None:
    try:
        return None if memory_of(value) >= 0 else "must not be negative"
    except QuantityError as error:
        return str(error)


def cpu_of(value: int | str) -> int:
    """Milli-CPU: a whole number is that, a text is a quantity."""
    return value if isinstance(value, int) else milli(value)


def memory_of(value: int | str) -> int:
    """Bytes: a whole number is MiB, a text is a quantity."""
    return value * MIB if isinstance(value, int) else whole(value)


@dataclass(frozen=True, slots=True)
class EstimatorArguments:
    """What a pod is expected to use of what it asks for."""

    request_ratio: float = arg(
        "request_ratio", 0.7, "How much of its request a pod is expected to use.", check=between(0, 1)
    )
    burst_ratio: float = arg(
        "burst_ratio", 0.0, "How much of what its limit allows above its request.", check=between(0, 1)
    )
    risk_threshold: float = arg(
        "risk_threshold",
        0.6,
        "How full a node is when pods on it are expected to use more.",
        check=between(0, 1),
    )
    risk_factor: float = arg(
        "risk_factor",
        1.2,
        "How many times more, then.",
        check=at_least(1),
    )
    best_effort_cpu: int | str = arg(
        "be_cpu",
        "250m",
        "What a pod without requests is expected to use: milli-CPU, or a quantity.",
        check=_amount,
    )
    best_effort_memory: int | str = arg(
        "be_mem", "200Mi", "The same for memory: MiB, or a quantity.", check=_amount
    )


class Estimator:
    """Two estimates per shape: the usual one, and one for nodes that are full."""

    def __init__(self, arguments: EstimatorArguments):
        self._arguments = arguments
        self._best_effort = Load(cpu_of(arguments.best_effort_cpu), memory_of(arguments.best_effort_memory))
        self._known: WeakKeyDictionary[Shape, tuple[Load, Load]] = WeakKeyDictionary()

    def load(self, task: Task, risky: bool) -> Load:
        known = self._known.get(task.shape)
        if known is None:
            known = self._known[task.shape] = (
                self._estimate(task.shape, 1.0),
                self._estimate(task.shape, self._arguments.risk_factor),
            )
        return known[risky]

    def _estimate(self, shape: Shape, risk: float) -> Load:
        if shape.best_effort:
            return Load(round(self._best_effort.cpu * risk), round(self._best_effort.memory * risk))
        most = limits(shape.spec)
        return Load(
            self._expect(int(shape.request.get(CPU, 0)), most.get(names.CPU, 0), risk),
            self._expect(int(shape.request.get(MEMORY, 0)), most.get(names.MEMORY, 0), risk),
        )

    def _expect(self, request: int, limit: int, risk: float) -> int:
        most = max(limit, request)
        ratios = self._arguments
        expected = (request * ratios.request_ratio + (most - request) * ratios.burst_ratio) * risk
        return round(min(max(expected, 0.0), most))


def limits(spec: PodSpec) -> dict[str, int]:
    """The limits of a pod as a whole."""
    return pod_total(
        [_amounts(container.resources.limits) for container in spec.containers],
        [
            (container.restart_policy == names.RESTART_ALWAYS, _amounts(container.resources.limits))
            for container in spec.init_containers
        ],
        _amounts(spec.resources.limits) if spec.resources is not None else {},
    )


def _amounts(stated: Mapping[str, Quantity]) -> dict[str, int]:
    """Cpu and memory; a limit that cannot be read is none."""
    readable: dict[str, int] = {}
    for name in (names.CPU, names.MEMORY):
        if name in stated:
            try:
                readable |= amounts({name: stated[name]}, "limits")
            except BadObject:
                continue
    return readable
