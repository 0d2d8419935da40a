"""A plugin that raises wherever it is asked costs a job, a queue or a cycle: never the state, and no more."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.api.types.meta import Object
from stromboli.engine.cycle import MAX_FAILURES
from stromboli.engine.placement.node_functions import Check, NodeFilter, NodeScore
from stromboli.engine.plugin import Plugin
from stromboli.engine.points import Vote
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
    caplog.set_level(logging.CRITICAL + 1, "stromboli.engine.cycle")


@given(
    objects=worlds(most_pods=10, mostly_pending=True),
    points=st.lists(st.sampled_from(sorted(ANSWERS)), min_size=1, max_size=4, unique=True),
    rate=st.sampled_from((0.02, 0.1, 0.5, 1.0)),
    seed=st.integers(0, 2**32),
)
@examples(250)
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
@examples(60)
def test_a_plugin_that_is_well_again_decides_as_if_nothing_had_been(objects: list[Object], seed: int) -> None:
    """After lost cycles the next good one is that of an engine that never saw any trouble."""
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


@pytest.mark.parametrize("point", ["job_order", "queue_order", "task_order", "score_nodes"])
def test_an_order_or_score_that_fails_three_times_in_a_row_is_disabled(
    point: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR, "stromboli.engine.cycle")
    world = two_jobs(trouble([point], concerns_bad))
    for _ in range(MAX_FAILURES):
        assert ("default/bad-x-0", "n0") not in binds(world.step().decisions)
    assert f"plugin 'trouble': {point} failed in 3 cycles in a row and is set aside" in caplog.text
    assert binds(world.step().decisions) == [("default/bad-x-0", "n0")]


@pytest.mark.parametrize(
    "point", ["allocatable", "filter_nodes", "prefilter", "job_valid", "shape_key", "overused"]
)
def test_a_limit_or_filter_that_fails_is_never_disabled(point: str) -> None:
    world = two_jobs(trouble([point], concerns_bad))
    for _ in range(2 * MAX_FAILURES):
        assert ("default/bad-x-0", "n0") not in binds(world.step().decisions)


def test_an_order_that_fails_now_and_then_is_kept() -> None:
    failing = iter([True, True, False] * 3)
    mood = {"bad": True}
    world = two_jobs(trouble(["job_order"], lambda point, items: mood["bad"] and items[0].name == "bad"))
    world.put(group("bad", 5, phase="Inqueue"))
    for mood["bad"] in failing:
        world.step()
    assert world.engine._disabled == set()


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
