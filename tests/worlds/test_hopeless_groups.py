"""The world `06-hopeless` (volcano#2814, #5006): a group that no node could hold keeps nothing from others."""

from __future__ import annotations

from itertools import accumulate

import pytest

from stromboli.testing import World
from tests.manifests import group, hyper_node, node, phases, pod, policy, queue
from tests.worlds.planning import planned, policy_named

POLICIES = ("stock", "stock-capacity", "full", "full-capacity", "fair-share")
PRESETS = ("preset:default", "preset:basic", "preset:fair-share", "preset:full", "preset:high-priority")


@pytest.mark.parametrize("world", ["plan", "plan-nomin"])
@pytest.mark.parametrize("policy", [*POLICIES, "fair-share-capacity", *PRESETS])
def test_both_jobs_that_fit_start_beside_a_hopeless_one(policy: str, world: str) -> None:
    plan = planned(policy, f"06-hopeless/{world}.yaml").whole
    assert set(plan.binds) == {"default/a-0", "default/b-0"}
    (job,) = plan.pending
    waiting = plan.pending[job]
    assert (job, waiting.reason) == ("default/hopeless", "Larger than any node")
    text = "hopeless-0 requests nvidia.com/gpu 8, the largest node (n1) has nvidia.com/gpu 4"
    assert text in (waiting.message, waiting.hint)


def gate(policy: str = "stock") -> World:
    """A node of 4 CPUs."""
    return World(policy=policy_named(policy).source).add(node("n1"))


def admitted(world: World, cycles: int = 3) -> set[str]:
    """The groups that are past the gate after some cycles."""
    world.step(cycles)
    return {name for name, phase in phases(world).items() if phase != "Pending"}


def newcomer(cpu: int = 4) -> tuple[object, object]:
    return group("new", 1, phase="Pending", minResources={"cpu": str(cpu)}), pod("new-0", "new", cpu=cpu)


def hopeless(pods: int = 1, minimum: int = 1, cpu: int = 5, **spec: object) -> list[object]:
    spec = {"minResources": {"cpu": str(cpu * minimum)}, **spec}
    return [group("big", minimum, **spec), *(pod(f"big-{index}", "big", cpu=cpu) for index in range(pods))]


def test_a_hopeless_group_that_volcano_would_admit_is_admitted_and_then_reserves_nothing() -> None:
    world = World(policy=policy_named("stock").source).add(node("n1"), node("n2"))
    world.add(
        group("big", 1, phase="Pending", minResources={"cpu": "8"}), pod("big-0", "big", cpu=8), *newcomer()
    )
    assert admitted(world, cycles=1) == {"big"}
    assert admitted(world) == {"big", "new"}


def test_a_gang_that_needs_more_than_all_nodes_reserves_nothing() -> None:
    assert admitted(gate().add(*hopeless(2, minimum=2, cpu=3), *newcomer())) == {"big", "new"}


def test_a_gang_whose_pods_do_not_exist_yet_reserves_nothing_beyond_the_cluster() -> None:
    assert admitted(gate().add(*hopeless(0, cpu=5), *newcomer())) == {"big", "new"}


def test_a_gang_that_the_nodes_could_only_hold_in_pieces_reserves_nothing() -> None:
    """Three nodes of 4 CPUs and four pods of 3 hold 12 CPUs both, but one pod fits on each node."""
    world = World(policy=policy_named("stock").source).add(node("n1"), node("n2"), node("n3"))
    assert admitted(world.add(*hopeless(4, minimum=4, cpu=3), *newcomer())) == {"big", "new"}


def test_pods_that_are_larger_than_any_node_by_two_resources_together_are_hopeless() -> None:
    world = World(policy=policy_named("stock").source)
    world.add(node("n1", cpu=8, memory="1Gi"), node("n2", cpu=1, memory="64Gi"))
    world.add(group("big", 1, minResources={"cpu": "8"}), pod("big-0", "big", cpu=8, memory="8Gi"))
    assert admitted(world.add(*newcomer(8))) == {"big", "new"}


