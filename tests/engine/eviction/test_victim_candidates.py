"""Which tasks are candidates for eviction, and in which order they leave (spec 02 0.4, 0.5)."""

from __future__ import annotations

import random
from typing import Any

import pytest

from stromboli.engine.eviction.victim_candidates import VictimCandidates, in_victim_order
from stromboli.engine.plugin import Plugin
from stromboli.model.job import Job
from stromboli.model.queue import Queue
from stromboli.model.status import Status
from stromboli.model.task import Task
from tests.building import (
    cluster_of,
    group,
    node,
    pod,
    priority_class,
    queue,
    running,
    session_over,
    task_of,
)


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
    cluster = cluster_of(
        node("n0", cpu=99), queue(), group("taker"), pod("t", "taker"), priority_class("high", 9), *objects
    )
    session, taker = session_over(cluster, *plugins), task_of(cluster, "t")
    victims = [task for task in cluster.tasks.values() if task is not taker]
    random.Random(len(objects)).shuffle(victims)
    return [task.name for task in in_victim_order(session, taker, victims)]


def test_within_a_job_the_last_task_goes_first() -> None:
    objects = [group("a"), *(running(f"a-x-{n}", "n0", "a") for n in (0, 2, 1))]
    assert order(objects) == ["a-x-2", "a-x-1", "a-x-0"]
    objects.append(running("a-x-9", "n0", "a", priority=5))
    assert order(objects, ByPriority) == ["a-x-2", "a-x-1", "a-x-0", "a-x-9"]


def test_between_jobs_the_one_that_plugins_place_later_goes_first() -> None:
    objects = [
        group("first", priority_class="high", created=5),
        running("f-x-0", "n0", "first"),
        group("last"),
        running("l-x-0", "n0", "last"),
    ]
    assert order(objects, ByPriority) == ["l-x-0", "f-x-0"]


def test_jobs_that_plugins_hold_equal_are_mixed_by_their_tasks_whatever_their_age() -> None:
    """spec 02 0.4: no creation-time fallback between jobs; tasks decide."""
    objects = [group("young", created=9), group("old")]
    objects += [running(f"{name}-x-{n}", "n0", name) for name in ("young", "old") for n in (0, 1)]
    names = order(objects, ByPriority)
    assert sorted(names[:2]) == ["old-x-1", "young-x-1"]
    assert sorted(names[2:]) == ["old-x-0", "young-x-0"]


def test_between_queues_the_order_of_queues_is_turned_round_unless_a_plugin_says_otherwise() -> None:
    objects = [queue("a"), queue("b"), group("ja", queue="a"), group("jb", queue="b")]
    objects += [running("ta-x-0", "n0", "ja"), running("tb-x-0", "n0", "jb")]
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
        ({"dying": True}, False),
    ],
    ids=str,
)
def test_only_pods_of_visible_jobs_that_may_be_preempted_are_candidates(
    change: dict[str, Any], candidate: bool
) -> None:
    victim = running("v", "n0", **{"group": "job", **change})
    cluster = cluster_of(queue(), node("n0"), group("job"), victim, group("taker"), pod("t", "taker"))
    candidates = VictimCandidates("preemptable", (Status.RUNNING,), lambda task, job: job is not task.job)
    assert bool(candidates.on_node(task_of(cluster, "t"), cluster.nodes["n0"])) is candidate
