"""A cycle that could only come to what the last one came to does not run."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from stromboli.engine.placement.node_functions import Check, Nodes, reads
from stromboli.engine.plugin import Invalid, Plugin
from stromboli.model.job import Job
from stromboli.model.task import Task
from stromboli.testing import World
from tests.manifests import node, pod, priority_class, queue, quota


def full() -> World:
    """A gang waits for room, and everything was said about it."""
    world = World("n1 cpu=4").job("old", cpu=4, running_on="n1").job("train", pods=2, cpu=2)
    world.step(2)
    return world


def test_a_cycle_does_not_run_while_nothing_happens() -> None:
    world = full()
    result = world.step(3)
    assert result.outcome.repeated
    assert result.decisions == []
    assert result.outcome.seconds == {}


def test_it_runs_without_the_right_to_skip() -> None:
    world = full()
    world.engine._skips = False
    assert not world.step().outcome.repeated


HAPPENINGS: dict[str, Callable[[World], object]] = {
    "a pod ends": lambda world: world.finish("old-0"),
    "a node comes": lambda world: world.add(node("n2", cpu=1)),
    "a node changes": lambda world: world.add(node("n1", cpu=4, labels={"disk": "ssd"})),
    "a queue changes": lambda world: world.add(queue("default", weight=7)),
    "a queue comes": lambda world: world.add(queue("research")),
    "a job comes": lambda world: world.job("late", cpu=1),
    "a priority class comes": lambda world: world.add(priority_class("high", 9)),
    "a quota comes": lambda world: world.add(quota("q", {"cpu": "1"}, {})),
    "the nodes of the scheduler change": lambda world: world.cluster.mark_all_dirty(),
}


@pytest.mark.parametrize("what", HAPPENINGS)
def test_it_runs_once_something_happened(what: str) -> None:
    world = full()
    HAPPENINGS[what](world)
    assert not world.step().outcome.repeated
    assert world.step(3).outcome.repeated


def test_it_runs_when_other_loads_were_measured() -> None:
    world = full()
    world.cluster.usage = {}
    assert not world.step().outcome.repeated


def test_it_runs_after_a_change_in_a_topic_that_only_its_writer_knows() -> None:
    world = full()
    topic = world.cluster.feed.topic()
    assert world.step(3).outcome.repeated
    topic.note("something")
    assert not world.step().outcome.repeated


def test_it_says_why_everybody_waits_and_who_is_held_for_room() -> None:
    world = World("n1 cpu=4").job("train", cpu=2).job("large", cpu=9)
    world.add(pod("old-0", cpu=4, on="n1", phase="Running", terminating=True))
    before = world.step(3)
    again = world.step()
    assert before.pipelined == {"default/train-0": "n1"}
    assert again.outcome.repeated
    assert again.pending == before.pending
    assert again.why("train-0") == before.why("train-0") != ""
    assert again.pipelined == before.pipelined


# -- what plugins read


class Clock(Plugin):
    """Asks for the time."""

    name = "clock"

    def job_valid(self, job: Job) -> Invalid | None:
        return None if self.session.now else Invalid("Never", "it is 1970")


class Moment(Plugin):
    """Waits for a moment: ten seconds after a job was created."""

    name = "moment"
    after = 10.0

    def job_valid(self, job: Job) -> Invalid | None:
        begin = self.session.cluster.memory.setdefault("moment", self.session.reads.time)
        return None if self.session.has_come(begin + self.after) else Invalid("Early", "it is too early")


class Outside(Plugin):
    """Filters by something that it does not declare."""

    name = "outside"

    def filter_nodes(self, task: Task, nodes: Nodes) -> Iterator[Check]:
        yield Check(nodes.zeros() > 0, "node(s) are closed")


class Labels(Plugin):
    """Filters by labels, and says so."""

    name = "labels"

    @reads("static")
    def filter_nodes(self, task: Task, nodes: Nodes) -> Iterator[Check]:
        yield Check(nodes.zeros() > 0, "node(s) have no such label")


def with_plugin(plugin: type[Plugin]) -> World:
    world = World("n1 cpu=4").job("train", cpu=2)
    world.run("enqueue, allocate, backfill", f"gang {plugin.name}", plugin_classes=(plugin,), cycles=2)
    return world


@pytest.mark.parametrize(("plugin", "repeated"), [(Clock, False), (Outside, False), (Labels, True)])
def test_what_a_plugin_reads_decides_whether_it_is_asked_again(plugin: type[Plugin], repeated: bool) -> None:
    assert with_plugin(plugin).step().outcome.repeated is repeated


def test_nobody_is_tried_before_the_moment_that_a_plugin_waits_for() -> None:
    world = with_plugin(Moment)
    assert world.step().outcome.repeated
    assert world.sleep(Moment.after).step().binds == {"default/train-0": "n1"}


def test_a_clock_that_is_set_back_counts_as_news() -> None:
    world = full()
    assert not world.step(now=world.rehearsal.now() - 60).outcome.repeated
