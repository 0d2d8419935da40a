"""consolidate: a gang that would fit if others sat elsewhere gets room, and these others have a place to go to."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.actions.consolidate import RETRY_AFTER
from stromboli.api import names
from stromboli.cli.plan_text import eviction_sentence
from stromboli.engine.decisions import Event, PodGroupStatus
from stromboli.model.reservations import RoleOwner
from stromboli.testing import World
from tests.consolidation_worlds import OWNER, PLUGINS, MovingWorld, consolidating, moved, moves
from tests.manifests import group, hyper_node, pod, sub_group_policy

THREE = "n1 cpu=8; n2 cpu=8; n3 cpu=8"
RACKS = (hyper_node("s0", nodes=["n0", "n1"]), hyper_node("s1", nodes=["n2", "n3"]))
FOUR = "n0 cpu=4; n1 cpu=4; n2 cpu=4; n3 cpu=4"


def fragmented(**arguments: Any) -> MovingWorld:
    """Three nodes with four CPUs free each, and a pod that needs a whole one."""
    world = MovingWorld(THREE, **arguments)
    world.gang("a", "n1 n2 n3", minimum=1, cpu=2).gang("b", "n1 n1 n2 n2 n3 n3", minimum=1, cpu=1)
    return world


# -- plain fragmentation


def test_a_pod_that_needs_a_whole_node_gets_one_though_every_node_is_half_full() -> None:
    world = fragmented().gang("big", cpu=8)
    assert len(moved(world.step())) == 3
    assert world.step().binds["default/big-0"] == "n1"
    assert all(world.where(job)[pod] for job in ("a", "b") for pod in world.where(job)), "and all others run"


def test_without_the_action_it_waits() -> None:
    world = fragmented(actions="enqueue, allocate, backfill").gang("big", cpu=8)
    assert "default/big" in world.step(3).pending


def test_no_pod_is_moved_for_a_gang_that_fits_without_moves() -> None:
    world = fragmented().gang("small", cpu=4)
    result = world.step()
    assert (moved(result), result.bound_per_job) == ({}, {"default/small": 1})


def test_no_pod_is_moved_if_one_of_them_fits_nowhere_else() -> None:
    """Every node would be free of the others, but none has room for what is on it."""
    world = MovingWorld(THREE).gang("a", "n1 n2 n3", minimum=0, cpu=5)
    assert moved(world.gang("big", cpu=8).step()) == {}


def test_the_fewest_pods_start_again() -> None:
    """One pod of four CPUs frees as much as four pods of one."""
    world = MovingWorld("n1 cpu=8; n2 cpu=8; n3 cpu=4")
    world.gang("many", "n1 n1 n1 n1", minimum=0, cpu=1).gang("one", "n2", minimum=0, cpu=4)
    assert list(moved(world.gang("big", cpu=8).step())) == ["one-0"]


def test_of_equal_sets_the_one_goes_that_has_worked_least() -> None:
    world = MovingWorld("n1 cpu=8; n2 cpu=8; n3 cpu=4")
    world.gang("old", "n1", minimum=0, cpu=4).gang("young", "n2", minimum=0, cpu=4)
    world.task("old-0").started = world.rehearsal.now() - 3600
    world.task("young-0").started = world.rehearsal.now() - 60
    assert list(moved(world.gang("big", cpu=8).step())) == ["young-0"]


def test_moved_pods_are_packed_where_the_next_task_of_the_gang_has_no_use_for_the_room() -> None:
    """Spread over both, they would keep the second node from being cleared, too."""
    world = MovingWorld("n1 cpu=4; n2 cpu=4; n3 cpu=4; n4 cpu=4").gang("a", "n1 n2 n3 n4", minimum=0, cpu=2)
    result = world.gang("big", pods=2, cpu=4).step()
    assert len(moved(result)) == 2
    assert world.step().bound_per_job["default/big"] == 2


def test_not_more_pods_are_moved_than_allowed() -> None:
    assert moved(fragmented(maxMoves=2).gang("big", cpu=8).step()) == {}
    assert len(moved(fragmented(maxMoves=3).gang("big", cpu=8).step())) == 3


def test_it_is_all_or_nothing_for_the_gang_too() -> None:
    """One node can be cleared, two cannot."""
    assert moved(fragmented().gang("big", pods=2, cpu=8).step()) == {}


def test_moving_a_gang_once_may_cost_less_than_clearing_each_node_by_itself() -> None:
    """Three pods of a gang leave three nodes; of the others, two pods leave each."""
    world = MovingWorld("; ".join(f"n{number} cpu=4" for number in range(6)) + "; n6 cpu=6")
    world.gang("gang", "n0 n1 n2", cpu=2).gang("single", "n3 n3 n4 n4 n5 n5", minimum=0, cpu=1)
    result = world.gang("big", pods=3, cpu=4).step()
    assert sorted(moved(result)) == ["gang-0", "gang-1", "gang-2"]


def test_a_moved_job_has_a_condition_that_its_new_pod_is_awaited() -> None:
    """No controller makes the pod here: it is not for its owner to create another."""
    world = World("n1 cpu=4; n2 cpu=2", policy=consolidating())
    world.add(group("small", 1, phase="Running"), pod("small-0", "small", on="n1", cpu=2, metadata=OWNER))
    world.add(group("big", 1), pod("big-0", "big", cpu=4))
    assert moved(world.step()) == {"small-0": "n2"}
    waiting = world.step().pending["default/small"]
    assert (
        waiting.message
        == "its pods were moved and their replacements do not exist yet: capacity is held for 1 pod on n2"
    )
    assert waiting.sentence == (
        "PodGroup small waits: its pods were moved and their replacements do not exist yet; its controller creates them"
    )


# -- gangs move whole or stay whole


def test_a_gang_without_surplus_moves_as_a_whole() -> None:
    world = MovingWorld("n1 cpu=4; n2 cpu=4; n3 cpu=2; n4 cpu=2").gang("pair", "n1 n2", cpu=2)
    result = world.gang("big", pods=2, cpu=4).step()
    assert moved(result) == {"pair-0": "n3", "pair-1": "n4"}
    assert world.step().bound_per_job == {"default/big": 2, "default/pair": 2}


def test_a_gang_of_which_one_pod_may_not_be_moved_stays() -> None:
    world = MovingWorld("n1 cpu=4; n2 cpu=4; n3 cpu=4").gang("pair", "n1 n2", cpu=2)
    stays = pod("pair-1", "pair", on="n2", cpu=2, annotations={names.MOVABLE: "false"})
    assert moved(world.add(stays).gang("big", cpu=4, pods=2).step()) == {}


def test_surplus_moves_by_itself() -> None:
    world = MovingWorld("n1 cpu=4; n2 cpu=4").gang("trio", "n1 n2 n2", minimum=2, cpu=1)
    assert moved(world.gang("big", cpu=4).step()) == {"trio-0": "n2"}


def test_a_gang_that_is_not_complete_is_left_alone() -> None:
    world = MovingWorld("n1 cpu=4; n2 cpu=4").gang("broken", "n1", minimum=3, cpu=2)
    assert moved(world.gang("big", cpu=4).gang("fill", "n2", cpu=2).step()) == {"fill-0": "n1"}


def test_a_gang_that_moves_keeps_its_place_in_the_queue_until_its_pods_come() -> None:
    """Its controller makes no pods for a group that is not let in."""
    world = MovingWorld("n1 cpu=4; n2 cpu=4").gang("pair", "n1 n1", cpu=1)
    world.gang("fill", "n2", cpu=2, annotations={names.MOVABLE: "false"}).gang("big", cpu=4)
    result = super(MovingWorld, world).step()
    assert len(moved(result)) == 2
    result = super(MovingWorld, world).step()
    assert result.phases["default/pair"] == "Inqueue"
    world.make_anew("pair-0")
    world.make_anew("pair-1")
    assert world.step().bound_per_job == {"default/pair": 2}


# -- topology


def test_a_gang_gets_its_hyper_node_cleared() -> None:
    world = MovingWorld(FOUR, tree=RACKS).gang("a", "n0 n2", minimum=0, cpu=2)
    result = world.gang("hard", pods=2, cpu=4, topology=1).step()
    assert moved(result) == {"a-1": "n0"} or moved(result) == {"a-0": "n2"}
    world.step()
    assert set(world.where("hard").values()) in ({"n0", "n1"}, {"n2", "n3"})


def test_a_gang_with_a_hard_topology_moves_to_another_hyper_node_as_a_whole_and_stays_in_its_tier() -> None:
    world = MovingWorld("n0 cpu=4; n1 cpu=4; n2 cpu=2; n3 cpu=2", tree=RACKS)
    world.gang("train", "n0 n1", cpu=2, topology=1).gang("hard", pods=2, cpu=4, topology=1)
    assert moved(world.step()) == {"train-0": "n2", "train-1": "n3"}
    world.step()
    assert set(world.where("hard").values()) == {"n0", "n1"}
    assert set(world.where("train").values()) == {"n2", "n3"}


def test_surplus_of_a_gang_with_a_hard_topology_stays_in_its_hyper_node() -> None:
    """There is room in the other rack only."""
    world = MovingWorld(FOUR, tree=RACKS).gang("train", "n0 n1", minimum=1, cpu=2, topology=1)
    world.gang("fill", "n2 n3", cpu=1, annotations={names.MOVABLE: "false"})
    assert moved(world.gang("big", cpu=4).step()) == {"train-0": "n1"}
    world = MovingWorld(FOUR, tree=RACKS).gang("train", "n0 n1 n1", minimum=1, cpu=2, topology=1)
    world.gang("fill", "n2 n3", cpu=1, annotations={names.MOVABLE: "false"})
    assert moved(world.gang("big", cpu=4).step()) == {}


def test_a_gang_whose_sub_groups_are_smaller_than_their_share_of_it_starts_as_a_whole() -> None:
    """A sub-group could start with one pod, but the gang needs all four, and there is room for three."""
    world = MovingWorld(FOUR, tree=RACKS).gang("a", "n0 n2", minimum=0, cpu=1)
    policy = sub_group_policy("slice", "slice", size=1) | {
        "networkTopology": {"mode": "hard", "highestTierAllowed": 1}
    }
    world.add(group("parts", 4, queue="default", subGroupPolicy=[policy]))
    world.add(*(pod(f"parts-{n}", "parts", cpu=2, labels={"slice": f"{n % 2}"}) for n in range(4)))
    world.gang("fill", "n1 n1 n3", minimum=0, cpu=2, annotations={names.MOVABLE: "false"})
    assert moves(world.step())
    world.step()
    where = world.where("parts")
    racks = [{"n0": 0, "n1": 0, "n2": 1, "n3": 1}[where[f"parts-{n}"]] for n in range(4)]
    assert racks[:2] == racks[2:]


# -- who may be moved


@pytest.mark.parametrize(
    ("annotations", "owned", "moves"),
    [
        ({}, True, True),
        ({}, False, False),  # nobody would make it anew
        ({names.MOVABLE: "true"}, False, True),
        ({names.MOVABLE: "false"}, True, False),
        ({names.PREEMPTABLE: "false"}, True, False),
        ({names.PREEMPTABLE: "false", names.MOVABLE: "true"}, True, True),
    ],
)
def test_which_pods_may_be_moved(annotations: dict[str, str], owned: bool, moves: bool) -> None:
    world = MovingWorld("n1 cpu=4; n2 cpu=2").gang("a", "n1", annotations=annotations, owned=owned, cpu=2)
    assert bool(moved(world.gang("big", cpu=4).step())) is moves


def test_what_a_pod_says_counts_more_than_what_its_group_says() -> None:
    world = MovingWorld("n1 cpu=4; n2 cpu=2").gang("a", "n1", annotations={names.MOVABLE: "false"}, cpu=2)
    world.add(pod("a-0", "a", on="n1", cpu=2, annotations={names.MOVABLE: "true"}))
    assert moved(world.gang("big", cpu=4).step()) == {"a-0": "n2"}


def test_no_more_urgent_pod_is_moved_but_an_equally_urgent_one_is() -> None:
    for priority, expected in ((9, False), (5, True), (1, True)):
        world = MovingWorld("n1 cpu=4; n2 cpu=2").gang("a", "n1", priority=priority, cpu=2)
        assert bool(moved(world.gang("big", cpu=4, priority=5).step())) is expected


def test_pods_of_other_queues_are_moved_too() -> None:
    world = MovingWorld("n1 cpu=4; n2 cpu=2", "mine; theirs").gang("a", "n1", queue="theirs", cpu=2)
    assert moved(world.gang("big", cpu=4, queue="mine").step()) == {"a-0": "n2"}


def test_a_pod_stays_whose_queue_would_not_take_it_again() -> None:
    plugins = "priority gang conformance | predicates capacity nodeorder"
    world = MovingWorld("n1 cpu=4; n2 cpu=2", "mine; theirs capability=cpu:1", plugins=plugins)
    assert moved(world.gang("a", "n1", queue="theirs", cpu=2).gang("big", cpu=4, queue="mine").step()) == {}


def test_no_pod_is_moved_for_a_gang_that_its_queue_holds_back() -> None:
    plugins = "priority gang conformance | predicates capacity nodeorder"
    world = MovingWorld("n1 cpu=4; n2 cpu=4", "mine capability=cpu:4", plugins=plugins)
    world.gang("a", "n1 n2", minimum=0, cpu=1, queue="mine")
    assert moved(world.gang("big", cpu=4, queue="mine").step()) == {}


def test_the_share_that_moved_pods_keep_counts_against_the_gang() -> None:
    """Four of seven are free in the queue until two who are to move are counted again."""
    plugins = "priority gang conformance | predicates capacity nodeorder"
    world = MovingWorld("n1 cpu=4; n2 cpu=4", "mine capability=cpu:5", plugins=plugins)
    world.gang("a", "n1 n2", minimum=0, cpu=1, queue="mine")
    assert moved(world.gang("big", pods=2, minimum=2, cpu=2, queue="mine").step()) == {}


def test_no_pod_is_moved_for_one_that_may_never_preempt() -> None:
    world = MovingWorld("n1 cpu=4; n2 cpu=2").gang("a", "n1", cpu=2).gang("big", pods=0, minimum=1)
    world.add(pod("big-0", "big", cpu=4, spec={"preemptionPolicy": "Never"}))
    assert moved(world.step()) == {}


def test_critical_pods_stay_whatever_the_tier_of_the_plugin_that_says_so() -> None:
    late = "priority gang | predicates proportion nodeorder | conformance"
    world = MovingWorld("n1 cpu=4; n2 cpu=2", plugins=late)
    world.add({"kind": "PriorityClass", "metadata": {"name": "system-node-critical"}, "value": 0})
    world.gang("a", "n1", cpu=2)
    world.add(pod("a-0", "a", on="n1", cpu=2, annotations={names.MOVABLE: "true"}, spec=CRITICAL))
    assert moved(world.gang("big", cpu=4).step()) == {}


CRITICAL = {"priorityClassName": "system-node-critical"}


@pytest.mark.parametrize(("allowed", "count"), [(1, 0), (2, 2)])
def test_disruption_budgets_hold_for_all_moves_together(allowed: int, count: int) -> None:
    world = MovingWorld("n1 cpu=4; n2 cpu=2", plugins=f"{PLUGINS} pdb")
    world.add(
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "b", "namespace": "default"},
            "spec": {"selector": {"matchLabels": {"app": "a"}}},
            "status": {"disruptionsAllowed": allowed},
        }
    )
    world.gang("a", "n1 n1", minimum=0, labels={"app": "a"}, cpu=1)
    assert len(moved(world.gang("big", cpu=4).step())) == count


def test_the_budget_of_a_job_holds() -> None:
    for least, count in (("2", 0), ("1", 1)):
        world = MovingWorld("n1 cpu=4; n2 cpu=4", plugins=f"{PLUGINS} | tdm")
        world.gang("a", "n1 n2", minimum=0, annotations={names.JDB_MIN_AVAILABLE: least}, cpu=1)
        assert len(moved(world.gang("big", cpu=4).step())) == count


def test_a_pod_in_its_cool_down_time_stays() -> None:
    world = MovingWorld("n1 cpu=4; n2 cpu=2", plugins=f"{PLUGINS} cdp")
    world.gang("a", "n1", annotations={names.COOLDOWN_TIME: "10m"}, cpu=2).gang("big", cpu=4)
    world.task("a-0").scheduled_at = world.rehearsal.now() - 60
    assert moved(world.step()) == {}
    assert moved(world.sleep(600).step()) == {"a-0": "n2"}


def test_young_pods_stay_if_they_ask_for_time() -> None:
    world = MovingWorld("n1 cpu=4; n2 cpu=2").gang("a", "n1", annotations={names.MIN_RUN_TIME: "1h"}, cpu=2)
    world.task("a-0").started = world.rehearsal.now()
    assert moved(world.gang("big", cpu=4).step()) == {}
    assert moved(world.sleep(3600).step()) == {"a-0": "n2"}


# -- a rest between two moves


def moved_once(**arguments: Any) -> MovingWorld:
    """A job that was moved from n1 to n2 for another, which has ended since; a gang would need n2 now."""
    world = MovingWorld("n1 cpu=4; n2 cpu=4", **arguments).gang("a", "n1", cpu=2).gang("big", cpu=4)
    world.gang("fixed", "n2", annotations={names.MOVABLE: "false"}, cpu=1)
    assert moved(world.step()) == {"a-0": "n2"}
    assert world.step().binds == {"default/big-0": "n1", "default/a-0": "n2"}
    world.finish("big-0").finish("fixed-0")
    world.gang("late", "n1", annotations={names.MOVABLE: "false"}, cpu=1)
    return world.gang("next", cpu=4)


def test_a_moved_job_is_not_moved_again_for_a_while() -> None:
    def again(wait: float, **arguments: Any) -> dict[str, str]:
        return moved(moved_once(**arguments).sleep(wait).step())

    assert again(60) == {}
    assert again(3600) == {"a-0": "n1"}
    assert again(60, moveInterval="30s") == {"a-0": "n1"}


def test_a_job_is_moved_for_one_gang_in_a_cycle_and_left_alone_by_the_next() -> None:
    world = MovingWorld("n1 cpu=8; n2 cpu=8; n3 cpu=5; n4 cpu=5").gang("a", "n1 n2", minimum=1, cpu=5)
    result = world.gang("first", cpu=8).gang("second", cpu=8).step()
    assert {eviction.beneficiary: eviction.name for eviction in moves(result)} == {"default/first": "a-0"}
    assert not moves(world.step(5))


def test_the_time_of_the_move_is_in_a_condition_of_the_group_and_survives_a_restart() -> None:
    result = MovingWorld("n1 cpu=4; n2 cpu=2").gang("a", "n1", cpu=2).gang("big", cpu=4).step()
    (status,) = (d for d in result.decisions if isinstance(d, PodGroupStatus) and d.name == "a")
    (condition,) = (c for c in status.conditions if c.type == names.CONDITION_MOVED)
    assert (
        condition.message == "moved at 2026-11-01T12:00:00Z to make room for default/big: a-0 from n1 to n2"
    )

    def after_restart(wait: float) -> dict[str, str]:
        world = MovingWorld("n1 cpu=4; n2 cpu=2").gang("a", "n1", cpu=2).gang("next", cpu=4)
        known = {"type": condition.type, "status": "True", "lastTransitionTime": "2026-11-01T12:00:00Z"}
        manifest = group("a", 1, phase="Running", queue="default")
        manifest["status"]["conditions"] = [known]
        return moved(world.add(manifest).sleep(wait).step())

    assert after_restart(60) == {}
    assert after_restart(3600) == {"a-0": "n2"}


# -- room is held


def test_room_is_held_for_the_moved_pod_until_it_comes_or_the_time_is_over() -> None:
    def binds_after(wait: float) -> dict[str, str]:
        world = MovingWorld("n1 cpu=4; n2 cpu=2", holdFor="1m").gang("a", "n1", cpu=2).gang("big", cpu=4)
        super(MovingWorld, world).step()
        (held,) = (held for held in world.cluster.reservations if isinstance(held.owner, RoleOwner))
        assert (held.node.name, held.owner.job.name) == ("n2", "a")
        world.gang("third", cpu=2, priority=99)
        return super(MovingWorld, world.sleep(wait)).step().binds

    assert binds_after(0) == {"default/big-0": "n1"}
    assert binds_after(60) == {"default/big-0": "n1", "default/third-0": "n2"}


def test_a_pod_takes_the_room_that_was_held_for_one_of_its_size() -> None:
    """Two pods without roles; the larger one's room is not given to the smaller."""
    world = MovingWorld("n1 cpu=8; n2 cpu=2; n3 cpu=4").gang("a", "n1", pods=2, minimum=0, cpu=4)
    world.add(pod("a-1", "a", on="n1", cpu=1, metadata={"ownerReferences": OWNERS}))
    world.gang("big", cpu=8)
    result = super(MovingWorld, world).step()
    assert moved(result) == {"a-0": "n3", "a-1": "n2"}
    world.rehearsal.sync()
    world.add(pod("a-1", "a", cpu=1, metadata={"uid": "new-1"}))
    world.add(pod("a-0", "a", cpu=4, metadata={"uid": "new-0"}))
    result = super(MovingWorld, world).step()
    assert result.binds == {"default/big-0": "n1", "default/a-0": "n3", "default/a-1": "n2"}


