"""Hard requirements that cannot be met keep pods and gangs pending in all policies; soft ones are reported."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.api import names
from stromboli.engine.catalog import action
from stromboli.engine.decisions import Event, PodGroupStatus
from stromboli.engine.explanation.diagnosis import Diagnosis
from stromboli.engine.plugin import Plugin
from stromboli.engine.session import Session
from stromboli.extensions import load_catalog
from stromboli.model.requirements.placement_requirement import REQUIREMENTS
from stromboli.model.status import Status
from stromboli.testing import World
from stromboli.testing.cycle_result import Result
from stromboli.testing.policy_text import policy_text
from tests.manifests import group, node, pod, policy

PLACE = "enqueue, allocate, backfill"
POLICIES = [
    "",
    "gang",
    "gang | predicates nodeorder",
    "priority gang conformance | drf predicates proportion nodeorder",
]
NUMA = "volcano.sh/numa-topology-policy"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
TERM = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "x"}}}
WRITTEN = {
    "topologyKey": "kubernetes.io/hostname",
    "matchLabelKeys": ["version"],
    "labelSelector": {"matchExpressions": [{"key": "version", "operator": "In", "values": ["2"]}]},
}
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
GUARANTEED = {"containers": [{"name": "main", "resources": {"requests": {"cpu": 2, "memory": "1Gi"}}}]}
GUARANTEED["containers"][0]["resources"]["limits"] = GUARANTEED["containers"][0]["resources"]["requests"]
CLAIMED = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "c"}}]}
LATE = {"kind": "StorageClass", "metadata": {"name": "late"}, "volumeBindingMode": "WaitForFirstConsumer"}
NOW = {"kind": "StorageClass", "metadata": {"name": "now"}, "volumeBindingMode": "Immediate"}


def claim(volume: str = "", storage: str = "late") -> dict[str, Any]:
    """The claim `c`, bound if it names a volume."""
    annotations = {names.BIND_COMPLETED: "yes"} if volume else {}
    return {
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "c", "namespace": "default", "annotations": annotations},
        "spec": {"volumeName": volume, "storageClassName": storage},
        "status": {"phase": "Bound" if volume else "Pending"},
    }


def volume(zone: str = "") -> dict[str, Any]:
    terms = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]}]
    spec = {"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}} if zone else {}
    return {"kind": "PersistentVolume", "metadata": {"name": "v"}, "spec": spec}


def hyper_node(tier_name: str = "rack") -> dict[str, Any]:
    members = [{"type": "Node", "selector": {"exactMatch": {"name": "a"}}}]
    return {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": {"name": "s0"},
        "spec": {"tier": 1, "tierName": tier_name, "members": members},
    }


def world() -> World:
    devices = ("volcano.sh/vgpu-number", "volcano.sh/gpu-memory", "huawei.com/npu-core")
    sizes = {"cpu": 8, **dict.fromkeys((*devices, "deviceclass.resource.kubernetes.io/gpu"), 9000)}
    registering = node("a", **sizes)
    registering["metadata"]["annotations"] = {
        "volcano.sh/node-vgpu-register": "GPU-1,4,9000,NVIDIA,true,mode:"
    }
    return World().add(registering, node("b", **sizes))


def explanation(result: Result, job: str = "default/j") -> Diagnosis:
    return result.pending[job]


POD_DEMANDS: dict[str, dict[str, Any]] = {
    "resource claims of the pod": {"spec": {"resourceClaims": [{"name": "gpu", "resourceClaimName": "x"}]}},
    "resource claims of a container": {
        "spec": {
            "initContainers": [{"name": "init", "resources": {"claims": [{"name": "gpu"}]}}],
        }
    },
    "a device class as a resource": {"resources": {"deviceclass.resource.kubernetes.io/gpu": 1}},
    "a share of a GPU": {"resources": {"volcano.sh/vgpu-number": 1}},
    "memory of a GPU": {"resources": {"volcano.sh/gpu-memory": 100}},
    "memory of an NPU": {"resources": {"huawei.com/Ascend910A-memory": 4}},
    "cores of an NPU": {"resources": {"huawei.com/npu-core": 4}},
    "one NUMA node": {"spec": GUARANTEED, "annotations": {NUMA: "single-numa-node"}},
    "an unknown NUMA policy": {"spec": GUARANTEED, "annotations": {NUMA: "tight"}},
    "a claim that does not exist": {"spec": CLAIMED},
    "labels that are not in the selector": {
        "labels": {"version": "2"},
        "spec": {"affinity": {"podAntiAffinity": {REQUIRED: [{**TERM, "mismatchLabelKeys": ["version"]}]}}},
    },
}


HONOURED_BY = {"a device class as a resource": "predicates"}
"""A node of these tests has such a resource, so that the plugin lets the pod start."""


@pytest.mark.parametrize("plugins", POLICIES)
@pytest.mark.parametrize("asks", POD_DEMANDS)
def test_a_pod_with_a_requirement_that_no_plugin_honours_is_never_bound(asks: str, plugins: str) -> None:
    if HONOURED_BY.get(asks, plugins + ".") in plugins:
        return
    terms = {"cpu": 1, **POD_DEMANDS[asks]}
    result = world().job("j", pods=2, **terms).job("plain", cpu=1).run(PLACE, plugins, cycles=2)
    assert set(result.binds) == {"default/plain-0"}
    assert result.why("j-0")


@pytest.mark.parametrize(
    "asks",
    ["resource claims of the pod", "resource claims of a container", "a claim that does not exist"],
)
def test_a_best_effort_pod_is_not_bound_either(asks: str) -> None:
    assert world().job("j", **POD_DEMANDS[asks]).run(PLACE, "gang").binds == {}


@pytest.mark.parametrize(
    ("objects", "problem"),
    [
        ([], 'persistentvolumeclaim "c" not found'),
        ([LATE, claim()], 'persistentvolumeclaim "c" is not bound'),
        ([NOW, claim(storage="now")], "pod has unbound immediate PersistentVolumeClaims"),
        ([LATE, claim("v")], 'persistentvolume "v" not found'),
        (
            [LATE, claim("v"), volume("z1")],
            "no plugin in the policy checks from which nodes its volume",
        ),
    ],
)
def test_without_predicates_too_a_claim_must_be_bound_and_reachable(objects: Any, problem: str) -> None:
    result = world().add(*objects).job("j", cpu=1, spec=CLAIMED).run(PLACE, "gang")
    assert result.binds == {}
    assert problem in result.why("j-0")
    assert explanation(result).gate == "requirements"
    assert explanation(result).hint


def test_a_bound_volume_that_every_node_reaches_is_no_obstacle() -> None:
    bound = world().add(LATE, claim("v"), volume()).job("j", cpu=1, spec=CLAIMED)
    assert set(bound.run(PLACE, "gang").binds) == {"default/j-0"}


@pytest.mark.parametrize(
    "terms",
    [
        {"resources": {"volcano.sh/vgpu-number": 0}},
        {"spec": {"containers": [{"name": "main", "resources": {"limits": {"volcano.sh/gpu-memory": "0"}}}]}},
        {"spec": GUARANTEED, "annotations": {NUMA: "none"}},
        {"annotations": {NUMA: "single-numa-node"}},
        {"spec": {"affinity": {"podAntiAffinity": {REQUIRED: [{**TERM, "matchLabelKeys": ["absent"]}]}}}},
        {"labels": {"version": "2"}, "spec": {"affinity": {"podAntiAffinity": {REQUIRED: [WRITTEN]}}}},
        {"gpu": 0, "spec": {"volumes": [{"name": "tmp", "emptyDir": {}}]}},
    ],
)
def test_what_asks_for_nothing_is_placed(terms: dict[str, Any]) -> None:
    """A NUMA policy means pods of class Guaranteed (spec 04 7); label keys, labels that the pod has."""
    assert set(world().job("j", cpu=1, **terms).run(PLACE, "gang").binds) == {"default/j-0"}


# -- PodGroups and queues

HARD = {"networkTopology": {"mode": "hard", "highestTierAllowed": 1}}
BY_NAME = {"networkTopology": {"mode": "hard", "highestTierName": "spine"}}
OF_SUB_GROUPS = {"subGroupPolicy": [{"name": "s", "matchLabelKeys": ["x"], **HARD}]}


class Honours(Plugin):
    """Declares that it honours hard network topology."""

    name = "honest"
    honours = frozenset({"hard-network-topology"})


@pytest.mark.parametrize("plugins", POLICIES)
@pytest.mark.parametrize("group", [HARD, BY_NAME, OF_SUB_GROUPS])
def test_a_gang_with_a_hard_topology_waits_without_a_plugin_for_it(group: Any, plugins: str) -> None:
    result = (
        world().add(hyper_node("spine")).job("j", pods=2, cpu=1, group=group).run(PLACE, plugins, cycles=2)
    )
    assert result.binds == {}
    waits = explanation(result)
    assert (waits.gate, waits.reason) == ("requirements", "Unmet requirement: hard-network-topology")
    assert "no plugin in the policy honours a hard network topology" in waits.message
    assert "mode: soft" in waits.hint


@pytest.mark.parametrize(
    ("objects", "group", "problem", "remedy"),
    [
        (
            [],
            HARD,
            "spec.networkTopology (hard, highestTierAllowed 1): the cluster has no HyperNodes",
            "create HyperNodes",
        ),
        ([hyper_node()], BY_NAME, '"spine"): no HyperNode has a tier with that name', "use one of: rack"),
        ([hyper_node("")], BY_NAME, '"spine"): no HyperNode has a tier with that name', "name the tiers"),
    ],
)
def test_a_plugin_alone_is_not_enough_without_hyper_nodes_and_tiers(
    objects: Any, group: Any, problem: str, remedy: str
) -> None:
    made = world().add(*objects).job("j", pods=2, cpu=1, group=group)
    result = made.run(PLACE, "gang honest", plugin_classes=[Honours])
    assert result.binds == {}
    assert problem in explanation(result).message
    assert remedy in explanation(result).hint
    assert "no plugin" not in explanation(result).message
    assert "not there yet" not in explanation(result).hint


def test_hyper_nodes_are_no_way_out_while_no_plugin_honours_a_hard_topology() -> None:
    waits = explanation(world().job("j", pods=2, cpu=1, group=HARD).run(PLACE, "gang"))
    assert "the cluster has no HyperNodes" in waits.message
    assert waits.hint.startswith("add network-topology-aware to the policy")


def test_pods_are_placed_if_a_plugin_honours_their_requirement() -> None:
    made = world().add(hyper_node("spine")).job("j", pods=2, cpu=1, group=BY_NAME)
    assert len(made.run(PLACE, "gang honest", plugin_classes=[Honours]).binds) == 2


def test_thousands_of_sub_group_policies_cost_no_more_than_their_number() -> None:
    policies = [
        {"name": f"s{tier}", "networkTopology": {"mode": mode, "highestTierAllowed": tier}}
        for tier in range(2000)
        for mode in ("hard", "soft")
    ]
    made = world().add(hyper_node()).job("j", pods=2, cpu=1, group={"subGroupPolicy": policies})
    result = made.run(PLACE, "gang honest", plugin_classes=[Honours])
    assert len(result.ignored["default/j"]) <= 1024


def test_a_gang_with_an_unmet_requirement_is_not_admitted_and_takes_nothing_of_its_queue() -> None:
    cluster = World(nodes="a cpu=8", queues="q capability=cpu:8")
    cluster.job("j", pods=2, cpu=4, queue="q", group=HARD, min_resources={"cpu": 8})
    cluster.job("other", pods=2, cpu=4, queue="q", min_resources={"cpu": 8})
    result = cluster.run(PLACE, "gang | capacity predicates")
    assert result.phases["default/j"] in ("", "Pending")
    assert result.bound_per_job == {"default/other": 2}


def test_a_pod_that_its_queue_keeps_out_too_hears_of_its_requirement() -> None:
    """No node has the resource, so that the queue's reason would be to add nodes."""
    asked = {"volcano.sh/gpu-memory": 100}
    small = World(nodes="n1 cpu=8").job("j", cpu=1, resources=asked, min_resources=asked)
    result = small.run(PLACE, "gang | proportion overcommit")
    assert "no plugin in the policy shares out parts of devices" in result.pending["default/j"].message


