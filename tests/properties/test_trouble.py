"""A plugin that raises wherever it is asked costs a job, a queue or a cycle: never the state, and no more."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Iterable
from math import isfinite
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.api.types.meta import Object
from stromboli.engine.decisions import Event
from stromboli.engine.failing_plugins import MAX_FAILURES
from stromboli.engine.placement.node_functions import Check, NodeFilter, NodeScore
from stromboli.engine.plugin import Plugin
from stromboli.engine.points import Vote
from stromboli.model.cluster import Cluster
from stromboli.model.pauses import FIRST_PAUSE, MAX_PAUSE, Pauses
from tests.manifests import group, job_named, node, pod, queue, task_named
from tests.properties.living import LivingWorld, binds, engine
from tests.properties.rebuild import fingerprint, kept_sums, rebuilt_sums
from tests.properties.strategies import examples, worlds

# What a plugin that is in the mood answers.
ANSWERS: dict[str, Any] = {
    "queue_order": 0,
    "job_order": 0,
    "task_order": 0,
    "sub_job_order": 0,
    "job_valid": None,
    "job_ready": True,
    "job_pipelined": Vote.ABSTAIN,
    "sub_job_ready": True,
    "sub_job_pipelined": Vote.ABSTAIN,
    "job_enqueueable": Vote.ABSTAIN,
    "job_enqueued": None,
    "overused": False,
    "allocatable": True,
    "shape_key": None,
    "prefilter": None,
    "filter_nodes": (),
    "score_nodes": 0,
    "opening": None,
    "closing": None,
    "on_move": None,
}


class Mistake(Exception):
    """What the troublesome plugin raises."""


def trouble(points: Iterable[str], raises: Callable[[str, tuple[Any, ...]], bool]) -> type[Plugin]:
    """A plugin that is asked at some points, and raises there when `raises(point, asked about)` says so."""

    def method(point: str) -> Callable[..., Any]:
        def ask(self: Plugin, *items: Any) -> Any:
            if raises(point, items):
                raise Mistake(f"no {point} today")
            return items[-1].zeros() if point == "score_nodes" else ANSWERS[point]

        ask.__name__ = point
        return ask

    return type("Trouble", (Plugin,), {"name": "trouble", **{point: method(point) for point in points}})


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    for module in ("cycle", "failing_plugins"):
        caplog.set_level(logging.CRITICAL + 1, f"stromboli.engine.{module}")


@given(
    objects=worlds(most_pods=10, mostly_pending=True),
    points=st.lists(st.sampled_from(sorted(ANSWERS)), min_size=1, max_size=4, unique=True),
    rate=st.sampled_from((0.02, 0.1, 0.5, 1.0)),
    seed=st.integers(0, 2**32),
)
@examples(100)
def test_the_state_survives_any_mistake(
    objects: list[Object], points: list[str], rate: float, seed: int
) -> None:
    chance = random.Random(seed)
    plugin = trouble(points, lambda point, items: chance.random() < rate)
    world = LivingWorld(
        objects, lambda: engine("priority, gang", "predicates, trouble", plugin_classes=[plugin])
    )
    cluster = world.intake.cluster
    cluster.settle()
    for _ in range(4):
        before = fingerprint(cluster)
        outcome = world.cycle()
        assert kept_sums(cluster) == rebuilt_sums(cluster)
        assert {failure.plugin for failure in outcome.session.failures} <= {"trouble"}
        if outcome.lost:
            assert outcome.lost.plugin == "trouble"
            assert "no " in outcome.lost.error
            assert outcome.decisions == []
            assert fingerprint(cluster) == before
        world.come_true(outcome.decisions)


@given(objects=worlds(most_pods=10, mostly_pending=True), seed=st.integers(0, 2**32))
@examples(30)
def test_a_plugin_that_is_well_again_decides_as_if_nothing_had_been(objects: list[Object], seed: int) -> None:
    """After lost cycles, and pauses, the next good one is that of an engine that never saw any trouble."""
    chance = random.Random(seed)
    ill = True
    plugin = trouble(["on_move", "closing"], lambda point, items: ill and chance.random() < 0.5)
    world = LivingWorld(
        objects, lambda: engine("priority, gang", "predicates, trouble", plugin_classes=[plugin])
    )
    lost = [world.cycle().lost is not None for _ in range(3)]
    if not all(lost):
        return
    ill = False
    world.now += MAX_PAUSE
    healthy = LivingWorld(objects, lambda: engine("priority, gang", "predicates"))
    healthy.now = world.now
    assert binds(world.cycle().decisions) == binds(healthy.cycle().decisions)


# -- over one job


def two_jobs(*own: type[Plugin]) -> LivingWorld:
    objects = [
        queue(),
        queue("other"),
        node("n0", cpu=8),
        group("bad", 1, phase="Inqueue"),
        group("good", 1, phase="Inqueue", queue="other"),
        pod("bad-x-0", "bad", labels={"of": "bad"}),
        pod("good-x-0", "good", labels={"of": "good"}),
    ]
    return LivingWorld(objects, lambda: engine("gang", "trouble", plugin_classes=own))


def concerns_bad(point: str, items: tuple[Any, ...]) -> bool:
    """Whether what is asked about belongs to the job "bad"."""
    item = items[-1] if point == "allocatable" else items[0]
    return "bad" in (getattr(item, "name", ""), getattr(getattr(item, "job", None), "name", "")) or (
        point in ("queue_order", "overused") and item.name == "default"
    )


OVER_ONE_JOB = [
    "job_order",
    "task_order",
    "job_valid",
    "job_ready",
    "allocatable",
    "shape_key",
    "prefilter",
    "filter_nodes",
    "score_nodes",
    "queue_order",
    "overused",
]


@pytest.mark.parametrize("point", OVER_ONE_JOB)
def test_a_mistake_over_one_job_leaves_that_job_out_and_no_other(point: str) -> None:
    world = two_jobs(trouble([point], concerns_bad))
    outcome = world.cycle()
    bad, good = (job_named(world.intake.cluster, name) for name in ("bad", "good"))
    assert outcome.lost is None
    assert binds(outcome.decisions) == [("default/good-x-0", "n0")]
    assert outcome.session.objections[bad] == f"plugin 'trouble' failed in {point}: Mistake: no {point} today"
    assert good not in outcome.session.objections
    waiting = task_named(world.intake.cluster, "bad-x-0")
    assert f"plugin 'trouble' failed in {point}" in waiting.condition.message


ORDERS_AND_SCORES = ["job_order", "queue_order", "task_order", "score_nodes"]


@pytest.mark.parametrize("point", ORDERS_AND_SCORES)
def test_an_order_or_score_that_fails_over_one_job_is_kept_for_all_others(point: str) -> None:
    """However long it goes on, and however many jobs of one user are like that."""
    world = two_jobs(trouble([point], concerns_bad))
    for _ in range(3 * MAX_FAILURES):
        outcome = world.step()
        assert outcome.set_aside == ()
        assert ("default/bad-x-0", "n0") not in binds(outcome.decisions)


def all_but_two_namespaces(*own: type[Plugin]) -> LivingWorld:
    """A user floods one namespace; another user's job runs in another."""
    world = two_jobs(*own)
    world.step()
    for number in range(40):
        world.put(group(f"flood{number}", 1, phase="Inqueue", namespace="flood"))
        world.put(pod(f"flood{number}-x-0", f"flood{number}", namespace="flood"))
    return world


