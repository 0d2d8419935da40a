"""Eviction under the presets: no more than needed, nobody harmed, limits honoured."""

import pytest

from stromboli.engine.decisions import Evict
from stromboli.policy.presets import PRESETS
from stromboli.testing import World
from tests.eviction_policies import GENTLE, LOOSE
from tests.manifests import pod, policy

FULL_NODE = "n1 cpu=4,memory=8Gi,pods=110"


def test_a_victim_that_the_limit_of_the_queue_needs_is_not_spared():
    world = World(nodes="n1 cpu=4", queues="a; b")
    world.job("low", pods=2, minimum=0, cpu=2, priority=10, running_on="n1 n1", queue="a")
    world.job("urgent", cpu=2, priority=1000, queue="a")
    world.job("other", cpu=2, priority=10, queue="b")
    result = world.run(policy="high-priority", cycles=3)
    assert result.binds == {"default/urgent-0": "n1", "default/other-0": "n1"}


def test_a_queue_at_its_ceiling_gives_up_a_pod_even_where_nodes_have_room():
    world = World(nodes="n1 cpu=4", queues="q capability=cpu:1")
    world.job("low", minimum=0, cpu=1, priority=10, running_on="n1", queue="q")
    world.job("urgent", cpu=1, priority=1000, queue="q")
    result = world.run(policy=PRESETS["high-priority"].replace("proportion", "capacity"), cycles=2)
    assert (result.evicted, result.binds) == (["default/low-0"], {"default/urgent-0": "n1"})


def test_a_legal_victim_is_evicted_where_a_gang_beside_it_must_stay():
    world = World(nodes="n1 cpu=4; n2 cpu=4")
    world.job("solo", cpu=2, priority=5, running_on="n1")
    world.job("pair", minimum=2, cpu=2, priority=1, running_on="n1")
    world.add(
        {
            "kind": "Pod",
            "metadata": {
                "name": "pair-x",
                "annotations": {"scheduling.k8s.io/group-name": "pair", "volcano.sh/preemptable": "false"},
            },
            "spec": {
                "nodeName": "n2",
                "containers": [{"name": "m", "resources": {"requests": {"cpu": "4"}}}],
            },
            "status": {"phase": "Running"},
        }
    )
    world.job("urgent", cpu=2, priority=9)
    assert world.run(policy="high-priority").evicted == ["default/solo-0"]


def test_a_gang_goes_whole_or_not_at_all():
    world = World(nodes=FULL_NODE).job("gang", pods=4, cpu=1, priority=1, running_on="n1 n1 n1 n1")
    world.job("urgent", cpu=1, priority=9)
    assert len(world.run(policy="high-priority").evicted) == 4


def crowded(queue="q"):
    world = World(nodes=FULL_NODE, queues=queue)
    world.job("low", pods=4, minimum=0, cpu=1, priority=1, running_on="n1 n1 n1 n1", queue="q")
    return world


def test_the_urgent_are_let_through_on_a_full_cluster():
    world = crowded().job("urgent", cpu=2, priority=9, queue="q", min_resources={"cpu": 2})
    result = world.run(policy="high-priority", cycles=2)
    assert result.binds == {"default/urgent-0": "n1"}


@pytest.mark.parametrize("job", [{"priority": 1}, {"priority": 9, "cpu": 5, "min_resources": {"cpu": 5}}])
def test_a_job_that_no_eviction_could_help_waits_at_the_gate(job):
    world = crowded().job("other", **{"cpu": 2, "queue": "q", "min_resources": {"cpu": 2}, **job})
    assert world.run(policy="high-priority").phases["default/other"] == "Pending"


def test_a_closed_queue_lets_not_even_the_urgent_in():
    world = crowded("q state=Closed").job("urgent", cpu=2, priority=9, queue="q", min_resources={"cpu": 2})
    result = world.run(policy="high-priority")
    assert (result.phases["default/urgent"], result.evicted) == ("Pending", [])


def test_a_full_quota_of_the_namespace_holds_the_urgent_back():
    world = crowded()
    world.add(
        {
            "kind": "ResourceQuota",
            "metadata": {"name": "quota", "namespace": "default"},
            "spec": {"hard": {"cpu": "4"}},
            "status": {"hard": {"cpu": "4"}, "used": {"cpu": "4"}},
        }
    )
    world.job("urgent", cpu=2, priority=9, queue="q", min_resources={"cpu": 2})
    policy = PRESETS["high-priority"].replace(
        "- name: overcommit", "- name: overcommit\n  - name: resourcequota"
    )
    result = world.run(policy=policy)
    assert (result.phases["default/urgent"], result.evicted) == ("Pending", [])