def test_a_gang_with_enough_pods_that_fit_is_not_hopeless() -> None:
    world = gate().add(*hopeless(1, minimum=1, cpu=4), pod("big-1", "big", cpu=5), *newcomer())
    world.step()
    assert phases(world)["new"] == "Pending"


def test_a_group_is_no_longer_hopeless_once_a_larger_node_is_added() -> None:
    world = gate().add(*hopeless(cpu=5))
    assert admitted(world) == {"big"}
    world.add(node("n2", cpu=5))
    assert world.step().binds == {"default/big-0": "n2"}


def test_a_group_becomes_hopeless_when_the_only_large_node_is_replaced() -> None:
    world = World(policy=policy_named("stock").source)
    cordoned = {"unschedulable": True}
    world.add(node("n1", cpu=8, spec=cordoned), *hopeless(cpu=8), *newcomer())
    assert "new" not in admitted(world)
    world.add(node("n1", cpu=4, spec=cordoned), node("n2", cpu=4))
    assert "new" in admitted(world)


def test_what_hopeless_pods_request_is_no_demand_that_takes_shares_from_other_queues() -> None:
    """proportion divides 8 CPUs between two queues; one of them asks for a pod of 9."""
    world = World(nodes="n1 cpu=4; n2 cpu=4", queues="a; b", policy=policy_named("stock").source)
    world.job("big", cpu=9, queue="a").job("small", pods=2, cpu=4, queue="b")
    assert set(world.step(2).binds) == {"default/small-0", "default/small-1"}


@pytest.mark.parametrize("minimum", [{}, {"minResources": {"cpu": "9"}}])
@pytest.mark.parametrize("policy", [*POLICIES, *PRESETS])
def test_a_gang_of_unlike_pods_that_are_larger_than_the_cluster_together_keeps_nothing(
    policy: str, minimum: dict[str, object]
) -> None:
    """Neither at the gate nor of the shares; each of its pods fits alone."""
    world = World(nodes="n1 cpu=4; n2 cpu=4", queues="a; b", policy=policy_named(policy).source)
    world.add(group("big", 3, queue="a", **minimum))
    world.add(*(pod(f"big-{index}", "big", cpu=cpu) for index, cpu in enumerate((4, 3, 2))))
    for name in ("x", "y"):
        world.add(group(name, 1, phase="Pending", queue="b", minResources={"cpu": "4"}))
        world.add(pod(f"{name}-0", name, cpu=4))
    assert set(world.step(4).binds) | set(world.step().binds) == {"default/x-0", "default/y-0"}


@pytest.mark.parametrize("policy", ["stock-capacity", "preset:full"])
def test_a_gang_that_the_nodes_hold_only_in_part_is_reported_as_larger_than_the_cluster(policy: str) -> None:
    """Whichever of its pods had found a node when the last one found none."""
    world = World(nodes="n1 cpu=4; n2 cpu=4; n3 cpu=4", policy=policy_named(policy).source)
    world.add(*hopeless(4, minimum=4, cpu=3))
    (waiting,) = world.step(2).pending.values()
    assert waiting.reason == "Larger than the cluster"
    assert "fit fewer of its pods than the 4 that must start together" in waiting.sentence


@pytest.mark.parametrize("policy", [*POLICIES, *PRESETS])
def test_a_gang_of_unlike_pods_that_fit_only_one_by_one_keeps_nothing(policy: str) -> None:
    """Pods of 3, 3 and 2 CPUs request as much as two nodes of 4 CPUs have together."""
    world = World(policy=policy_named(policy).source).add(node("n1"), node("n2"))
    world.add(group("big", 3, minResources={"cpu": "8"}))
    world.add(*(pod(f"big-{index}", "big", cpu=cpu) for index, cpu in enumerate((3, 3, 2))))
    beside_newcomers(world)
    assert set(world.step(2).binds | world.step().binds) == {"default/x-0", "default/y-0"}
    assert world.step().pending["default/big"].reason == "Larger than the cluster"