def test_a_user_with_many_bad_jobs_does_not_switch_off_a_score_for_others() -> None:
    world = all_but_two_namespaces(
        trouble(
            ["score_nodes"], lambda point, items: items[0].namespace == "flood" or concerns_bad(point, items)
        )
    )
    for _ in range(2 * MAX_FAILURES):
        assert world.step().set_aside == ()


def fails_for_all(point: str, mood: dict[str, bool]) -> type[Plugin]:
    return trouble([point], lambda point, items: mood["ill"])


@pytest.mark.parametrize("point", ORDERS_AND_SCORES)
def test_an_order_or_score_that_fails_for_all_jobs_three_times_in_a_row_is_set_aside(
    point: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR, "stromboli.engine.failing_plugins")
    world = two_jobs(fails_for_all(point, {"ill": True}))
    outcomes = [world.step() for _ in range(MAX_FAILURES)]
    assert [binds(outcome.decisions) for outcome in outcomes] == [[]] * MAX_FAILURES
    (culprit,) = outcomes[-1].set_aside
    text = f"plugin 'trouble': {culprit.point} failed for all jobs in 3 cycles in a row and is set aside"
    assert text in caplog.text
    told = [decision for decision in outcomes[-1].decisions if isinstance(decision, Event)]
    assert [(event.kind, event.name, event.reason) for event in told if text in event.message] == [
        ("Queue", "root", "PluginSetAside")
    ]
    assert len(binds(world.step().decisions)) == 2


