"""The workloads by name: what stands in the cluster, what arrives, and what a cycle must decide about it.

Sizes and content are those on which a real Volcano was timed, so that seconds compare. A workload can be scaled down:
nodes, running jobs and pending pods shrink together. The mixed ones have the same sizes but ten kinds of pods and
several kinds of nodes (see `mix`).
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, BinaryIO

import msgspec

from bench import mix
from bench.devices import device_cluster
from bench.manifests import GPU, Manifest, Request, gang, node, node_name, priority_class, queue
from bench.storage import claimed_cluster
from bench.switches import SwitchedSizes, switched_cluster, switches
from stromboli.policy.presets import CHART, preset

STOCK = ("enqueue", "allocate", "backfill")
EVICTING = ("enqueue", "allocate", "preempt", "reclaim", "backfill")

ONE_CORE: Request = {"cpu": "1", "memory": "2Gi"}
TENTH: Request = {"cpu": "3200m", "memory": "2Gi"}
"""Ten of these fill a node's cores."""
LESS_THAN_A_TENTH: Request = {"cpu": "3160m", "memory": "2Gi"}
"""Ten of these leave 0.4 cores free."""
ALL_GPUS: Request = {"cpu": "1", "memory": "2Gi", GPU: "8"}
TEAM = 20
"""Members of a gang that already runs."""


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


Build = Callable[[Any, int], Iterator[Manifest]]


@dataclass(frozen=True, slots=True)
class Clearing:
    """What an evicting workload must decide: how many go, and whether everybody who waits is then held for room."""

    victims: float = 0.0
    """Per pending pod."""
    exactly: bool = True
    """Or at most so many."""
    together: int = 1
    """So many go together: whole gangs."""

    def most(self, pending: int) -> int:
        """How many may go."""
        return math.ceil(self.victims * pending / self.together) * self.together

    def problem(self, pending: int, evicted: int, held: int) -> str:
        """What is wrong with what a cycle decided; empty if nothing is."""
        most = self.most(pending)
        if evicted > most or (self.exactly and evicted != most):
            return f"evicted {evicted} pods instead of {'' if self.exactly else 'at most '}{most}"
        wanted = pending if self.victims else 0
        return "" if held == wanted else f"{held} pods are held for room being freed instead of {wanted}"


@dataclass(frozen=True, slots=True)
class Workload:
    """A cluster to be measured, and how to know that the cycle did its work."""

    name: str
    about: str
    sizes: Sizes | SwitchedSizes
    build: Build
    binds_all: bool | None
    """Whether the first cycle binds every pending pod, or none; None: as many as find room."""
    actions: tuple[str, ...] = STOCK
    plugins: tuple[str, ...] = ()
    """Plugins besides the stock ones."""
    seed: int | None = None
    base: str = ""
    """For a mixed workload: the uniform one that it may cost three times as much as."""
    clears: Clearing = Clearing()
    """Whom it evicts."""
    configurations: str = ""
    """Arguments of actions, as text."""
    cycles: int = 6

    @property
    def policy(self) -> str:
        """The text of the configuration file."""
        more = "".join(f"  - name: {name}\n" for name in self.plugins)
        return CHART.format(actions=", ".join(self.actions)) + more + self.configurations

    @property
    def expected_binds(self) -> int | None:
        """How many pods the first cycle must bind; None: some."""
        if self.binds_all is None:
            return None
        return self.sizes.pending_pods if self.binds_all else 0

    def scaled(self, factor: float) -> Workload:
        return replace(self, sizes=self.sizes.scaled(factor))

    def manifests(self) -> Iterator[Manifest]:
        """All objects, nodes first."""
        yield queue("default")
        yield from self.build(self.sizes, self.seed or 0)

    def write(self, stream: BinaryIO) -> None:
        """Write the workload as a case file, one object at a time."""
        encode = msgspec.json.encode
        head = encode({"name": self.name, "config": self.policy})
        stream.write(head[:-1] + b',"objects":[')
        for index, manifest in enumerate(self.manifests()):
            stream.write((b",\n" if index else b"\n") + encode(manifest))
        stream.write(b"\n]}\n")

    def encoded(self) -> bytes:
        buffer = io.BytesIO()
        self.write(buffer)
        return buffer.getvalue()


def _nodes(sizes: Sizes) -> Iterator[Manifest]:
    return (node(index) for index in range(sizes.nodes))


