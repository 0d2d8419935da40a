"""What queues are guaranteed, while victims go and come back."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.engine.eviction import queue_guarantees
from stromboli.engine.eviction.queue_guarantees import QueueGuarantees
from stromboli.engine.transaction import EvictionReason
from stromboli.model.amounts import less_equal, minus, total_of
from stromboli.model.cluster import Cluster
from stromboli.model.queue import Queue, lineage
from stromboli.model.task import Task
from stromboli.testing import World
from tests.manifests import group, node, pod, queue
from tests.properties.strategies import examples

QUEUES = {"top": "root", "left": "top", "right": "top", "alone": "root"}


def world_of(chance: random.Random) -> World:
    world = World().add(node("n0", cpu=99), queue("root"))
    for name, parent in QUEUES.items():
        guarantee = {"resource": {"cpu": str(chance.randint(0, 4))}}
        world.add(queue(name, parent=parent, guarantee=guarantee), group(f"job-{name}", queue=name))
        world.add(*(pod(f"{name}-{n}", f"job-{name}", on="n0", cpu=chance.randint(1, 2)) for n in range(2)))
    return world


def keeps_guarantees(cluster: Cluster, victim: Task, preemptor: Queue) -> bool:
    """The same from what all queues hold."""
    queues = cluster.queues
    gaining = lineage(preemptor, queues)
    for above in lineage(victim.job.queue, queues) if victim.job and victim.job.queue else ():
        if above.guarantee and above not in gaining:
            held = total_of(other.allocated for other in queues.values() if above in lineage(other, queues))
            if not less_equal(above.guarantee, minus(held, victim.request)):
                return False
    return True


@given(st.integers(0, 2**32))
@examples(30)
def test_guarantees_are_judged_by_what_queues_hold_at_the_moment(seed: int) -> None:
    chance = random.Random(seed)
    session = world_of(chance).session()
    cluster, guarantees = session.cluster, QueueGuarantees(session)
    tasks = list(cluster.tasks.values())

    def check() -> None:
        preemptor = cluster.queues[chance.choice(list(QUEUES))]
        for victim in tasks:
            assert victim.job is not None
            assert victim.job.queue is not None
            answer = guarantees.hold_without(victim.job.queue, preemptor, victim.request)
            assert answer == keeps_guarantees(cluster, victim, preemptor)

    check()
    for _ in range(3):
        with session.statement() as trial:
            for victim in chance.sample(tasks, 2):
                trial.evict(victim, EvictionReason("test"))
                check()
            if chance.random() < 0.5:
                trial.keep()
        check()


def test_a_victim_costs_the_same_among_few_and_many_queues(monkeypatch: pytest.MonkeyPatch) -> None:
    visited = []

    def counting(of: Queue, queues: dict[str, Queue]) -> list[Queue]:
        visited.append(of)
        return lineage(of, queues)

    monkeypatch.setattr(queue_guarantees, "lineage", counting)

    def visits(count: int) -> int:
        world = World().add(node("n0", cpu=999))
        for n in range(count):
            world.add(queue(f"q{n}", guarantee={"resource": {"cpu": "1"}}), group(f"j{n}", queue=f"q{n}"))
            world.add(pod(f"p{n}", f"j{n}", on="n0", cpu=1))
        session = world.session()
        guarantees, queues = QueueGuarantees(session), session.cluster.queues
        guarantees.hold_without(queues["q0"], queues["q1"], {})
        visited.clear()
        with session.statement() as trial:
            for n in range(2, 6):
                trial.evict(world.task(f"p{n}"), EvictionReason("test"))
                assert not guarantees.hold(trial, queues["q1"])
        return len(visited)

    assert visits(60) == visits(10)