def test_what_was_set_aside_is_tried_again_after_pauses_that_double_until_it_works() -> None:
    mood = {"ill": True}
    asked: list[float] = []
    world = two_jobs(
        trouble(["score_nodes"], lambda point, items: (asked.append(world.now), mood["ill"])[1])  # type: ignore[func-returns-value]
    )
    while not world.step().set_aside:
        pass
    begin, asked[:] = world.now - 1, []
    while world.now < begin + 7 * FIRST_PAUSE:
        assert world.step().set_aside
    assert [time - begin for time in dict.fromkeys(asked)] == [FIRST_PAUSE, 3 * FIRST_PAUSE]
    mood["ill"] = False
    outcome = world.step()
    assert outcome.set_aside == ()
    assert "PluginResumed" in [event.reason for event in outcome.decisions if isinstance(event, Event)]


def test_a_pause_is_never_longer_than_the_longest() -> None:
    pauses = Pauses[str]()
    now, lengths = 0.0, []
    for _ in range(10):
        seconds, now = pauses.begin("x", now)
        lengths.append(seconds)
    assert lengths == sorted(lengths)
    assert lengths[:2] == [FIRST_PAUSE, 2 * FIRST_PAUSE]
    assert lengths[-1] == MAX_PAUSE
    assert pauses.begin("x", now + MAX_PAUSE).seconds == FIRST_PAUSE, (
        "it was well for as long as it had paused"
    )


@pytest.mark.parametrize(
    "point", ["allocatable", "filter_nodes", "prefilter", "job_valid", "shape_key", "overused"]
)
def test_a_limit_or_filter_that_fails_is_never_disabled(point: str) -> None:
    world = two_jobs(trouble([point], concerns_bad))
    for _ in range(2 * MAX_FAILURES):
        assert ("default/bad-x-0", "n0") not in binds(world.step().decisions)


def test_an_order_that_fails_now_and_then_is_kept() -> None:
    failing = iter([True, True, False] * 3)
    mood = {"ill": True}
    world = two_jobs(fails_for_all("job_order", mood))
    world.put(group("bad", 5, phase="Inqueue"))
    for mood["ill"] in failing:
        assert world.step().set_aside == ()


@pytest.mark.parametrize("key", [None, float("nan")])
def test_a_key_without_a_place_in_the_order_costs_its_job_alone(key: float | None) -> None:
    body = {"name": "trouble", "job_order": lambda self, job: key if job.name == "bad" else 1.0}
    world = two_jobs(type("Trouble", (Plugin,), body))
    assert binds(world.step().decisions) == [("default/good-x-0", "n0")]
    assert "failed in" in task_named(world.intake.cluster, "bad-x-0").condition.message


def test_the_log_names_the_job_over_which_a_plugin_failed(caplog: pytest.LogCaptureFixture) -> None:
    def job_order(self: Plugin, job: Any) -> float:
        if job.name == "bad":
            raise SystemExit(3)
        return 1.0

    caplog.set_level(logging.ERROR, "stromboli.engine.cycle")
    two_jobs(type("Trouble", (Plugin,), {"name": "trouble", "job_order": job_order})).step()
    (line,) = [record.getMessage() for record in caplog.records if "'trouble' failed" in record.getMessage()]
    assert line == "plugin 'trouble' failed in job_order: SystemExit: 3 (job default/bad)"


@pytest.mark.parametrize("score", [float("inf"), float("-inf"), float("nan"), 1e300])
def test_a_score_out_of_bounds_costs_its_job_alone(score: float) -> None:
    def score_nodes(self: Plugin, task: Any, nodes: Any) -> Any:
        return nodes.zeros() + (score if task.job.name == "bad" else 1.0)

    world = two_jobs(type("Trouble", (Plugin,), {"name": "trouble", "score_nodes": score_nodes}))
    for _ in range(2 * MAX_FAILURES):
        outcome = world.step()
        assert outcome.set_aside == ()
    waiting = task_named(world.intake.cluster, "bad-x-0")
    assert (
        "plugin 'trouble' failed in score_nodes: BadAnswer: expected finite scores of at most 1e+100, "
        f"got {score if not isfinite(score) else 'a larger number'}; fix" in waiting.condition.message
    )
    assert waiting.job is not None
    text = f"expected finite scores of at most 1e+100, got {score} for n0"
    assert text in outcome.session.objections[waiting.job]
    assert task_named(world.intake.cluster, "good-x-0").node is not None


