"""Where we look at nodes differently from Volcano on purpose: docs/deviations.md, one test per row."""

from typing import Any

import pytest

from stromboli.engine.catalog import action
from stromboli.engine.placement.node_functions import Column, Nodes
from stromboli.engine.plugin import Plugin
from stromboli.engine.session import Session
from stromboli.engine.transaction import EvictionReason
from stromboli.model.cluster import Change
from stromboli.model.status import Status
from stromboli.model.task import Task
from stromboli.testing import World
from tests.manifests import hyper_node, node

PLACE = "enqueue, allocate"
HOST = "kubernetes.io/hostname"


def test_all_nodes_are_considered() -> None:
    """Of more than 100 nodes Volcano looks at a part and takes the best of that."""
    world = World(nodes="; ".join(f"n{number:03} cpu=2 good={number == 149}" for number in range(150)))
    like = {"matchExpressions": [{"key": "good", "operator": "In", "values": ["True"]}]}
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "preference": like}]}
    world.job("choosy", cpu=1, spec={"affinity": {"nodeAffinity": preferred}})
    assert world.run(PLACE, "predicates nodeorder").binds == {"default/choosy-0": "n149"}


def test_equal_nodes_fall_to_the_oldest_then_to_the_first_by_name() -> None:
    """Volcano takes any of them."""
    assert World(nodes="b cpu=2; a cpu=2").job("j", cpu=1).run(PLACE, "gang").binds == {"default/j-0": "b"}
    world = World()
    for name in "ba":
        world.add(
            {
                "kind": "Node",
                "metadata": {"name": name, "creationTimestamp": "2026-01-01T00:00:00Z"},
                "status": {"allocatable": {"cpu": 2, "memory": "1Gi", "pods": 9}},
            }
        )
    assert world.job("j", cpu=1).run(PLACE, "gang").binds == {"default/j-0": "a"}


@pytest.mark.parametrize("cache", ["true", "false"])
def test_a_node_too_small_for_one_pod_is_looked_at_for_a_smaller_one_of_its_role(cache: str) -> None:
    """Volcano's error cache remembers the node for the role (wart allocate/error-cache-hides-a-node)."""
    world = World(nodes="big cpu=4; small cpu=2")
    world.job("j", roles={"worker": 2}, cpu=2)
    world.add(_worker("j-0", cpu=4)).add(_worker("j-1", cpu=2))
    result = world.run(
        policy=f"""
actions: "{PLACE}"
tiers:
- plugins:
  - name: gang
configurations:
- name: allocate
  arguments:
    predicateErrorCacheEnable: {cache}
"""
    )
    assert result.binds == {"default/j-0": "big", "default/j-1": "small"}


def _worker(name: str, cpu: int) -> dict[str, Any]:
    notes = {"scheduling.k8s.io/group-name": "j", "volcano.sh/task-spec": "worker"}
    resources = {"requests": {"cpu": cpu}}
    return {
        "kind": "Pod",
        "metadata": {"name": name, "annotations": notes},
        "spec": {"containers": [{"name": "main", "resources": resources}]},
    }


def test_pods_share_a_verdict_only_if_all_that_filters_read_of_them_is_equal() -> None:
    """Volcano's cache goes by an annotation (wart filter/equivalence-cache-shares-results)."""
    world = World(nodes="red cpu=4 colour=red; blue cpu=4 colour=blue")
    for name in ("red", "blue"):
        world.job(
            f"wants-{name}",
            cpu=1,
            annotations={"volcano.sh/template-uid": "job-worker"},
            spec={"nodeSelector": {"colour": name}},
        )
    result = world.run(
        policy=f"""
actions: "{PLACE}"
tiers:
- plugins:
  - name: predicates
    arguments:
      predicate.CacheEnable: true
"""
    )
    assert result.binds == {"default/wants-red-0": "red", "default/wants-blue-0": "blue"}


def test_a_pod_placed_this_cycle_repels_others_by_its_own_rule() -> None:
    """Volcano asks only nodes that had one before (wart filter/anti-affinity-of-a-pod-placed-this-cycle)."""
    rule = {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": "noisy"}}}
    shy = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [rule]}}
    world = World(nodes="n1 cpu=4")
    world.job("shy", cpu=1, spec={"affinity": shy})
    world.job("noisy", cpu=1, labels={"app": "noisy"})
    result = world.run(PLACE, "predicates")
    assert result.binds == {"default/shy-0": "n1"}
    assert (
        result.why("noisy-0")
        == "0/1 nodes are unavailable: 1 node(s) didn't satisfy existing pods anti-affinity rules."
    )


def test_scores_see_pods_placed_this_cycle_without_predicates_too() -> None:
    """In Volcano it is `predicates` that keeps the view of `nodeorder` up to date."""
    world = World(nodes="n1 cpu=4; n2 cpu=4").job("j", pods=4, cpu=1)
    result = world.run(PLACE, "gang | nodeorder")
    assert sorted(result.binds.values()) == ["n1", "n1", "n2", "n2"]


def test_a_preference_that_cannot_be_read_is_worth_nothing() -> None:
    """Volcano would not place such a pod; no API server lets one in."""
    odd = {"matchExpressions": [{"key": "zone", "operator": "Near", "values": ["a"]}]}
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": odd}]}
    world = World(nodes="n1 cpu=2; n2 cpu=2").job("j", cpu=1, spec={"affinity": {"nodeAffinity": preferred}})
    assert world.run(PLACE, "predicates nodeorder").binds == {"default/j-0": "n1"}