def _pending(sizes: Sizes, request: Request = ONE_CORE, **more: object) -> Iterator[Manifest]:
    for index in range(sizes.gangs):
        yield from gang(f"job-{index}", sizes.members, request, **more)  # type: ignore[arg-type]


def _running(sizes: Sizes, request: Request, **more: object) -> Iterator[Manifest]:
    """Jobs whose members lie on the nodes one after the other, round and round."""
    for index in range(sizes.running):
        first = index * TEAM
        hosts = [(first + member) % sizes.nodes for member in range(TEAM)]
        yield from gang(f"running-{index}", TEAM, request, host=hosts.__getitem__, **more)  # type: ignore[arg-type]


def _empty(sizes: Sizes, seed: int) -> Iterator[Manifest]:
    yield from _nodes(sizes)
    yield from _pending(sizes)


def _idle(sizes: Sizes, seed: int) -> Iterator[Manifest]:
    yield from _nodes(sizes)
    yield from _running(sizes, ONE_CORE)


def _busy(sizes: Sizes, seed: int) -> Iterator[Manifest]:
    """Room for more beside what runs."""
    yield from _idle(sizes, seed)
    yield from _pending(sizes)


def _full(sizes: Sizes, seed: int) -> Iterator[Manifest]:
    yield from _nodes(sizes)
    yield from _running(sizes, TENTH)
    yield from _pending(sizes, phase="Inqueue")


def _fragmented(sizes: Sizes, seed: int) -> Iterator[Manifest]:
    yield from _nodes(sizes)
    yield from _running(sizes, LESS_THAN_A_TENTH)
    yield from _pending(sizes, phase="Inqueue")


def _mixed(sizes: Sizes, seed: int) -> Iterator[Manifest]:
    return mix.heterogeneous_cluster(sizes.nodes, sizes.gangs, sizes.members, seed)


def _preempting(sizes: Sizes, seed: int) -> Iterator[Manifest]:
    high, low = ("high", 1000), ("low", 10)
    yield from _nodes(sizes)
    yield priority_class(*high)
    yield priority_class(*low)
    yield from _running(sizes, TENTH, priority=low)
    yield from _pending(sizes, phase="Inqueue", priority=high)


def _reclaiming(sizes: Sizes, seed: int) -> Iterator[Manifest]:
    yield from _nodes(sizes)
    yield queue("a")
    yield queue("b")
    yield from _running(sizes, TENTH, minimum=1, queue="a")
    yield from _pending(sizes, queue="b")


def _racks(sizes: Sizes, seed: int) -> Iterator[Manifest]:
    """Sixteen nodes share a switch; a gang must stay below one."""
    yield from _nodes(sizes)
    yield from switches([node_name(index) for index in range(sizes.nodes)], (16,))
    yield from _pending(sizes, ALL_GPUS, networkTopology={"mode": "hard", "highestTierAllowed": 1})


def _claiming(sizes: Sizes, seed: int) -> Iterator[Manifest]:
    yield from _nodes(sizes)
    yield from device_cluster(sizes.nodes, sizes.gangs, sizes.members, ONE_CORE)


def _switched(sizes: SwitchedSizes, seed: int) -> Iterator[Manifest]:
    return switched_cluster(sizes)


def _local_claims(sizes: Sizes, seed: int) -> Iterator[Manifest]:
    return claimed_cluster(sizes.nodes, sizes.gangs, sizes.members, ONE_CORE, "local")


def _provisioned_claims(sizes: Sizes, seed: int) -> Iterator[Manifest]:
    return claimed_cluster(sizes.nodes, sizes.gangs, sizes.members, ONE_CORE, "provisioned")


def _gentle(workload: Workload, preset_name: str, clears: Clearing) -> Workload:
    """The same with the arguments that a preset gives its actions."""
    _, key, arguments = preset(preset_name).partition("configurations:\n")
    return replace(
        workload,
        name=f"{workload.name}-gentle",
        about=f"{workload.about}, as in the preset {preset_name}",
        configurations=key + arguments,
        clears=clears,
    )


_SEED = 20260801
_ONE_GANG = Sizes(nodes=1000, gangs=1, members=10_000)
_GANGS = Sizes(nodes=1000, gangs=500, members=20)
_SINGLES = Sizes(nodes=1000, gangs=10_000, members=1)
_FULL = Sizes(nodes=5000, gangs=500, members=20, running=2500)