@pytest.mark.parametrize("kind", [NodeFilter, NodeScore])
def test_the_blame_for_a_function_without_a_self_falls_on_its_plugin(kind: type) -> None:
    def explode(*_: Any) -> list[Check]:
        raise Mistake("boom")

    point = "node_filters" if kind is NodeFilter else "node_scores"
    body = {"name": "trouble", point: lambda self, task: [kind(explode, plugin="trouble", reads="usage")]}
    world = two_jobs(type("Trouble", (Plugin,), body))
    outcome = world.cycle()
    assert {(decision.plugin, decision.point) for decision in outcome.session.failures} == {
        ("trouble", point)
    }


def test_a_filter_that_failed_once_is_asked_again() -> None:
    moods = iter([True])
    world = two_jobs(trouble(["filter_nodes"], lambda point, items: next(moods, False)))
    assert len(binds(world.step().decisions)) == 1
    assert len(binds(world.step().decisions)) == 1


@pytest.mark.parametrize("point", ["opening", "closing", "on_move"])
def test_a_mistake_at_open_close_or_in_a_listener_costs_the_cycle(point: str) -> None:
    world = two_jobs(trouble([point], lambda point, items: True))
    before = fingerprint(world.intake.cluster)
    outcome = world.cycle()
    assert outcome.lost is not None
    assert outcome.lost.message == f"plugin 'trouble' failed in {point}: Mistake: no {point} today"
    assert outcome.decisions == []
    world.intake.cluster.settle()
    assert fingerprint(world.intake.cluster)["standing"] == before["standing"]


def test_a_job_over_which_a_listener_fails_costs_one_cycle_and_is_left_out_of_the_next() -> None:
    world = two_jobs(trouble(["on_move"], lambda point, items: items[0].task.job.name == "bad"))
    cycles = [world.step() for _ in range(3)]
    assert [outcome.lost is None for outcome in cycles] == [False, True, True]
    assert binds(cycles[1].decisions) == [("default/good-x-0", "n0")]
    waiting = task_named(world.intake.cluster, "bad-x-0")
    assert "plugin 'trouble' failed in on_move: Mistake" in waiting.condition.message
    world.now += FIRST_PAUSE
    assert world.step().lost is not None, "it is tried again after a pause"


def test_an_error_that_is_raised_again_is_attributed_to_the_point_that_raised_it() -> None:
    mistake = Mistake("always the same object")

    def plugin(point: str) -> type[Plugin]:
        def ask(self: Plugin, *items: Any) -> Any:
            if concerns_bad(point, items):
                raise mistake
            return items[-1].zeros() if point == "score_nodes" else ANSWERS[point]

        ask.__name__ = point
        return type("Trouble", (Plugin,), {"name": "trouble", point: ask})

    for point in (*OVER_ONE_JOB, *reversed(OVER_ONE_JOB)):
        world = two_jobs(plugin(point))
        outcome = world.cycle()
        bad = job_named(world.intake.cluster, "bad")
        assert outcome.session.objections[bad].startswith(f"plugin 'trouble' failed in {point}: ")
        world.step()


@pytest.mark.parametrize("leaving", [SystemExit, GeneratorExit, KeyboardInterrupt, BaseException])
@pytest.mark.parametrize("point", [*OVER_ONE_JOB, "on_move"])
def test_what_would_end_the_process_is_a_failure_like_any_other(
    leaving: type[BaseException], point: str
) -> None:
    def ask(self: Plugin, *items: Any) -> Any:
        about = items[0].task.job.name == "bad" if point == "on_move" else concerns_bad(point, items)
        if about:
            raise leaving("odd")
        return items[-1].zeros() if point == "score_nodes" else ANSWERS[point]

    ask.__name__ = point
    world = two_jobs(type("Trouble", (Plugin,), {"name": "trouble", point: ask}))
    world.engine = engine(
        "gang", "trouble", plugin_classes=[type(world.engine.rules.plugins[-1])], interruptible=False
    )
    assert [binds(world.step().decisions) for _ in range(2)].count([("default/good-x-0", "n0")]) == 1
    message = task_named(world.intake.cluster, "bad-x-0").condition.message
    assert f"plugin 'trouble' failed in {point}" in message
    assert leaving.__name__ in message


def test_a_plugin_that_would_end_the_process_when_asked_for_its_scores_costs_its_job_alone() -> None:
    def node_scores(self: Plugin, task: Any) -> list[NodeScore]:
        if task.job.name == "bad":
            raise SystemExit(3)
        return []

    world = two_jobs(type("Trouble", (Plugin,), {"name": "trouble", "node_scores": node_scores}))
    outcomes = [world.step() for _ in range(2 * MAX_FAILURES)]
    assert binds(outcomes[0].decisions) == [("default/good-x-0", "n0")]
    assert [outcome.set_aside for outcome in outcomes] == [()] * len(outcomes)


