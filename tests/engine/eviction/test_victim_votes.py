"""The vote with fewestVictims: asking once gives what adding candidates one at a time gives."""

from __future__ import annotations

import random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stromboli.engine.eviction.victim_selection import TierVote, VictimVotes
from stromboli.engine.plugin import Eviction, Plugin
from stromboli.engine.points import in_turn, votes_in_turn
from stromboli.engine.rules import Rules
from stromboli.engine.session import Session
from stromboli.model.status import Status
from stromboli.model.task import Task
from stromboli.testing import World
from tests.manifests import policy
from tests.properties.strategies import contest, examples

IN_TURN = {
    "preemptable": "priority gang conformance cdp tdm",
    "reclaimable": "gang conformance cdp proportion",
}


def _session(seed: int, plugins: str) -> Session:
    chance = random.Random(seed)
    world = World(policy=policy("enqueue", plugins)).add(*contest(chance, nodes=3))
    return world.step().outcome.session


@pytest.mark.parametrize("point", IN_TURN)
@given(seed=st.integers(0, 2**32))
@example(seed=0)
@examples(15)
def test_stock_plugins_that_vote_in_turn_give_the_same_at_once_and_one_at_a_time(
    point: str, seed: int
) -> None:
    """Each by itself, and all of them in one tier."""
    session, chance = _session(seed, IN_TURN[point]), random.Random(seed)
    methods = [method for _, tier in session.rules.methods_by_tier(point) for method in tier]
    assert len(methods) == len(IN_TURN[point].split())
    assert all(map(votes_in_turn, methods))
    tasks = list(session.cluster.tasks.values())
    running = [task for task in tasks if task.status is Status.RUNNING]
    chance.shuffle(running)
    for task in [task for task in tasks if task.status is Status.PENDING][:3]:
        for tier in (*([method] for method in methods), methods):
            vote = TierVote(tier)
            slow = vote._one_at_a_time(task, running)
            fast = vote.choose(task, running)
            assert fast.victims == slow.victims
            if slow.victims:
                assert fast.plugins == slow.plugins


@given(seed=st.integers(0, 2**32), kind=st.sampled_from(("preempt", "reclaim", "consolidate")))
@examples(15)
def test_what_stock_plugins_say_of_the_first_victims_holds_beside_more_of_them(seed: int, kind: str) -> None:
    """So gang-aware actions may ask about some victims before they ask about all."""
    session, chance = _session(seed, "priority gang conformance cdp tdm capacity"), random.Random(seed)
    methods = [method for _, tier in session.rules.methods_by_tier("unified_evictable") for method in tier]
    assert len(methods) == 6
    assert all(map(votes_in_turn, methods))
    running = [task for task in session.cluster.tasks.values() if task.status is Status.RUNNING]
    chance.shuffle(running)
    for job in session.cluster.backlog:
        eviction = Eviction(kind, job, session.cluster.hyper_nodes.top)
        for method in methods:
            of_all = method(eviction, running)
            for count in range(len(running)):
                first = running[:count]
                of_first = method(eviction, first)
                if of_all is None:
                    assert of_first is None
                else:
                    assert set(of_first) == set(of_all) & set(first)


class First(Plugin):
    """Allows the first candidate that it sees."""

    name = "first"

    @in_turn
    def preemptable(self, task: Task, candidates: list[Task]) -> list[Task]:
        return candidates[:1]


class NotZero(Plugin):
    """Spares the task whose name ends with 0."""

    name = "not-zero"

    @in_turn
    def preemptable(self, task: Task, candidates: list[Task]) -> list[Task]:
        return [candidate for candidate in candidates if not candidate.name.endswith("0")]


class Anybody(Plugin):
    """Lets everybody go."""

    name = "anybody"

    def preemptable(self, task: Task, candidates: list[Task]) -> list[Task]:
        return candidates


def _candidates() -> list[Task]:
    world = World(nodes="n1 cpu=9").job("old", pods=3, minimum=0, cpu=1, running_on="n1 n1 n1")
    return sorted(world.session().cluster.tasks.values(), key=lambda task: task.name)


def _chosen(*tiers: list[type[Plugin]], last_tier: int | None = None) -> tuple[list[str], int]:
    candidates = _candidates()
    rules = Rules([[kind(None, {}) for kind in tier] for tier in tiers])
    choice = VictimVotes(rules, "preemptable").choose(candidates[0], candidates, last_tier)
    return [victim.name for victim in choice.victims], choice.tier


def test_a_candidate_that_all_allow_is_found_though_each_names_another_first() -> None:
    assert _chosen([First, NotZero]) == (["old-1"], 1)


def test_candidates_that_only_a_later_tier_allows_hide_no_others() -> None:
    """The first is spared by one plugin of the first tier and counted by the other: it is not offered to it again."""
    assert _chosen([First, NotZero], [Anybody]) == (["old-1"], 1)


def test_an_empty_tier_keeps_its_number_and_later_tiers_may_be_left_out() -> None:
    assert _chosen([], [Anybody]) == (["old-0", "old-1", "old-2"], 2)
    assert _chosen([], [Anybody], last_tier=1) == ([], 0)
