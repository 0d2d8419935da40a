"""How long gangs wait for a block of the network, with `keepBlocksWhole` and without, in virtual time.

    python -m bench.gang_stream [seeds [load ...]]

Gangs of 2 to 64 pods come at random, each pod on a node of its own, each gang below one switch of the lowest tier that
can hold it, for a random time. The load is what all of them ask for, of what the cluster has.
"""

from __future__ import annotations

import heapq
import math
import random
import sys
from collections.abc import Iterator
from statistics import mean
from typing import Any, NamedTuple

from bench.network_tree import hyper_nodes, node_text, policy
from stromboli.simulator.job_manifests import job_manifests
from stromboli.testing import World

WIDTHS = (16, 8)
"""Nodes of a leaf, leaves of a spine."""
NODES = 512
SIZES = {2: 0.25, 4: 0.2, 8: 0.2, 12: 0.1, 16: 0.1, 32: 0.08, 64: 0.07}
"""How many pods gangs have, and how frequent that is."""
LARGE = 32
MINUTES, WARM_UP, HORIZON = 60.0, 200.0, 1200.0
"""How long a gang runs on average; from when on gangs are counted; how long the stream is."""


class Gang(NamedTuple):
    comes: float
    size: int
    runs: float
    name: str


class Outcome(NamedTuple):
    """What became of the gangs of a stream that came after the warm-up."""

    gangs: int
    placed: int
    mean_wait: float
    large_wait: float
    large_p95: float
    used: float

    @classmethod
    def of(cls, waits: dict[Gang, float], placed: int, used: float) -> Outcome:
        large = sorted(wait for gang, wait in waits.items() if gang.size >= LARGE)
        return cls(len(waits), placed, mean(waits.values()), mean(large), large[len(large) * 95 // 100], used)


def stream(seed: int, load: float, nodes: int = NODES, horizon: float = HORIZON) -> Iterator[Gang]:
    """Gangs in the order in which they come: exponential gaps, lognormal run times."""
    chance = random.Random(seed)
    rate = load * nodes / (MINUTES * sum(size * share for size, share in SIZES.items()))
    now, number = chance.expovariate(rate), 0
    while now < horizon:
        (size,) = chance.choices(list(SIZES), list(SIZES.values()))
        yield Gang(now, size, chance.lognormvariate(math.log(MINUTES) - 0.5, 1.0), f"gang-{number}-w")
        now, number = now + chance.expovariate(rate), number + 1


class Stream:
    """A cluster on which gangs come, wait, run and end."""

    def __init__(self, text: str, nodes: int = NODES):
        self.nodes = nodes
        self.world = World(node_text(nodes), policy=text).add(*hyper_nodes(nodes, WIDTHS))
        self.waiting: dict[str, Gang] = {}
        self.ends: list[tuple[float, str]] = []
        self.waits: dict[Gang, float] = {}
        self._objects: dict[str, list[dict[str, Any]]] = {}
        self._busy = self._area = self._last = 0.0

    def run(self, gangs: Iterator[Gang], horizon: float = HORIZON, warm_up: float = WARM_UP) -> Outcome:
        coming = list(gangs)[::-1]
        while coming or self.ends:
            now = min(coming[-1].comes if coming else math.inf, self.ends[0][0] if self.ends else math.inf)
            if now > horizon:
                break
            self._count(now, warm_up)
            if coming and coming[-1].comes == now:
                self._come(coming.pop())
            else:
                self._end(heapq.heappop(self.ends)[1])
            self._decide(now)
        late = [gang for gang in self.waiting.values() if gang.comes >= warm_up]
        waits = {gang: wait for gang, wait in self.waits.items() if gang.comes >= warm_up}
        placed = len(waits)
        waits |= {gang: horizon - gang.comes for gang in late}
        return Outcome.of(waits, placed, self._area / (self.nodes * (self._last - warm_up)))

    def _count(self, now: float, warm_up: float) -> None:
        self._area += self._busy * max(now - max(self._last, warm_up), 0.0)
        self._last = now

    def _come(self, gang: Gang) -> None:
        tier = 1 if gang.size <= WIDTHS[0] else 2
        group = {"networkTopology": {"mode": "hard", "highestTierAllowed": tier}}
        need = {"nvidia.com/gpu": 8 * gang.size}
        objects = job_manifests(
            gang.name, pods=gang.size, cpu=60, gpu=8, group=group, min_resources=need, phase="Inqueue"
        )
        self.world.add(*objects)
        self._objects[gang.name] = objects
        self.waiting[gang.name] = gang

    def _end(self, name: str) -> None:
        objects = self._objects.pop(name)
        self._busy -= len(objects) - 1
        for manifest in reversed(objects):
            self.world.remove(manifest)

    def _decide(self, now: float) -> None:
        result = self.world.step(now=self.world.rehearsal.now() + 1)
        for key in result.bound_per_job:
            gang = self.waiting.pop(key.removeprefix("default/"))
            self.waits[gang] = now - gang.comes
            self._busy += gang.size
            heapq.heappush(self.ends, (now + gang.runs, gang.name))


POLICIES = {
    "plain binpack": policy(),
    "keepBlocksWhole": policy(keepBlocksWhole=True),
    "and ranksSideBySide": policy(keepBlocksWhole=True, ranksSideBySide=True),
}


def main(seeds: int = 10, *loads: float) -> None:
    print(
        "| Load | Policy | Seed | Gangs | Placed | Mean wait | Wait of 32 and 64 | 95th percentile | Used |"
    )
    print("|---" * 9 + "|")
    for load in loads or (0.85, 0.95):
        outcomes: dict[str, list[Outcome]] = {name: [] for name in POLICIES}
        for seed in range(seeds):
            for name, text in POLICIES.items():
                outcomes[name].append(Stream(text).run(stream(seed, load)))
                _row(load, name, str(seed), outcomes[name][-1])
        for name, each in outcomes.items():
            _row(load, name, "mean", Outcome(*map(mean, zip(*each, strict=True))))  # type: ignore[arg-type]


def _row(load: float, name: str, seed: str, outcome: Outcome) -> None:
    gangs, placed, *waits, used = outcome
    minutes = " | ".join(f"{wait:.1f}" for wait in waits)
    print(f"| {load} | {name} | {seed} | {gangs:.0f} | {placed:.0f} | {minutes} | {used:.1%} |", flush=True)


if __name__ == "__main__":
    main(*[int(text) for text in sys.argv[1:2]], *map(float, sys.argv[2:]))
