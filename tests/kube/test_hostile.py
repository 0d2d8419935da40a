"""Hostile objects, from the watch to the decisions: nothing breaks, each is reported of once, the rest is scheduled."""

from __future__ import annotations

import copy
from collections import Counter
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.engine.decisions import Bind
from stromboli.kube.reflector import UnusableObject
from stromboli.kube.watch_decoding import ListDecoder
from stromboli.scheduler.mirror.cluster_mirror import ClusterMirror
from stromboli.scheduler.mirror.cluster_watches import ClusterWatches
from stromboli.scheduler.mirror.kubernetes_world import KubernetesWorld
from tests.manifests import EPOCH
from tests.properties.living import engine
from tests.properties.rebuild import kept_sums, rebuilt_sums
from tests.properties.strategies import examples
from tests.scheduler.mirror.test_cluster_mirror import SIZE, ObjectServer, manifest_of, node, pod

TAINT = {"key": "good", "effect": "NoSchedule"}
ODD = (
    "",
    " ",
    "true",
    "-1",
    "1e30",
    "0x10",
    "NaN",
    "a/b/c",
    "\U0001f30b",
    "x" * 300,
    "{",
    "[]",
    "1h",
    "*",
    "root",
    "default",
)
NOTES = (
    "scheduling.k8s.io/group-name",
    "scheduling.volcano.sh/queue-allocation-gate",
    "volcano.sh/preemptable",
    "volcano.sh/revocable-zone",
    "volcano.sh/task-spec",
    "volcano.sh/task-priority",
    "volcano.sh/cooldown-time",
    "volcano.sh/sla-waiting-time",
    "volcano.sh/jdb-min-available",
    "volcano.sh/jdb-max-unavailable",
    "volcano.sh/hierarchy",
    "volcano.sh/hierarchy-weights",
    "volcano.sh/nodegroup-name",
    "volcano.sh/oversubscription-cpu",
    "volcano.sh/numa-topology-policy",
    "volcano.sh/topology-decision",
    "stromboli.sh/fair-share",
    "stromboli.sh/min-run-time",
)
POLICIES = (
    ("priority, gang, conformance", "overcommit, drf, predicates, nodeorder, binpack"),
    ("priority, gang, tdm, sla, pdb, cdp", "predicates, nodeorder, fairshare, usage"),
)
ACTIONS = "enqueue, allocate, backfill, preempt, reclaim"


def good() -> list[dict[str, Any]]:
    """A gang with a node that takes nobody else, and that goes nowhere else."""
    home = node("good")
    home["metadata"]["labels"] = {"home": "good"}
    members = [pod(f"good-{number}", group="good") for number in range(2)]
    for member in members:
        member["spec"] |= {
            "tolerations": [{"key": "good", "operator": "Exists"}],
            "nodeSelector": {"home": "good"},
        }
    return [
        home | {"spec": {"taints": [TAINT]}},
        manifest_of("Queue", "default", spec={"weight": 1}, status={"state": "Open"}),
        manifest_of(
            "PodGroup", "good", spec={"minMember": 2, "queue": "default"}, status={"phase": "Inqueue"}
        ),
        *members,
    ]


def templates() -> list[dict[str, Any]]:
    """Objects as they should be, with something in most places."""
    rich = pod("rich", group="bad")
    rich["spec"] |= {
        "priority": 5,
        "preemptionPolicy": "Never",
        "nodeSelector": {"a": "b"},
        "overhead": {"cpu": "1m"},
        "schedulingGates": [{"name": "gate"}],
        "tolerations": [{"key": "x", "operator": "Exists", "effect": "NoSchedule", "tolerationSeconds": 3}],
        "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_term()]}},
        "topologySpreadConstraints": [_spread()],
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}],
        "initContainers": [{"name": "i", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}}],
    }
    rich["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}]
    rich["metadata"]["ownerReferences"] = [{"apiVersion": "v1", "kind": "Job", "name": "j", "uid": "u"}]
    policy = {"name": "p", "labelSelector": {"matchLabels": {"a": "b"}}, "subGroupSize": 1, "minSubGroups": 1}
    group = {
        "minMember": 1,
        "minTaskMember": {"a": 1},
        "queue": "bad",
        "priorityClassName": "high",
        "minResources": {"cpu": "1"},
        "subGroupPolicy": [policy],
        "networkTopology": {"mode": "hard", "highestTierAllowed": 1},
    }
    sizes = {"cpu": "1", "memory": "1Gi"}
    queue = {
        "weight": 1,
        "capability": sizes,
        "deserved": sizes,
        "guarantee": {"resource": sizes},
        "parent": "root",
    }
    native = {
        "kind": "NativePodGroup",  # of the two PodGroups, the one that Kubernetes has itself
        "metadata": {"name": "native", "generation": 1},
        "spec": {
            "schedulingPolicy": {"gang": {"minCount": 1}},
            "disruptionMode": {"all": {}},
            "priority": 5,
            "preemptionPolicy": "Never",
        },
        "status": {"conditions": [_condition()]},
    }
    member_of_native = pod("native", group="")
    member_of_native["spec"]["schedulingGroup"] = {"podGroupName": "native-0"}
    member = {"type": "Node", "selector": {"regexMatch": {"pattern": "n.*"}}}
    return [
        rich,
        pod("plain", group="bad"),
        pod("runs", "bad", group="bad"),
        manifest_of("PodGroup", "bad", spec=group, status={"phase": "Inqueue", "conditions": [_condition()]}),
        native,
        member_of_native,
        manifest_of("Queue", "bad", spec=queue, status={"state": "Open", "allocated": sizes}),
        node("bad")
        | {"spec": {"taints": [{"key": "x", "value": "y", "effect": "NoExecute"}], "unschedulable": False}},
        manifest_of("PriorityClass", "high", value=100, globalDefault=True),
        manifest_of("HyperNode", "h", spec={"tier": 1, "members": [member]}),
        manifest_of("NodeShard", "s", spec={"nodesDesired": ["n"]}, status={"nodesInUse": ["n"]}),
        manifest_of("ResourceQuota", "q", meta={"namespace": "ns"}, status={"hard": sizes, "used": sizes}),
        manifest_of("Namespace", "ns"),
    ]


def _term() -> dict[str, Any]:
    return {
        "topologyKey": "zone",
        "labelSelector": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]},
    }


