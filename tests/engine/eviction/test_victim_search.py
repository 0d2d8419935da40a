"""The search for victims: their order, whom an action offers, and where it is worth asking (spec 02 0.4, 0.5)."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.engine.eviction.victim_search import Hunt, Offer, enough, in_victim_order
from stromboli.engine.plugin import Bound, Plugin
from stromboli.engine.rules import Rules
from stromboli.engine.transaction import EvictionReason
from stromboli.model.job import Job
from stromboli.model.queue import Queue
from stromboli.model.status import Status
from stromboli.model.task import Task
from stromboli.testing import World
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
from tests.evicting import STOCK
from tests.evicting import pod as pod_manifest
from tests.properties.strategies import contest, examples


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


def order(things: list[Any], *plugins: type[Plugin]) -> list[str]:
    cluster = cluster_of(
        node("n0", cpu=99), queue(), group("taker"), pod("t", "taker"), priority_class("high", 9), *things
    )
    session, taker = session_over(cluster, *plugins), task_of(cluster, "t")
    victims = [task for task in cluster.tasks.values() if task is not taker]
    random.Random(len(things)).shuffle(victims)
    return [task.name for task in in_victim_order(session, taker, victims)]


def test_within_a_job_the_last_task_goes_first() -> None:
    things = [group("a"), *(running(f"a-x-{n}", "n0", "a") for n in (0, 2, 1))]
    assert order(things) == ["a-x-2", "a-x-1", "a-x-0"]
    things.append(running("a-x-9", "n0", "a", priority=5))
    assert order(things, ByPriority) == ["a-x-2", "a-x-1", "a-x-0", "a-x-9"]


def test_between_jobs_the_one_that_plugins_place_later_goes_first() -> None:
    things = [
        group("first", priority_class="high", created=5),
        running("f-x-0", "n0", "first"),
        group("last"),
        running("l-x-0", "n0", "last"),
    ]
    assert order(things, ByPriority) == ["l-x-0", "f-x-0"]


def test_jobs_that_plugins_hold_equal_are_mixed_by_their_tasks_whatever_their_age() -> None:
    """spec 02 0.4: no creation-time fallback between jobs; tasks decide."""
    things = [group("young", created=9), group("old")]
    things += [running(f"{name}-x-{n}", "n0", name) for name in ("young", "old") for n in (0, 1)]
    names = order(things, ByPriority)
    assert sorted(names[:2]) == ["old-x-1", "young-x-1"]
    assert sorted(names[2:]) == ["old-x-0", "young-x-0"]


def test_between_queues_the_order_of_queues_is_turned_round_unless_a_plugin_says_otherwise() -> None:
    things = [queue("a"), queue("b"), group("ja", queue="a"), group("jb", queue="b")]
    things += [running("ta-x-0", "n0", "ja"), running("tb-x-0", "n0", "jb")]
    assert order(things, ByName) == ["tb-x-0", "ta-x-0"]
    assert order(things, ByName, Contrary) == ["ta-x-0", "tb-x-0"]


# -- whom an action offers


@pytest.mark.parametrize(
    ("change", "offered"),
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
def test_only_pods_of_visible_jobs_that_may_be_preempted_are_offered(
    change: dict[str, Any], offered: bool
) -> None:
    victim = running("v", "n0", **{"group": "job", **change})
    cluster = cluster_of(queue(), node("n0"), group("job"), victim, group("taker"), pod("t", "taker"))
    offer = Offer("preemptable", (Status.RUNNING,), lambda task, job: job is not task.job)
    assert bool(offer.on(task_of(cluster, "t"), cluster.nodes["n0"])) is offered


def test_enough_counts_what_leaves_and_what_is_promised() -> None:
    cluster = cluster_of(
        queue(), node("n0", cpu=4), group("j"), running("stays", "n0", "j", cpu=2),
        running("goes", "n0", "j", cpu=1, dying=True), pod("t", "j", cpu=2), pod("u", "j", cpu=1),
    )  # fmt: skip
    session, there = session_over(cluster), cluster.nodes["n0"]
    assert enough(session, task_of(cluster, "t"), there)
    session.move(task_of(cluster, "u"), Status.PIPELINED, there)
    assert not enough(session, task_of(cluster, "t"), there)
    assert enough(session, task_of(cluster, "t"), there, [task_of(cluster, "stays")])


# -- where it is worth asking


class Anybody(Plugin):
    """Lets everybody go."""

    name = "anybody"

    def preemptable(self, task: Task, candidates: list[Task]) -> list[Task]:
        return candidates


@given(st.integers(0, 2**32))
@examples(60)
def test_a_node_that_is_not_asked_could_not_have_served(seed: int) -> None:
    """The bound against the truth, while victims go, come back and are undone."""
    chance = random.Random(seed)
    cluster = cluster_of(*contest(chance, nodes=chance.randint(1, 4)))
    session = session_over(cluster, Anybody)
    offer = Offer(
        "preemptable",
        (Status.RUNNING, Status.BOUND),
        lambda task, job: job is not task.job and job.queue is task.job.queue,
        accepts=lambda task, victim: victim.best_effort or not task.best_effort,
    )
    hunt = Hunt(session, offer)
    takers = [task for task in cluster.tasks.values() if task.status is Status.PENDING and task.job]

    def check() -> None:
        for task in takers:
            asked = set(hunt.nodes_in_order(task))
            for there in cluster.columns.nodes:
                if enough(session, task, there, offer.on(task, there)):
                    assert there in asked, (task, there)

    check()
    for _ in range(3):
        with session.statement() as trial:
            for _ in range(chance.randint(1, 3)):
                task = chance.choice(takers) if takers else None
                victims = [
                    one for there in cluster.columns.nodes for one in (offer.on(task, there) if task else ())
                ]
                if victims:
                    gone = chance.sample(victims, 1)
                    trial.evict(gone[0], EvictionReason("test"))
                    hunt.lost(gone)
                check()
            if trial.evicted() and chance.random() < 0.5:
                victim = trial.evicted()[-1]
                trial.restore(victim, trial.status_before(victim))
                check()
            if chance.random() < 0.5:
                trial.keep()
        check()


def test_victims_that_were_never_offered_to_a_task_are_not_missed_by_it() -> None:
    """A best-effort pod is offered its like only; that others go elsewhere on the node does not hide its like."""
    world = World(nodes="n1 cpu=1,pods=1; n2 cpu=1,pods=2")
    world.job("idle", pods=2, minimum=0, priority=5, running_on="n1 n2")
    world.job("busy", pods=1, minimum=0, cpu=1, priority=1, running_on="n2")
    world.job("new", pods=0, minimum=3, priority=9)
    on = {name: {"nodeSelector": {"kubernetes.io/hostname": name}, "priority": 9} for name in ("n1", "n2")}
    world.add(pod_manifest("new-x-0", "new", spec=on["n1"]))
    world.add(pod_manifest("new-x-1", "new", cpu=1, spec=on["n2"]))
    world.add(pod_manifest("new-x-2", "new", spec=on["n2"]))
    result = world.run("enqueue, preempt", STOCK)
    assert result.evicted == ["default/busy-0", "default/idle-0", "default/idle-1"]


class Nobody(Anybody):
    """Spares everybody, and says so beforehand."""

    name = "nobody"

    def victim_bound(self, point: str, task: Task) -> Bound:
        return Bound(None, lambda job: False)


def test_if_no_harm_is_to_be_done_nodes_are_not_asked_for_whom_the_first_tier_spares() -> None:
    things = [queue(), node("n0", cpu=1), group("old"), running("a", "n0", "old", cpu=1)]
    cluster = cluster_of(*things, group("new"), pod("t", "new", cpu=1))
    session = session_over(cluster)
    session.rules = Rules([[Nobody(None, {})], [Anybody(None, {})]])
    offer = Offer("preemptable", (Status.RUNNING,), lambda task, job: job is not task.job)

    def asked(no_harm: bool) -> list[str]:
        nodes = Hunt(session, offer, no_harm=no_harm).nodes_in_order(task_of(cluster, "t"))
        return [one.name for one in nodes]

    assert (asked(no_harm=False), asked(no_harm=True)) == (["n0"], [])


# -- votes


def test_within_a_tier_only_whom_all_name_goes_and_an_empty_intersection_stays_empty() -> None:
    class Left(Anybody):
        name = "left"

        def preemptable(self, task: Task, candidates: list[Task]) -> list[Task]:
            return candidates[:1]

    class Right(Anybody):
        name = "right"

        def preemptable(self, task: Task, candidates: list[Task]) -> list[Task]:
            return candidates[1:]

    things = [
        queue(),
        node("n0", cpu=9),
        group("j"),
        running("a-x-0", "n0", "j"),
        running("a-x-1", "n0", "j"),
    ]
    cluster = cluster_of(*things, group("taker"), pod("t", "taker"))
    offer = Offer("preemptable", (Status.RUNNING,), lambda task, job: job is not task.job)

    def chosen(*plugins: type[Plugin], legal_only: bool = False) -> list[str]:
        hunt = Hunt(session_over(cluster, *plugins), offer, legal_only)
        choice = hunt.choose(task_of(cluster, "t"), cluster.nodes["n0"])
        return [victim.name for victim in choice.victims] if choice else []

    assert chosen(Left) == ["a-x-1"]
    assert chosen(Left, Right) == []
    assert chosen(Left, Right, Anybody) == [], "spec 02 D4"