@pytest.mark.parametrize("policy", POLICIES)
def test_a_running_gang_whose_node_shrank_is_not_hopeless(policy: str) -> None:
    """What it holds stays, so that its missing pod has to fit beside that, not beside what is left of the node."""
    world = World(nodes="n1 cpu=4; n2 cpu=4", policy=policy_named(policy).source)
    world.add(group("gang", 2, phase="Running", minResources={"cpu": "8"}))
    world.add(pod("gang-0", "gang", on="n1", cpu=4), pod("gang-1", "gang", cpu=4))
    world.add(node("n1", cpu=1), node("n2", spec={"unschedulable": True}))
    gang = world.step().pending["default/gang"]
    assert gang.reason == "node(s) were unschedulable"


def test_what_a_running_gang_lacks_is_kept_although_its_node_shrank() -> None:
    world = World(policy=policy_named("preset:basic").source)
    world.add(node("n1", cpu=1), node("n2", spec={"unschedulable": True}))
    world.add(group("gang", 2, phase="Running", minResources={"cpu": "8"}))
    world.add(pod("gang-0", "gang", on="n1", cpu=4), pod("gang-1", "gang", cpu=4), *newcomer())
    world.step(2)
    assert phases(world)["new"] == "Pending"


def test_a_running_gang_whose_missing_pod_fits_nowhere_any_more_reserves_nothing() -> None:
    world = World(nodes="n1 cpu=4; n2 cpu=3", policy=policy_named("preset:basic").source)
    world.add(group("gang", 2, phase="Running", minResources={"cpu": "8"}))
    world.add(pod("gang-0", "gang", on="n1", cpu=4), pod("gang-1", "gang", cpu=4), *newcomer(3))
    assert set(world.step(3).binds) | {"default/new-0"} == {"default/new-0"}
    assert phases(world)["new"] == "Running"


def test_without_gang_scheduling_a_gang_is_hopeless_only_if_none_of_its_pods_fits() -> None:
    world = World(nodes="n1 cpu=4", policy="actions: allocate\ntiers: [{plugins: [{name: proportion}]}]")
    world.job("part", pods=3, minimum=3, cpu=2)
    assert len(world.step().binds) == 2


SELECTOR = {"nodeSelector": {"pool": "h100"}}


def selecting(policy: str, *nodes: object, spec: dict[str, object], cpu: int = 4, pods: int = 1) -> World:
    """Two nodes of 4 CPUs, an admitted gang that selects nodes, and two newcomers that need one node each."""
    world = World(policy=policy_named(policy).source).add(node("n1"), node("n2"), *nodes)
    world.add(group("big", pods, minResources={"cpu": str(cpu * pods)}))
    world.add(*(pod(f"big-{index}", "big", cpu=cpu, spec=spec) for index in range(pods)))
    for name in ("x", "y"):
        world.add(group(name, 1, phase="Pending", minResources={"cpu": "4"}), pod(f"{name}-0", name, cpu=4))
    return world


OURS = pytest.mark.parametrize("policy", ["full", "full-capacity", "fair-share", *PRESETS[1:]])


@OURS
def test_a_gang_that_selects_labels_of_no_node_reserves_nothing(policy: str) -> None:
    world = selecting(policy, spec=SELECTOR)
    assert set(world.step(3).binds) | set(world.step().binds) == {"default/x-0", "default/y-0"}
    waiting = world.step().pending["default/big"]
    assert waiting.reason == "node(s) didn't match Pod's node affinity/selector"
    assert waiting.message == f"big-0: 0/2 nodes are unavailable: 2 {waiting.reason}."
    assert "label a node with pool=h100" in waiting.hint


@OURS
def test_a_gang_that_fits_only_on_nodes_that_it_does_not_select_reserves_nothing(policy: str) -> None:
    small = node("n3", cpu=1, labels={"pool": "h100"})
    world = selecting(policy, small, spec=SELECTOR)
    assert set(world.step(3).binds) == {"default/x-0", "default/y-0"}


def test_a_job_at_the_gate_is_compared_with_the_nodes_that_it_selects() -> None:
    world = gate("preset:basic").add(node("n2", cpu=1, labels={"pool": "h100"}))
    world.add(group("old", 1, phase="Running"), pod("old-0", "old", on="n1", cpu=4))
    world.add(group("new", 1, phase="Pending", minResources={"cpu": "4"}))
    world.add(pod("new-0", "new", cpu=4, spec=SELECTOR))
    waiting = world.step().pending["default/new"]
    assert waiting.reason == "Larger than any node"
    assert waiting.message == "new-0 requests cpu 4, the largest node that it selects (n2) has cpu 1"


