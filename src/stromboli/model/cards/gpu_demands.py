"""What a pod asks of GPUs, for policies that pack them: how many, and which part of each, in thousandths of a GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from stromboli.api import card_names, names
from stromboli.model.cards.pod_cards import asked_of_gpu_share, whole_amount
from stromboli.model.constraints.node_selection import required_selector
from stromboli.model.dimensions import CPU

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stromboli.api.types.meta import Quantity
    from stromboli.api.types.pod import PodSpec
    from stromboli.model.cards.device_config import NvidiaConfig
    from stromboli.model.cards.registrations import Models
    from stromboli.model.cluster import Cluster
    from stromboli.model.dimensions import Dimensions
    from stromboli.model.task import Task

WHOLE = 1000
"""A whole GPU, in thousandths."""
_MOST_KNOWN = 10_000


class GpuDemand(NamedTuple):
    """What a pod asks of a node: CPU, and of each of so many GPUs the larger of a share and of an amount of memory.

    Containers of a pod that ask for different parts count as if each asked for the largest.
    """

    cpu: int = 0
    """In thousandths."""
    share: int = 0
    """Of each GPU, in thousandths; 0 if it asks for memory alone, or for no GPU."""
    gpus: int = 0
    memory: int = 0
    """Of each GPU, in the unit of registrations: MiB as a rule."""

    def share_of(self, memory: int) -> int:
        """What it asks of a GPU with so much memory, in thousandths; all of it where nobody knows how much it has."""
        by_memory = -(-WHOLE * self.memory // memory) if memory else WHOLE if self.memory else 0
        return min(max(by_memory, self.share), WHOLE)


def gpu_demand(task: Task, dims: Dimensions, config: NvidiaConfig | None, resource: str) -> GpuDemand:
    """What a task asks for: parts of registered cards, else whole GPUs as a resource of nodes."""
    request, spec = task.shape.request, task.shape.spec
    cpu = int(request.get(CPU, 0))
    parts = [*_vgpu_parts(spec, config)] if config is not None else []
    if parts:
        counts, shares, memories = zip(*parts, strict=True)
        return GpuDemand(cpu, max(shares), sum(counts), max(memories))
    if memory := asked_of_gpu_share(spec, card_names.GPU_MEMORY):
        return GpuDemand(cpu, 0, 1, memory)
    if number := asked_of_gpu_share(spec, card_names.GPU_NUMBER):
        return GpuDemand(cpu, WHOLE, number)
    dim = dims.index.get(resource)
    gpus = int(request.get(dim, 0)) // 1000 if dim is not None else 0
    return GpuDemand(cpu, WHOLE, gpus) if gpus > 0 else GpuDemand(cpu)


class GpuDemands:
    """What tasks ask for, read once for all of a shape."""

    def __init__(self, cluster: Cluster, resource: str):
        self._cluster = cluster
        self._resource = resource
        self._models: Models | None = None
        self._known: dict[int, GpuDemand] = {}

    def of(self, task: Task) -> GpuDemand:
        models = self._cluster.cards.models
        if models is not self._models or len(self._known) > _MOST_KNOWN:
            self._known.clear()
            self._models = models
        demand = self._known.get(task.shape.id)
        if demand is None:
            config = models.config.nvidia if models is not None and models.vgpu else None
            demand = gpu_demand(task, self._cluster.dims, config, self._resource)
            self._known[task.shape.id] = demand
        return demand


def _vgpu_parts(spec: PodSpec, config: NvidiaConfig) -> Iterator[tuple[int, int, int]]:
    """GPUs, share and memory of each container that asks for parts of GPUs."""
    for container in spec.containers:
        limits, requests = container.resources.limits, container.resources.requests
        if config.count_name not in limits and config.memory_name not in limits:
            continue
        cards = whole_amount(limits[config.count_name]) if config.count_name in limits else 1
        memory = _amount(config.memory_name, limits, requests)
        percent = _amount(config.percentage_name, limits, requests)
        cores = _amount(config.cores_name, limits, requests)
        if not memory and not percent:
            percent = 100
        if cards:
            yield cards, min(10 * max(percent, cores), WHOLE), 0 if percent else memory


def _amount(name: str, limits: Mapping[str, Quantity], requests: Mapping[str, Quantity]) -> int:
    return whole_amount(limits.get(name, requests.get(name))) if name else 0


class GpuModels(NamedTuple):
    """The models of GPUs that a pod may run on; both empty: any."""

    models: tuple[str, ...] = ()
    """By the label `nvidia.com/gpu.product` of nodes, or by the type of their cards, word for word."""
    types: tuple[str, ...] = ()
    """Parts of the type of cards, as in `nvidia.com/use-gputype`."""

    def allow(self, label: str, card_type: str) -> bool:
        """Whether a node with this label and this type of cards has one of these models."""
        if self.models:
            return label in self.models or card_type.removeprefix(f"{card_names.NVIDIA}-") in self.models
        return not self.types or any(part.upper() in card_type.upper() for part in self.types)


ANY_MODEL = GpuModels()


def asked_models(task: Task) -> GpuModels:
    """The models that a pod asks for: by its node selector or node affinity, else by its annotation."""
    spec = task.shape.spec
    selected = (spec.node_selector or {}).get(names.GPU_PRODUCT)
    if selected is not None:
        return GpuModels((selected,))
    required = required_selector(spec)
    terms = required.node_selector_terms if required is not None else ()
    values = [
        requirement.values
        for term in terms
        for requirement in term.match_expressions
        if requirement.key == names.GPU_PRODUCT and requirement.operator == "In"
    ]
    if values and len(values) == len(terms):
        return GpuModels(tuple(dict.fromkeys(value for each in values for value in each)))
    types = task.annotations.get(card_names.USE_GPU_TYPE)
    return ANY_MODEL if types is None else GpuModels(types=tuple(part for part in types.split(",") if part))