_ALL = [
    Workload("W1-1x10000-1000n", "one gang of 10,000", _ONE_GANG, _empty, True),
    Workload("W2-500x20-1000n", "500 gangs of 20", _GANGS, _empty, True),
    Workload("W2-500x20-5000n", "500 gangs of 20", replace(_GANGS, nodes=5000), _empty, True),
    Workload("W3-10000x1-1000n", "10,000 single pods", _SINGLES, _empty, True),
    Workload("W3-10000x1-5000n", "10,000 single pods", replace(_SINGLES, nodes=5000), _empty, True),
    Workload("W4-idle-5000n-50000p", "nothing to do", Sizes(nodes=5000, running=2500), _idle, False),
    Workload("W5-full-5000n-500x20", "no room, 500 gangs wait", _FULL, _full, False),
    Workload("W5f-fragmented-5000n-500x20", "0.4 cores free on each node", _FULL, _fragmented, False),
    Workload(
        "W5-full-5000n-500x20-evict",
        "no room, evicting allowed",
        _FULL,
        _full,
        False,
        actions=EVICTING,
    ),
    Workload(
        "W5f-fragmented-5000n-500x20-evict",
        "0.4 cores free, evicting allowed",
        _FULL,
        _fragmented,
        False,
        actions=EVICTING,
    ),
    Workload(
        "W6-preempt-1000n-50x20",
        "50 urgent gangs",
        Sizes(nodes=1000, gangs=50, members=20, running=500),
        _preempting,
        False,
        actions=("enqueue", "allocate", "preempt"),
        clears=Clearing(0.5),
    ),
    Workload(
        "W7-reclaim-1000n-50x20",
        "50 gangs of the other queue",
        Sizes(nodes=1000, gangs=50, members=20, running=500),
        _reclaiming,
        False,
        actions=("enqueue", "allocate", "reclaim"),
        clears=Clearing(0.64, exactly=False),
    ),
    Workload(
        "W8-gpu-topology-1000n-60x16",
        "60 gangs, each below one switch",
        Sizes(nodes=1000, gangs=60, members=16, fewest_nodes=16),
        _racks,
        True,
        plugins=("network-topology-aware",),
    ),
    Workload(
        "W9-gpu-tiers-5000n",
        "66 gangs of 16 to 128 that fit, each below one switch",
        SwitchedSizes(nodes=5000, wanted=2504),
        _switched,
        True,
        plugins=("network-topology-aware",),
    ),
    Workload(
        "W9f-gpu-tiers-5000n-300-gangs",
        "300 gangs of 16 to 128, most find no room",
        SwitchedSizes(nodes=5000, wanted=99_999, phase="Inqueue"),
        _switched,
        None,
        plugins=("network-topology-aware",),
    ),
    Workload(
        "W10-claims-5000n-50x20",
        "50 gangs of 20, a device by claim for each pod",
        Sizes(nodes=5000, gangs=50, members=20),
        _claiming,
        True,
    ),
    Workload(
        "W11-local-claims-5000n-50x20",
        "50 gangs of 20, each pod with a claim on a local volume",
        Sizes(nodes=5000, gangs=50, members=20),
        _local_claims,
        True,
    ),
    Workload(
        "W11-provisioned-claims-5000n-50x20",
        "50 gangs of 20, each pod with a claim that a driver provisions",
        Sizes(nodes=5000, gangs=50, members=20),
        _provisioned_claims,
        True,
    ),
    Workload(
        "M-5000n-100000p", "memory: 100,000 running pods", Sizes(nodes=5000, running=5000), _idle, False
    ),
]
_MIXED = [
    Workload(
        workload.name + "-mixed",
        workload.about + ", ten kinds of pods",
        workload.sizes,
        _mixed,
        True,
        seed=_SEED,
        base=workload.name,
    )
    for workload in _ALL
    if workload.build is _empty
]

_GENTLE = [
    _gentle(workload, name, clears)
    for workload in _ALL
    for begin, name, clears in (
        ("W6", "high-priority", Clearing(0.34, exactly=False, together=TEAM)),
        ("W7", "fair-share", Clearing(0.34, exactly=False)),
    )
    if workload.name.startswith(begin)
]

WORKLOADS: dict[str, Workload] = {workload.name: workload for workload in [*_ALL, *_GENTLE, *_MIXED]}


def custom(nodes: int, pending: int, running: int, name: str = "custom") -> Workload:
    """Gangs of twenty that fit beside running jobs of twenty: for questions of growth."""
    sizes = Sizes(nodes=nodes, gangs=pending // TEAM, members=TEAM, running=running // TEAM)
    return Workload(name, "growth", sizes, _busy, True, cycles=2)
