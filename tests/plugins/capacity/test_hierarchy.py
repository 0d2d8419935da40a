"""capacity with a hierarchy, at work: limits of ancestors, order of branches, and detached queues (spec 03 8)."""

import pytest

from stromboli.plugins.capacity.plugin import HierarchicalCapacity
from stromboli.testing import World
from tests.plugins.capacity.policies import PLACE, messages_about, policy

TREE = policy()
TEAMS = (
    "eng deserved=cpu:4; eng-a parent=eng deserved=cpu:2; eng-b parent=eng deserved=cpu:2; sci deserved=cpu:4"
)


def queue(name: str, parent: str) -> dict[str, object]:
    return {"kind": "Queue", "metadata": {"name": name}, "spec": {"parent": parent}}


# -- limits


def test_the_limit_of_an_ancestor_holds_for_all_below_it_together() -> None:
    world = World(nodes="n1 cpu=9", queues="top capability=cpu:3; a parent=top; b parent=top; mid parent=top")
    world.add(queue("c", "mid"))
    for name in "abc":
        world.job(name, queue=name, pods=3, minimum=1, cpu=1)
    assert sum(world.run(policy=TREE).bound_per_job.values()) == 3


def test_what_is_guaranteed_to_a_sibling_is_kept_free() -> None:
    world = World(
        nodes="n1 cpu=9", queues="top capability=cpu:6; a parent=top; b parent=top guarantee=cpu:4; other"
    )
    world.job("a", queue="a", pods=6, minimum=1, cpu=1)
    assert world.run(policy=TREE).bound_per_job == {"default/a": 2}


def test_the_gate_counts_promises_to_all_below_an_ancestor() -> None:
    world = World(nodes="n1 cpu=9", queues="top capability=cpu:5; a parent=top; b parent=top")
    world.job("one", queue="a", pods=3, cpu=1, min_resources={"cpu": 3})
    world.job("two", queue="b", pods=3, cpu=1, min_resources={"cpu": 3})
    world.job("three", queue="b", pods=2, cpu=1, min_resources={"cpu": 2})
    first = world.run(policy=policy("enqueue"))
    assert first.phases == {"default/one": "Inqueue", "default/two": "Pending", "default/three": "Inqueue"}
    assert "queue resource quota insufficient: insufficient cpu" in messages_about(first, "two")
    assert world.step().phases == first.phases  # what was promised last cycle still counts


def test_a_closed_ancestor_keeps_no_job_out() -> None:
    world = World(nodes="n1 cpu=1", queues="top state=Closed; a parent=top").job("a", queue="a", cpu=1)
    assert len(world.run(policy=TREE).binds) == 1


# -- order


def test_a_gain_changes_the_order_of_its_branch_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def binds() -> list[str]:
        world = World(nodes="n1 cpu=9", queues=TEAMS)
        for number in range(12):
            name = ("eng-a", "eng-b", "sci")[number % 3]
            world.job(f"{name}-{number}", queue=name, pods=1 + number % 4, minimum=1, cpu=1)
        return list(world.run(policy=TREE).binds)

    by_branch = binds()
    monkeypatch.setattr(HierarchicalCapacity.queue_order, "__depends__", "everything")
    assert binds() == by_branch
    monkeypatch.setattr(HierarchicalCapacity.queue_order, "__depends__", "item")
    assert binds() != by_branch


def test_branches_share_by_what_they_deserve_however_many_leaves_they_have() -> None:
    world = World(nodes="n1 cpu=6", queues=TEAMS)
    for name in ("eng-a", "eng-b", "sci"):
        world.job(name, queue=name, pods=6, minimum=1, cpu=1)
    bound = world.run(policy=TREE).bound_per_job
    assert bound["default/eng-a"] + bound["default/eng-b"] == 3
    assert bound["default/sci"] == 3


def test_the_order_of_branches_follows_their_shares_as_they_are_now() -> None:
    """In Volcano `eng` stays first for the whole cycle (wart allocate/capacity-hierarchy-order-is-frozen)."""
    world = World(nodes="n1 cpu=4", queues=TEAMS)
    world.job("runs", queue="sci", cpu=1, running_on="n1")
    for name in ("eng-a", "sci"):
        world.job(name, queue=name, pods=4, minimum=1, cpu=1)
    assert world.run(policy=TREE).bound_per_job == {"default/eng-a": 2, "default/sci": 1}


def test_a_leaf_beside_a_branch_is_compared_with_the_branch() -> None:
    world = World(nodes="n1 cpu=3", queues=TEAMS)
    world.job("runs", queue="eng-b", pods=2, cpu=1, running_on="n1 n1")
    world.job("a", queue="eng-a", cpu=1).job("s", queue="sci", cpu=1)
    assert world.run(policy=TREE).bound_per_job == {"default/s": 1}


def test_equal_branches_fall_to_the_oldest_leaf_with_jobs() -> None:
    world = World(nodes="n1 cpu=1", queues="one; two; three parent=one; four parent=two; five parent=one")
    world.job("five", queue="five", cpu=1).job("four", queue="four", cpu=1)
    assert world.run(policy=TREE).bound_per_job == {"default/four": 1}