def test_the_reason_stands_in_the_events_and_conditions_of_a_gang_and_is_not_repeated() -> None:
    made = world().job("j", pods=2, cpu=1, group=HARD, phase="Inqueue")
    first = made.run(PLACE, "gang")
    texts = [decision.message for decision in first.decisions if isinstance(decision, Event)]
    assert {"PodGroup", "Pod"} == {
        decision.kind for decision in first.decisions if isinstance(decision, Event)
    }
    assert all("the cluster has no HyperNodes" in text for text in texts)
    status = next(decision for decision in first.decisions if isinstance(decision, PodGroupStatus))
    assert "the cluster has no HyperNodes" in status.conditions[0].message
    assert made.step().decisions == []


@pytest.mark.parametrize("affinity", ["nodeGroupAffinity", "nodeGroupAntiAffinity"])
def test_a_queue_that_requires_node_groups_waits_for_a_plugin_that_knows_them(affinity: str) -> None:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": ["g1"]}
    queue = {"kind": "Queue", "metadata": {"name": "q"}, "spec": {"affinity": {affinity: required}}}
    result = world().add(queue).job("j", cpu=1, queue="q").run(PLACE, "gang")
    assert result.binds == {}
    assert "add nodegroup to the policy" in explanation(result).hint
    wishes = {"preferredDuringSchedulingIgnoredDuringExecution": ["g1"]}
    made = world().add({**queue, "spec": {"affinity": {affinity: wishes}}}).job("j", cpu=1, queue="q")
    assert set(made.run(PLACE, "gang").binds) == {"default/j-0"}


