"""The clusters of workloads: what stands in them and what waits, as manifests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from bench import mix
from bench.devices import device_cluster
from bench.manifests import (
    GPU,
    Manifest,
    Request,
    gang,
    node,
    node_name,
    numa_topology,
    priority_class,
    queue,
)
from bench.storage import claimed_cluster
from bench.switches import SwitchedSizes, switched_cluster, switches

ONE_CORE: Request = {"cpu": "1", "memory": "2Gi"}
TENTH: Request = {"cpu": "3200m", "memory": "2Gi"}
"""Ten of these fill a node's cores."""
LESS_THAN_A_TENTH: Request = {"cpu": "3160m", "memory": "2Gi"}
"""Ten of these leave 0.4 cores free."""
ALL_GPUS: Request = {"cpu": "1", "memory": "2Gi", GPU: "8"}
NO_CORE: Request = {"cpu": "0", "memory": "1Gi"}
"""Fits also where no core is free."""
TEAM = 20
"""Members of a gang that already runs."""
SIBLINGS = 25
"""Queues below one parent."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much of everything."""

    nodes: int
    gangs: int = 0
    members: int = 0
    running: int = 0
    """Jobs of twenty that already run."""
    fewest_nodes: int = 1
    """However small it is scaled."""

    def scaled(self, factor: float) -> Sizes:
        """Smaller or larger in proportion; a lone gang changes its members, several their number."""
        if factor == 1:
            return self
        alone = self.gangs == 1
        return Sizes(
            nodes=max(_times(self.nodes, factor), self.fewest_nodes),
            gangs=self.gangs if alone else _times(self.gangs, factor),
            members=_times(self.members, factor) if alone else self.members,
            running=_times(self.running, factor),
            fewest_nodes=self.fewest_nodes,
        )

    @property
    def pending_pods(self) -> int:
        return self.gangs * self.members

    @property
    def running_pods(self) -> int:
        return self.running * TEAM


def _times(count: int, factor: float) -> int:
    return max(1, round(count * factor)) if count else 0


def nodes(sizes: Sizes) -> Iterator[Manifest]:
    return (node(index) for index in range(sizes.nodes))


def pending(sizes: Sizes, request: Request = ONE_CORE, **more: object) -> Iterator[Manifest]:
    for index in range(sizes.gangs):
        yield from gang(f"job-{index}", sizes.members, request, **more)  # type: ignore[arg-type]


def arrival(number: int) -> Iterator[Manifest]:
    """A single pod that comes while the cluster stands, and fits."""
    return gang(f"arrival-{number}", 1, NO_CORE, phase="Inqueue")


def running(sizes: Sizes, request: Request, **more: object) -> Iterator[Manifest]:
    """Jobs whose members lie on the nodes one after the other, round and round."""
    for index in range(sizes.running):
        first = index * TEAM
        hosts = [(first + member) % sizes.nodes for member in range(TEAM)]
        yield from gang(f"running-{index}", TEAM, request, host=hosts.__getitem__, **more)  # type: ignore[arg-type]


def empty(sizes: Sizes, seed: int) -> Iterator[Manifest]:
    yield from nodes(sizes)
    yield from pending(sizes)


def idle(sizes: Sizes, seed: int) -> Iterator[Manifest]:
    yield from nodes(sizes)
    yield from running(sizes, ONE_CORE)


def busy(sizes: Sizes, seed: int) -> Iterator[Manifest]:
    """Room for more beside what runs."""
    yield from idle(sizes, seed)
    yield from pending(sizes)


def full(sizes: Sizes, seed: int) -> Iterator[Manifest]:
    yield from nodes(sizes)
    yield from running(sizes, TENTH)
    yield from pending(sizes, phase="Inqueue")


def fragmented(sizes: Sizes, seed: int) -> Iterator[Manifest]:
    yield from nodes(sizes)
    yield from running(sizes, LESS_THAN_A_TENTH)
    yield from pending(sizes, phase="Inqueue")


def leaf_queues(sizes: Sizes, seed: int) -> Iterator[Manifest]:
    """Every gang in a queue of its own; such queues share a parent in groups of 25."""
    yield from nodes(sizes)
    yield queue("root")
    for index in range(sizes.gangs):
        if index % SIBLINGS == 0:
            yield queue(f"parent-{index // SIBLINGS}", parent="root")
        yield queue(
            f"leaf-{index}", parent=f"parent-{index // SIBLINGS}", deserved={"cpu": "16", "memory": "64Gi"}
        )
        yield from gang(f"job-{index}", sizes.members, ONE_CORE, queue=f"leaf-{index}")


