"""Tallies count the same whether they look for marks or ask everybody, through any moves."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from stromboli.api import names
from stromboli.api.types.meta import LabelSelector, Requirement
from stromboli.api.types.pod import Affinity, PodAffinity, PodAffinityTerm
from stromboli.model.cluster import Cluster
from stromboli.model.constraints.pod_affinity import AffinityTerm, PodSelector, matching_pods, pods_with_term
from stromboli.model.constraints.pod_counts import PodCount, PodPredicate
from stromboli.model.constraints.topology_spread import SpreadPods
from stromboli.model.status import Status
from stromboli.model.task import Task
from stromboli.testing import World
from tests.manifests import Manifest, node, pod
from tests.number_of_examples import scaled

WEB = LabelSelector({"app": "web"})
EITHER = LabelSelector({}, (Requirement("app", "In", ("web", "db")),))
NOT_WEB = LabelSelector({}, (Requirement("app", "NotIn", ("web",)),))
SHY = Affinity(pod_anti_affinity=PodAffinity((PodAffinityTerm(WEB, names.HOSTNAME),)))
SHY_TERM = AffinityTerm(PodSelector(WEB, frozenset({"default"})), names.HOSTNAME)


def cluster_of(seed: int) -> Cluster:
    chance = random.Random(seed)
    pods = [
        pod(
            f"p{place}",
            labels={"app": chance.choice(["web", "db", "x"]), "index": str(place % 3)},
            on=chance.choice(["n0", "n1", "n2", ""]),
            phase="Pending",
            spec={"affinity": SHY if chance.random() < 0.3 else None},
        )
        for place in range(8)
    ]
    return World().add(*[node(f"n{place}") for place in range(3)], *pods).cluster


def tallies(cluster: Cluster) -> list[PodCount]:
    everyone = frozenset({"default"})
    return [
        matching_pods(cluster, PodSelector(WEB, everyone)),
        matching_pods(cluster, PodSelector(EITHER, everyone)),
        matching_pods(cluster, PodSelector(NOT_WEB, everyone)),
        matching_pods(cluster, PodSelector(WEB, everyone), PodSelector(NOT_WEB, everyone)),
        SpreadPods(cluster, "default", WEB).count(),
        SpreadPods(cluster, "default", LabelSelector()).count(),
        pods_with_term(cluster, SHY_TERM),
    ]


def asked(cluster: Cluster, tally: PodCount) -> list[int]:
    """Everybody asked, one by one."""
    return [
        sum(task.in_view and tally.counted(task) for task in place.tasks) for place in cluster.columns.nodes
    ]


@settings(max_examples=scaled(30), deadline=None)
@given(st.integers(0, 10**6))
def test_a_tally_counts_what_asking_everybody_would(seed: int) -> None:
    cluster, chance = cluster_of(seed), random.Random(seed)
    for _ in range(12):
        task: Task = chance.choice(list(cluster.tasks.values()))
        where = chance.choice([None, *cluster.columns.nodes])
        status = (
            chance.choice([Status.RUNNING, Status.PIPELINED, Status.RELEASING]) if where else Status.PENDING
        )
        cluster.move(task, status, where)
        if chance.random() < 0.2:
            cluster.pod_counts.sweep()
        for tally in tallies(cluster):
            assert tally.by_node.tolist() == asked(cluster, tally)


def test_a_version_belongs_to_one_state_even_if_a_tally_was_forgotten_meanwhile() -> None:
    cluster = cluster_of(1)
    task = next(task for task in cluster.tasks.values() if task.label_set.labels["app"] == "web")
    seen: dict[int, list[int]] = {}
    for place in (0, 1, 0, 2):
        tally = matching_pods(cluster, PodSelector(WEB, frozenset({"default"})))
        assert seen.setdefault(tally.version, tally.by_node.tolist()) == tally.by_node.tolist()
        cluster.pod_counts.sweep()
        cluster.pod_counts.sweep()
        assert not cluster.pod_counts
        cluster.move(task, Status.RUNNING, cluster.columns.nodes[place])
    assert len(seen) > 2


def test_nodes_in_other_rows_are_counted_anew() -> None:
    world = World().add(node("n1"), pod("p", on="n1", labels={"app": "web"}))
    selector = PodSelector(WEB, frozenset({"default"}))
    world.cluster.settle()
    before = matching_pods(world.cluster, selector).version
    world.add(node("n0"))
    world.cluster.settle()
    tally = matching_pods(world.cluster, selector)
    counted = {each.name: tally.by_node[each.row] for each in world.cluster.columns.nodes}
    assert counted == {"n0": 0, "n1": 1}
    assert tally.version != before


def test_around_a_node_is_its_domain_and_nothing_where_it_has_none() -> None:
    zones = {"a": "1", "b": "1", "c": "2"}
    nodes = [node(name, labels={names.ZONE: zone}) for name, zone in zones.items()]
    pods = [
        pod(f"p{place}", labels={"app": "web"}, on=on, phase="Pending") for place, on in enumerate("aabd")
    ]
    cluster = World().add(*nodes, node("d"), *pods).cluster
    tally = matching_pods(cluster, PodSelector(WEB, frozenset({"default"})))
    around = tally.in_domain_of_node(cluster.columns, names.ZONE)
    assert {place.name: around[place.row] for place in cluster.columns.nodes} == {
        "a": 3,
        "b": 3,
        "c": 0,
        "d": 0,
    }


def space(name: str, team: str) -> Manifest:
    return {"kind": "Namespace", "metadata": {"name": name, "labels": {"team": team}}}


@settings(max_examples=scaled(30), deadline=None)
@given(st.integers(0, 10**6))
def test_a_namespace_may_change_its_labels(seed: int) -> None:
    """Only its own pods are asked again, and the counts are those of asking all."""
    chance, spaces = random.Random(seed), ["a", "b", "c"]
    pods = [
        pod(
            f"p{place}",
            namespace=chance.choice(spaces),
            labels={"app": chance.choice(["web", "db"])},
            on=chance.choice(["n0", "n1", ""]),
            phase="Pending",
        )
        for place in range(8)
    ]
    world = World().add(node("n0"), node("n1"), *pods)
    cluster = world.cluster
    cluster.settle()
    selectors = [
        PodSelector(WEB, frozenset({"c"}), LabelSelector({"team": team})) for team in ("red", "blue")
    ]
    for _ in range(8):
        tallies = [matching_pods(cluster, selector) for selector in selectors]
        versions = [tally.version for tally in tallies]
        before = [tally.by_node.tolist() for tally in tallies]
        name = chance.choice([*spaces, "empty"])
        asked_again: list[Task] = []
        for tally in tallies:
            tally.counted = noting(tally.counted, asked_again)
        world.add(space(name, chance.choice(["red", "blue", "none"])))
        assert {task.namespace for task in asked_again} <= {name}
        for tally, version, numbers in zip(tallies, versions, before, strict=True):
            assert tally.by_node.tolist() == asked(cluster, tally)
            assert tally.version != version or tally.by_node.tolist() == numbers


def noting(counted: PodPredicate, asked: list[Task]) -> PodPredicate:
    def noted(task: Task) -> bool:
        asked.append(task)
        return counted(task)

    return noted