# -- actions that evict, and those of users


@pytest.mark.parametrize("evicting", ["preempt", "reclaim", "gangpreempt", "gangreclaim"])
@pytest.mark.parametrize(
    "terms", [{"group": HARD}, {"spec": {"resourceClaims": [{"name": "gpu", "resourceClaimName": "x"}]}}]
)
def test_no_pod_is_evicted_for_a_pod_that_cannot_be_bound(evicting: str, terms: Any) -> None:
    def cluster() -> World:
        made = World(nodes="a cpu=4", queues="poor weight=1; rich weight=3")
        return made.job("victim", queue="poor", pods=4, minimum=0, cpu=1, running_on="a a a a")

    queue = "poor" if "preempt" in evicting else "rich"
    plugins = "priority gang conformance | predicates proportion nodeorder"
    wanted: Any = {"queue": queue, "cpu": 2, "priority": 10, "phase": "Inqueue"}
    assert cluster().job("j", **wanted).run(evicting, plugins).evicted, "it evicts for an ordinary pod"
    assert cluster().job("j", **wanted, **terms).run(evicting, plugins).evicted == []


def test_an_action_that_does_not_ask_cannot_bind_such_a_pod_either() -> None:
    @action("careless")
    def careless(session: Session) -> None:
        for job in session.jobs():
            for task in list(job.by_status[Status.PENDING]):
                with session.statement() as trial:
                    trial.allocate(task, session.cluster.nodes["a"])
                    trial.commit()

    made = world().job("j", cpu=1, spec={"resourceClaims": [{"name": "x"}]}).job("plain", cpu=1)
    result = made.run("careless", "gang", action_functions=[careless])
    assert set(result.binds) == {"default/plain-0"}
    assert "spec.resourceClaims (x)" in result.why("j-0")