def test_gang_actions_name_the_tier_that_chose():
    world = World(nodes=FULL_NODE).job("gang", pods=4, cpu=1, priority=1, running_on="n1 n1 n1 n1")
    world.job("urgent", pods=2, cpu=1, priority=9, phase="Inqueue")
    result = world.run("gangpreempt", "priority gang conformance | predicates")
    chosen = {decision.chosen_by for decision in result.decisions if isinstance(decision, Evict)}
    assert chosen == {"tier 1 (priority, gang, conformance)"}


def test_a_gang_that_cannot_start_holds_no_room_for_one_of_its_pods():
    world = World(nodes="n1 cpu=1").job("pair", pods=2, cpu=1, priority=9)
    result = world.run(policy="high-priority", cycles=2)
    assert (result.pipelined, list(world.cluster.reservations)) == ({}, [])


def test_victims_of_a_later_tier_stay_where_the_first_tier_names_another():
    """Asked about one more at a time, tier 2 names the gang before tier 1 has seen whom another gang can spare."""
    world = World(nodes="n1 cpu=2; n2 cpu=1", queues="mine; theirs")
    world.job("loose", pods=2, minimum=1, cpu=1, priority=5, running_on="n1 n2", queue="theirs")
    world.job("tight", cpu=1, priority=1, running_on="n1", queue="theirs")
    world.job("new", cpu=1, priority=5, queue="mine")
    assert world.run(policy="fair-share").evicted == ["default/loose-0"]


def test_reclaim_evicts_no_pod_where_a_filter_keeps_the_task_out_anyway():
    world = World(nodes="n1 cpu=2", queues="mine; theirs")
    world.job("old", pods=2, minimum=0, cpu=1, running_on="n1 n1", queue="theirs")
    world.add(pod("rival", "stays", on="n1", metadata={"labels": {"app": "x"}}, cpu=0))
    apart = {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": "kubernetes.io/hostname"}
    rule = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}
    world.job("new", cpu=1, queue="mine", spec={"affinity": rule})
    result = world.run(policy="fair-share", cycles=2)
    assert (result.evicted, result.pipelined) == ([], {})


def test_reclaim_takes_from_a_sibling_where_their_parent_is_full_even_if_nodes_have_room():
    children = "a parent=p deserved=cpu:2; b parent=p deserved=cpu:2"
    world = World(nodes="n1 cpu=4; n2 cpu=4", queues=f"root; p parent=root capability=cpu:4; {children}")
    world.job("old", pods=4, minimum=1, cpu=1, queue="a", running_on="n1 n1 n1 n1")
    world.job("new", cpu=1, queue="b")
    tree = PRESETS["fair-share"].replace("name: proportion", "name: capacity\n    enableHierarchy: true")
    assert world.run(policy=tree, cycles=2).binds == {"default/new-0": "n1"}


def test_of_several_nodes_the_next_best_is_cleared_if_the_best_must_not_be():
    world = World(nodes="n1 cpu=1; n2 cpu=1; n3 cpu=1")
    world.job("pair", minimum=2, cpu=1, priority=1, running_on="n1").job(
        "solo", cpu=1, priority=2, running_on="n3"
    )
    stays = {"annotations": {"volcano.sh/preemptable": "false"}}
    world.add(pod("pair-x", "pair", cpu=1, on="n2", metadata=stays)).job("urgent", cpu=1, priority=9)
    aware = (
        "fewestVictims: true\n    enableTopologyAwarePreemption: true\n    minCandidateNodesPercentage: 100"
    )
    text = PRESETS["high-priority"].replace("fewestVictims: true", aware, 1)
    assert world.run(policy=text).evicted == ["default/solo-0"]


def test_a_gang_finds_another_place_if_one_that_was_cleared_for_it_is_of_no_use_any_more():
    """Whom the node cleared for it still serves takes that, so that the gang as a whole can start."""
    world = World(nodes="n1 cpu=1; n2 cpu=1; n3 cpu=1")
    world.job("low", pods=3, minimum=0, cpu=1, priority=1, running_on="n1 n2 n3").job(
        "gang", pods=2, cpu=1, priority=9
    )
    assert world.run(policy="high-priority").pipelined == {"default/gang-0": "n1", "default/gang-1": "n2"}
    taints = {"taints": [{"key": "broken", "effect": "NoSchedule"}]}
    size = {"allocatable": {"cpu": "1", "memory": "8Gi", "pods": "110"}}
    world.add({"kind": "Node", "metadata": {"name": "n2"}, "spec": taints, "status": size})
    assert world.step(2).binds == {"default/gang-0": "n1", "default/gang-1": "n3"}