@OURS
def test_it_is_no_longer_hopeless_once_a_node_is_labeled(policy: str) -> None:
    world = selecting(policy, node("n3", spec={"unschedulable": True}), spec=SELECTOR)
    world.step(2)
    world.add(node("n3", labels={"pool": "h100"}))
    assert world.step(2).binds == {"default/big-0": "n3"}


def racks(*sizes: int) -> list[object]:
    """HyperNodes of tier 1 over the nodes n1, n2, ..., each with so many of them."""
    ends = list(accumulate(sizes, initial=1))
    return [
        hyper_node(f"rack-{place}", nodes=[f"n{number}" for number in range(*ends[place : place + 2])])
        for place in range(len(sizes))
    ]


def rack_gang(policy: str, *sizes: int, pods: int = 3) -> World:
    """Four nodes of 4 CPUs, and an admitted gang that needs three of them in one rack."""
    world = World(policy=policy_named(policy).source).add(*(node(f"n{number}") for number in range(1, 5)))
    within = {"networkTopology": {"mode": "hard", "highestTierAllowed": 1}}
    return world.add(*racks(*sizes), *hopeless(pods, minimum=3, cpu=4, **within))


@OURS
@pytest.mark.parametrize("pods", [0, 3])
def test_a_gang_larger_than_each_hyper_node_of_its_tier_reserves_nothing(policy: str, pods: int) -> None:
    world = rack_gang(policy, 2, 2, pods=pods)
    for name in ("x", "y"):
        world.add(group(name, 1, phase="Pending", minResources={"cpu": "4"}), pod(f"{name}-0", name, cpu=4))
    assert set(world.step(3).binds) | set(world.step().binds) == {"default/x-0", "default/y-0"}


@OURS
@pytest.mark.parametrize("pods", [0, 3])
def test_a_gang_keeps_its_capacity_once_a_hyper_node_is_large_enough(policy: str, pods: int) -> None:
    world = rack_gang(policy, 2, 2, pods=pods)
    world.add(group("old", 2, phase="Running"))
    world.add(*(pod(f"old-{index}", "old", on=f"n{index}", cpu=4) for index in (3, 4)))
    world.step(2)
    world.add(*racks(3, 1), group("new", 1, phase="Pending", minResources={"cpu": "8"})).step(2)
    assert phases(world)["new"] == "Pending"


TAINT = {"key": "pool", "value": "gpu", "effect": "NoSchedule"}
TAINTED = {"taints": [TAINT]}
TOLERANT = {"tolerations": [{"key": "pool", "operator": "Exists"}]}
CORDONED = {"unschedulable": True}


def beside_newcomers(world: World, **spec: object) -> World:
    """Two jobs at the gate that need a node of 4 CPUs each."""
    for name in ("x", "y"):
        world.add(group(name, 1, phase="Pending", minResources={"cpu": "4"}))
        world.add(pod(f"{name}-0", name, cpu=4, **spec))
    return world


@OURS
@pytest.mark.parametrize(
    ("spec", "reason"), [(TAINTED, "had untolerated taint(s)"), (CORDONED, "were unsched")]
)
def test_a_pod_whose_only_large_node_is_tainted_or_cordoned_keeps_nothing(
    policy: str, spec: dict[str, object], reason: str
) -> None:
    world = World(policy=policy_named(policy).source).add(
        node("n1"), node("n2"), node("n3", cpu=8, spec=spec)
    )
    beside_newcomers(world.add(queue(capability={"cpu": "8"}), *hopeless(cpu=8)))
    binds = world.step(2).binds | world.step().binds
    assert binds == {"default/x-0": "n1", "default/y-0": "n2"}
    assert f"node(s) {reason}" in world.step().pending["default/big"].reason