def test_extra_pods_of_a_gang_that_ask_for_the_impossible_do_not_keep_it_from_starting() -> None:
    made = world().job("j", pods=3, minimum=2, cpu=1)
    odd = made.task("j-2")
    spec = {"schedulerName": "volcano", "resourceClaims": [{"name": "x"}], "containers": [{"name": "m"}]}
    made.add(
        {
            "kind": "Pod",
            "metadata": {"name": "j-2", "uid": odd.uid, "annotations": dict(odd.annotations)},
            "spec": spec,
            "status": {"phase": "Pending"},
        }
    )
    assert set(made.run(PLACE, "gang").binds) == {"default/j-0", "default/j-1"}


# -- what is reported

WISHES: dict[str, tuple[dict[str, Any], str]] = {
    "soft topology": ({"group": {"networkTopology": {"mode": "soft"}}}, "spec.networkTopology (soft)"),
    "hard topology without a tier": ({"group": {"networkTopology": {"mode": "hard"}}}, "without a tier"),
    "task topology": (
        {"annotations": {"volcano.sh/task-topology-affinity": "ps,worker"}},
        "annotation volcano.sh/task-topology-affinity (ps,worker)",
    ),
    "NUMA if possible": ({"spec": GUARANTEED, "annotations": {NUMA: "best-effort"}}, f"annotation {NUMA}"),
    "a node selector": ({"spec": {"nodeSelector": {"zone": "x"}}}, "spec.nodeSelector: no plugin"),
    "a wish for nodes": (
        {"spec": {"affinity": {"nodeAffinity": {PREFERRED: [{"weight": 1, "preference": {}}]}}}},
        "preferred spec.affinity.nodeAffinity: no plugin",
    ),
    "a revocable zone": (
        {"annotations": {"volcano.sh/revocable-zone": "*"}},
        "annotation volcano.sh/revocable-zone",
    ),
    "a strategy": (
        {"annotations": {"volcano.sh/resource-strategy-scoring-type": "MostAllocated"}},
        "annotation volcano.sh/resource-strategy-scoring-type",
    ),
    "a waiting time": (
        {"annotations": {"volcano.sh/sla-waiting-time": "1h"}},
        "annotation volcano.sh/sla-waiting-time (1h)",
    ),
    "an operating system": ({"spec": {"os": {"name": "windows"}}}, "spec.os (windows)"),
    "a disk": ({"spec": {"volumes": [{"name": "d", "rbd": {"image": "x"}}]}}, "spec.volumes (d)"),
}