OWNERS = [{"apiVersion": "v1", "kind": "ReplicaSet", "name": "r", "uid": "r", "controller": True}]


def test_while_the_moved_pod_ends_its_successor_starts_already_and_the_gang_keeps_its_promise() -> None:
    world = MovingWorld("n1 cpu=4; n2 cpu=2").gang("a", "n1", minimum=0, cpu=2).gang("big", cpu=4)
    world.rehearsal.vanish = lambda task: None  # type: ignore[method-assign]
    super(MovingWorld, world).step()
    world.add(pod("a-1", "a", cpu=2)).gang("third", cpu=2, priority=99)
    result = super(MovingWorld, world).step()
    assert (result.binds, result.pipelined) == ({"default/a-1": "n2"}, {"default/big-0": "n1"})
    del world.rehearsal.vanish
    world.rehearsal.vanish(world.task("a-0"))
    assert super(MovingWorld, world).step().binds == {"default/big-0": "n1"}


def test_a_gang_for_which_others_are_moved_evicts_no_pod() -> None:
    """Listed before preempt, consolidate does less harm."""
    world = fragmented(actions="enqueue, allocate, consolidate, preempt").gang("big", cpu=8, priority=9)
    assert {eviction.action for eviction in world.step().evictions} == {"consolidate"}