@OURS
def test_a_gang_without_tolerations_keeps_nothing_on_a_tainted_pool(policy: str) -> None:
    world = World(policy=policy_named(policy).source).add(node("n1", spec=TAINTED), node("n2", spec=TAINTED))
    beside_newcomers(world.add(*hopeless(2, minimum=2, cpu=4)), spec=TOLERANT)
    assert set(world.step(2).binds | world.step().binds) == {"default/x-0", "default/y-0"}


@OURS
@pytest.mark.parametrize("spec", [TAINTED, CORDONED])
def test_a_gang_keeps_its_capacity_again_once_its_nodes_are_open(
    policy: str, spec: dict[str, object]
) -> None:
    world = World(policy=policy_named(policy).source).add(
        node("n1", created=1, spec=spec), node("n2"), node("n3")
    )
    world.add(
        *hopeless(3, minimum=3, cpu=4), group("old", 1, phase="Running"), pod("old-0", "old", on="n2", cpu=4)
    )
    world.step(2)
    world.add(node("n1", created=1), *newcomer(4)).step(2)
    assert phases(world)["new"] == "Pending"


def test_a_gang_with_tolerations_keeps_its_capacity_on_tainted_nodes() -> None:
    world = gate("preset:basic").add(node("n1", spec=TAINTED))
    world.add(group("old", 1, phase="Running"), pod("old-0", "old", on="n1", cpu=1))
    world.add(group("big", 1, minResources={"cpu": "4"}), pod("big-0", "big", cpu=4, spec=TOLERANT))
    world.add(*newcomer(1)).step(2)
    assert phases(world)["new"] == "Pending"


def test_taints_that_the_policy_ignores_bar_nothing() -> None:
    arguments = {"predicate.TaintTolerationEnable": False}
    text = policy("enqueue, allocate", "gang | overcommit", ("predicates", arguments), enqueue=RESERVE)
    world = World(policy=text).add(node("n1", spec=TAINTED), group("old", 1, phase="Running"))
    world.add(pod("old-0", "old", on="n1", cpu=2), *hopeless(cpu=4), *newcomer(2)).step(2)
    assert phases(world)["new"] == "Pending"


def apart(key: str) -> dict[str, object]:
    """A spec of pods labelled `app: big` of which no two may run in the same domain."""
    term = {"labelSelector": {"matchLabels": {"app": "big"}}, "topologyKey": key}
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def kept_apart(policy: str, pods: int, key: str = "kubernetes.io/hostname") -> World:
    """Two nodes of 4 CPUs in two zones, and an admitted gang of such pods with 1 CPU each."""
    world = World(policy=policy_named(policy).source)
    world.add(node("n1", labels={"zone": "a"}), node("n2", labels={"zone": "b"}))
    world.add(group("big", pods, minResources={"cpu": str(pods)}))
    return world.add(
        *(pod(f"big-{index}", "big", labels={"app": "big"}, spec=apart(key)) for index in range(pods))
    )


@OURS
@pytest.mark.parametrize("key", ["kubernetes.io/hostname", "zone"])
def test_a_gang_with_more_pods_than_hosts_or_zones_to_keep_apart_reserves_nothing(
    policy: str, key: str
) -> None:
    world = beside_newcomers(kept_apart(policy, 3, key))
    assert set(world.step(2).binds | world.step().binds) == {"default/x-0", "default/y-0"}
    assert "anti-affinity" in world.step().pending["default/big"].reason


@pytest.mark.parametrize(("key", "pods"), [("kubernetes.io/hostname", 2), ("rack", 5)])
def test_a_gang_whose_pods_find_hosts_apart_keeps_its_capacity(key: str, pods: int) -> None:
    """A node without the label of the domain keeps no pods apart."""
    world = kept_apart("preset:basic", pods, key)
    world.add(group("old", 1, phase="Running"), pod("old-0", "old", on="n2", cpu=4), *newcomer(3)).step(2)
    assert phases(world)["new"] == "Pending"


