"""Which groups of nodes a queue may use, likes and avoids, and how much it may hold in each."""

import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stromboli.model.cluster import Dirty
from stromboli.model.status import Status
from stromboli.plugins.nodegroup import NodeGroup, NodeGroupArguments
from stromboli.testing import World
from stromboli.testing.world import NOON
from tests.manifests import binds, group, node, pod, policy, queue
from tests.number_of_examples import scaled

LABEL = "volcano.sh/nodegroup-name"
LIMITS = "volcano.sh/nodegroup-resource-limits"
NO_LABEL = "node group label not found"
UNSET = "node group affinity not specified"
MISMATCH = "node does not satisfy the node group affinity"
EXCEEDED = "node group resource limit exceeded"


def _terms(required: str = "", preferred: str = "") -> dict[str, list[str]]:
    suffix = "DuringSchedulingIgnoredDuringExecution"
    return {f"required{suffix}": required.split(), f"preferred{suffix}": preferred.split()}


def _likes(required: str = "", preferred: str = "", never: str = "", rather_not: str = "") -> dict[str, Any]:
    wanted, avoided = _terms(required, preferred), _terms(never, rather_not)
    return {"affinity": {"nodeGroupAffinity": wanted, "nodeGroupAntiAffinity": avoided}}


def _node(name: str, in_group: str = "", cpu: str = "8") -> dict[str, Any]:
    return node(name, labels={LABEL: in_group} if in_group else {}, cpu=cpu)


NODES = [_node("a", "A"), _node("b", "B"), _node("c", "C"), _node("plain")]


def _world(*objects: dict[str, Any], hierarchy: bool = False, **arguments: bool) -> World:
    world = World(
        policy=policy("enqueue", {"name": "nodegroup", "arguments": arguments, "enableHierarchy": hierarchy})
    )
    world.add(*NODES, group("j", 1, queue="q", phase=""), pod("p", "j", cpu="1"), *objects)
    world.step()
    return world


def _refusals(*objects: dict[str, Any], **options: bool) -> dict[str, str]:
    return _world(*objects, **options).refusals("nodegroup", "p")


def _scores(*objects: dict[str, Any], **options: bool) -> dict[str, float]:
    return _world(*objects, **options).scores("nodegroup", "p")


# -- filters


@pytest.mark.parametrize(
    "nothing", [queue("q"), queue("q", affinity={}), queue("q", **_likes())], ids=["none", "empty", "lists"]
)
def test_a_queue_without_affinity_may_use_no_group_and_when_strict_no_node(nothing: dict[str, Any]) -> None:
    assert _refusals(nothing) == {"a": UNSET, "b": UNSET, "c": UNSET, "plain": NO_LABEL}
    assert _refusals(nothing, strict=False) == {"a": UNSET, "b": UNSET, "c": UNSET, "plain": ""}


def test_required_and_preferred_groups_may_be_used() -> None:
    refusals = _refusals(queue("q", **_likes("A", "B")), strict=False)
    assert refusals == {"a": "", "b": "", "c": MISMATCH, "plain": NO_LABEL}


def test_avoided_groups_may_not_be_used_unless_it_is_only_a_wish() -> None:
    refusals = _refusals(queue("q", **_likes("A B", never="B", rather_not="C")))
    assert refusals == {"a": "", "b": MISMATCH, "c": "", "plain": NO_LABEL}
    assert _refusals(queue("q", **_likes(never="B", rather_not="B")))["b"] == "", "the wish comes last"


def test_a_queue_that_only_avoids_groups_may_use_no_other() -> None:
    """# quirk: spec 04 6"""
    assert _refusals(queue("q", **_likes(never="B")))["a"] == MISMATCH


def test_limits_that_cannot_be_read_refuse_every_node() -> None:
    for text in ("{", "[]", '{"A": 1}', '{"A": {"cpu": "many"}}'):
        refusals = _refusals(queue("q", annotations={LIMITS: text}, **_likes("A")), strict=False)
        assert set(refusals.values()) == {"node group resource limit annotation invalid"}, text


# -- the hierarchy


def test_in_a_hierarchy_the_nearest_ancestor_speaks_for_a_silent_queue() -> None:
    tree = [
        queue("top", **_likes("A")),
        queue("middle", parent="top", **_likes("B")),
        queue("low", parent="middle"),
        queue("q", parent="low"),
    ]
    assert _refusals(*tree, hierarchy=True)["b"] == ""
    assert _refusals(*tree, hierarchy=True)["a"] == MISMATCH
    assert _refusals(*tree)["b"] == UNSET


def test_the_walk_ends_at_the_root_at_an_unknown_parent_and_where_it_closes() -> None:
    assert _refusals(queue("root", **_likes("C")), queue("q"), hierarchy=True)["c"] == ""
    assert _refusals(queue("q", parent="gone"), hierarchy=True)["c"] == UNSET
    ring = [queue("q", parent="r"), queue("r", parent="q")]
    assert _refusals(*ring, hierarchy=True)["c"] == UNSET


def test_an_empty_affinity_is_an_answer_and_limits_are_not_inherited() -> None:
    parent = queue("up", annotations={LIMITS: '{"A": {"cpu": "0"}}'}, **_likes("A"))
    assert _refusals(parent, queue("q", parent="up", affinity={}), hierarchy=True)["a"] == UNSET
    assert _refusals(parent, queue("q", parent="up"), hierarchy=True)["a"] == ""


