"""reclaim: starving queues take back their share from others (spec 02 5)."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.engine.decisions import Event, Evict
from stromboli.testing import Result, World
from tests.eviction_policies import SHARES
from tests.manifests import pod, policy

RECLAIM = "enqueue, allocate, reclaim"


def lender(queues: str = "mine; theirs", nodes: str = "n1 cpu=4", pods: int = 4, **terms: Any) -> World:
    """A cluster that one queue holds whole."""
    world = World(nodes=nodes, queues=queues)
    where = " ".join(
        name for line in nodes.split(";") for name in [line.split()[0]] * (pods // (nodes.count(";") + 1))
    )
    return world.job(
        "old", **{"pods": pods, "minimum": 1, "cpu": 1, "queue": "theirs", "running_on": where, **terms}
    )


def evictions(result: Result) -> list[Evict]:
    return [decision for decision in result.decisions if isinstance(decision, Evict)]


def test_a_queue_takes_back_its_share_from_one_that_has_more() -> None:
    result = lender().job("new", pods=2, cpu=1, queue="mine").run(RECLAIM, SHARES)
    assert result.evicted == ["default/old-2", "default/old-3"]
    assert result.pipelined == {"default/new-0": "n1", "default/new-1": "n1"}


def test_it_takes_no_more_than_its_share() -> None:
    """Two of four are its own; a gang of three is out of reach, and nobody goes for a part of it."""
    result = lender().job("new", pods=3, cpu=1, queue="mine").run(RECLAIM, SHARES)
    assert (result.evicted, result.pipelined) == ([], {})


@pytest.mark.parametrize(
    "terms",
    [
        {"queue": "mine"},
        {"annotations": {"volcano.sh/preemptable": "false"}},
        {"annotations": {"volcano.sh/preemptable": "nonsense"}},
        {"namespace": "kube-system", "plugins": "gang conformance"},
        {"spec": {"priorityClassName": "system-cluster-critical"}, "plugins": "gang conformance"},
        {"minimum": 4, "plugins": "gang conformance"},
    ],
    ids=lambda terms: next(iter(terms)),
)
def test_pods_that_are_no_victims_stay(terms: dict[str, Any]) -> None:
    """Of the same queue, not preemptable, of the system, or needed by its gang."""
    plugins = terms.get("plugins", SHARES)
    world = lender(**{key: value for key, value in terms.items() if key != "plugins"})
    world.add({"kind": "PriorityClass", "metadata": {"name": "system-cluster-critical"}, "value": 9})
    result = world.job("new", cpu=1, queue="mine").run(RECLAIM, plugins)
    assert (result.evicted, result.pipelined) == ([], {})


def test_a_queue_may_refuse_to_give_back() -> None:
    world = lender("mine; theirs reclaimable=false").job("new", cpu=1, queue="mine")
    assert world.run(RECLAIM, SHARES).evicted == []


def test_a_pod_that_is_bound_but_does_not_run_stays() -> None:
    world = World(nodes="n1 cpu=1", queues="mine; theirs").job("old", pods=0, minimum=0, queue="theirs")
    world.add(pod("old-0", "old", cpu=1, on="n1", status={"phase": "Pending"}))
    assert world.job("new", cpu=1, queue="mine").run(RECLAIM, "gang conformance").evicted == []


def test_a_pod_that_may_never_preempt_reclaims_nothing() -> None:
    world = lender().job("new", cpu=1, queue="mine", spec={"preemptionPolicy": "Never"})
    assert world.run(RECLAIM, SHARES).evicted == []


def test_a_gang_gives_what_is_above_its_minimum() -> None:
    world = lender(minimum=3).job("new", pods=1, cpu=1, queue="mine")
    assert world.run(RECLAIM, "gang conformance").evicted == ["default/old-3"]
    world = lender(minimum=3).job("new", pods=2, cpu=1, queue="mine")
    assert world.run(RECLAIM, "gang conformance").evicted == []


def test_the_queue_with_more_loses_first() -> None:
    world = World(nodes="n1 cpu=6", queues="mine; little; lots")
    world.job("a", pods=4, minimum=0, cpu=1, queue="lots", running_on="n1 n1 n1 n1")
    world.job("b", pods=2, minimum=0, cpu=1, queue="little", running_on="n1 n1")
    world.job("new", pods=2, cpu=1, queue="mine")
    assert world.run(RECLAIM, SHARES).evicted == ["default/a-2", "default/a-3"]


def test_within_a_queue_the_job_that_comes_last_loses_first() -> None:
    world = World(nodes="n1 cpu=4", queues="mine; theirs")
    for name, priority in (("low", 1), ("high", 9)):
        world.job(name, pods=2, minimum=0, cpu=1, priority=priority, queue="theirs", running_on="n1 n1")
    world.job("new", cpu=1, queue="mine")
    assert world.run(RECLAIM, SHARES).evicted == ["default/low-1"]


def test_nodes_are_asked_in_their_order_and_not_by_score() -> None:
    world = World(nodes="n1 cpu=2; n2 cpu=2", queues="mine; theirs")
    world.job("old", pods=4, minimum=1, cpu=1, queue="theirs", running_on="n2 n2 n1 n1")
    result = world.job("new", cpu=2, queue="mine").run(RECLAIM, SHARES)
    assert result.pipelined == {"default/new-0": "n1"}
    assert result.evicted == ["default/old-2", "default/old-3"]


def test_a_node_without_candidates_is_skipped_even_with_capacity_unless_fewest_victims() -> None:
    """Volcano's reclaim looks for somebody to evict; with `fewestVictims` room comes first."""

    def run(**arguments: Any) -> Result:
        world = lender(pods=4).add(
            {
                "kind": "Node",
                "metadata": {"name": "n2"},
                "status": {"allocatable": {"cpu": "1", "memory": "8Gi", "pods": "9"}},
            }
        )
        world.job("new", cpu=1, queue="mine", phase="Inqueue")
        return world.run(policy=policy("reclaim", SHARES, reclaim=arguments))

    assert run().evicted == ["default/old-3"]
    gentle = run(fewestVictims=True)
    assert (gentle.evicted, gentle.pipelined) == ([], {}), "allocate sees to it"


