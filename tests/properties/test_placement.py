"""The fast placement chooses what the blackboard chooses, whatever happened to the nodes in between."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.api import names
from stromboli.engine.placement import node_placement, usage_evaluation
from stromboli.engine.placement.node_functions import Check, Column, NodeFilter, Nodes, NodeScore
from stromboli.engine.placement.node_placement import Place, Placement
from stromboli.engine.placement.verdict import Verdict
from stromboli.engine.plugin import Plugin
from stromboli.engine.rules import Rules
from stromboli.model.cluster import Change, Cluster
from stromboli.model.node_columns import Ints, Node
from stromboli.model.shape import VIEW_PODS
from stromboli.model.status import Status
from stromboli.model.task import Task
from stromboli.testing import World
from tests.manifests import Manifest, group, node, pod, task_named
from tests.properties import naive
from tests.properties.naive import NaiveFilter, NaiveScore
from tests.properties.strategies import SHAPES, examples


@dataclass
class Weather:
    """Something outside the cluster that filters and scores may look at."""

    sunny: bool = True
    cycle: int = 0


@dataclass
class Function:
    """A filter or a score, for the engine and for the blackboard."""

    fast: NodeFilter | NodeScore
    slow: NaiveFilter | NaiveScore


def zoo(cluster: Cluster, weather: Weather) -> list[Function]:
    """Every kind of node function: all that they may read, with and without version, normalised or not."""

    def web(task: Task) -> bool:
        return task.label_set.labels.get("app") == "web"

    def web_by_zone(nodes: Nodes) -> Column:
        tally = cluster.pod_counts.get("web", web)
        sums, codes = tally.domain_sums(nodes.columns, names.ZONE)
        whole = np.where(codes >= 0, np.append(sums, 0)[codes], 0)
        return nodes.pick(whole)

    def web_near(node: Node) -> int:
        if not naive.zone(node):
            return 0
        return sum(
            web(task)
            for other in naive.ranked(cluster)
            if naive.zone(other) == naive.zone(node)
            for task in naive.seen(other)
        )

    def web_version(task: Task) -> int:
        return cluster.pod_counts.get("web", web).version

    def filter_of(
        passes: Callable[[Task, Nodes], Column], slow: Callable[[Task, Node], bool], **more: Any
    ) -> Function:
        fast = NodeFilter(lambda task, nodes: [Check(passes(task, nodes), "no")], plugin="zoo", **more)
        return Function(fast, NaiveFilter(slow))

    def score_of(
        score: Callable[[Task, Nodes], Column], slow: Callable[[Task, Node], float], **more: Any
    ) -> Function:
        finish = NaiveScore(slow, more.get("weight", 1.0))
        if more.get("finish"):
            finish.finish = highest_is_100_slow
        return Function(NodeScore(score, plugin="zoo", **more), finish)

    def highest_is_100(task: Task, nodes: Nodes, raw: Column, candidates: Column) -> Column:
        top = raw[candidates].max()
        return raw * 100 // top if top > 0 else raw

    def highest_is_100_slow(raw: dict[Node, float]) -> dict[Node, float]:
        top = max(raw.values())
        return {node: value * 100 // top if top > 0 else value for node, value in raw.items()}

    return [
        filter_of(
            lambda task, nodes: nodes.each(lambda n: n.labels.get(names.ZONE) != "west", bool),
            lambda task, node: naive.zone(node) != "west",
            reads="static",
        ),
        filter_of(
            lambda task, nodes: 4 * (nodes.used[0] + task.request.get(0, 0)) <= 3 * nodes.allocatable[0],
            lambda task, n: 4 * (naive.used(n, 0) + task.request.get(0, 0)) <= 3 * n.allocatable[0],
            reads="usage",
        ),
        filter_of(
            lambda task, nodes: nodes.view[VIEW_PODS] < 4,
            lambda task, node: len(naive.seen(node)) < 4,
            reads="usage",
        ),
        filter_of(
            lambda task, nodes: web_by_zone(nodes) < 3, lambda task, node: web_near(node) < 3, reads="pods"
        ),
        filter_of(
            lambda task, nodes: web_by_zone(nodes) < 2,
            lambda task, node: web_near(node) < 2,
            reads="pods",
            version=web_version,
        ),
        filter_of(
            lambda task, nodes: nodes.each(lambda n: weather.sunny or n.name != "n0", bool),
            lambda task, node: weather.sunny or node.name != "n0",
        ),
        filter_of(
            lambda task, nodes: nodes.each(lambda n: weather.cycle % 2 == 0 or n.name != "n1", bool),
            lambda task, node: weather.cycle % 2 == 0 or node.name != "n1",
            reads="clock",
        ),
        score_of(
            lambda task, nodes: 7 * nodes.each(lambda n: n.labels.get(names.ZONE) == "east"),
            lambda task, node: 7 * (naive.zone(node) == "east"),
            reads="static",
        ),
        score_of(
            lambda task, nodes: nodes.idle[0] * 100 // np.maximum(nodes.allocatable[0], 1),
            lambda task, node: naive.idle(node, 0) * 100 // max(int(node.allocatable[0]), 1),
            reads="usage",
        ),
        score_of(
            lambda task, nodes: nodes.used[1] // 2**28,
            lambda task, node: naive.used(node, 1) // 2**28,
            reads="usage",
            weight=3,
            batch=True,
        ),
        score_of(
            lambda task, nodes: nodes.releasing[0] - nodes.pipelined[0],
            lambda task, node: naive.leaving(node, 0) - naive.promised(node, 0),
            reads="usage",
        ),
        score_of(
            lambda task, nodes: nodes.view[VIEW_PODS],
            lambda task, node: len(naive.seen(node)),
            reads="usage",
            finish=highest_is_100,
            weight=2,
        ),
        score_of(
            lambda task, nodes: nodes.each(lambda n: int(n.name[1:]) % 3),
            lambda task, node: int(node.name[1:]) % 3,
            reads="static",
            finish=highest_is_100,
        ),
        score_of(
            lambda task, nodes: web_by_zone(nodes),
            lambda task, node: web_near(node),
            reads="pods",
            version=web_version,
            finish=highest_is_100,
        ),
        score_of(
            lambda task, nodes: -5 * web_by_zone(nodes),
            lambda task, node: -5 * web_near(node),
            reads="pods",
        ),
        score_of(
            lambda task, nodes: nodes.each(lambda n: (n.name == "n2") * (30 if weather.sunny else -30)),
            lambda task, node: (node.name == "n2") * (30 if weather.sunny else -30),
        ),
        score_of(
            lambda task, nodes: nodes.each(lambda n: (int(n.name[1:]) + weather.cycle) % 2),
            lambda task, node: (int(node.name[1:]) + weather.cycle) % 2,
            reads="clock",
        ),
    ]


class Zoo(Plugin):
    """Filters and scores as the test picked them."""

    name = "zoo"
    filters: tuple[NodeFilter, ...] = ()
    scores: tuple[NodeScore, ...] = ()

    def node_filters(self, task: Task) -> tuple[NodeFilter, ...]:
        return self.filters

    def node_scores(self, task: Task) -> tuple[NodeScore, ...]:
        return self.scores


class Drama:
    """Random events between placements; every placement is compared with the blackboard's."""

    def __init__(self, chance: random.Random):
        self.chance = chance
        self.world = World().add(group("g"), *(self.node(number) for number in range(chance.randrange(1, 6))))
        self.cluster = self.world.cluster
        self.weather = Weather()
        functions = zoo(self.cluster, self.weather)
        picked = chance.sample(functions, chance.randrange(len(functions) + 1))
        self.filters = [function for function in picked if isinstance(function.fast, NodeFilter)]
        self.scores = [function for function in picked if isinstance(function.fast, NodeScore)]
        plugin = Zoo(None, {})
        plugin.filters = tuple(function.fast for function in self.filters)
        plugin.scores = tuple(
            replace(function.fast, of_some_nodes=chance.random() < 0.5)
            for function in self.scores
            if isinstance(function.fast, NodeScore)
        )
        self.placement = Placement(Rules([[plugin]]))
        self.moves: list[Change] = []
        self.pods_made = 0
        self.rows: dict[tuple[int, bytes], Ints] = {}

    def node(self, number: int) -> Manifest:
        zone = self.chance.choice(("east", "west", ""))
        return node(
            f"n{number}",
            cpu=self.chance.choice((2, 4, 16)),
            memory=self.chance.choice(("4Gi", "32Gi")),
            pods=self.chance.choice((3, 110)),
            gpu=self.chance.choice((0, 2)),
            labels={names.ZONE: zone} if zone else {},
            created=self.chance.randrange(2),
        )

    def a_pod(self, **more: Any) -> Manifest:
        self.pods_made += 1
        shape = self.chance.choice((SHAPES[0], SHAPES[0], *SHAPES))
        return pod(f"p-{self.pods_made}", "g", **{**shape, **more})

    def place_some(self) -> None:
        """Several of one shape in a row, as gangs are placed."""
        shape = self.chance.choice((SHAPES[0], *SHAPES))
        within = self.within()
        for _ in range(self.chance.randrange(1, 6)):
            self.pods_made += 1
            self.world.add(pod(f"p-{self.pods_made}", "g", **shape))
            task = task_named(self.cluster, f"p-{self.pods_made}")
            place = self.compare(task, within, self.chance.random() < 0.8)
            if isinstance(place, Place):
                status = Status.ALLOCATED if place.now else Status.PIPELINED
                self.move(task, status, place.node)

    def within(self) -> set[str] | None:
        if self.chance.random() < 0.7:
            return None
        return {name for name in self.cluster.nodes if self.chance.random() < 0.6}

    def compare(self, task: Task, within: set[str] | None, resource_fit: bool) -> Place | Verdict:
        mask = None
        if within is not None:
            mask = np.array([node.name in within for node in self.cluster.columns.nodes])
        fast = self.placement.find(self.cluster, task, mask, resource_fit)
        if mask is not None:
            key = (self.cluster.columns.layout, mask.tobytes())
            rows = self.rows.setdefault(key, np.flatnonzero(mask))
            by_rows = self.placement.find(self.cluster, task, None, resource_fit, rows)
            if isinstance(by_rows, Verdict) and isinstance(fast, Verdict):
                assert by_rows.reasons == fast.reasons
            else:
                assert by_rows == fast
        filters = [function.slow for function in self.filters]
        scores = [function.slow for function in self.scores]
        slow = naive.choose(self.cluster, task, filters, scores, within, resource_fit)
        assert (None if isinstance(fast, Verdict) else (fast.node.name, fast.now)) == slow
        if isinstance(fast, Verdict) and within is None and resource_fit:
            reasons = naive.reasons(self.cluster, task, [(node_filter, "no") for node_filter in filters])
            assert {text: min(count, reasons[text]) for text, count in fast.histogram().items()} == reasons
        return fast

    def move(self, task: Task, status: Status, node: Node | None) -> None:
        change = self.cluster.move(task, status, node)
        assert isinstance(change, Change)
        self.moves.append(change)

    def undo_some(self) -> None:
        for _ in range(self.chance.randrange(1, 4)):
            if self.moves:
                self.cluster.undo(self.moves.pop())

    def evict(self) -> None:
        there = [
            task for task in self.cluster.tasks.values() if task.node and task.status.name != "RELEASING"
        ]
        if there:
            task = self.chance.choice(there)
            self.move(task, Status.RELEASING, task.node)

    def arrive(self) -> None:
        """Somebody else's pod appears on a node."""
        where = self.chance.choice(list(self.cluster.nodes))
        self.world.add(self.a_pod(on=where, terminating=self.chance.random() < 0.2))

    def crowd(self) -> None:
        """Pods of one shape appear where they like, and another of that shape looks for a place each time."""
        shape = self.chance.choice((SHAPES[0], *SHAPES))
        for _ in range(self.chance.randrange(1, 6)):
            self.pods_made += 2
            self.world.add(pod(f"p-{self.pods_made - 1}", "g", **shape))
            where = self.chance.choice(list(self.cluster.nodes))
            self.world.add(pod(f"p-{self.pods_made}", "g", on=where, **shape))
            self.compare(task_named(self.cluster, f"p-{self.pods_made - 1}"), None, True)

    def resize(self) -> None:
        """A node comes, or changes; what was moved before stays moved."""
        self.moves.clear()
        self.world.add(self.node(self.chance.randrange(6)))
        self.cluster.settle()

    def turn(self) -> None:
        """The weather changes, or a new cycle begins."""
        self.weather.sunny = self.chance.random() < 0.5
        if self.chance.random() < 0.5:
            self.weather.cycle += 1
            self.placement.opening()

    def play(self, length: int) -> None:
        acts = (
            self.place_some,
            self.place_some,
            self.place_some,
            self.undo_some,
            self.evict,
            self.arrive,
            self.crowd,
        )
        for _ in range(length):
            self.chance.choice((*acts, self.resize, self.turn))()


@pytest.fixture(params=["usual steps", "few steps"])
def steps(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With limits so low that every branch of the memory is taken, and as they are."""
    if request.param == "few steps":
        monkeypatch.setattr(usage_evaluation, "MAX_STEPS", 3)
        monkeypatch.setattr(usage_evaluation, "MAX_STEPS_AT_ONCE", 5)
        monkeypatch.setattr(usage_evaluation, "BUSY_AFTER", 2)
        monkeypatch.setattr(usage_evaluation, "AGAIN_AFTER", 2)
        monkeypatch.setattr(usage_evaluation, "COMPILED_AFTER", 2)
        monkeypatch.setattr(node_placement, "MAX_BYTES", 20_000)  # two or three shapes


@pytest.mark.usefixtures("steps")
class TestPlacement:
    @given(st.integers(0, 2**64))
    @examples(80)
    def test_the_fast_placement_equals_the_blackboard(self, seed: int) -> None:
        chance = random.Random(seed)
        Drama(chance).play(chance.randrange(1, 25))