def test_a_queue_with_an_order_that_no_plugin_honours_gets_an_event() -> None:
    queue = {"kind": "Queue", "metadata": {"name": "q"}, "spec": {"dequeueStrategy": "fifo"}}
    result = world().add(queue).job("j", cpu=1, queue="q").run(PLACE, "gang")
    assert "spec.dequeueStrategy of its queue (fifo)" in result.ignored["default/j"]


@pytest.mark.parametrize("wish", WISHES)
def test_a_soft_requirement_that_no_plugin_honours_is_reported_once_and_the_pods_start(wish: str) -> None:
    terms, text = WISHES[wish]
    made = world().job("j", pods=2, cpu=1, **terms)
    result = made.run(PLACE, "gang", cycles=3)
    assert len(result.binds) == 2
    events = [
        event for event in result.decisions if isinstance(event, Event) and event.reason == "FieldIgnored"
    ]
    assert [(event.kind, event.type, event.name) for event in events] == [("PodGroup", "Warning", "j")]
    assert text in events[0].message


def test_soft_requirements_are_not_reported_again_when_a_pod_is_replaced() -> None:
    linux = pod("a", "j", spec={"nodeSelector": {"disk": "fast"}})
    windows = pod("b", "j", spec={"os": {"name": "windows"}})
    made = World(policy=policy_text(PLACE, "gang")).add(node("n1"), group("j", 2), linux, windows)
    assert set(made.step().ignored) == {"default/j"}
    assert made.remove(linux).add(linux).step().ignored == {}


def test_a_requirement_that_a_plugin_honours_is_not_reported() -> None:
    spec = {
        "nodeSelector": {"kubernetes.io/os": "windows"},
        "os": {"name": "windows"},
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "x", "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {}}
        ],
    }
    result = world().job("j", cpu=1, spec=spec).run(PLACE, "gang | predicates nodeorder")
    assert result.ignored == {}
    assert set(world().job("j", cpu=1, spec=spec).run(PLACE, "gang").ignored) == {"default/j"}


@pytest.mark.parametrize("resource", ["volcano.sh/gpu-memory", "huawei.com/npu-core"])
def test_an_extender_that_manages_shares_of_devices_honours_them(resource: str) -> None:
    managed = {"extender.predicateVerb": "fits", "extender.managedResources": [resource]}
    rules = policy(PLACE, "gang", ("extender", managed))
    made = world().job("j", cpu=1, resources={resource: 100})
    assert set(made.run(policy=rules).binds) == {"default/j-0"}


def test_ten_thousand_replicas_pay_for_their_requirements_once() -> None:
    made = world().job("j", pods=50, cpu=1, spec={"resourceClaims": [{"name": "x"}]})
    tasks = [task for task in made.cluster.tasks.values() if task.job]
    assert len({id(task.demands) for task in tasks}) == 1
    job = tasks[0].job
    assert job is not None
    assert list(job.task_demands.values()) == [50]


# -- plugins


def test_a_plugin_that_claims_to_honour_what_is_no_requirement_is_refused() -> None:
    with pytest.raises(
        TypeError,
        match=r"unknown requirement 'hard-topology' in honours; valid requirements: .*hard-network-",
    ):
        type("Wrong", (Plugin,), {"name": "wrong", "honours": frozenset({"hard-topology"})})


def test_the_table_names_the_plugins_that_honour_each_requirement() -> None:
    honoured = {name: kind.honours for name, kind in load_catalog().plugins.items() if kind.honours}
    named: dict[str, set[str]] = {}
    for requirement in REQUIREMENTS:
        if requirement.plugin:
            named.setdefault(requirement.plugin, set()).add(requirement.name)
    assert named == honoured


def test_every_requirement_has_a_name_of_its_own_and_says_the_way_out() -> None:
    assert len({requirement.name for requirement in REQUIREMENTS}) == len(REQUIREMENTS)
    assert all(requirement.unmet and requirement.remedy and requirement.field for requirement in REQUIREMENTS)