@pytest.mark.parametrize("action", ["preempt", "gangpreempt"])
def test_an_action_that_evicts_before_allocate_leaves_free_capacity_to_it(action):
    world = World(nodes="n1 cpu=2; n2 cpu=2")
    world.job("low", pods=4, minimum=0, cpu=1, priority=1, running_on="n1 n1 n2 n2")
    world.job("gang", pods=2, cpu=1, priority=9)
    text = policy(
        f"enqueue, {action}, allocate", LOOSE.replace("priority", "priority gang"), **{action: GENTLE}
    )
    result = world.run(policy=text, cycles=3)
    assert (len(result.evicted), sorted(result.binds)) == (2, ["default/gang-0", "default/gang-1"])


def test_a_queue_above_keeps_its_guarantee_too():
    queues = "p parent=root guarantee=cpu:3 deserved=cpu:2; a parent=p; b parent=root deserved=cpu:4"
    world = World(nodes=FULL_NODE, queues=queues)
    world.job("rich", pods=4, minimum=0, cpu=1, running_on="n1 n1 n1 n1", queue="a")
    world.job("poor", pods=2, minimum=1, cpu=1, queue="b")
    policy = PRESETS["fair-share"].replace(
        "- name: proportion", "- name: capacity\n    enableHierarchy: true"
    )
    assert len(world.run(policy=policy).evicted) == 1


def test_a_podgroup_cannot_ask_to_be_left_alone_for_ever():
    world = World(nodes=FULL_NODE)
    forever = {"stromboli.sh/min-run-time": "9999999h"}
    world.job("squatter", pods=4, minimum=0, cpu=1, priority=1, running_on="n1 n1 n1 n1", annotations=forever)
    for task in world.cluster.tasks.values():
        task.started = world.rehearsal.now() - 25 * 3600
    world.job("urgent", cpu=1, priority=9)
    assert len(world.run(policy="high-priority").evicted) == 1


def test_the_least_urgent_go_wherever_they_are():
    world = World(nodes="n1 cpu=2; n2 cpu=2", queues="mine; theirs")
    world.job("dear", pods=2, cpu=1, priority=50, running_on="n1 n1", queue="theirs")
    world.job("cheap", pods=2, minimum=0, cpu=1, priority=1, running_on="n2 n2", queue="theirs")
    world.job("poor", pods=2, minimum=1, cpu=1, priority=50, queue="mine")
    assert world.run(policy="fair-share").evicted == ["default/cheap-1"]


def test_a_victim_that_returns_finds_no_lesser_pod_to_evict():
    world = World(nodes="n1 cpu=2; n2 cpu=2")
    world.job("middle", pods=2, minimum=0, cpu=1, priority=50, running_on="n1 n1")
    world.job("low", pods=2, minimum=0, cpu=1, priority=1, running_on="n2 n2")
    world.job("urgent", pods=1, cpu=1, priority=100)
    assert world.run(policy="high-priority").evicted == ["default/low-1"]


def test_victims_of_a_later_tier_are_evicted_if_there_are_no_others():
    world = World(nodes="n1 cpu=2", queues="mine; theirs")
    world.job("tight", pods=2, cpu=1, running_on="n1 n1", queue="theirs")
    result = world.job("new", cpu=1, queue="mine").run(policy="fair-share")
    assert result.evicted == ["default/tight-0", "default/tight-1"]
    chosen = {decision.chosen_by for decision in result.decisions if isinstance(decision, Evict)}
    assert chosen == {"tier 2 (proportion)"}


def test_a_job_that_lost_pods_evicts_none_while_its_capacity_is_reserved():
    world = World(nodes="n1 cpu=2; n2 cpu=2", queues="a; b")
    world.job("victim", pods=2, cpu=1, priority=5, running_on="n1 n1", queue="a")
    world.job("rich", pods=2, minimum=0, cpu=1, priority=1, running_on="n2 n2", queue="b")
    world.job("urgent", pods=2, cpu=1, priority=9, queue="a")
    first = world.run(policy="full")
    assert {decision.job for decision in first.decisions if isinstance(decision, Evict)} == {"default/victim"}
    for name in ("victim-9", "victim-10"):
        world.add(pod(name, "victim", cpu=0))
    assert world.step(2).evicted == []
