"""How good each node is: every formula with numbers worked out by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from stromboli.engine.placement.node_functions import Nodes
from stromboli.plugins.nodeorder import topology_spread_score
from stromboli.plugins.nodeorder.plugin import Weights
from stromboli.policy.arguments import parse_arguments
from stromboli.testing import World
from tests.manifests import binds, group, node, pod, policy
from tests.plugins.kubernetes import HOSTNAME, PREFERRED, ZONE, Manifest

KINDS = (
    "leastrequested",
    "mostrequested",
    "balancedresource",
    "nodeaffinity",
    "podaffinity",
    "tainttoleration",
    "podtopologyspread",
    "imagelocality",
)
WEB = {"matchLabels": {"app": "web"}}


def make_world(only: str, *manifests: Manifest, weight: int = 1, actions: str = "enqueue") -> World:
    """A world in which just one of the scores counts."""
    weights = {f"{kind}.weight": weight if kind == only else 0 for kind in KINDS}
    rules = policy(actions, "gang", "predicates", ("nodeorder", weights))
    return World(policy=rules).add(group("j", 1), *manifests)


def scores(only: str, *manifests: Manifest, weight: int = 1, among: str = "") -> dict[str, float]:
    """What each candidate gets for the pod `p`; without `among` all nodes are candidates."""
    world = make_world(only, *manifests, weight=weight)
    world.step()
    columns, task = world.cluster.columns, world.task("p")
    mask = np.array([not among or node.name in among for node in columns.nodes])
    total = np.zeros(len(columns))
    for node_score in world.plugin("nodeorder").node_scores(task):
        raw = np.asarray(node_score.score(task, Nodes(columns)), dtype=float)
        total += node_score.weight * (
            node_score.finish(task, Nodes(columns), raw, mask) if node_score.finish else raw
        )
    return {node.name: float(total[node.row]) for node in columns.nodes if mask[node.row]}


def with_spec(manifest: Manifest, app: str = "", **spec: Any) -> Manifest:
    manifest["spec"] |= spec
    manifest["metadata"]["labels"] = {"app": app} if app else {}
    return manifest


def p(app: str = "", **spec: Any) -> Manifest:
    return with_spec(pod("p", "j", cpu="1", memory="1Gi"), app, **spec)


def running(name: str, on: str, app: str = "web", **spec: Any) -> Manifest:
    return with_spec(pod(name, on=on, cpu="1", memory="1Gi"), app, **spec)


def zoned(name: str, zone: str = "", **more: Any) -> Manifest:
    return node(name, labels={HOSTNAME: name, **({ZONE: zone} if zone else {})}, cpu="8", **more)


# -- usage


def test_least_and_most_allocated_are_the_mean_of_cpu_and_memory_each_truncated() -> None:
    # cpu: (3000 - 1000) * 100 // 3000 = 66, memory: (8 - 1) * 100 // 8 = 87; the mean is 76.5
    # most: 33 and 12, 22.5
    machine = node("a", cpu="3", memory="8Gi")
    assert scores("leastrequested", machine, p()) == {"a": 76}
    assert scores("mostrequested", machine, p()) == {"a": 22}
    assert scores("leastrequested", machine, p(), weight=5) == {"a": 380}


def test_a_node_that_would_be_overfull_counts_as_full() -> None:
    machine = node("a", cpu="500m", memory="8Gi")
    assert scores("leastrequested", machine, p()) == {"a": 87 // 2}
    assert scores("mostrequested", machine, p()) == {"a": (100 + 12) // 2}


def test_a_resource_that_the_node_does_not_have_is_left_out() -> None:
    machine = node("a", cpu="3", memory="0")
    assert scores("leastrequested", machine, p()) == {"a": 66}
    assert scores("leastrequested", node("b", cpu="0", memory="0"), p()) == {"b": 0}


def test_a_container_that_states_nothing_counts_as_a_little() -> None:
    # 100m of 1000m and 200Mi of 1000Mi
    assert scores("leastrequested", node("a", cpu="1", memory="1000Mi"), pod("p", "j", cpu=0)) == {
        "a": (90 + 80) // 2
    }


def test_what_runs_there_counts() -> None:
    machine, old = node("a", cpu="4", memory="4Gi"), running("r", on="a")
    assert scores("leastrequested", machine, old, p()) == {"a": 50}


def test_balance_is_what_the_pod_changes_about_it() -> None:
    # with: 1/4 cpu, 1/8 memory, deviation 1/16, 93; without: 100; 50 + (50 - 7) // 2
    assert scores("balancedresource", node("a", cpu="4", memory="8Gi"), p()) == {"a": 71}
    # a node on which cpu runs at 2/4 and memory at 1/8: deviation 3/16, 81; a pod of memory alone evens that out
    lopsided = [node("a", cpu="4", memory="8Gi"), pod("r", on="a", cpu="2", memory="1Gi")]
    even = pod("p", "j", cpu="0", memory="3Gi")
    assert scores("balancedresource", *lopsided, even) == {"a": 50 + (50 + 100 - 81) // 2}


def test_three_resources_are_balanced_by_their_standard_deviation() -> None:
    parts = [1 / 4, 1 / 8, 1 / 2]
    mean = sum(parts) / 3
    after = int((1 - math.sqrt(sum((part - mean) ** 2 for part in parts) / 3)) * 100)
    machine = node("a", cpu="4", memory="8Gi", gpu="2")
    assert scores("balancedresource", machine, pod("p", "j", cpu="1", memory="1Gi", gpu="1")) == {
        "a": 50 + (50 + after - 100) // 2
    }
    assert scores("balancedresource", machine, p()) == {"a": 71}, "who asks for no GPU is not balanced by it"


def test_where_a_node_has_no_gpu_the_other_two_are_compared() -> None:
    asking = pod("p", "j", cpu="1", memory="1Gi", gpu="1")
    assert scores("balancedresource", node("a", cpu="4", memory="8Gi"), asking) == {"a": 71}
    assert scores("balancedresource", node("a", cpu="4", memory="0"), asking) == {"a": 75}, (
        "one alone is even"
    )


def test_a_pod_that_asks_for_nothing_is_not_balanced() -> None:
    assert scores("balancedresource", node("a", cpu="4"), pod("p", "j", cpu=0)) == {"a": 0}


def test_the_next_pod_sees_what_was_placed_before_it_in_the_same_cycle() -> None:
    twins = [pod(f"p{place}", "j", cpu="1", memory="1Gi") for place in range(2)]
    world = make_world("leastrequested", node("a", cpu="4"), node("b", cpu="4"), *twins, actions="allocate")
    assert binds(world.step()) == {"p0": "a", "p1": "b"}


# -- labels, taints, images


def test_preferred_nodes_are_scaled_by_the_best_candidate() -> None:
    def like(weight: int, zone: str) -> Manifest:
        return {
            "weight": weight,
            "preference": {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]},
        }

    nodes = [zoned("a", "1"), zoned("b", "2"), zoned("c")]
    likes = p(
        affinity={"nodeAffinity": {PREFERRED: [like(7, "1"), like(2, "2"), {"weight": 9, "preference": {}}]}}
    )
    assert scores("nodeaffinity", *nodes, likes) == {"a": 100, "b": 200 // 7, "c": 0}
    assert scores("nodeaffinity", *nodes, likes, among="bc") == {"b": 100, "c": 0}


def test_soft_taints_count_down_from_the_worst_candidate() -> None:
    def soft(name: str, *keys: str) -> Manifest:
        taints = [{"key": key, "effect": "PreferNoSchedule"} for key in keys]
        return {**zoned(name), "spec": {"taints": taints}}

    nodes = [soft("a", "x", "y", "z"), soft("b", "x"), soft("c")]
    assert scores("tainttoleration", *nodes, p()) == {"a": 0, "b": 67, "c": 100}
    hard = [{"key": "x", "operator": "Exists", "effect": "NoSchedule"}, {"key": "y", "operator": "Exists"}]
    assert scores("tainttoleration", *nodes, p(tolerations=hard)) == {"a": 0, "b": 50, "c": 100}


def test_images_at_hand_count_by_size_and_by_how_many_nodes_have_them() -> None:
    mebi = 1024 * 1024

    def having(name: str, *images: tuple[str, int]) -> Manifest:
        machine = zoned(name)
        machine["status"]["images"] = [{"names": [image], "sizeBytes": size} for image, size in images]
        return machine

    nodes = [having("a", ("web:latest", 600 * mebi)), having("b", ("web:latest", 600 * mebi)), having("c")]
    asking = p(containers=[{"name": "m", "image": "web"}])
    # 600 MiB on two of three nodes are 400 MiB; (400 - 23) of (1000 - 23)
    assert scores("imagelocality", *nodes, asking) == {"a": 38, "b": 38, "c": 0}
    volume = [{"name": "v", "image": {"reference": "web:latest"}}]
    assert scores("imagelocality", *nodes, p(volumes=volume))["a"] == 38
    other_registry = p(containers=[{"name": "m", "image": "registry:5000/web"}])
    assert scores("imagelocality", *nodes, other_registry)["a"] == 0


# -- other pods


def wish(weight: int, key: str = ZONE) -> Manifest:
    return {"weight": weight, "podAffinityTerm": {"topologyKey": key, "labelSelector": WEB}}


def test_wishes_for_and_against_pods_are_stretched_between_the_extremes() -> None:
    nodes = [zoned("a", "1"), zoned("b", "2"), zoned("c", "3"), zoned("none")]
    there = [running("r0", on="a"), running("r1", on="a"), running("r2", on="b")]
    near = p(affinity={"podAffinity": {PREFERRED: [wish(10)]}})
    away = p(affinity={"podAntiAffinity": {PREFERRED: [wish(10)]}})
    assert scores("podaffinity", *nodes, *there, near) == {"a": 100, "b": 50, "c": 0, "none": 0}
    assert scores("podaffinity", *nodes, *there, away) == {"a": 0, "b": 50, "c": 100, "none": 100}
    assert scores("podaffinity", *nodes, *there, near, among="cn") == {"c": 0}


def test_pods_that_are_there_have_wishes_too_but_their_needs_count_for_nothing() -> None:
    """quirk: spec 04 3.7, kube-scheduler gives required affinity a weight of 1."""
    nodes = [zoned("a", "1"), zoned("b", "2")]
    needs = {"requiredDuringSchedulingIgnoredDuringExecution": [wish(1)["podAffinityTerm"]]}
    host = running("r", on="b", app="db", affinity={"podAffinity": needs})
    assert scores("podaffinity", *nodes, host, p("web")) == {"a": 0, "b": 0}
    host = running("r", on="b", app="db", affinity={"podAffinity": {PREFERRED: [wish(3)]}})
    assert scores("podaffinity", *nodes, host, p("web")) == {"a": 0, "b": 100}
    assert scores("podaffinity", *nodes, host, p("other")) == {"a": 0, "b": 0}


def soft(key: str = ZONE, skew: int = 1) -> Manifest:
    return {"topologyKey": key, "maxSkew": skew, "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": WEB}


@pytest.mark.parametrize("labelled", [False, True])
def test_more_spread_constraints_than_a_float_has_powers_leave_the_score_finite(labelled: bool) -> None:
    """A hundred constraints, each of which multiplied what was there by the number of pods."""
    keys = [f"rack{number % 90}" for number in range(100)]
    nodes = [
        node(name, labels={key: name for key in keys if labelled}, cpu="8", memory="8Gi")
        for name in ("a", "b")
    ]
    constraints = [
        {
            "topologyKey": key,
            "maxSkew": 2**31 - 1,
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": WEB,
        }
        for key in keys
    ]
    asking = p("web", topologySpreadConstraints=constraints)
    there = [with_spec(pod(f"r{number}", on="a"), "web") for number in range(1300)]
    assert scores("podtopologyspread", *nodes, *there, asking) == (
        {"a": 99, "b": 100} if labelled else {"a": 0, "b": 0}
    )
    world = make_world("podtopologyspread", *nodes, *there, asking, actions="enqueue, allocate")
    result = world.step()
    assert result.failures == []
    assert binds(result) == {"p": "b"}, "a is full"


def test_what_tells_nodes_apart_stays_exact_however_many_constraints_there_are() -> None:
    """Only the last constraint differs: its count must not drown in those before."""
    keys = [f"rack{number}" for number in range(80)]
    nodes = [node(name, labels=dict.fromkeys(keys[:-1], "same") | {keys[-1]: name}) for name in ("a", "b")]
    asking = p(
        "web",
        topologySpreadConstraints=[
            {"topologyKey": key, "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": WEB}
            for key in keys
        ],
    )
    there = [with_spec(pod("r", on="a"), "web")]
    world = make_world("podtopologyspread", *nodes, *there, asking, actions="enqueue, allocate")
    assert binds(world.step()) == {"p": "b"}


def test_soft_spreading_prefers_the_domain_with_fewer_pods_and_ignores_nodes_without_the_key() -> None:
    nodes = [zoned("a", "1"), zoned("b", "2"), zoned("none")]
    there = [running("r0", on="a"), running("r1", on="a"), running("r2", on="b")]
    weight = math.log(2 + 2)
    raw = {"a": math.floor(2 * weight + 0.5), "b": math.floor(1 * weight + 0.5)}
    assert raw == {"a": 3, "b": 1}
    asking = p("web", topologySpreadConstraints=[soft()])
    assert scores("podtopologyspread", *nodes, *there, asking) == {"a": 100 * 1 // 3, "b": 100, "none": 0}


def test_the_number_of_domains_among_the_candidates_weighs_the_counts() -> None:
    nodes = [zoned("a", "1"), zoned("b", "2"), zoned("c", "3")]
    there = [running(f"r{place}", on=on) for place, on in enumerate("aaab")]
    asking = p("web", topologySpreadConstraints=[soft(skew=3)])

    def expected(size: int, *counts: int) -> list[int]:
        raw = [math.floor(count * math.log(size + 2) + 2 + 0.5) for count in counts]
        return [100 * (max(raw) + min(raw) - score) // max(raw) for score in raw]

    scored = scores("podtopologyspread", *nodes, *there, asking)
    assert list(scored.values()) == expected(3, 3, 1, 0)
    scored = scores("podtopologyspread", *nodes, *there, asking, among="ab")
    assert list(scored.values()) == expected(2, 3, 1)


SERVICE = {"kind": "Service", "metadata": {"name": "s"}, "spec": {"selector": {"app": "web"}}}


def test_pods_of_a_service_are_kept_apart_although_no_constraint_says_so() -> None:
    nodes = [zoned("a", "1"), zoned("b", "2"), zoned("none")]
    there = [running("r0", on="a")]
    assert set(scores("podtopologyspread", *nodes, *there, p("web")).values()) == {0}
    # sizes: 3 hosts, 3 zones (a missing one is one of them); a: ln 5 + 2 + ln 5 + 4 = 9.2; b: 6; none: 2
    scored = scores("podtopologyspread", *nodes, *there, SERVICE, p("web"))
    assert scored == {"a": 100 * (9 + 2 - 9) // 9, "b": 100 * (9 + 2 - 6) // 9, "none": 100}
    assert set(scores("podtopologyspread", *nodes, *there, SERVICE, p("db")).values()) == {0}


@pytest.mark.parametrize(
    ("kind", "selector"),
    [("ReplicaSet", WEB), ("StatefulSet", WEB), ("ReplicationController", {"app": "web"})],
)
def test_pods_of_a_controller_are_kept_apart_as_well(kind: str, selector: Manifest) -> None:
    owner = {"kind": kind, "metadata": {"name": "o"}, "spec": {"selector": selector}}
    asking = p("web")
    asking["metadata"]["ownerReferences"] = [{"kind": kind, "name": "o", "controller": True}]
    scored = scores("podtopologyspread", zoned("a"), zoned("b"), running("r", on="a"), owner, asking)
    assert scored["a"] < scored["b"]


# -- arguments


def test_a_weight_of_zero_switches_a_score_off() -> None:
    world = make_world("nothing", node("a", cpu="4"), p("web", topologySpreadConstraints=[soft()]))
    world.step()
    assert world.plugin("nodeorder").node_scores(world.task("p")) == []


def test_all_of_volcanos_weights_are_known_and_others_are_not() -> None:
    defaults = {"leastrequested": 1, "mostrequested": 0, "balancedresource": 1, "nodeaffinity": 2}
    defaults |= {"podaffinity": 2, "tainttoleration": 3, "podtopologyspread": 2, "imagelocality": 1}
    given = parse_arguments(Weights, {f"{kind}.weight": weight for kind, weight in defaults.items()})
    assert given == (Weights(), [])
    (problem,) = parse_arguments(Weights, {"leastrequest.weight": 1})[1]
    assert "leastrequested.weight" in problem.message


def test_pods_share_an_evaluation_while_nothing_reads_their_labels() -> None:
    world = make_world(
        "podtopologyspread", zoned("a"), *[with_spec(pod(f"p{n}", "j", cpu=0), f"app{n}") for n in range(3)]
    )
    world.step()
    key = world.plugin("nodeorder").shape_key
    assert len({key(world.task(f"p{n}")) for n in range(3)}) == 1
    world.add({**SERVICE, "spec": {"selector": {"app": "app1"}}})
    assert key(world.task("p0")) == key(world.task("p2")) != key(world.task("p1"))


@pytest.mark.parametrize("many", [1, 10, 4096])
def test_combinations_of_counts_stand_for_the_counts_of_every_node(
    many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topology_spread_score, "MANY", many)
    counts = [np.array(column) for column in ([0, 3, -1, 3, 0], [7, 7, 0, 2, -1], [1, 1, 1, 1, 1])]
    of_nodes, columns = topology_spread_score.combinations(5, counts)
    assert [column[of_nodes].tolist() for column in columns] == [column.tolist() for column in counts]