def test_a_gang_starts_without_hosts_for_its_pods_that_request_nothing() -> None:
    world = World(policy=policy_named("preset:basic").source).add(node("n1"), node("n2"))
    world.add(group("big", 4, minResources={"cpu": "4"}), pod("big-3", "big", cpu=4))
    spec = apart("kubernetes.io/hostname")
    world.add(*(pod(f"big-{index}", "big", cpu=0, labels={"app": "big"}, spec=spec) for index in range(3)))
    for name in ("n1", "n2"):
        world.add(group(f"old-{name}", 1, phase="Running"), pod(f"old-{name}-0", f"old-{name}", on=name))
    world.add(*newcomer(3)).step(2)
    assert phases(world)["new"] == "Pending"
    assert "default/big-3" in world.finish("old-n1-0").step().binds


def test_a_gang_keeps_its_capacity_once_its_nodes_are_in_enough_zones() -> None:
    world = kept_apart("preset:basic", 2, "zone")
    world.add(node("n1", labels={"zone": "b"}, created=1), node("n2", labels={"zone": "b"}, created=2))
    world.add(group("old", 1, phase="Running"), pod("old-0", "old", on="n2", cpu=4)).step(2)
    world.add(node("n1", labels={"zone": "a"}, created=1), *newcomer(3)).step(2)
    assert phases(world)["new"] == "Pending"


@OURS
def test_a_gang_alone_in_its_queue_is_told_why_no_node_is_open(policy: str) -> None:
    """The shares count nothing for it, so that its queue deserves nothing."""
    world = World(policy=policy_named(policy).source).add(node("n1", spec=TAINTED))
    waiting = world.add(*hopeless(2, minimum=2, cpu=2)).step(2).pending["default/big"]
    assert waiting.message == "big-0: 0/1 nodes are unavailable: 1 node(s) had untolerated taint(s)."
    assert waiting.hint == "tolerate a taint or remove it: pool=gpu:NoSchedule"


@OURS
@pytest.mark.parametrize("full", [False, True])
def test_a_gang_is_not_told_to_wait_for_capacity_that_its_pods_may_not_use(policy: str, full: bool) -> None:
    """Whether the tainted node is full makes no difference: the other node holds one of the two pods."""
    world = World(policy=policy_named(policy).source).add(node("n1", spec=TAINTED), node("n2"))
    if full:
        world.add(group("old", 1, phase="Running"), pod("old-0", "old", on="n1", cpu=4))
    waiting = world.add(*hopeless(2, minimum=2, cpu=3)).step(2).pending["default/big"]
    assert waiting.counts == {
        "node(s) had untolerated taint(s)": 1,
        "node(s) hold too few of its pods even when empty": 1,
    }
    assert waiting.hint == "tolerate a taint or remove it: pool=gpu:NoSchedule"
    assert "wait" not in waiting.sentence.partition(" waits: ")[2]


@OURS
def test_a_gang_alone_in_its_queue_is_told_that_hosts_are_missing(policy: str) -> None:
    waiting = kept_apart(policy, 3).step(2).pending["default/big"]
    assert waiting.reason == "node(s) didn't match pod anti-affinity rules"


def in_queue(policy: str, *queues: object, pods: int = 3, **spec: object) -> World:
    """Four nodes of 4 CPUs, and an admitted gang of three such pods in the queue `team`."""
    world = World(policy=policy_named(policy).source).add(
        *(node(f"n{number}") for number in range(1, 5)), *queues
    )
    world.add(*hopeless(pods, minimum=3, cpu=4, queue="team", **spec))
    for name in ("x", "y"):
        world.add(group(name, 1, queue="team", phase="Pending", minResources={"cpu": "4"}))
        world.add(pod(f"{name}-0", name, cpu=4))
    return world


SMALL = {"capability": {"cpu": "8"}, "deserved": {"cpu": "8"}}


@OURS
@pytest.mark.parametrize("pods", [0, 3])
def test_a_gang_larger_than_the_capability_of_its_queue_keeps_nothing(policy: str, pods: int) -> None:
    world = in_queue(policy, queue("team", **SMALL), pods=pods)
    assert set(world.step(2).binds | world.step().binds) == {"default/x-0", "default/y-0"}


