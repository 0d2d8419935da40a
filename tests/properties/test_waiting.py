"""A cluster that waits writes nothing, whatever comes and goes around what waits."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stromboli.engine.decisions import Decision, Event, PodCondition, PodGroupStatus
from stromboli.engine.explanation.diagnosis import Diagnosis
from stromboli.model.status import Status
from stromboli.testing import World
from tests.properties.strategies import examples

QUEUES = "research; production weight=2; small capability=cpu:3"
CAPABILITY = "(cpu 3)"
"""How a sentence shows what is configured, which does not move."""
WAITING = {
    "gang": {"queue": "research", "pods": 4, "cpu": 3, "min_resources": {"cpu": 12}},
    "elastic": {"queue": "production", "pods": 5, "minimum": 1, "cpu": 2},
    "large": {"queue": "production", "cpu": 99},
    "chosen": {"queue": "research", "cpu": 1, "spec": {"nodeSelector": {"disk": "ssd"}}},
    "limited": {"queue": "small", "pods": 2, "cpu": 2, "min_resources": {"cpu": 4}},
    "refused": {"queue": "small", "pods": 2, "cpu": 2},
}


def churn(world: World, chance: random.Random, number: int) -> None:
    """Somebody else's pods come, run and end; nodes and queues stay."""
    queue, cpu = chance.choice(("research", "production", "small")), chance.choice((1, 2))
    name = f"other-{number}"
    if chance.random() < 0.5:
        world.job(name, queue=queue, cpu=cpu)
    else:
        world.job(name, queue=queue, cpu=cpu, running_on=chance.choice(("n0", "n1", "n2")))
    for task in sorted(world.cluster.tasks.values(), key=lambda task: task.key):
        if task.name.startswith("other") and task.status is Status.RUNNING and chance.random() < 0.4:
            world.finish(task.name)


def about(decisions: list[Decision], job: str) -> list[Decision]:
    """What is written about a PodGroup and its owner."""
    return [
        decision
        for decision in decisions
        if isinstance(decision, PodGroupStatus | Event)
        and decision.name == job
        and not (isinstance(decision, Event) and decision.kind == "Pod")
    ]


def standing(world: World, job: str) -> object:
    """All that a job's own messages count: its phase, and the statuses of its pods."""
    model = next(known for known in world.cluster.jobs.values() if known.name == job)
    return model.phase, list(model.counts)


def short(explanation: Diagnosis) -> object:
    return {shortage.resource for shortage in explanation.shortages}, set(explanation.counts)


@pytest.mark.parametrize("policy", ["default", "basic", "fair-share", "full"])
@given(seed=st.integers(0, 2**32))
@example(seed=6007)  # a node that the pods of a gang may not use becomes full, and free again
@examples(10)
def test_while_gate_and_short_resource_stay_nothing_is_written(policy: str, seed: int) -> None:
    chance = random.Random(seed)
    world = World(nodes="n0 cpu=4; n1 cpu=6; n2 cpu=4 +dedicated=x:NoSchedule", queues=QUEUES)
    for name in chance.sample(sorted(WAITING), 4):
        world.job(name, **WAITING[name])  # type: ignore[arg-type]
    known = world.run(policy=policy, cycles=3)
    for number in range(6):
        before = {job: (known.pending.get(f"default/{job}"), standing(world, job)) for job in _names(world)}
        shown = {
            task.key: (task.condition.reason, task.nominated)
            for task in world.cluster.tasks.values()
            if task.condition
        }
        churn(world, chance, number)
        known = world.step()
        for job, (explained, stood) in before.items():
            now = known.pending.get(f"default/{job}")
            if explained is None or now is None or standing(world, job) != stood:
                continue
            moving = now.sentence.replace(job, "").replace(CAPABILITY, "")
            steady = now.gate in ("gang", "validity") or "so it can never start" in now.sentence
            assert steady or not re.search(r"\d", moving)
            if now.gate == explained.gate == "nodes" and short(now) == short(explained):
                assert now.summary == explained.summary
            if now.summary != explained.summary:
                continue
            assert now.sentence == explained.sentence
            assert about(known.decisions, job) == []
            for decision in known.decisions:
                if isinstance(decision, PodCondition) and decision.name.rpartition("-")[0] == job:
                    reason, nominated = shown[decision.key]
                    assert decision.reason != reason or decision.nominated_node not in ("", nominated)


def _names(world: World) -> list[str]:
    return sorted(job.name for job in world.cluster.jobs.values() if job.name in WAITING)