def test_within_the_queue_only_strictly_lower_priorities_if_asked_to() -> None:
    for priority, evicted in ((5, []), (6, ["default/old-0"])):
        world = World(nodes="n1 cpu=1").job("old", minimum=0, cpu=1, priority=5, running_on="n1")
        world.job("new", cpu=1, priority=priority)
        asked = policy(RECLAIM, "gang conformance", reclaim={"enableSameQueueReclaim": True})
        assert world.run(policy=asked).evicted == evicted


def test_a_queue_that_has_its_share_takes_nothing() -> None:
    world = World(nodes="n1 cpu=4", queues="mine; theirs")
    world.job("have", pods=2, minimum=1, cpu=1, queue="mine", running_on="n1 n1")
    world.job("old", pods=2, minimum=1, cpu=1, queue="theirs", running_on="n1 n1")
    world.job("new", cpu=1, queue="mine")
    assert world.run(RECLAIM, SHARES).evicted == []


# -- says why


def test_each_eviction_names_action_beneficiary_tier_and_what_it_frees() -> None:
    result = lender(memory="1Gi").job("new", cpu=1, queue="mine").run(RECLAIM, SHARES)
    (decision,) = evictions(result)
    assert (decision.action, decision.reason, decision.beneficiary, decision.job) == (
        "reclaim",
        "reclaim",
        "default/new",
        "default/old",
    )
    assert decision.chosen_by == "tier 1 (gang, conformance)"
    assert decision.frees == {"cpu": "1", "memory": "1Gi", "pods": "1"}
    messages = {
        event.kind: event.message
        for event in result.decisions
        if isinstance(event, Event) and event.reason == "Evict"
    }
    why = "reclaim for default/new, chosen by tier 1 (gang, conformance)"
    assert messages == {"Pod": f"Pod is evicted, because of {why}", "PodGroup": f"old-3: {why}"}