def _spread() -> dict[str, Any]:
    return {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}


def _condition() -> dict[str, Any]:
    return {"type": "Unschedulable", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}


scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(ODD)
    | st.text(max_size=5)
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
)


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every spot in a manifest where something else could stand."""
    parts = []
    for key, part in value.items() if isinstance(value, dict) else enumerate(value):
        parts.append((value, key))
        if isinstance(part, dict | list):
            parts += places(part)
    return parts


@st.composite
def hostile(draw: st.DrawFn) -> dict[str, Any]:
    """An object in which some things are not as they should be; it has a name of its own, as an API server sees to."""
    manifest = copy.deepcopy(draw(st.sampled_from(templates())))
    meta, kind = manifest["metadata"], manifest["kind"]
    name = f"{meta['name']}-{draw(st.integers(0, 2))}"
    meta.setdefault("annotations", {})
    for key in draw(st.lists(st.sampled_from(NOTES), max_size=3)):
        meta["annotations"][key] = draw(st.sampled_from(ODD) | st.text(max_size=20))
    for _ in range(draw(st.integers(0, 3))):
        if spots := places(manifest):
            holder, key = draw(st.sampled_from(spots))
            holder[key] = draw(values)
    if not isinstance(manifest.get("metadata"), dict):
        manifest["metadata"] = {}
    namespace = {"namespace": "ns"} if kind in ("Pod", "PodGroup", "NativePodGroup", "ResourceQuota") else {}
    manifest["metadata"] |= {"name": name, "uid": f"{kind}-{name}", "resourceVersion": "7", **namespace}
    return manifest | {"kind": kind}


class Story:
    """The whole way: pages of a list, the buffer, the mirror, cycles."""

    def __init__(self, policy: tuple[str, ...]) -> None:
        self.problems: list[UnusableObject] = []
        self.mirror = ClusterMirror(ClusterWatches(ObjectServer()), report=self.problems.append)
        self.world = KubernetesWorld(self.mirror, lambda orders: None, lambda: EPOCH)
        self.engine = engine(*policy, actions=ACTIONS)
        self.bound: dict[str, str] = {}

    def hear(self, *manifests: dict[str, Any]) -> None:
        for reflector in self.mirror.watches.reflectors:
            items = [manifest for manifest in manifests if manifest["kind"] == reflector.kind.__name__]
            if items:
                page = msgspec.json.encode({"metadata": {}, "items": items})
                for decoded in ListDecoder(reflector.kind).decode(page).objects:
                    reflector._put(decoded)
        self.world.sync()

    def cycle(self) -> None:
        outcome = self.engine.cycle(self.world.cluster, self.world.now())
        assert outcome.lost is None
        self.bound |= {
            decision.name: decision.node for decision in outcome.decisions if isinstance(decision, Bind)
        }
        assert kept_sums(self.world.cluster) == rebuilt_sums(self.world.cluster)


@pytest.mark.slow
@examples(40)
@given(
    policy=st.sampled_from(POLICIES),
    manifests=st.lists(hostile(), min_size=1, max_size=6),
    early=st.booleans(),
)
def test_whatever_is_submitted_the_good_gang_is_bound_and_each_bad_object_is_told_of_once(
    policy: tuple[str, ...], manifests: list[dict[str, Any]], early: bool
) -> None:
    story = Story(policy)
    story.hear(*manifests) if early else story.hear(*good())
    story.cycle()
    story.hear(*good()) if early else story.hear(*manifests)
    for _ in range(2):
        story.hear(*manifests, *good())
        story.cycle()
    assert {name: story.bound.get(name) for name in ("good-0", "good-1")} == {
        "good-0": "good",
        "good-1": "good",
    }
    reported = Counter(problem[:3] for problem in story.problems)
    names = [(manifest["kind"], manifest["metadata"]["name"]) for manifest in manifests]
    for (kind, _, name), times in reported.items():
        assert times <= names.count((kind, name))
    assert all(problem.text and len(problem.text) < 2000 for problem in story.problems)


def test_numbers_at_the_edge_of_what_can_be_counted_do_no_harm() -> None:
    largest = str(2**63 - 1)
    huge = node("bad-0") | {"status": {"allocatable": SIZE | {"cpu": largest, "example.com/x": largest}}}
    story = Story(POLICIES[0])
    pods = [pod(f"bad-{number}", "bad-0", group="bad") for number in range(3)]
    for member in pods:
        member["spec"]["containers"][0]["resources"]["requests"] = {
            "memory": largest,
            "example.com/x": largest,
        }
    story.hear(huge, *pods, *good())
    story.cycle()
    assert story.bound == {"good-0": "good", "good-1": "good"}