def test_a_plugin_that_answers_no_list_of_scores_for_any_job_is_set_aside() -> None:
    def node_scores(self: Plugin, task: Any) -> None:
        """Forgets to return anything."""

    world = two_jobs(type("Trouble", (Plugin,), {"name": "trouble", "node_scores": node_scores}))
    outcomes = [world.step() for _ in range(MAX_FAILURES + 1)]
    assert [str(each) for each in outcomes[-1].set_aside] == ["plugin 'trouble': node_scores"]
    assert len(binds(outcomes[-1].decisions)) == 2


@pytest.mark.parametrize("point", ["opening", "closing"])
def test_what_would_end_the_process_at_open_or_close_costs_the_cycle(point: str) -> None:
    def leave(self: Plugin, *items: Any) -> None:
        raise SystemExit("bye")

    world = two_jobs(type("Trouble", (Plugin,), {"name": "trouble", point: leave}))
    lost = world.cycle().lost
    assert lost is not None
    assert lost.message == f"plugin 'trouble' failed in {point}: SystemExit: bye"


@pytest.mark.parametrize("point", ["job_order", "score_nodes", "on_move", "opening"])
def test_an_interrupt_by_the_user_passes(point: str) -> None:
    def interrupt(self: Plugin, *items: Any) -> None:
        raise KeyboardInterrupt

    interrupt.__name__ = point
    world = two_jobs(type("Trouble", (Plugin,), {"name": "trouble", point: interrupt}))
    with pytest.raises(KeyboardInterrupt):
        world.cycle()
    assert kept_sums(world.intake.cluster) == rebuilt_sums(world.intake.cluster)


@pytest.mark.parametrize("second", [{"cpu": 100}, {"cpu": 5}])
def test_a_listener_that_fails_while_moves_are_taken_back_costs_the_cycle(second: dict[str, Any]) -> None:
    """In the middle of a cycle, when a gang does not fit, and at its end, when one was kept for what is leaving."""
    plugin = trouble(["on_move"], lambda point, items: items[0].back)
    world = two_jobs(plugin)
    world.put(group("bad", 2, phase="Inqueue"))
    world.put(pod("bad-x-1", "bad", **second))
    world.put(pod("leaving", on="n0", cpu=6, terminating=True))
    cluster = world.intake.cluster
    cluster.settle()
    before = fingerprint(cluster)
    assert world.cycle().lost is not None
    assert fingerprint(cluster) == before


def test_a_model_that_cannot_be_settled_costs_the_cycle_and_the_next_one_decides() -> None:
    world = two_jobs(trouble([], lambda point, items: False))
    cluster, settle = world.intake.cluster, Cluster.settle
    world.cycle()
    world.put(pod("bad-x-1", "bad"))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Cluster, "settle", failing(times=1, then=settle))
        outcome = world.cycle()
    assert outcome.lost is not None
    assert outcome.lost.message == "scheduling failed: Mistake: not today"
    assert outcome.decisions == []
    assert cluster.dirty.everything
    assert ("default/bad-x-1", "n0") in binds(world.step().decisions)
    assert kept_sums(cluster) == rebuilt_sums(cluster)


def test_a_model_that_cannot_be_settled_costs_a_rehearsal_and_is_as_before() -> None:
    world = two_jobs(trouble([], lambda point, items: False))
    cluster, settle = world.intake.cluster, Cluster.settle
    world.cycle()
    world.put(pod("bad-x-1", "bad"))
    memory, unsettled = cluster.memory, dict(cluster.unsettled)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Cluster, "settle", failing(times=1, then=settle))
        outcome = world.make_engine().rehearse(cluster, world.now, lambda outcome: outcome)
    assert outcome.lost is not None
    assert outcome.lost.message == "scheduling failed: Mistake: not today"
    assert outcome.unsettled
    assert outcome.decisions == []
    assert (cluster.memory, cluster.unsettled, cluster.listeners) == (memory, unsettled, [])
    assert cluster.dirty.everything
    assert ("default/bad-x-1", "n0") in binds(world.step().decisions)
    assert kept_sums(cluster) == rebuilt_sums(cluster)


def failing(times: int, then: Callable[..., Any]) -> Callable[..., Any]:
    """A function that raises so often, then does what another one does."""
    moods = iter(range(times))

    def call(*args: Any) -> Any:
        if next(moods, None) is not None:
            raise Mistake("not today")
        return then(*args)

    return call
