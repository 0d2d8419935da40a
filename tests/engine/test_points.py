"""How the answers of several plugins combine: one rule per extension point (spec 01 9, 02 0.5)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from stromboli.engine import points
from stromboli.engine.placement.node_functions import reads
from stromboli.engine.plugin import POINTS, Plugin
from stromboli.engine.points import Vote, depends, point
from stromboli.engine.rules import Rules

YES, NO, PERHAPS = Vote.PERMIT, Vote.REJECT, Vote.ABSTAIN


def saying(answer: Any) -> Callable[..., Any]:
    return lambda *_: answer


def tiers(*answers: list[Any]) -> list[list[Callable[..., Any]]]:
    return [[saying(answer) for answer in tier] for tier in answers]


@pytest.mark.parametrize(
    ("answers", "decision"),
    [
        ([], True),
        ([[PERHAPS], [PERHAPS]], True),
        ([[YES], [NO]], True),
        ([[YES, NO]], False),
        ([[NO, YES]], False),
        ([[PERHAPS], [NO]], False),
        ([[PERHAPS, YES], [NO]], True),
    ],
)
def test_a_vote_is_decided_by_any_reject_or_by_the_first_tier_that_permits(
    answers: list, decision: bool
) -> None:
    assert points.vote(tiers(*answers))("job") is decision


@pytest.mark.parametrize(
    ("answers", "all_of", "any_of"),
    [
        ([], True, False),
        ([[True], [False]], False, True),
        ([[True, True]], True, True),
        ([[False]], False, False),
    ],
)
def test_every_and_some(answers: list, all_of: bool, any_of: bool) -> None:
    assert points.every(tiers(*answers))("job") is all_of
    assert points.some(tiers(*answers))("queue") is any_of


@pytest.mark.parametrize(
    ("answers", "starving"), [([], False), ([[], [True, False]], False), ([[], [True], [False]], True)]
)
def test_the_first_tier_with_an_opinion_decides_which_jobs_starve(answers: list, starving: bool) -> None:
    assert points.every_of_first_tier(tiers(*answers))("job") is starving


def test_orders_compare_plugin_after_plugin() -> None:
    key = points.sort_keys([[lambda item: item % 2], [lambda item: -item]])
    assert sorted(range(5), key=key) == [4, 2, 0, 3, 1]


def test_the_first_comparison_that_is_not_zero_decides() -> None:
    compare = points.first_nonzero(tiers([0], [-1, 1]))
    assert compare("left", "right") == -1
    assert points.first_nonzero(tiers([0]))("left", "right") == 0


def test_the_first_answer_that_is_not_none_counts() -> None:
    assert points.first_answer(tiers([None], [0, 1]))("job") == 0
    assert points.first_answer(tiers([None]))("job") is None


def test_all_plugins_are_notified_and_all_lists_are_gathered() -> None:
    jobs: list[str] = []
    points.notify([[jobs.append], [jobs.append]])("job")
    assert jobs == ["job", "job"]
    assert points.gather(tiers([[1, 2]], [[3]]))("task") == [1, 2, 3]


@pytest.mark.parametrize(
    ("answers", "victims"),
    [
        ([["ab", "bc"]], ["b"]),
        ([[None, "ab"]], ["a", "b"]),
        ([["", "ab"], ["c"]], ["c"]),
        ([["a", "b", "c"], ["d"]], ["d"]),
        ([[None], [None]], []),
        ([["ba", None, "ab"]], ["b", "a"]),
    ],
    ids=["intersection", "none abstains", "nothing ends the tier", "an empty intersection stays empty (D4)",
         "only abstentions", "in the order of the first"],
)  # fmt: skip
def test_victims_are_what_a_whole_tier_names(answers: list, victims: list[str]) -> None:
    methods = [[saying(None if answer is None else list(answer)) for answer in tier] for tier in answers]
    assert points.tier_intersection(methods)("task", list("abcd")).victims == victims


def test_victims_by_union_come_from_the_first_tier_that_names_any() -> None:
    union = points.union_of_first_tier(tiers([[], []], [["b", "a"], ["a", "c"]], [["d"]]))
    assert list(union("tasks")) == ["b", "a", "c"]
    assert points.union_of_first_tier(tiers([[]]))("tasks") == {}


def test_a_victim_by_union_has_the_plugin_that_named_it() -> None:
    def naming(*tasks: str) -> type[Plugin]:
        return type("Naming", (Plugin,), {"name": "".join(tasks), "victim_tasks": lambda *_: tasks})

    first_plugin, second_plugin = naming("a", "b"), naming("b", "c")
    named = Rules([[Plugin(None, {})], [first_plugin(None, {}), second_plugin(None, {})]]).victim_tasks([])
    assert named == {"a": "tier 2 (ab)", "b": "tier 2 (ab, bc)", "c": "tier 2 (bc)"}


def test_limits_narrow_what_the_one_before_left() -> None:
    without = [lambda tasks, out=out: [task for task in tasks if task != out] for out in "ac"]
    assert points.narrow([without[:1], [], without[1:]])(list("abcd")) == ["b", "d"]
    assert points.narrow([])(list("ab")) == ["a", "b"]


def test_rules_know_whether_anybody_takes_part() -> None:
    shy = type("Shy", (Plugin,), {"name": "shy", "victim_tasks": lambda self, tasks: tasks})
    assert Rules([[shy(None, {})]]).has("victim_tasks")
    assert not Rules([[shy(None, {"enabledVictim": False})]]).has("victim_tasks")
    assert not Rules([[shy(None, {})]]).has("victim_limits")


# -- plugins


def test_a_misspelt_method_is_an_error_with_the_right_name() -> None:
    with pytest.raises(
        TypeError, match="plugin mine: 'job_odrer' is not an extension point; did you mean 'job_order'"
    ):
        type("Mine", (Plugin,), {"name": "mine", "job_odrer": lambda self, job: 0})


def test_helpers_and_own_points_are_no_misspelt_methods() -> None:
    class Mine(Plugin):
        name = "mine"

        @point(points.some, "enableLucky")
        def lucky(self, number: int) -> bool:
            return self._is_seven(number)

        def _is_seven(self, number: int) -> bool:
            return number == 7

    assert Rules([[Mine(None, {})]]).ask("lucky", 7)
    assert not Rules([[Mine(None, {"enableLucky": False})]]).ask("lucky", 7)
    with pytest.raises(LookupError, match="no plugin in the policy declares the extension point 'lucky'"):
        Rules([]).ask("lucky", 7)


class ByName(Plugin):
    """Orders, and answers nothing else."""

    name = "by-name"

    @depends("everything")
    def job_order(self, job: Any) -> str:
        return job

    def allocatable(self, queue: Any, task: Any) -> bool:
        return False


def test_only_what_a_plugin_overrides_takes_part() -> None:
    rules = Rules([[ByName(None, {})]])
    assert rules.job_order("b") == ("b",)
    assert rules.queue_order("b") == ()
    assert rules.job_ready("job") is True
    assert not rules.allocatable("queue", "task")
    assert (rules.job_order_follows_all, rules.queue_order_follows_all) == (True, False)


def test_a_switch_turns_one_point_of_a_plugin_off() -> None:
    rules = Rules([[ByName(None, {"enabledAllocatable": False})]])
    assert rules.allocatable("queue", "task")
    assert rules.job_order("b") == ("b",)


def test_what_was_set_aside_is_not_asked() -> None:
    rules = Rules([[ByName(None, {})]], {("by-name", "job_order")})
    assert rules.job_order("b") == ()
    assert not rules.job_order_follows_all
    assert not rules.allocatable("queue", "task")


def test_every_point_is_documented_and_has_a_rule() -> None:
    assert len(POINTS) > 25
    for name in POINTS:
        assert getattr(Plugin, name).__doc__
        assert callable(getattr(Rules([]), name))


def test_a_node_function_may_not_read_what_the_engine_does_not_know() -> None:
    with pytest.raises(ValueError, match="expected one of static, usage"):
        reads("moon")
