"""predicates and nodeorder decide as the slow and obvious Kubernetes does, in any world and cycle after cycle."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stromboli.engine.placement.node_functions import Nodes
from stromboli.model.task import Task
from stromboli.testing import World
from stromboli.testing.world import NOON
from tests.manifests import group, policy
from tests.plugins.kubernetes import HOSTNAME, PREFERRED, REQUIRED, ZONE, Kubernetes, Manifest

WEIGHTS = {
    "nodeaffinity": 2,
    "tainttoleration": 3,
    "podaffinity": 2,
    "podtopologyspread": 2,
    "imagelocality": 1,
}
NO_USAGE = {"leastrequested.weight": 0, "balancedresource.weight": 0}
NAMESPACES = {"default": {"team": "a"}, "other": {"team": "b", "env": "test"}, "bare": {}}
Drawn = tuple[list[Manifest], list[Manifest], list[Manifest], list[Manifest]]
"""Nodes, pods that run, pods that wait, and Services."""
some = st.sampled_from


def lists(of: st.SearchStrategy[Any], most: int = 2) -> st.SearchStrategy[list[Any]]:
    return st.lists(of, max_size=most)


requirements = st.one_of(
    st.fixed_dictionaries(
        {
            "key": some(["app", "tier", "team"]),
            "operator": some(["In", "NotIn"]),
            "values": st.lists(some(["a", "b"]), min_size=1, max_size=2),
        }
    ),
    st.fixed_dictionaries({"key": some(["app", "tier"]), "operator": some(["Exists", "DoesNotExist"])}),
)
selectors = st.one_of(
    st.just({"matchLabels": {"app": "a"}}),
    st.none(),
    st.just({}),
    st.fixed_dictionaries(
        {"matchLabels": st.dictionaries(some(["app", "tier"]), some(["a", "b"]), max_size=2)}
    ),
    st.fixed_dictionaries({"matchExpressions": lists(requirements)}),
)
node_requirements = st.one_of(
    st.fixed_dictionaries(
        {
            "key": some([ZONE, "pool"]),
            "operator": some(["In", "NotIn"]),
            "values": st.lists(some(["1", "2"]), min_size=1, max_size=2),
        }
    ),
    st.fixed_dictionaries({"key": some([ZONE, "pool"]), "operator": some(["Exists", "DoesNotExist"])}),
    st.fixed_dictionaries({"key": st.just("pool"), "operator": some(["Gt", "Lt"]), "values": st.just(["1"])}),
)
name_fields = st.fixed_dictionaries(
    {
        "key": st.just("metadata.name"),
        "operator": some(["In", "NotIn"]),
        "values": st.lists(some(["n0", "n2", "nowhere"]), min_size=1, max_size=1),
    }
)
node_terms = st.fixed_dictionaries(
    {}, optional={"matchExpressions": lists(node_requirements), "matchFields": lists(name_fields, 1)}
)
pod_terms = st.fixed_dictionaries(
    {"topologyKey": some([HOSTNAME, ZONE, "pool"]), "labelSelector": selectors},
    optional={"namespaces": lists(some(["default", "other"])), "namespaceSelector": selectors},
)
wishes = st.fixed_dictionaries({"weight": st.integers(1, 100), "podAffinityTerm": pod_terms})
rarely_terms = st.one_of(st.just([]), st.just([]), st.lists(pod_terms, max_size=2))
pod_affinities = st.fixed_dictionaries({REQUIRED: rarely_terms, PREFERRED: lists(wishes)})
affinities = st.fixed_dictionaries(
    {},
    optional={
        "podAffinity": pod_affinities,
        "podAntiAffinity": pod_affinities,
        "nodeAffinity": st.fixed_dictionaries(
            {
                PREFERRED: lists(
                    st.fixed_dictionaries({"weight": st.integers(1, 100), "preference": node_terms})
                )
            },
            optional={REQUIRED: st.fixed_dictionaries({"nodeSelectorTerms": lists(node_terms)})},
        ),
    },
)
tolerations = st.fixed_dictionaries(
    {"operator": some(["Equal", "Exists"])},
    optional={
        "key": some(["dedicated", "node.kubernetes.io/unschedulable"]),
        "value": some(["", "x"]),
        "effect": some(["NoSchedule", "PreferNoSchedule"]),
    },
)
taints = st.fixed_dictionaries(
    {
        "key": some(["dedicated", "slow"]),
        "value": some(["", "x"]),
        "effect": some(["NoSchedule", "NoExecute", "PreferNoSchedule", "PreferNoSchedule"]),
    }
)
spreads = st.fixed_dictionaries(
    {
        "topologyKey": some([HOSTNAME, ZONE]),
        "maxSkew": some([1, 1, 2]),
        "whenUnsatisfiable": some(["DoNotSchedule", "ScheduleAnyway"]),
        "labelSelector": selectors,
    },
    optional={
        "minDomains": st.integers(1, 3),
        "nodeAffinityPolicy": some(["Honor", "Ignore"]),
        "nodeTaintsPolicy": some(["Honor", "Ignore"]),
        "matchLabelKeys": lists(some(["tier", "missing"])),
    },
)
host_ports = st.fixed_dictionaries(
    {"hostPort": some([0, 80, 81])},
    optional={"hostIP": some(["0.0.0.0", "10.0.0.1", "10.0.0.2"]), "protocol": some(["TCP", "UDP"])},
)


@st.composite
def nodes(draw: st.DrawFn, place: int) -> Manifest:
    have = draw(st.dictionaries(some([ZONE, ZONE, "pool"]), some(["1", "2", "x", ""]), max_size=2))
    if draw(st.integers(0, 5)):
        have[HOSTNAME] = f"n{place}"
    images = [
        {"names": [name], "sizeBytes": draw(st.integers(0, 3_000_000_000))}
        for name in draw(lists(some(["web:latest", "registry:5000/train:v1"])))
    ]
    return {
        "kind": "Node",
        "metadata": {"name": f"n{place}", "labels": have},
        "spec": {
            "taints": draw(lists(taints)) if draw(st.booleans()) else [],
            "unschedulable": not draw(st.integers(0, 11)),
        },
        "status": {
            "allocatable": {"cpu": "100", "memory": "64Gi", "pods": draw(some(["2", "110", "110", "110"]))},
            "images": images,
        },
    }


@st.composite
def crowds(draw: st.DrawFn) -> Drawn:
    """Worlds in which only spreading and anti-affinity matter: many pods alike, zones, nothing else."""
    hard = st.fixed_dictionaries(
        {
            "topologyKey": some([HOSTNAME, ZONE]),
            "maxSkew": st.integers(1, 2),
            "whenUnsatisfiable": some(["DoNotSchedule", "ScheduleAnyway"]),
            "labelSelector": some([{"matchLabels": {"app": "a"}}, {"matchLabels": {"tier": "b"}}]),
        },
        optional={"minDomains": st.integers(1, 3), "matchLabelKeys": st.just(["tier"])},
    )
    shy = st.fixed_dictionaries({"topologyKey": some([HOSTNAME, ZONE]), "labelSelector": selectors})

    def member(name: str, on: str = "") -> Manifest:
        spec: Manifest = {"schedulerName": "volcano", "containers": [{"name": "m"}]}
        meta = {"name": name, "labels": draw(st.dictionaries(some(["app", "tier"]), some(["a", "b"])))}
        if draw(st.booleans()):
            spec["affinity"] = {"podAntiAffinity": {REQUIRED: draw(lists(shy))}}
        if on:
            spec["nodeName"] = on
        else:
            spec["topologySpreadConstraints"] = draw(lists(hard))
            meta["annotations"] = {"scheduling.k8s.io/group-name": "default-job"}
        status = {"phase": "Running" if on else "Pending"}
        return {"kind": "Pod", "metadata": meta, "spec": spec, "status": status}

    machines = [
        {
            "kind": "Node",
            "metadata": {"name": f"n{n}", "labels": {HOSTNAME: f"n{n}", ZONE: draw(some(["1", "2", "3"]))}},
            "spec": {},
            "status": {"allocatable": {"cpu": "100", "memory": "64Gi", "pods": "110"}},
        }
        for n in range(4)
    ]
    running = [member(f"r{n}", on=f"n{draw(st.integers(0, 3))}") for n in range(draw(st.integers(1, 8)))]
    return machines, running, [member(f"w{n}") for n in range(2)], []


@st.composite
def pods(draw: st.DrawFn, name: str, on: str = "", of: str = "") -> Manifest:
    have = draw(st.dictionaries(some(["app", "tier"]), some(["a", "a", "b"]), max_size=2))
    container = {
        "name": "main",
        "image": draw(some(["web", "registry:5000/train:v1", ""])),
        "resources": {"requests": {"cpu": "1"}},
    }
    container["ports"] = draw(lists(host_ports)) if draw(st.booleans()) else []
    spec: Manifest = {"schedulerName": "volcano", "containers": [container], "affinity": draw(affinities)}
    spec["tolerations"] = draw(lists(tolerations))
    spec["topologySpreadConstraints"] = draw(lists(spreads)) if draw(st.booleans()) else []
    if not draw(st.integers(0, 3)):
        spec["nodeSelector"] = draw(st.dictionaries(some([ZONE, "pool"]), some(["1", "2"]), max_size=1))
    meta: Manifest = {"name": name, "namespace": draw(some([*NAMESPACES])), "labels": have}
    if of:
        meta["annotations"] = {"scheduling.k8s.io/group-name": of}
        meta["namespace"] = of.removesuffix("-job")
    status = {"phase": "Pending"}
    if on:
        spec["nodeName"], status["phase"] = on, "Running"
        if not draw(st.integers(0, 5)):
            meta["deletionTimestamp"] = "2026-10-31T00:00:00Z"
    return {"kind": "Pod", "metadata": meta, "spec": spec, "status": status}


@st.composite
def worlds(draw: st.DrawFn) -> Drawn:
    """Worlds with everything in them."""
    machines = [draw(nodes(place)) for place in range(draw(st.integers(1, 4)))]
    running = [
        draw(pods(f"r{place}", on=draw(some(machines))["metadata"]["name"]))
        for place in range(draw(st.integers(0, 7)))
    ]
    waiting = [
        draw(pods(f"w{place}", of=f"{draw(some([*NAMESPACES]))}-job"))
        for place in range(draw(st.integers(1, 4)))
    ]
    services = [
        {
            "kind": "Service",
            "metadata": {"name": f"s{place}", "namespace": "default"},
            "spec": {"selector": selector},
        }
        for place, selector in enumerate(
            draw(lists(st.dictionaries(some(["app", "tier"]), some(["a", "b"]), min_size=1)))
        )
    ]
    return machines, running, waiting, services


def world_of(*manifests: Manifest) -> World:
    world = World(policy=policy("allocate", "predicates", ("nodeorder", NO_USAGE)))
    for name, have in NAMESPACES.items():
        world.add({"kind": "Namespace", "metadata": {"name": name, "labels": have}})
        world.add(group(f"{name}-job", 1, namespace=name))
    return world.add(*manifests)


def kubernetes_of(
    world: World, manifests: list[Manifest], nodes: list[Manifest], services: list[Manifest]
) -> Kubernetes:
    """What stands where at this moment, for the slow one."""
    by_name = {manifest["metadata"]["name"]: manifest for manifest in manifests}
    placed: dict[str, list[Manifest]] = {}
    for task in world.cluster.tasks.values():
        if task.in_view and task.node is not None:
            placed.setdefault(task.node.name, []).append(by_name[task.name])
    return Kubernetes(nodes, placed, NAMESPACES, services)


def settings_of(examples: int) -> settings:
    slow = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
    return settings(max_examples=examples, deadline=None, suppress_health_check=slow)


@settings_of(60)
@given(st.one_of(worlds(), crowds()))
def test_filters_give_the_reasons_that_kubernetes_gives(
    drawn: Drawn,
) -> None:
    machines, running, waiting, services = drawn
    world = world_of(*machines, *running, *services, *waiting)
    world.cluster.settle()
    plugin, session = world.plugin("predicates"), _Session(world)
    plugin.session = session
    plugin.opening(session, world.cluster.dirty)
    slow = kubernetes_of(world, [*running, *waiting], machines, services)
    for pod in waiting:
        expected = {machine["metadata"]["name"]: slow.refusal(pod, machine) for machine in machines}
        assert world.refusals("predicates", pod["metadata"]["name"]) == expected


@settings_of(60)
@given(st.one_of(worlds(), crowds()), st.integers(0, 15))
def test_scores_are_those_of_kubernetes_whatever_the_candidates(drawn: Drawn, chosen: int) -> None:
    machines, running, waiting, services = drawn
    world = world_of(*machines, *running, *services, *waiting)
    world.cluster.settle()
    world.plugin("nodeorder").session = _Session(world)
    slow = kubernetes_of(world, [*running, *waiting], machines, services)
    candidates = [machine for place, machine in enumerate(machines) if chosen >> place & 1]
    if len(candidates) < 2:
        return
    for pod in waiting:
        expected = slow.scores(pod, candidates, WEIGHTS)
        scores = _scores(world, world.task(pod["metadata"]["name"]), candidates)
        shift = scores[0] - expected[0]  # a score that is the same on all nodes may be left out
        assert [score - shift for score in scores] == expected


@pytest.mark.slow
@settings_of(30)
@given(st.one_of(worlds(), crowds()), st.data())
def test_what_is_remembered_from_cycle_to_cycle_is_what_would_be_found_afresh(
    drawn: Drawn, data: st.DataObject
) -> None:
    machines, running, waiting, services = drawn
    world = world_of(*machines, *running, *services, *waiting)
    known = [*running, *waiting]
    for cycle in range(3):
        session = world.step().outcome.session
        slow = kubernetes_of(world, known, machines, services)
        for place in range(2):
            late = data.draw(pods(f"late-{cycle}-{place}", of=f"{data.draw(some([*NAMESPACES]))}-job"))
            known.append(late)
            world.add(late)
            _expect_best(world, slow, session, late, machines)
        if running and data.draw(st.booleans()):
            world.remove(running.pop())


def _expect_best(
    world: World, slow: Kubernetes, session: Any, pod: Manifest, machines: list[Manifest]
) -> None:
    task = world.task(pod["metadata"]["name"])
    evaluation = session.placement.evaluate(world.cluster, task)
    open_to = [machine for machine in machines if not slow.refusal(pod, machine)]
    names = [world.cluster.columns.nodes[row].name for row in evaluation.group(task, now=False)]
    assert names == [machine["metadata"]["name"] for machine in open_to]
    if len(open_to) > 1:
        scores = slow.scores(pod, open_to, WEIGHTS)
        best = open_to[scores.index(max(scores))]["metadata"]["name"]
        assert world.cluster.columns.nodes[evaluation.best(task)[0]].name == best


class _Session:
    """As much of a session as node functions need."""

    def __init__(self, world: World):
        self.cluster = world.cluster
        self.now = NOON


def _scores(world: World, task: Task, candidates: list[Manifest]) -> list[float]:
    nodes = Nodes(world.cluster.columns)
    chosen = [world.cluster.nodes[machine["metadata"]["name"]].row for machine in candidates]
    mask = np.zeros(len(nodes), dtype=bool)
    mask[chosen] = True
    total = nodes.zeros()
    for node_score in world.plugin("nodeorder").node_scores(task):
        raw = np.asarray(node_score.score(task, nodes), dtype=np.float64)
        if node_score.finish is None:
            total += node_score.weight * raw
        elif (raw != raw[0]).any():
            total += node_score.weight * node_score.finish(task, nodes, raw, mask)
    return [float(total[row]) for row in chosen]