# -- who is out


def test_a_queue_without_its_parent_is_out_and_everybody_else_goes_on() -> None:
    world = World(nodes="n1 cpu=9", queues="lost parent=nowhere; kid parent=lost; fine")
    for name in ("lost", "kid", "fine"):
        world.job(name, queue=name, cpu=1, min_resources={"cpu": 1})
    result = world.run(policy=TREE)
    assert result.bound_per_job == {"default/fine": 1}
    assert result.phases == {"default/lost": "Pending", "default/kid": "Pending", "default/fine": "Inqueue"}
    why = 'the parent of queue "lost" does not exist: create "nowhere" or change spec.parent of "lost"'
    assert why in messages_about(result, "lost")
    assert f'queue "kid" is cut off from the root: {why}' in messages_about(result, "kid")
    assert why in result.why("lost-0")
    world.add(queue("nowhere", "root"))
    world.step()
    assert messages_about(world.step(), "lost") == []


def test_a_queue_that_found_its_parent_is_in_again() -> None:
    world = World(nodes="n1 cpu=9", queues="lost parent=nowhere").job("j", queue="lost", cpu=1)
    assert world.run(policy=TREE).binds == {}
    world.add(queue("nowhere", "root"))
    assert len(world.step().binds) == 1


@pytest.mark.parametrize("least", [{}, {"min_resources": {"cpu": 1}}])
def test_a_loop_is_out_and_everybody_else_goes_on(least: dict) -> None:
    world = World(nodes="n1 cpu=9", queues="a parent=b; b parent=a; kid parent=b; fine")
    for name in ("a", "kid", "fine"):
        world.job(name, queue=name, cpu=1, **least)
    result = world.run(policy=TREE)
    assert result.bound_per_job == {"default/fine": 1}
    assert "form a loop: b -> a -> b;" in result.why("kid-0")
    world.add(queue("a", "root"))
    assert world.step().bound_per_job == {"default/kid": 1}  # `a` has children now


@pytest.mark.parametrize("least", [{}, {"min_resources": {"cpu": 1}}])
def test_a_job_in_an_inner_queue_waits_and_everybody_else_goes_on(least: dict) -> None:
    world = World(nodes="n1 cpu=9", queues=TEAMS)
    world.job("inner", queue="eng", cpu=1, **least).job("leaf", queue="eng-a", cpu=1, **least)
    result = world.run(policy=TREE)
    assert result.bound_per_job == {"default/leaf": 1}
    why = 'queue "eng" has child queues and takes no jobs itself: use "eng-a" or "eng-b"'
    assert why in messages_about(result, "inner")
    assert why in result.why("inner-0")
    world.step()
    assert messages_about(world.step(3), "inner") == []


def test_best_effort_pods_in_an_inner_queue_wait_too() -> None:
    world = World(nodes="n1 cpu=9", queues=TEAMS).job("inner", queue="eng")
    result = world.run(policy=policy(f"{PLACE}, backfill"))
    assert result.binds == {}
    assert "takes no jobs itself" in messages_about(result, "inner")[0]


def test_what_runs_in_an_inner_queue_counts_there() -> None:
    world = World(nodes="n1 cpu=9", queues="top capability=cpu:3; a parent=top")
    world.job("old", queue="top", pods=2, cpu=1, running_on="n1 n1")
    world.job("new", queue="a", pods=3, minimum=1, cpu=1)
    assert world.run(policy=TREE).bound_per_job == {"default/new": 1}


def test_what_runs_in_a_stray_queue_goes_on_running() -> None:
    world = World(nodes="n1 cpu=2", queues="lost parent=nowhere; fine deserved=cpu:2")
    world.job("old", queue="lost", pods=2, minimum=0, cpu=1, running_on="n1 n1")
    world.job("new", queue="fine", cpu=1)
    result = world.run(policy=policy(f"{PLACE}, reclaim", one_tier=True))
    assert (result.evicted, result.lost) == ([], "")


def test_shares_that_do_not_fit_are_logged_once_and_scheduling_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World(nodes="n1 cpu=9", queues="q guarantee=cpu:4 capability=cpu:2")
    world.job("j", queue="q", pods=3, minimum=1, cpu=1)
    assert world.run(policy=TREE).bound_per_job == {"default/j": 2}
    world.job("k", queue="q", cpu=1)
    world.step(2)
    assert [record.message for record in caplog.records] == [
        'queue "q": its guarantee of cpu 4 exceeds its capability of 2; lower the former or raise the latter'
    ]


@pytest.mark.parametrize(("tree", "registered"), [(True, True), (False, False)])
def test_only_a_hierarchy_orders_the_queues_of_victims(tree: bool, registered: bool) -> None:
    result = World().run(policy=policy(tree=tree))
    plugin = next(plugin for plugin in result.outcome.session.rules.plugins if plugin.name == "capacity")
    assert ("victim_queue_order" in vars(type(plugin))) is registered


def test_a_negative_level_counts_as_none() -> None:
    result = World().run(policy=policy(levels=-1))
    assert "ancestorReclaimLevel: must not be negative, got -1; the default is used" in result.warnings[0]
