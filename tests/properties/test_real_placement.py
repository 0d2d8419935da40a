"""With the real plugins, what the engine remembers of nodes is what it would find by looking at all of them afresh.

The plugins' own numbers have their oracles in tests/plugins; here it is the memory across moves, undos and cycles.
"""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.api import names
from stromboli.api.types.meta import LabelSelector, Requirement
from stromboli.api.types.node import Taint
from stromboli.api.types.pod import (
    Affinity,
    NodeAffinity,
    NodeSelectorTerm,
    PodAffinity,
    PodAffinityTerm,
    PreferredNodeTerm,
    PreferredPodTerm,
    Toleration,
    TopologySpreadConstraint,
)
from stromboli.engine.catalog import Action
from stromboli.engine.placement.node_placement import Place, Placement
from stromboli.engine.session import Session
from stromboli.model.status import Status
from stromboli.testing import World
from tests.manifests import Manifest, group, node, pod
from tests.properties.living import engine
from tests.properties.strategies import examples

WEB = LabelSelector({"app": "web"})
NEAR_WEB = PodAffinityTerm(WEB, names.ZONE)
EAST = NodeSelectorTerm((Requirement(names.ZONE, "In", ("east",)),))
SHAPES: tuple[dict[str, Any], ...] = (
    {"cpu": 1},
    {"cpu": 2, "memory": "2Gi", "gpu": 1},
    {"cpu": 0, "memory": 0},
    {"cpu": 1, "labels": {"app": "web"}},
    {"cpu": 1, "spec": {"nodeSelector": {names.ZONE: "east"}}},
    {"cpu": 1, "spec": {"tolerations": [Toleration("dedicated", "Exists")]}},
    {"spec": {"affinity": Affinity(NodeAffinity(preferred=(PreferredNodeTerm(5, EAST),)))}},
    {"spec": {"affinity": Affinity(pod_affinity=PodAffinity((NEAR_WEB,)))}},
    {"spec": {"affinity": Affinity(pod_anti_affinity=PodAffinity((NEAR_WEB,)))}, "labels": {"app": "web"}},
    {"spec": {"affinity": Affinity(pod_affinity=PodAffinity(preferred=(PreferredPodTerm(7, NEAR_WEB),)))}},
    {
        "spec": {
            "affinity": Affinity(pod_anti_affinity=PodAffinity(preferred=(PreferredPodTerm(7, NEAR_WEB),)))
        }
    },
    {
        "labels": {"app": "web"},
        "spec": {
            "topologySpreadConstraints": [TopologySpreadConstraint(1, names.ZONE, "DoNotSchedule", WEB)]
        },
    },
    {
        "labels": {"app": "web"},
        "spec": {
            "topologySpreadConstraints": [TopologySpreadConstraint(1, names.HOSTNAME, "ScheduleAnyway", WEB)]
        },
    },
)


def a_node(number: int, chance: random.Random) -> Manifest:
    zone = chance.choice(("east", "west", ""))
    return node(
        f"n{number}",
        cpu=chance.choice((2, 4, 16)),
        memory=chance.choice(("4Gi", "32Gi")),
        pods=chance.choice((3, 110)),
        gpu=chance.choice((0, 2)),
        labels={names.ZONE: zone} if zone else {},
        spec={
            "taints": [Taint("dedicated", "x", chance.choice(("NoSchedule", "PreferNoSchedule")))]
            if chance.random() < 0.3
            else [],
            "unschedulable": chance.random() < 0.1,
        },
    )


class Play:
    """An action that places, keeps and takes back at random, and looks everything up twice."""

    def __init__(self, chance: random.Random):
        self.chance = chance
        self.pods_made = 0
        self.world = World().add(group("g"))

    def pod(self, **more: Any) -> Manifest:
        self.pods_made += 1
        return pod(f"g-x-{self.pods_made}", "g", **{"memory": "1Gi", **self.chance.choice(SHAPES), **more})

    def sync(self) -> None:
        """Between cycles nodes come and change, pods come and go."""
        cluster, chance = self.world.cluster, self.chance
        for number in range(5):
            if f"n{number}" not in cluster.nodes or chance.random() < 0.1:
                self.world.add(a_node(number, chance))
        for _ in range(chance.randrange(8)):
            self.world.add(self.pod())
        for _ in range(chance.randrange(3)):
            self.world.add(self.pod(on=f"n{chance.randrange(5)}", terminating=chance.random() < 0.3))
        for task in list(cluster.tasks.values()):
            if chance.random() < 0.1:
                self.world.remove(pod(task.name))

    def run(self, session: Session) -> None:
        for _ in range(self.chance.randrange(1, 5)):
            with session.statement() as trial:
                pending = [task for task in session.cluster.tasks.values() if task.status is Status.PENDING]
                for task in self.chance.sample(pending, min(len(pending), 6)):
                    resource_fit = self.chance.random() < 0.8
                    place = session.place(task, resource_fit=resource_fit)
                    afresh = Placement(session.rules)
                    refused = afresh.refused(task, len(session.cluster.columns))
                    again = refused or afresh.find(session.cluster, task, resource_fit=resource_fit)
                    assert _comparable(place) == _comparable(again)
                    if isinstance(place, Place):
                        trial.assign(task, place)
                if self.chance.random() < 0.5:
                    trial.keep()


def _comparable(place: Any) -> Any:
    return place if isinstance(place, Place) else (place.message, place.reasons)


@pytest.mark.parametrize("tiers", ["predicates, nodeorder, binpack", "predicates, nodeorder", "binpack"])
@given(seed=st.integers(0, 2**64))
@examples(30)
def test_what_is_remembered_equals_what_is_found_afresh(tiers: str, seed: int) -> None:
    play = Play(random.Random(seed))
    action = Action("play", play.run)
    alive = engine(tiers, actions="play", action_functions=[action])
    for _ in range(3):
        play.sync()
        assert alive.cycle(play.world.cluster, 0.0).lost is None
