"""A workload: a cluster, a policy, and what a cycle must decide about it."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, BinaryIO

import msgspec

from bench.manifests import Manifest, queue
from bench.switches import SwitchedSizes
from bench.worlds import Sizes
from stromboli.policy.presets import CHART

STOCK = ("enqueue", "allocate", "backfill")
EVICTING = ("enqueue", "allocate", "preempt", "reclaim", "backfill")

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
    only: int | None = None
    """Room is made for so many pending pods and no more; None: for all."""

    def most(self, pending: int) -> int:
        """How many may go for so many pods."""
        return math.ceil(self.victims * pending / self.together) * self.together

    def problem(self, pending: int, evicted: int, held: int) -> str:
        """What is wrong with what a cycle decided; empty if nothing is."""
        pending = pending if self.only is None else self.only
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
    """The plain workload that this one is compared with: what may cost more, and how much, is in `targets`."""
    clears: Clearing = Clearing()
    """Whom it evicts."""
    configurations: str = ""
    """Arguments of actions, as text."""
    tiers: str = CHART
    """The policy without arguments of actions, as text; `{actions}` stands for them."""
    cycles: int = 6
    counts_later: bool = False
    """Whether targets are for the cycles after the first, with nothing new unless `arriving`."""
    arriving: bool = False
    """Whether a single pod comes before each later cycle."""

    @property
    def policy(self) -> str:
        """The text of the configuration file."""
        more = "".join(f"  - name: {name}\n" for name in self.plugins)
        return self.tiers.format(actions=", ".join(self.actions)) + more + self.configurations

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
