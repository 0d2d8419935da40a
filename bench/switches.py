"""A GPU cluster below switches of four tiers, half of it taken, and gangs of all sizes that keep below a switch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from bench.manifests import GPU, Manifest, Request, gang, node, node_name

NODE: Request = {"cpu": "1", "memory": "2Gi", GPU: "8"}
"""A member takes all GPUs of a node."""
LEAF, BLOCK = 16, 128
"""Nodes below a switch of the first and of the second tier."""
SWITCHES = (LEAF, 8, 8, 5)
"""How many nodes, or switches of the tier below, a switch of each tier has."""
TAKEN = (
    (16, 16, 8, 8, 8, 8, 0, 0),
    (16, 12, 12, 8, 8, 8, 0, 0),
    (16, 16, 16, 12, 4, 0, 0, 0),
    (16, 8, 8, 8, 8, 8, 8, 0),
)
"""How many nodes below each leaf of a block run something; four kinds of blocks, half of each taken."""
MIX = ((150, 16, 1), (60, 32, 2), (30, 64, 2), (30, 128, 3), (30, 32, 0))
"""How many gangs, of how many members, below a switch of which tier; 0: as near as possible."""
TEAM = 16
"""Members of a gang that already runs."""


@dataclass(frozen=True, slots=True)
class SwitchedSizes:
    """How many nodes, and how many of them the waiting gangs want together, at most."""

    nodes: int
    wanted: int
    phase: str = "Pending"

    def scaled(self, factor: float) -> SwitchedSizes:
        return replace(self, nodes=max(LEAF, round(self.nodes * factor)), wanted=round(self.wanted * factor))

    def gangs(self) -> Iterator[tuple[int, int]]:
        """Members and tier of each gang that waits: all sizes by turns."""
        left = self.wanted
        turns = sorted(
            ((turn + 0.5) / count, size, tier) for count, size, tier in MIX for turn in range(count)
        )
        for _, size, tier in turns:
            if size > left:
                break
            left -= size
            yield size, tier

    def taken(self) -> list[int]:
        """The nodes on which something runs."""
        return [
            BLOCK * block + LEAF * leaf + place
            for block in range(self.nodes // BLOCK)
            for leaf, used in enumerate(TAKEN[block % len(TAKEN)])
            for place in range(used)
        ]

    @property
    def pending_pods(self) -> int:
        return sum(size for size, _ in self.gangs())

    @property
    def running_pods(self) -> int:
        return len(self.taken()) // TEAM * TEAM


def switched_cluster(sizes: SwitchedSizes) -> Iterator[Manifest]:
    """Nodes, switches, what runs and what waits."""
    for index in range(sizes.nodes):
        yield node(index)
    yield from switches([node_name(index) for index in range(sizes.nodes)], SWITCHES)
    taken = sizes.taken()
    for number in range(len(taken) // TEAM):
        hosts = taken[number * TEAM :]
        yield from gang(f"running-{number}", TEAM, NODE, host=hosts.__getitem__)
    for number, (size, tier) in enumerate(sizes.gangs()):
        topology = {"mode": "hard", "highestTierAllowed": tier} if tier else {"mode": "soft"}
        yield from gang(f"job-{number}", size, NODE, phase=sizes.phase, networkTopology=topology)


def switches(nodes: list[str], sizes: tuple[int, ...]) -> Iterator[Manifest]:
    """HyperNodes in tiers: so many nodes below a leaf, so many leaves below a switch of the second tier, and so on."""
    kind, below = "Node", nodes
    for tier, size in enumerate(sizes, 1):
        above = []
        for number, start in enumerate(range(0, len(below), size)):
            above.append(f"tier{tier}-{number:03d}")
            members = [
                {"type": kind, "selector": {"exactMatch": {"name": name}}}
                for name in below[start : start + size]
            ]
            yield {
                "apiVersion": "topology.volcano.sh/v1alpha1",
                "kind": "HyperNode",
                "metadata": {"name": above[-1]},
                "spec": {"tier": tier, "members": members},
            }
        kind, below = "HyperNode", above
