"""Objects of any magnitude and count: scores and orders of all stock plugins stay finite, and others are served."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stromboli.api import names
from stromboli.api.errors import BadObject
from stromboli.engine.cycle import Engine, Outcome
from stromboli.engine.placement.node_functions import Nodes, scored
from stromboli.extensions import load_catalog
from stromboli.model.node_usage import NodeUsage
from stromboli.policy.policy import load_policy
from tests.manifests import Manifest, group, hyper_node, node, pod, policy, priority_class, queue, quota
from tests.properties.living import LivingWorld, binds
from tests.properties.strategies import examples

CATALOG = load_catalog()
ACTIONS = "enqueue, allocate, backfill, consolidate, preempt, reclaim, shuffle, gangpreempt, gangreclaim"
STRATEGIES = {
    "resources": {"cpu": {"type": "MostAllocated", "weight": 3}, "memory": {"type": "LeastAllocated"}}
}
SCARCE = {"sra": {"enable": True, "resources": names.NVIDIA_GPU, "weight": 5}}
RESCHEDULING = {
    "interval": "0s",
    "metricsPeriod": "10m",
    "strategies": [{"name": "lowNodeUtilization", "params": {"thresholds": {"cpu": 20}}}],
}
NODES: tuple[Any, ...] = (
    "predicates nodeorder binpack overcommit resourcequota extender network-topology-aware",
    ("resource-strategy-fit", {**STRATEGIES, **SCARCE}),
    ("nodegroup", {"strict": False}),
    ("usage", {"thresholds": {"cpu": 100, "mem": 100}}),
    ("rescheduling", RESCHEDULING),
    ("fairshare", {"betweenQueues": True}),
    "network-topology-aware numa-aware task-topology",
    ("deviceshare", {"deviceshare.VGPUEnable": True, "deviceshare.ScheduleWeight": 10}),
)
FIRST_TIER = "priority gang conformance pdb cdp | "
POLICIES = {
    "proportion": policy(ACTIONS, FIRST_TIER + "sla drf proportion", *NODES),
    "capacity": policy(ACTIONS, FIRST_TIER + "sla tdm capacity", *NODES),
    "hierarchies": policy(
        ACTIONS,
        FIRST_TIER + "sla",
        {"name": "drf", "enableHierarchy": True},
        {"name": "capacity", "enableHierarchy": True},
        *NODES,
    ),
    "packing": policy(
        ACTIONS,
        FIRST_TIER + "proportion predicates deviceshare backfill-reservation",
        "fgd bestfit dotprod gpu-packing gpu-clustering random",
    ),
}
ALL_PLUGINS = {
    entry["name"]
    for text in POLICIES.values()
    for tier in json.loads(text)["tiers"]
    for entry in tier["plugins"]
}

COUNTS = (0, 1, 40, 1030)
TERMS = (0, 1, 7, 50)
"""Of spread constraints, and of terms of pod affinity: a pod with more than a hundred in all is left out."""
INT32 = (-(2**31), -1, 0, 1, 100, 2**31 - 1)
QUANTITIES = (
    "0",
    "1n",
    "1",
    "100m",
    "4",
    "1e15",
    "9223372036854775",
    "9223372036854775807",
    "1e36",
    "-1",
    "64Ei",
)
DURATIONS = ("", "1ns", "-1h", "2562047h", "1e9h", "x")
NUMBERS = ("0", "1", "-1", "9223372036854775807", "1e308", "1e400", "nan", "50%", "999999999999999999%")


class Extremes:
    """Draws whatever an API server could hand out; a seed instead of many draws makes it quick."""

    def __init__(self, seed: int):
        self.chance = random.Random(seed)

    def of(self, values: Any) -> Any:
        return self.chance.choice(values)

    def amounts(self) -> dict[str, str]:
        named = ("cpu", "memory", names.NVIDIA_GPU, "ephemeral-storage", "example.com/thing")
        return {name: self.of(QUANTITIES) for name in named if self.chance.random() < 0.6}

    def selector(self) -> Manifest:
        return self.of(
            (
                {},
                {"matchLabels": {"app": "web"}},
                {"matchExpressions": [{"key": "app", "operator": "Exists"}]},
            )
        )

    def pod_term(self) -> Manifest:
        return {
            "labelSelector": self.selector(),
            "topologyKey": self.of((names.HOSTNAME, names.ZONE, "none")),
        }

    def spreads(self) -> list[Manifest]:
        count, key = self.of(TERMS), self.of(("rack{}", names.HOSTNAME))
        return [
            {
                "maxSkew": self.of(INT32),
                "topologyKey": key.format(number),
                "whenUnsatisfiable": self.of(
                    ("ScheduleAnyway", "ScheduleAnyway", "ScheduleAnyway", "DoNotSchedule")
                ),
                "labelSelector": self.selector(),
                "minDomains": self.of((None, 1, 2**31 - 1)),
            }
            for number in range(count)
        ]

    def affinity(self) -> Manifest:
        term = {"matchExpressions": [{"key": names.HOSTNAME, "operator": "In", "values": ["n0"]}]}
        pods = [{"weight": self.of(INT32), "podAffinityTerm": self.pod_term()} for _ in range(self.of(TERMS))]
        preferred = "preferredDuringSchedulingIgnoredDuringExecution"
        return {
            "nodeAffinity": {
                preferred: [{"weight": self.of(INT32), "preference": term} for _ in range(self.of(COUNTS))]
            },
            "podAffinity": {preferred: pods[::2]},
            "podAntiAffinity": {preferred: pods[1::2]},
        }

    def spec(self) -> Manifest:
        container = {"name": "c", "image": self.of(("big", "small")), "resources": {"limits": self.amounts()}}
        toleration = {"key": "k", "operator": "Exists", "effect": self.of(("", "NoSchedule"))}
        spec: Manifest = {
            "affinity": self.affinity(),
            "topologySpreadConstraints": self.spreads(),
            "tolerations": [toleration] * self.of(COUNTS),
            "initContainers": [container] * self.of(COUNTS),
        }
        return {key: value for key, value in spec.items() if self.chance.random() < 0.7}

    def annotations(self) -> dict[str, str]:
        weights = json.dumps({"cpu": self.of((0, 1, -1, 2**63 - 1, -(2**63))), "memory": self.of((1, 2**62))})
        return {
            names.RESOURCE_STRATEGY_SCORING_TYPE: self.of(("MostAllocated", "LeastAllocated")),
            names.RESOURCE_STRATEGY_WEIGHT: weights,
            names.COOLDOWN_TIME: self.of(DURATIONS),
            names.JDB_MIN_AVAILABLE: self.of(NUMBERS),
        }

    def labels(self) -> dict[str, str]:
        return {"app": "web"} | {f"l{number}": "x" for number in range(self.of(COUNTS))}

    def pods(self) -> Iterator[Manifest]:
        """Of a job "bad": waiting ones, and some that run already."""
        for number in range(3):
            yield pod(
                f"bad-x-{number}",
                "bad",
                on=self.of(("", "", "n0")),
                priority=self.of(INT32),
                labels=self.labels(),
                annotations=self.annotations(),
                spec=self.spec(),
                **{
                    "cpu": self.of(QUANTITIES),
                    "memory": self.of(QUANTITIES),
                    "gpu": self.of(("", *QUANTITIES)),
                },
            )

    def user_objects(self) -> Iterator[Manifest]:
        yield priority_class("extreme", self.of(INT32))
        yield group(
            "bad",
            self.of((0, 1, 3, 2**31 - 1)),
            queue="research",
            minResources=self.of((None, self.amounts())),
            priorityClassName="extreme",
            phase=self.of(("Inqueue", "Pending")),
            networkTopology=self.of(
                (None, {"mode": "soft"}, {"highestTierAllowed": self.of((0, 1, 2**31 - 1))})
            ),
            annotations={
                names.SLA_WAITING_TIME: self.of(DURATIONS),
                names.JDB_MAX_UNAVAILABLE: self.of(NUMBERS),
            },
        )
        yield from self.pods()

    def queue(self, name: str) -> Manifest:
        history = {"v": 1, "at": 0.0, "queue": [1e18, 1e18], "users": {"default": [1e18, 0.0]}}
        return queue(
            name,
            weight=self.of((1, 65535)),
            priority=self.of((0, 1, 2**31 - 1)),
            capability=self.of(({}, self.amounts())),
            deserved=self.of(({}, self.amounts())),
            guarantee=self.of(({}, {"resource": self.amounts()})),
            annotations={
                names.HIERARCHY: f"root/{name}",
                names.HIERARCHY_WEIGHTS: f"1/{self.of(NUMBERS)}",
                names.FAIR_SHARE: json.dumps(history),
            },
        )

    def admin_objects(self) -> Iterator[Manifest]:
        yield from map(self.queue, ("root", "default", "research"))
        for number in range(3):
            sizes = {
                "cpu": self.of(QUANTITIES),
                "memory": self.of(QUANTITIES),
                "gpu": self.of(("", *QUANTITIES)),
            }
            oversubscribed = {
                names.OVERSUBSCRIPTION_CPU: self.of(NUMBERS),
                names.OVERSUBSCRIPTION_MEMORY: self.of(NUMBERS),
            }
            extreme = node(f"n{number}", annotations=oversubscribed, **sizes)
            images = [{"names": ["big:latest"], "sizeBytes": self.of((-1, 0, 2**63 - 1))}] * 40
            yield {**extreme, "status": {**extreme["status"], "images": images}}
        yield quota("q", self.amounts(), self.amounts())
        for number in range(3):
            nodes, children = (f"n{self.of((0, 1, 9))}",), (f"h{self.of((0, 1, 2))}",)
            yield hyper_node(
                f"h{number}", self.of((0, 1, 2**31 - 1)), nodes=nodes, children=self.of(((), children))
            )


def ordinary_objects() -> Iterator[Manifest]:
    """A small cluster with a job of another user, which has room."""
    yield from (queue("root"), queue("default"), queue("research"))
    for number in range(4):
        racks = range(1030 if number % 2 else 0)
        labels = {names.ZONE: f"z{number % 2}"} | {f"rack{each}": f"r{number}" for each in racks}
        yield node(f"n{number}", cpu=8, gpu=1, labels=labels)
    yield group("good", 2)
    for number in range(2):
        yield pod(f"good-x-{number}", "good", labels={"app": "web"})


def world_of(text: str, manifests: Iterator[Manifest]) -> LivingWorld:
    """A world without the objects that cannot be used, as the mirror leaves them out."""
    world = LivingWorld([], lambda: Engine(load_policy(text, CATALOG), CATALOG))
    for manifest in manifests:
        known = dict(world.objects)
        try:
            world.put(manifest)
        except BadObject:
            counted = world.intake.cluster.tasks  # a running pod counts with what can be read of it
            world.objects = known | {
                key: obj for key, obj in world.objects.items() if obj.metadata.uid in counted
            }
    return world


def assert_finite(outcome: Outcome) -> None:
    """Nobody failed, and no key of an order is infinite."""
    session = outcome.session
    assert outcome.lost is None, outcome.lost
    assert [failure.message for failure in session.failures] == []
    assert outcome.set_aside == ()
    rules, cluster = session.rules, session.cluster
    for queue_ in cluster.queues.values():
        assert_finite_key(rules.queue_order(queue_))
    for job in session.jobs():
        assert_finite_key(rules.job_order(job))
        for task in job.tasks.values():
            assert_finite_key(rules.task_order(task))
            nodes = Nodes(cluster.columns)
            for score in rules.node_scores(task):
                assert np.isfinite(scored(score, task, nodes) * score.weight).all()


def assert_finite_key(key: Any) -> None:
    if isinstance(key, tuple):
        for part in key:
            assert_finite_key(part)
    elif isinstance(key, float):
        assert math.isfinite(key)


def test_all_stock_plugins_are_tried() -> None:
    assert set(CATALOG.plugins) == ALL_PLUGINS


@pytest.mark.parametrize("name", POLICIES)
@given(seed=st.integers(0, 2**32))
@example(seed=21)
@example(seed=205)
@examples(8)
def test_whatever_a_user_asks_for_scores_stay_finite_and_others_are_served(name: str, seed: int) -> None:
    extremes = Extremes(seed)
    world = world_of(POLICIES[name], iter([*ordinary_objects(), *extremes.user_objects()]))
    bound = []
    for _ in range(2):
        outcome = world.step()
        assert_finite(outcome)
        bound += [pod for pod, _ in binds(outcome.decisions)]
    assert {"default/good-x-0", "default/good-x-1"} <= set(bound)


@pytest.mark.parametrize("name", POLICIES)
@given(seed=st.integers(0, 2**32))
@example(seed=22)
@example(seed=208)
@examples(8)
def test_whatever_nodes_and_queues_say_scores_stay_finite(name: str, seed: int) -> None:
    extremes = Extremes(seed)
    manifests = [*ordinary_objects(), *extremes.admin_objects(), *extremes.user_objects()]
    world = world_of(POLICIES[name], iter(manifests))
    world.intake.cluster.usage = {
        f"n{number}": NodeUsage(extremes.of((-1.0, 0.0, 50.0, 1e308)), extremes.of((0.0, 1e308)), world.now)
        for number in range(3)
    }
    for _ in range(2):
        assert_finite(world.step())