@action("regret")
def regret(session: Session) -> None:
    """Evict a pod and take it back."""
    with session.statement() as trial:
        trial.evict(session.cluster.tasks["Pod/default/old-0"], EvictionReason("regret"))


def with_status(world: World, pod: str, status: Status) -> World:
    task = world.task(pod)
    world.cluster.move(task, status, task.node)
    return world


@pytest.mark.parametrize("status", [Status.BOUND, Status.RUNNING])
def test_an_eviction_that_is_taken_back_restores_the_pod_as_it_was(status: Status) -> None:
    """Volcano calls it Running, and the pod is missing from the view of filters (spec 02 D10, 04 1.5)."""
    rule = {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": "noisy"}}}
    shy = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [rule]}}
    world = World(nodes="n1 cpu=4")
    world.job("old", cpu=1, running_on="n1", labels={"app": "noisy"})
    with_status(world, "old-0", status).job("shy", cpu=1, spec={"affinity": shy})
    result = world.run("enqueue, regret, allocate", "predicates", action_functions=[regret])
    assert result.evicted == []
    assert world.task("old-0").status is status
    assert result.binds == {}


def test_scores_see_a_pod_whose_eviction_was_taken_back() -> None:
    """The node that carries it is not the emptier one."""
    world = World(nodes="n1 cpu=4; n2 cpu=4").job("old", cpu=2, running_on="n1").job("new", cpu=1)
    plugins = "predicates nodeorder"
    result = world.run("enqueue, regret, allocate", plugins, action_functions=[regret])
    assert result.binds == {"default/new-0": "n2"}


@pytest.mark.parametrize(("status", "evicted"), [(Status.BOUND, []), (Status.RUNNING, ["default/old-0"])])
def test_a_bound_pod_whose_eviction_was_taken_back_is_no_victim_of_reclaim(
    status: Status, evicted: list[str]
) -> None:
    """Reclaim takes from running pods; in Volcano the bound one is one of them by then."""
    world = World(nodes="n1 cpu=1", queues="theirs; mine")
    world.job("old", minimum=0, cpu=1, queue="theirs", running_on="n1")
    with_status(world, "old-0", status).job("new", cpu=1, queue="mine")
    result = world.run("enqueue, regret, reclaim", "gang conformance", action_functions=[regret])
    assert result.evicted == evicted


def test_backfill_takes_back_what_a_plugin_refuses() -> None:
    """In Volcano the task stays Allocated without a node (spec 02 D15)."""

    class Doorman(Plugin):
        """Refuses one pod."""

        name = "doorman"

        def on_move(self, change: Change) -> str | None:
            return "not in these shoes" if change.task.name == "a-0" and change.node else None

    world = World(nodes="n1 cpu=1").job("a").job("b")
    result = world.run("enqueue, backfill", "predicates doorman", plugin_classes=[Doorman])
    assert result.binds == {"default/b-0": "n1"}
    assert result.why("a-0") == "not in these shoes"
    assert (world.task("a-0").status, world.task("a-0").node) == (Status.PENDING, None)


def test_backfill_goes_on_after_a_score_failed() -> None:
    """Volcano crashes when no node has a score (spec 02 D15)."""

    class Moody(Plugin):
        """Cannot score one pod."""

        name = "moody"

        def score_nodes(self, task: Task, nodes: Nodes) -> Column:
            if task.name == "a-0":
                raise RuntimeError("not today")
            return nodes.zeros()

    world = World(nodes="n1 cpu=1; n2 cpu=1").job("a").job("b")
    result = world.run("enqueue, backfill", "predicates moody", plugin_classes=[Moody])
    assert result.binds == {"default/b-0": "n1"}
    assert result.why("a-0") == "plugin 'moody' failed in score_nodes: RuntimeError: not today"


@pytest.mark.parametrize("plugin", ["overcommit", "proportion", "capacity"])
@pytest.mark.parametrize("change", ["shrinks", "is removed"])
def test_a_node_that_holds_more_than_it_has_takes_nothing_off_the_others(plugin: str, change: str) -> None:
    """In Volcano the gate and the shares of queues count its pods against the other nodes (volcano#5911, #2999)."""
    world = World(nodes="small cpu=8; free cpu=8")
    world.job("old", cpu=8, running_on="small").job("new", pods=2, cpu=4, min_resources={"cpu": 8})
    if change == "shrinks":
        world.add(node("small", cpu="0"))
    else:
        world.remove(node("small"))
    result = world.run("enqueue, allocate", f"gang {plugin} predicates")
    assert result.binds == {"default/new-0": "free", "default/new-1": "free"}


def test_a_hyper_node_has_what_is_free_on_its_nodes_whatever_another_of_them_lost() -> None:
    world = World(nodes="small cpu=8; free cpu=8")
    world.add(hyper_node("rack", nodes=("small", "free")))
    world.job("old", cpu=8, running_on="small").add(node("small", cpu="4"))
    topology = {"networkTopology": {"mode": "hard", "highestTierAllowed": 1}}
    world.job("new", pods=2, cpu=4, min_resources={"cpu": 8}, group=topology)
    result = world.run("enqueue, allocate", "gang predicates network-topology-aware")
    assert result.binds == {"default/new-0": "free", "default/new-1": "free"}
