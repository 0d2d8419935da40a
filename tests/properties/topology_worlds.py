"""Random small clusters with a tree of HyperNodes, and gangs that keep to its tiers.

Made from a seed, so that a failure is told by one number.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable
from itertools import count
from typing import Any, NamedTuple

import msgspec
from hypothesis import strategies as st

from stromboli.api import names
from stromboli.api.types.meta import Object
from stromboli.api.types.node import Node, Taint
from stromboli.api.types.scheduling import HyperNode, NetworkTopology, PodGroup
from tests.manifests import decoded, group, hyper_node, node, pod, queue, sub_group_policy

_changed = msgspec.structs.replace

SIZES: tuple[dict[str, Any], ...] = (
    {"cpu": 1, "memory": "1Gi"},
    {"cpu": 2, "memory": "1Gi"},
    {"cpu": 1, "memory": "3Gi"},
)
TAINT = Taint("dedicated", "team", "NoSchedule")


def topology_world(seed: int, waiting: int = 3) -> list[Object]:
    """Nodes below switches of one to three tiers, some of them taken, and gangs that want in."""
    chance = random.Random(seed)
    nodes = [f"n{number}" for number in range(chance.randint(3, 9))]
    limit = {"capability": {"cpu": str(chance.randint(2, 8))}} if chance.random() < 0.2 else {}
    objects: list[Object] = [decoded(queue("default", **limit)), decoded(queue("root"))]
    for name in nodes:
        spec = {"taints": (TAINT,)} if chance.random() < 0.1 else {}
        cpu = chance.choice((2, 3, 4))
        objects.append(decoded(node(name, cpu=cpu, memory="8Gi", created=chance.randint(0, 1), spec=spec)))
    objects += _tree(chance, nodes)
    serial = count()
    for number in range(chance.randint(0, 2)):
        objects.append(decoded(group(f"old{number}", 1, phase="Running")))
        for where in chance.sample(nodes, chance.randint(1, len(nodes) // 2)):
            dying = chance.random() < 0.3
            shape = chance.choice(SIZES)
            objects.append(
                decoded(pod(f"pod-x-{next(serial)}", f"old{number}", on=where, terminating=dying, **shape))
            )
    for number in range(waiting):
        objects += _gang(chance, f"new{number}", nodes, serial)
    return objects


def topology_worlds() -> st.SearchStrategy[list[Object]]:
    return st.builds(topology_world, st.integers(0, 2**32), st.integers(1, 4))


def _tree(chance: random.Random, nodes: list[str]) -> list[Object]:
    """Leaves, switches above them, and maybe a spine; now and then a node or a switch hangs somewhere else."""
    left, leaves, objects = list(nodes), [], []
    while left:
        size = chance.randint(1, 3)
        members, left = left[:size], left[size:]
        if chance.random() < 0.9:
            leaves.append(f"leaf-{len(leaves)}")
            objects.append(hyper_node(leaves[-1], 1, nodes=members, tier_name="rack"))
    below, tier = leaves, 1
    while len(below) > 1 and tier < chance.choice((1, 3, 3)):
        tier += 1
        above = []
        for start in range(0, len(below), 2):
            if chance.random() < 0.9:
                above.append(f"tier{tier}-{len(above)}")
                extra = chance.sample(nodes, 1) if chance.random() < 0.05 else ()
                children = below[start : start + 2]
                objects.append(hyper_node(above[-1], tier, children=children, nodes=extra))
        below = above
    return [decoded(manifest) for manifest in objects]


def _gang(chance: random.Random, name: str, nodes: list[str], serial: Iterable[int]) -> Iterable[Object]:
    numbers = iter(serial)
    size = chance.randint(1, 5)
    minimum = chance.choice((size, size, max(size - 1, 1), 1))
    shape, sub_groups = chance.choice(SIZES), chance.random() < 0.35
    policy = sub_group_policy("slice", "slice", size=chance.randint(1, 2), least=chance.choice((0, 1, 2)))
    if topology := _topology(chance, 0.7):
        policy["networkTopology"] = topology
    yield decoded(
        group(
            name,
            minimum,
            minTaskMember=chance.choice(({}, {}, {"worker": 1, "ps": 1}, {"worker": 3})),
            minResources={"cpu": str(minimum)} if chance.random() < 0.3 else None,
            networkTopology=_topology(chance, 0.4 if sub_groups else 0.85),
            subGroupPolicy=(policy,) if sub_groups else (),
            created=chance.randint(0, 2),
        )
    )
    home = chance.choice(nodes)
    for _ in range(size):
        some = shape if chance.random() < 0.8 else chance.choice((*SIZES, {"cpu": 0}))
        yield decoded(
            pod(
                f"pod-x-{next(numbers)}",
                name,
                on=home if chance.random() < 0.08 else "",
                role=chance.choice(("worker", "worker", "ps")),
                labels={"slice": chance.choice("12")} if sub_groups and chance.random() < 0.9 else {},
                created=chance.randint(0, 2),
                **some,
            )
        )


def _topology(chance: random.Random, likely: float) -> dict[str, Any] | None:
    if chance.random() > likely:
        return None
    kind = chance.random()
    if kind < 0.25:
        return {"mode": "soft"}
    if kind < 0.4:
        return {"mode": "hard", "highestTierName": "rack"}
    return {"mode": "hard", "highestTierAllowed": chance.choice((1, 1, 2, 3))}


# -- a tree over any cluster


def shaped(objects: list[Object], chance: random.Random) -> list[Object]:
    """The same cluster with a tree of HyperNodes over its nodes, to which some groups must keep."""
    nodes = [obj.name for obj in objects if isinstance(obj, Node)]
    chance.shuffle(nodes)
    cut = chance.randint(1, max(1, len(nodes) - 1))
    leaves = [part for part in (nodes[:cut], nodes[cut:]) if part]
    tree = [hyper_node(f"s{number}", 1, nodes=part) for number, part in enumerate(leaves)]
    if chance.random() < 0.7:
        tree.append(hyper_node("top", 2, children=[f"s{number}" for number in range(len(leaves))]))
    return [*map(decoded, tree), *(_kept_together(obj, chance) for obj in objects)]


def _kept_together(obj: Object, chance: random.Random) -> Object:
    if not isinstance(obj, PodGroup) or chance.random() < 0.3:
        return obj
    policies = tuple(
        _changed(policy, network_topology=_required_topology(chance)) for policy in obj.spec.sub_group_policy
    )
    topology = _required_topology(chance) if not policies or chance.random() < 0.7 else None
    return _changed(obj, spec=_changed(obj.spec, network_topology=topology, sub_group_policy=policies))


def _required_topology(chance: random.Random) -> NetworkTopology:
    if chance.random() < 0.15:
        return NetworkTopology(mode="soft")
    return NetworkTopology(mode="hard", highest_tier_allowed=chance.choice((1, 1, 1, 2)))


# -- what must hold, from the objects alone


class PlacedPod(NamedTuple):
    """A pod of a gang where it holds room or is to get some."""

    node: str
    labels: dict[str, str]
    best_effort: bool


Placed = dict[str, dict[str, PlacedPod]]
"""By name of the gang, then of the pod."""


def torn_gangs(objects: Iterable[Object], held: Placed, chosen: Placed) -> list[str]:
    """Gangs and sub-groups that a choice spreads over more than any HyperNode of a tier that they allow."""
    network, torn = _Network(objects), []
    for gang in (each for each in network.groups if each.name in chosen):
        new, old = chosen[gang.name].values(), held.get(gang.name, {}).values()
        if network.is_torn(gang.spec.network_topology, new, old):
            torn.append(gang.name)
        for policy in gang.spec.sub_group_policy:
            (key,) = policy.match_label_keys
            for value in {placed.labels[key] for placed in new if key in placed.labels}:
                new_part, old_part = (
                    [placed for placed in pods if placed.labels.get(key) == value] for pods in (new, old)
                )
                if network.is_torn(policy.network_topology, new_part, old_part):
                    torn.append(f"{gang.name}/{value}")
    return torn


class _Network:
    """The nodes, HyperNodes and groups among the objects of a cluster."""

    def __init__(self, objects: Iterable[Object]):
        known = list(objects)
        self.groups = [obj for obj in known if isinstance(obj, PodGroup)]
        self._nodes = {obj.name for obj in known if isinstance(obj, Node)}
        self._hyper_nodes = {obj.name: obj for obj in known if isinstance(obj, HyperNode)}

    def is_torn(
        self, topology: NetworkTopology | None, new: Collection[PlacedPod], old: Collection[PlacedPod]
    ) -> bool:
        """Whether new pods leave the HyperNodes up to the highest tier that have the old ones (spec 01 7.4).

        If no such HyperNode has the old ones, new best-effort pods go anywhere (spec 02 4.1). Lost nodes say nothing,
        unless all old pods are on lost nodes: then no new pod may be placed.
        """
        where = {placed.node for placed in old}
        held = where & self._nodes or where
        divided = held <= self._nodes and not self._together(topology, held)
        gained = {placed.node for placed in new if not (divided and placed.best_effort)}
        return bool(gained) and not self._together(topology, held | gained)

    def _together(self, topology: NetworkTopology | None, nodes: set[str]) -> bool:
        if topology is None or topology.mode == names.TOPOLOGY_SOFT or not nodes:
            return True
        tier = topology.highest_tier_allowed
        if tier is None:
            tiers = [
                each.spec.tier
                for each in self._hyper_nodes.values()
                if each.spec.tier_name == topology.highest_tier_name
            ]
            tier = max(tiers, default=-1)
        top = max((each.spec.tier for each in self._hyper_nodes.values()), default=0) + 1
        return tier >= top or any(
            nodes <= self._below(name) & self._nodes
            for name, each in self._hyper_nodes.items()
            if each.spec.tier <= tier
        )

    def _below(self, name: str) -> set[str]:
        if name not in self._hyper_nodes:
            return set()
        below: set[str] = set()
        for member in self._hyper_nodes[name].spec.members:
            match = member.selector.exact_match
            assert match is not None
            below |= {match.name} if member.type == "Node" else self._below(match.name)
        return below
