"""Which plugin a failure is charged to: the one that was asked, and of plugins that ask each other the innermost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from stromboli.engine.placement.node_functions import Check, Nodes, NodeScore
from stromboli.engine.plugin import Plugin, QueueLimit
from stromboli.engine.points import Tiers, point
from stromboli.model.queue import Queue
from stromboli.model.task import Task
from stromboli.testing import World

SINGLETON = RuntimeError("the same object every time")


class Inner(Plugin):
    """Raises when another plugin asks for queue orders."""

    name = "inner"

    def queue_order(self, queue: Queue) -> int:
        if getattr(self.session, "asked_by_outer", False):
            raise RuntimeError("no order")
        return 0


class Outer(Plugin):
    """Asks the other plugins through the session."""

    name = "outer"

    def task_order(self, task: Task) -> int:
        self.session.asked_by_outer = True  # type: ignore[attr-defined]
        try:
            assert task.job is not None
            assert task.job.queue is not None
            self.session.queue_key(task.job.queue)
        finally:
            self.session.asked_by_outer = False  # type: ignore[attr-defined]
        return 0


class Handling(Outer):
    """Catches what the other plugin raised and raises something of its own."""

    name = "handling"

    def task_order(self, task: Task) -> int:
        try:
            return super().task_order(task)
        except RuntimeError as error:
            raise LookupError("could not ask") from error


class Silent(Plugin):
    """Names no limits of queues: only an explanation asks for them."""

    name = "silent"

    def overused(self, queue: Queue) -> bool:
        return True

    def queue_limits(self, queue: Queue) -> list[QueueLimit]:
        raise RuntimeError("no limits")


def failures(*plugins: type[Plugin], actions: str = "allocate") -> list[str]:
    world = World(nodes="n1 cpu=4").job("a", cpu=1, phase="Inqueue")
    return world.run(actions, " ".join(plugin.name for plugin in plugins), plugin_classes=plugins).failures


def test_a_plugin_that_only_an_explanation_asks_is_named_too() -> None:
    assert failures(Silent) == ["plugin 'silent' failed in outcome: RuntimeError: no limits"]


def test_the_plugin_that_another_one_asked_is_charged() -> None:
    assert failures(Outer, Inner) == ["plugin 'inner' failed in queue_order: RuntimeError: no order"]


def test_a_plugin_that_handles_the_failure_of_another_is_charged_with_what_it_raises_itself() -> None:
    assert failures(Handling, Inner) == ["plugin 'handling' failed in task_order: LookupError: could not ask"]


def test_a_function_that_a_plugin_made_is_charged_to_it() -> None:
    class Maker(Plugin):
        """Returns a score that is no method."""

        name = "maker"

        def node_scores(self, task: Task) -> Iterator[NodeScore]:
            def score(task: Task, nodes: Nodes) -> Any:
                raise RuntimeError("not today")

            yield NodeScore(score, plugin=self.name, reads="usage")

    assert failures(Maker) == ["plugin 'maker' failed in node_scores: RuntimeError: not today"]


def test_a_generator_that_raises_late_is_charged_to_its_plugin() -> None:
    class Late(Plugin):
        """Makes its filters one by one, and fails on the way."""

        name = "late"

        def node_filters(self, task: Task) -> Iterator[Any]:
            yield from ()
            raise RuntimeError("too late")

    assert failures(Late) == ["plugin 'late' failed in node_filters: RuntimeError: too late"]


def test_an_answer_of_the_wrong_kind_is_charged_to_its_plugin() -> None:
    class Vague(Plugin):
        """Its checks are of the wrong length."""

        name = "vague"

        def filter_nodes(self, task: Task, nodes: Nodes) -> Iterator[Check]:
            yield Check(nodes.all().repeat(3)[:2], "odd")

    (failure,) = failures(Vague)
    assert failure.startswith("plugin 'vague' failed in filter_nodes: ValueError: ")


def test_an_exception_object_that_two_plugins_share_is_attributed_to_the_one_that_raised_it() -> None:
    class First(Plugin):
        """Raises over job a."""

        name = "first"

        def task_order(self, task: Task) -> int:
            if task.name.startswith("a"):
                raise SINGLETON
            return 0

    class Second(Plugin):
        """Raises over job b."""

        name = "second"

        def task_order(self, task: Task) -> int:
            if task.name.startswith("b"):
                raise SINGLETON
            return 0

    world = World(nodes="n1 cpu=4").job("a", cpu=1, phase="Inqueue").job("b", cpu=1, phase="Inqueue")
    result = world.run("allocate", "first second", plugin_classes=[First, Second])
    assert sorted(failure.split(" failed")[0] for failure in result.failures) == [
        "plugin 'first'",
        "plugin 'second'",
    ]


def test_a_point_with_a_combining_rule_of_its_own_is_charged_as_well() -> None:
    def loudest(tiers: Tiers) -> Any:
        return lambda *items: max(method(*items) for tier in tiers for method in tier)

    class Base(Plugin):
        """Declares a point."""

        @point(loudest)
        def loudness(self, task: Task) -> int:
            """How loud a task is."""
            return 0

    class Loud(Base):
        """Answers its own point badly."""

        name = "loud"

        def loudness(self, task: Task) -> int:
            raise RuntimeError("too loud")

        def task_order(self, task: Task) -> int:
            return int(self.session.rules.ask("loudness", task))

    assert failures(Loud) == ["plugin 'loud' failed in loudness: RuntimeError: too loud"]


def test_a_listener_that_raises_is_charged() -> None:
    class Deaf(Plugin):
        """Cannot hear of moves."""

        name = "deaf"

        def on_move(self, change: Any) -> str | None:
            raise RuntimeError("what?")

    world = World(nodes="n1 cpu=4").job("a", cpu=1, phase="Inqueue")
    result = world.run("allocate", "deaf", plugin_classes=[Deaf])
    assert result.lost == "plugin 'deaf' failed in on_move: RuntimeError: what?"


@pytest.mark.parametrize(
    ("point_name", "actions"),
    [
        ("job_ready", "allocate"),
        ("overused", "allocate"),
        ("allocatable", "allocate"),
        ("node_filters", "allocate"),
        ("job_enqueueable", "enqueue"),
        ("job_starving", "preempt"),
        ("victim_tasks", "shuffle"),
    ],
)
def test_a_plugin_that_returns_none_where_an_answer_is_needed_is_named(point_name: str, actions: str) -> None:
    def answer(self: Plugin, *items: Any) -> None:
        pass

    answer.__name__ = point_name
    mute = type("Mute", (Plugin,), {"__doc__": "Has no `return`.", "name": "mute", point_name: answer})
    phase = "Pending" if actions == "enqueue" else "Inqueue"
    world = World(nodes="n1 cpu=4").job("old", cpu=1, running_on="n1")
    world.job("a", cpu=3, min_resources={"cpu": 3}, phase=phase).job("b", cpu=2, phase=phase)
    result = world.run(actions, "mute", plugin_classes=[mute])
    why = "it returned None where an answer is needed: is a return missing?"
    failure = f"plugin 'mute' failed in {point_name}: TypeError: {why}"
    assert failure in (*result.failures, result.lost)