# -- with the options beyond Volcano


def test_a_victim_is_found_where_one_is_legal_though_votes_name_another() -> None:
    """gang names the last of the job first, which conformance keeps: together they name nobody, yet one may go."""

    def run(**arguments: Any) -> Result:
        world = World(nodes="n1 cpu=2", queues="mine; theirs")
        world.add({"kind": "PriorityClass", "metadata": {"name": "system-node-critical"}, "value": 9})
        world.job("old", pods=0, minimum=1, queue="theirs", phase="Running")
        world.add(pod("old-x-0", "old", cpu=1, on="n1"))
        world.add(
            pod(
                "old-x-1",
                "old",
                cpu=1,
                on="n1",
                spec={"priorityClassName": "system-node-critical", "priority": -1},
            )
        )
        world.job("new", cpu=1, queue="mine")
        return world.run(policy=policy(RECLAIM, "priority gang conformance", reclaim=arguments))

    assert run().evicted == []
    assert run(fewestVictims=True).evicted == ["default/old-x-0"]


def test_a_gang_goes_whole_or_not_at_all() -> None:
    """proportion alone would take one of two; with doNoHarm both go, and the gang is not left crippled."""

    def run(spared: bool = False, **arguments: Any) -> list[str]:
        world = World(nodes="n1 cpu=2", queues="mine; theirs").job(
            "old", pods=0, minimum=2, queue="theirs", phase="Running"
        )
        keep = {"metadata": {"annotations": {"volcano.sh/preemptable": "false"}}} if spared else {}
        world.add(pod("old-x-0", "old", cpu=1, on="n1", **keep)).add(pod("old-x-1", "old", cpu=1, on="n1"))
        world.job("new", cpu=1, queue="mine")
        return world.run(
            policy=policy(RECLAIM, "conformance | predicates proportion gang", reclaim=arguments)
        ).evicted

    assert run() == ["default/old-x-1"]
    assert run(doNoHarm=True) == ["default/old-x-0", "default/old-x-1"]
    assert run(spared=True) == ["default/old-x-1"]
    assert run(spared=True, doNoHarm=True) == []


def test_the_system_stays_even_if_a_later_tier_names_it() -> None:
    """Volcano's first tier names nobody here, so that proportion decides alone."""

    def run(**arguments: Any) -> list[str]:
        world = lender(namespace="kube-system").job("new", cpu=1, queue="mine")
        return world.run(policy=policy(RECLAIM, SHARES, reclaim=arguments)).evicted

    assert run() == ["kube-system/old-3"]
    assert run(doNoHarm=True) == []


def test_no_queue_is_taken_below_its_guarantee() -> None:
    def run(guarantee: int, **arguments: Any) -> list[str]:
        world = lender(f"mine; theirs guarantee=cpu:{guarantee}").job("new", cpu=1, queue="mine")
        return world.run(policy=policy(RECLAIM, "gang conformance", reclaim=arguments)).evicted

    assert run(4) == ["default/old-3"]
    assert run(4, doNoHarm=True) == []
    assert run(3, doNoHarm=True) == ["default/old-3"]


def test_the_preset_reclaims_with_the_options_beyond_volcano() -> None:
    world = lender().job("new", pods=2, cpu=1, queue="mine", min_resources={"cpu": 2})
    result = world.run(policy="fair-share")
    assert result.evicted == ["default/old-2", "default/old-3"]
    assert world.step().bound_per_job == {"default/new": 2}


def test_in_its_own_queue_a_job_finds_victims_that_a_lesser_one_before_it_could_not_have() -> None:
    world = World(nodes="n1 cpu=1", queues="mine")
    world.job("old", minimum=0, cpu=1, priority=5, running_on="n1", queue="mine")
    world.job("lesser", cpu=1, priority=1, queue="mine").job("urgent", cpu=1, priority=9, queue="mine")
    text = policy(
        RECLAIM, "gang conformance | predicates nodeorder", reclaim={"enableSameQueueReclaim": True}
    )
    assert world.run(policy=text).pipelined == {"default/urgent-0": "n1"}