def mixed(sizes: Sizes, seed: int) -> Iterator[Manifest]:
    return mix.heterogeneous_cluster(sizes.nodes, sizes.gangs, sizes.members, seed)


def preempting(
    sizes: Sizes, seed: int, phase: str = "Inqueue", request: Request = ONE_CORE
) -> Iterator[Manifest]:
    high, low = ("high", 1000), ("low", 10)
    yield from nodes(sizes)
    yield priority_class(*high)
    yield priority_class(*low)
    yield from running(sizes, TENTH, priority=low)
    yield from pending(sizes, request, phase=phase, priority=high)


def preempting_alike(sizes: Sizes, seed: int) -> Iterator[Manifest]:
    """Urgent gangs of the size of those that run: each takes the place of another."""
    return preempting(sizes, seed, request=TENTH)


def urgent_at_gate(sizes: Sizes, seed: int) -> Iterator[Manifest]:
    return preempting(sizes, seed, phase="Pending")


def reclaiming(sizes: Sizes, seed: int) -> Iterator[Manifest]:
    yield from nodes(sizes)
    yield queue("a")
    yield queue("b")
    yield from running(sizes, TENTH, minimum=1, queue="a")
    yield from pending(sizes, queue="b")


def guaranteed_queues(sizes: Sizes, seed: int) -> Iterator[Manifest]:
    """Every job in a queue of its own; three in four running ones may lose nothing, as the queue has a guarantee."""
    yield from nodes(sizes)
    for index in range(sizes.running):
        cores = 62 if index < sizes.running * 3 // 4 else 30
        yield queue(f"holder-{index}", guarantee={"resource": {"cpu": str(cores), "memory": "20Gi"}})
        hosts = [(index * TEAM + member) % sizes.nodes for member in range(TEAM)]
        yield from gang(
            f"running-{index}", TEAM, TENTH, minimum=1, host=hosts.__getitem__, queue=f"holder-{index}"
        )
    for index in range(sizes.gangs):
        yield queue(f"taker-{index}")
        yield from gang(f"job-{index}", sizes.members, ONE_CORE, phase="Inqueue", queue=f"taker-{index}")


def one_holder(sizes: Sizes, seed: int) -> Iterator[Manifest]:
    """One queue holds all that runs; every pending job is in a queue of its own."""
    yield from nodes(sizes)
    yield queue("holder")
    yield from running(sizes, TENTH, minimum=1, queue="holder")
    for index in range(sizes.gangs):
        yield queue(f"taker-{index}")
        yield from gang(f"job-{index}", sizes.members, ONE_CORE, phase="Inqueue", queue=f"taker-{index}")


def racks(sizes: Sizes, seed: int) -> Iterator[Manifest]:
    """Sixteen nodes share a switch; a gang must stay below one."""
    yield from nodes(sizes)
    yield from switches([node_name(index) for index in range(sizes.nodes)], (16,))
    yield from pending(sizes, ALL_GPUS, networkTopology={"mode": "hard", "highestTierAllowed": 1})


def claiming(sizes: Sizes, seed: int) -> Iterator[Manifest]:
    yield from nodes(sizes)
    yield from device_cluster(sizes.nodes, sizes.gangs, sizes.members, ONE_CORE)


def switched(sizes: SwitchedSizes, seed: int) -> Iterator[Manifest]:
    return switched_cluster(sizes)


def local_claims(sizes: Sizes, seed: int) -> Iterator[Manifest]:
    return claimed_cluster(sizes.nodes, sizes.gangs, sizes.members, ONE_CORE, "local")


def provisioned_claims(sizes: Sizes, seed: int) -> Iterator[Manifest]:
    return claimed_cluster(sizes.nodes, sizes.gangs, sizes.members, ONE_CORE, "provisioned")


def guaranteed(build: Callable[[Any, int], Iterator[Manifest]]) -> Callable[[Any, int], Iterator[Manifest]]:
    """The same world with pods as users submit them: each container is limited to what it requests."""

    def with_limits(sizes: Any, seed: int) -> Iterator[Manifest]:
        for manifest in build(sizes, seed):
            if manifest["kind"] == "Pod":
                for container in manifest["spec"]["containers"]:
                    requests = container["resources"]["requests"]
                    container["resources"] = {"requests": requests, "limits": requests}
            yield manifest

    return with_limits


def with_one_numa_node(
    build: Callable[[Any, int], Iterator[Manifest]],
) -> Callable[[Any, int], Iterator[Manifest]]:
    """The same world, in which the first node has a Numatopology."""

    def with_numa(sizes: Any, seed: int) -> Iterator[Manifest]:
        yield from build(sizes, seed)
        yield numa_topology(node_name(0))

    return with_numa
