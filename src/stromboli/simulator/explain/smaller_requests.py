"""How much less the pods of a job would have to ask for to have room as things stand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from stromboli.api.errors import BadObject
from stromboli.api.resources.resource_lists import amounts, resource_list
from stromboli.engine.placement.node_fit import SlotCount, TaskSlots
from stromboli.model.dimensions import CPU, MEMORY
from stromboli.simulator.explain.model_changes import as_plain

if TYPE_CHECKING:
    from stromboli.model.dimensions import Dimensions
    from stromboli.model.shape import Shape
    from stromboli.simulator.explain.wait_clues import WaitClues

_STEPS = {CPU: ((4000, 1000), (100, 100), (0, 1)), MEMORY: ((4 << 30, 1 << 30), (1 << 20, 1 << 20), (0, 1))}
"""From which amount on it is rounded to multiples of what; other resources come in whole units."""
_WHOLE = ((0, 1000),)


def largest_request_with_room(clues: WaitClues, dim: int) -> int:
    """The most of a resource that each pod may ask for so that enough of them have room; 0 if none do."""
    low, high = 0, max(int(task.request.get(dim, 0)) for task in clues.tasks)
    while low < high:
        middle = (low + high + 1) // 2
        if _pods_with_room(clues, dim, middle) >= clues.needed:
            low = middle
        else:
            high = middle - 1
    return low


def rounded_down(dim: int, amount: int) -> int:
    """An amount that people would write, not larger."""
    step = next(step for least, step in _STEPS.get(dim, _WHOLE) if amount >= least)
    return amount // step * step


def _pods_with_room(clues: WaitClues, dim: int, most: int) -> int:
    """How many pods have room if none asks for more than so much of a resource, each kind by itself."""
    kinds = []
    for kind in clues.kinds:
        request = {**kind.task.request, dim: min(kind.task.request.get(dim, 0), most)}
        kinds.append((SlotCount(request, clues.idle, kind.usable), kind.count))
    return TaskSlots(kinds).total


def containers_with_less(
    dims: Dimensions, shape: Shape, most: Mapping[int, int]
) -> list[dict[str, Any]] | None:
    """The containers of a pod with requests lowered so that it asks for no more than this; None if that is not so easy.

    The container that asks for most of a resource gives all of the difference.
    """
    spec = as_plain(shape.spec)
    containers: list[dict[str, Any]] = spec.get("containers") or []
    for dim, limit in most.items():
        name, beyond = dims.names[dim], int(shape.request.get(dim, 0)) - limit
        if beyond <= 0:
            continue
        requests = [_requests(container) for container in containers]
        largest = max(range(len(containers)), key=lambda place: requests[place].get(name, 0), default=None)
        if largest is None or requests[largest].get(name, 0) < beyond:
            return None
        left = requests[largest][name] - beyond
        resources = containers[largest]["resources"]
        resources["requests"] = {**resources["requests"], name: resource_list({name: left})[name]}
    return containers


def _requests(container: Mapping[str, Any]) -> dict[str, int]:
    try:
        return amounts((container.get("resources") or {}).get("requests") or {}, "requests")
    except BadObject:
        return {}
