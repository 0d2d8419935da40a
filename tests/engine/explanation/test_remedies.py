"""A filter of a third party gives its own remedy in one line; it is made only when it is reported."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

import stromboli.engine
from stromboli.engine.placement.node_functions import Check, Nodes, Refusal, reads
from stromboli.engine.plugin import Plugin
from stromboli.model.remedy import Rank, Remedy
from stromboli.model.task import Task
from stromboli.simulator.explain.eviction_answers import EvictionAnswers
from stromboli.testing import World
from stromboli.testing.policy_text import known_extensions

LABEL = "label a node with disk=ssd"
ASKED: list[str] = []


class OnlySsd(Plugin):
    """Keeps pods off nodes without fast disks."""

    name = "only-ssd"

    @reads("static")
    def filter_nodes(self, task: Task, nodes: Nodes) -> Iterator[Check]:
        fast = nodes.each(lambda node: node.labels.get("disk") == "ssd", bool)
        yield Check(fast, "node(s) had no fast disk", remedy=LABEL)


class OnlySsdAsBefore(OnlySsd):
    """Under the older name of the parameter."""

    name = "only-ssd-as-before"

    @reads("static")
    def filter_nodes(self, task: Task, nodes: Nodes) -> Iterator[Check]:
        yield Check(~nodes.all(), "node(s) had no fast disk", way_out=LABEL)


class OnlySsdForTask(OnlySsd):
    """With a remedy that is made for the task."""

    name = "only-ssd-for-task"

    @reads("static")
    def filter_nodes(self, task: Task, nodes: Nodes) -> Iterator[Check]:
        fast = nodes.each(lambda node: node.labels.get("disk") == "ssd", bool)
        yield Check(fast, "node(s) had no fast disk", remedy=_remedy)


def _remedy(task: Task) -> str:
    ASKED.append(task.name)
    return f"{LABEL} for {task.name}"


class Never(Plugin):
    """Refuses a task on all nodes at once."""

    name = "never"

    def prefilter(self, task: Task) -> Refusal:
        return Refusal("not on Mondays", remedy="wait until Tuesday")


class TwoDisks(Plugin):
    """Refuses nodes for two reasons."""

    name = "two-disks"

    @reads("static")
    def filter_nodes(self, task: Task, nodes: Nodes) -> Iterator[Check]:
        first = nodes.each(lambda node: node.name != "n1", bool)
        yield Check(first, "node(s) had no disk", remedy=Remedy("add disks", rank=Rank.ABSENCE))
        yield Check(~nodes.all(), "node(s) had no free disk", remedy=Remedy("wait", lambda task: "wait 5 s"))


def run(plugin: type[Plugin], actions: str = "enqueue, allocate") -> tuple[str, str]:
    """The remedy in the condition of a job that waits, and in the plan."""
    world = World(nodes="n1 cpu=4; n2 cpu=4").job("train", cpu=1)
    waiting = world.run(actions, f"gang {plugin.name}", plugin_classes=[plugin]).pending["default/train"]
    return waiting.sentence.rpartition("; ")[2], waiting.hint


@pytest.mark.parametrize(
    ("plugin", "remedy"), [(OnlySsd, LABEL), (OnlySsdAsBefore, LABEL), (Never, "wait until Tuesday")]
)
def test_a_remedy_of_a_third_party_is_in_conditions_and_plans(plugin: type[Plugin], remedy: str) -> None:
    assert run(plugin) == (remedy, remedy)


def test_a_remedy_can_be_a_function_of_the_task_and_is_not_made_before_it_is_reported() -> None:
    plugin = OnlySsdForTask
    ASKED.clear()
    world = World(nodes="n1 cpu=4 disk=ssd; n2 cpu=4").job("train", cpu=1)
    assert world.run("allocate", f"gang {plugin.name}", plugin_classes=[plugin]).binds
    assert not ASKED
    assert run(plugin) == (f"{LABEL} for train-0", f"{LABEL} for train-0")


def test_an_absence_explains_less_than_what_waiting_can_cure_and_plans_have_numbers() -> None:
    assert run(TwoDisks) == ("wait", "wait 5 s")


class Guarded(Plugin):
    """Allows no victims."""

    name = "guarded"

    def preemptable(self, task: Task, candidates: list[Task]) -> list[Task]:
        return []

    def why_spared(self, task: Task, candidates: Sequence[Task]) -> str:
        return f"{candidates[0].name} is guarded against {task.name}"


def test_a_plugin_of_a_third_party_says_why_it_spares_pods() -> None:
    world = World(nodes="n1 cpu=4").job("old", cpu=4, running_on="n1").job("new", cpu=4, priority=5)
    plugins = "guarded gang"
    result = world.run("enqueue, allocate, preempt", plugins, plugin_classes=[Guarded])
    (old,), (new,) = (
        list(job.tasks.values())
        for name in ("old", "new")
        for job in world.cluster.jobs.values()
        if job.name == name
    )
    answers = EvictionAnswers(result.outcome.session, new)
    assert old.job is not None
    assert answers.why_not(old.job, [old]) == "old-0 is guarded against new-0"


def test_the_engine_names_no_plugin() -> None:
    """Other words that are also names of plugins, such as `gang` and `priority`, have a meaning of their own."""
    words = {"capacity", "extender", "gang", "priority", "random", "usage"}
    plugins = set(known_extensions().plugins) - words
    named = {
        (path.name, text)
        for path in Path(stromboli.engine.__file__).parent.rglob("*.py")
        for text in _texts(ast.parse(path.read_text()))
        for plugin in plugins
        if re.search(rf"(^|[^a-z-]){plugin}([^a-z-]|$)", text)
    }
    assert not named


def _texts(module: ast.Module) -> Iterator[str]:
    """The strings of a module that are no docstrings."""
    nodes = list(ast.walk(module))
    docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.value