@OURS
def test_a_gang_larger_than_the_capability_is_told_so_if_it_is_alone_in_its_queue(policy: str) -> None:
    world = World(policy=policy_named(policy).source).add(*(node(f"n{number}") for number in range(1, 5)))
    world.add(queue("team", **SMALL), *hopeless(3, minimum=3, cpu=4, queue="team"))
    hint = world.step(2).pending["default/big"].hint
    assert "it requests cpu 12 and the capability is cpu 8, so it can never start" in hint


def test_a_gang_larger_than_the_capability_of_a_parent_queue_keeps_nothing() -> None:
    world = in_queue("full-capacity-tree", queue("p", parent="root", **SMALL), queue("team", parent="p"))
    assert set(world.step(2).binds | world.step().binds) == {"default/x-0", "default/y-0"}


@OURS
def test_it_keeps_its_capacity_once_the_capability_is_raised(policy: str) -> None:
    world = World(policy=policy_named(policy).source).add(*(node(f"n{number}") for number in range(1, 4)))
    world.add(queue("team", **SMALL), group("old", 1, phase="Running"), pod("old-0", "old", on="n1", cpu=4))
    world.add(*hopeless(3, minimum=3, cpu=4, queue="team")).step(2)
    world.add(queue("team", capability={"cpu": "12"}), *newcomer(4)).step(2)
    assert phases(world)["new"] == "Pending"


@pytest.mark.parametrize("old", [{"n1": 4}, {"n1": 2, "n2": 2, "n3": 2}])
@pytest.mark.parametrize("change", ["raised", "deleted", "moved"])
def test_it_keeps_its_capacity_once_the_capability_of_a_parent_queue_is_raised(
    change: str, old: dict[str, int]
) -> None:
    """Also with `old` pods on all nodes, so that no pod of the gang fits and the gang is not tried again."""
    world = World(policy=policy_named("full-capacity-tree").source)
    world.add(*(node(f"n{number}") for number in range(1, 4)), queue("p", parent="root", **SMALL))
    world.add(queue("mid", parent="p"), queue("team", parent="mid"))
    for name, cpu in old.items():
        world.add(
            group(f"old-{name}", 1, phase="Running"), pod(f"old-{name}-0", f"old-{name}", on=name, cpu=cpu)
        )
    world.add(*hopeless(3, minimum=3, cpu=4, queue="team")).step(4)
    if change == "raised":
        world.add(queue("p", parent="root", capability={"cpu": "12"}))
    elif change == "moved":
        world.add(queue("mid", parent="root"))
    else:
        world.remove(queue("p", parent="root", **SMALL))
    world.step(3)
    world.add(*newcomer(4)).step(2)
    assert phases(world)["new"] == "Pending"


def test_a_gang_of_which_enough_pods_fit_below_the_capability_keeps_its_capacity() -> None:
    world = World(policy=policy_named("preset:basic").source).add(node("n1"), node("n2"))
    world.add(queue("team", **SMALL), group("old", 1, phase="Running"), pod("old-0", "old", on="n1", cpu=1))
    world.add(group("big", 2, queue="team", minResources={"cpu": "8"}))
    world.add(*(pod(f"big-{index}", "big", cpu=4) for index in range(3)), *newcomer(4)).step(2)
    assert phases(world)["new"] == "Pending"


def test_a_gang_starts_anywhere_if_the_policy_ignores_the_labels_of_nodes() -> None:
    arguments = {"predicate.NodeAffinityEnable": False}
    text = policy("enqueue, allocate", "gang | proportion", ("predicates", arguments), enqueue=RESERVE)
    world = World(nodes="n1 cpu=4", policy=text).add(*hopeless(cpu=4, minResources=None))
    world.add(pod("big-0", "big", cpu=4, spec=SELECTOR))
    assert world.step(2).binds == {"default/big-0": "n1"}


RESERVE = {"reserveMinimum": True}


def test_a_job_refused_for_what_is_reserved_is_told_so() -> None:
    world = gate("stock").add(group("first", 1, minResources={"cpu": "4"}), *newcomer())
    hint = world.step().pending["default/new"].hint
    assert "cpu 4 free; free capacity may be reserved for admitted jobs: wait until these" in hint