def test_a_hold_of_nothing_is_refused() -> None:
    result = MovingWorld("n1 cpu=4", policy=consolidating(holdFor="0s")).step()
    assert "holdFor" in result.warnings[0]
    assert "above zero" in result.warnings[0]


# -- what it costs


def test_a_search_that_failed_is_not_repeated_while_nothing_changed() -> None:
    world = MovingWorld(THREE).gang("a", "n1 n2 n3", minimum=0, cpu=5).gang("big", cpu=8)
    result = world.step()
    tried = len(result.outcome.session.journal.rollbacks) - 1  # allocate does not try it again
    assert tried > len(world.step().outcome.session.journal.rollbacks), "the search alone takes anything back"
    world.gang("more", "n1", cpu=1)
    assert len(world.step().outcome.session.journal.rollbacks) >= tried
    world.step()
    assert len(world.sleep(RETRY_AFTER).step().outcome.session.journal.rollbacks) >= tried


def test_a_failed_search_leaves_no_trace_in_what_users_read() -> None:
    world = MovingWorld(THREE).gang("a", "n1 n2 n3", minimum=0, cpu=5).gang("big", cpu=8)
    with_action = world.step()
    plain = MovingWorld(THREE, actions="enqueue, allocate, backfill")
    without = plain.gang("a", "n1 n2 n3", minimum=0, cpu=5).gang("big", cpu=8).step()
    assert with_action.pending["default/big"] == without.pending["default/big"]


# -- what is told


def test_the_plan_shows_each_move_with_both_nodes_and_the_beneficiary() -> None:
    world = MovingWorld("n1 cpu=4; n2 cpu=2").gang("a", "n1", cpu=2)
    result = world.gang("big", cpu=4).step()
    (move,) = moves(result)
    assert eviction_sentence(move) == (
        "default/a-0 moves from n1 to n2: consolidate for default/big, frees cpu 2, pods 1 (chosen "
        "by all tiers (priority, gang, conformance))"
    )
    events = [d.message for d in result.decisions if isinstance(d, Event) and d.reason == names.EVENT_EVICT]
    assert any("consolidate for default/big, to start again on n2" in message for message in events)
    assert result.pending["default/big"].reason == "Pipelined"