# -- limits


def _limited(limits: dict[str, dict[str, str]], groups: str = "A B") -> dict[str, Any]:
    return queue("q", annotations={LIMITS: json.dumps(limits)}, **_likes(groups))


def test_what_the_queue_holds_in_a_group_counts_there_and_nowhere_else() -> None:
    others = [group("o", 1, phase=""), pod("x", "o", on="a", cpu="4"), pod("y", "j", on="b", cpu="1")]
    assert _refusals(_limited({"A": {"cpu": "1"}, "B": {"cpu": "1500m"}}), *others) == {
        "a": "",
        "b": EXCEEDED,
        "c": MISMATCH,
        "plain": NO_LABEL,
    }


def test_a_listed_resource_counts_even_if_it_is_not_asked_for_and_an_unknown_one_never() -> None:
    old = [node("g", labels={LABEL: "A"}, cpu="8", gpu="2"), pod("y", "j", on="g", gpu="2", cpu=0)]
    assert _refusals(_limited({"A": {"nvidia.com/gpu": "1"}}), *old)["g"] == EXCEEDED
    assert _refusals(_limited({"A": {"example.com/unheard": "0"}}), *old)["g"] == ""


def test_limits_hold_within_a_cycle() -> None:
    world = World(policy=policy("enqueue, allocate", "gang", "nodegroup"))
    world.add(*NODES, _limited({"A": {"cpu": "2"}, "B": {"cpu": "1"}}), group("j", 1, queue="q", phase=""))
    world.add(*(pod(f"j-w-{index}", "j", cpu="1") for index in range(5)))
    outcome = world.step()
    assert sorted(binds(outcome).values()) == ["a", "a", "b"]
    assert binds(world.step()) == {}


def test_a_promise_counts_a_task_on_its_way_out_does_not_and_taking_back_restores() -> None:
    world = _world(_limited({"A": {"cpu": "8"}}), pod("old", "j", on="a", cpu="2"))
    plugin, session = world.plugin("nodegroup"), world.plugin("nodegroup").session
    world.cluster.listeners = [plugin]
    before = json.dumps([*plugin.allocated.values()])
    with session.statement() as trial:
        trial.pipeline(world.task("p"), world.cluster.nodes["a"])
        assert plugin.allocated["q", "A"][0] == 3000
        session.journal.move(world.task("old"), Status.RELEASING, world.cluster.nodes["a"])
        assert plugin.allocated["q", "A"][0] == 1000
    assert json.dumps([*plugin.allocated.values()]) == before


# -- scores


def test_required_groups_score_more_than_preferred_ones_and_disliked_ones_least() -> None:
    likes = queue("q", **_likes("A B", "B", rather_not="C"))
    assert _scores(likes) == {"a": 100, "b": 150, "c": -1, "plain": 0}
    assert _scores(queue("q", **_likes("C", rather_not="C")))["c"] == -1
    assert _scores(queue("q")) == {"a": 0, "b": 0, "c": 0, "plain": 0}


def test_preferred_groups_in_order_score_less_and_less() -> None:
    likes = queue("q", **_likes(preferred="A B C B"))
    assert _scores(likes, enablePreferredOrder=True) == {"a": 50, "b": 0, "c": 50 / 3, "plain": 0}
    assert _scores(likes) == {"a": 50, "b": 50, "c": 50, "plain": 0}


# -- kept across cycles


def _change(world: World, choice: random.Random) -> None:
    """Something happens to the cluster."""
    name, letter = f"j{choice.randrange(3)}", choice.choice(["", "A", "B"])
    manifest = choice.choice(
        [
            group(name, choice.randrange(3), queue=choice.choice("qr"), phase=""),
            pod(f"{name}-p-{choice.randrange(3)}", name, on=choice.choice(["", "n0", "n1"]), cpu="1"),
            _node(f"n{choice.randrange(3)}", letter),
            _limited({"A": {"cpu": "2"}}),
            queue("r", annotations=choice.choice([{}, {LIMITS: '{"B": {"cpu": "1"}}'}]), **_likes("A B")),
        ]
    )
    if choice.random() < 0.2:
        world.remove(manifest)
    else:
        world.add(manifest)


@settings(max_examples=scaled(30), deadline=None)
@given(st.integers(0, 2**32))
def test_what_is_kept_across_cycles_equals_what_is_counted_afresh(seed: int) -> None:
    choice = random.Random(seed)
    world = World(policy=policy("enqueue, allocate", "gang", "nodegroup"))
    world.add(_limited({"A": {"cpu": "3"}}), _node("n0", "A"), _node("n1", "B"))
    for _ in range(12):
        for _ in range(choice.randrange(4)):
            _change(world, choice)
        world.step()
        session = world.engine._session(world.cluster, NOON)
        kept, fresh = world.plugin("nodegroup"), NodeGroup(NodeGroupArguments(), {})
        kept.session = fresh.session = session
        kept.opening(session, session.changed)
        fresh.opening(session, Dirty())
        assert kept.allocated == fresh.allocated
