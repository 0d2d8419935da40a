"""Which tasks are candidates for eviction, and in which order they leave (spec 02 0.4, 0.5)."""

from __future__ import annotations

import random
from typing import Any

import pytest

from stromboli.engine.eviction.victim_candidates import JobRanks, VictimCandidates, in_victim_order
from stromboli.engine.plugin import Plugin
from stromboli.engine.transaction import EvictionReason
from stromboli.model.job import Job
from stromboli.model.queue import Queue
from stromboli.model.status import Status
from stromboli.model.task import Task
from stromboli.testing import World
from tests.manifests import group, node, pod, priority_class, queue, task_named


class ByPriority(Plugin):
    """The orders of the priority plugin."""

    name = "by-priority"

    def job_order(self, job: Job) -> int:
        return -job.priority

    def task_order(self, task: Task) -> int:
        return -task.priority


class ByName(Plugin):
    """Queues by name."""

    name = "by-name"

    def queue_order(self, queue: Queue) -> str:
        return queue.name


class Contrary(Plugin):
    """The queue that is first in the alphabet loses first."""

    name = "contrary"

    def victim_queue_order(self, left: Queue, right: Queue, preemptor: Queue) -> int:
        return (left.name > right.name) - (left.name < right.name)


def order(objects: list[Any], *plugins: type[Plugin]) -> list[str]:
    world = World().add(node("n0", cpu=99), group("taker"), pod("t", "taker"), priority_class("high", 9))
    session, taker = world.add(*objects).session(*plugins), world.task("t")
    victims = [task for task in session.cluster.tasks.values() if task is not taker]
    random.Random(len(objects)).shuffle(victims)
    return [task.name for task in in_victim_order(session, taker, victims)]


def test_within_a_job_the_last_task_goes_first() -> None:
    objects = [group("a"), *(pod(f"a-x-{n}", "a", on="n0") for n in (0, 2, 1))]
    assert order(objects) == ["a-x-2", "a-x-1", "a-x-0"]
    objects.append(pod("a-x-9", "a", on="n0", priority=5))
    assert order(objects, ByPriority) == ["a-x-2", "a-x-1", "a-x-0", "a-x-9"]


def test_between_jobs_the_one_that_plugins_place_later_goes_first() -> None:
    objects = [
        group("first", priorityClassName="high", created=5),
        pod("f-x-0", "first", on="n0"),
        group("last"),
        pod("l-x-0", "last", on="n0"),
    ]
    assert order(objects, ByPriority) == ["l-x-0", "f-x-0"]


def test_jobs_that_plugins_hold_equal_are_mixed_by_their_tasks_whatever_their_age() -> None:
    """spec 02 0.4: no creation-time fallback between jobs; tasks decide."""
    objects = [group("young", created=9), group("old")]
    objects += [pod(f"{name}-x-{n}", name, on="n0") for name in ("young", "old") for n in (0, 1)]
    names = order(objects, ByPriority)
    assert sorted(names[:2]) == ["old-x-1", "young-x-1"]
    assert sorted(names[2:]) == ["old-x-0", "young-x-0"]


class FewestFirst(Plugin):
    """Jobs with few running tasks come first; each question is counted."""

    name = "fewest-first"
    asked = 0

    def job_order(self, job: Job) -> int:
        FewestFirst.asked += 1
        return job.counts[Status.RUNNING]


def test_ranks_of_jobs_are_remembered_until_the_job_changes() -> None:
    objects = [group("a"), group("b")]
    objects += [
        pod(f"{name}-x-{n}", name, on="n0") for name, count in (("a", 2), ("b", 4)) for n in range(count)
    ]
    world = World().add(node("n0", cpu=99), group("taker"), pod("t", "taker"), *objects)
    session, taker = world.session(FewestFirst), world.task("t")
    ranks = JobRanks(session)

    def first() -> str:
        running = [task for task in session.cluster.tasks.values() if task.status is Status.RUNNING]
        return in_victim_order(session, taker, running, ranks)[0].name

    before = FewestFirst.asked
    assert [first(), first()] == ["b-x-3", "b-x-3"]
    assert FewestFirst.asked - before < 4, "at most the job that changed last is asked about again"
    with session.statement() as trial:
        for name in ("b-x-3", "b-x-2", "b-x-1"):
            trial.evict(world.task(name), EvictionReason("test"))
            in_victim_order(session, taker, [world.task("a-x-0"), world.task("b-x-0")], ranks)
        assert first() == "a-x-1", "though no other job changed between its changes"
    assert first() == "b-x-3"


def test_between_queues_the_order_of_queues_is_turned_round_unless_a_plugin_says_otherwise() -> None:
    objects = [queue("a"), queue("b"), group("ja", queue="a"), group("jb", queue="b")]
    objects += [pod("ta-x-0", "ja", on="n0"), pod("tb-x-0", "jb", on="n0")]
    assert order(objects, ByName) == ["tb-x-0", "ta-x-0"]
    assert order(objects, ByName, Contrary) == ["ta-x-0", "tb-x-0"]


# -- which tasks are candidates


@pytest.mark.parametrize(
    ("change", "candidate"),
    [
        ({}, True),
        ({"annotations": {"volcano.sh/preemptable": "false"}}, False),
        ({"annotations": {"volcano.sh/preemptable": "what"}}, False),
        ({"annotations": {"volcano.sh/preemptable": "true"}}, True),
        ({"labels": {"volcano.sh/preemptable": "false"}}, False),
        ({"group": "nobody"}, False),
        ({"group": ""}, False),
        ({"terminating": True}, False),
    ],
    ids=str,
)
def test_only_pods_of_visible_jobs_that_may_be_preempted_are_candidates(
    change: dict[str, Any], candidate: bool
) -> None:
    victim = pod("v", on="n0", **{"group": "job", **change})
    cluster = World().add(node("n0"), group("job"), victim, group("taker"), pod("t", "taker")).cluster
    candidates = VictimCandidates("preemptable", (Status.RUNNING,), lambda task, job: job is not task.job)
    assert bool(candidates.on_node(task_named(cluster, "t"), cluster.nodes["n0"])) is candidate
