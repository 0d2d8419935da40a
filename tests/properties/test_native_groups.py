"""Native gangs are as atomic as Volcano's: in starting, and, if they say so, in going."""

from __future__ import annotations

import random

from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import structs

from stromboli.api import names
from stromboli.api.types.meta import Object
from stromboli.api.types.native_group import NativePodGroup
from stromboli.api.types.pod import Pod
from stromboli.api.types.scheduling import PodGroup
from stromboli.engine.decisions import Bind, Evict, NativeGroupCondition
from stromboli.model.status import ALLOCATED_CLASS
from tests.properties.living import LivingWorld, binds
from tests.properties.strategies import contest, examples, nativised, worlds
from tests.properties.test_cycles import POLICIES, every_policy
from tests.properties.test_eviction import Contest
from tests.properties.test_eviction import every_policy as every_evicting_policy

seeds = st.integers(0, 2**32)


def unadorned(objects: list[Object]) -> list[Object]:
    """Volcano's groups without what a native one cannot say: roles, sub-groups, a phase, minimum resources.

    Nor are there pods of other schedulers: they count in a group of Volcano's, and not in a native one.
    """

    def plain(obj: Object) -> Object:
        if not isinstance(obj, PodGroup):
            return obj
        spec = obj.spec
        least = structs.replace(
            spec,
            min_member=max(spec.min_member, 1),
            min_task_member={},
            sub_group_policy=(),
            min_resources=None,
            priority_class_name="high",
        )
        return structs.replace(obj, spec=least, status=structs.replace(obj.status, phase="Inqueue"))

    foreign = [
        obj for obj in objects if isinstance(obj, Pod) and obj.spec.scheduler_name != names.SCHEDULER_NAME
    ]
    return [plain(obj) for obj in objects if obj not in foreign and not isinstance(obj, NativePodGroup)]


@every_policy
@given(objects=worlds(most_pods=14, mostly_pending=True), seed=seeds)
@examples(15)
def test_a_native_gang_starts_where_and_when_the_same_gang_of_volcano_would(
    policy: str, objects: list[Object], seed: int
) -> None:
    volcano = unadorned(objects)
    plain = LivingWorld(volcano, POLICIES[policy])
    other = LivingWorld(nativised(volcano, random.Random(seed), share=1.0), POLICIES[policy])
    for _ in range(2):
        assert binds(plain.step().decisions) == binds(other.step().decisions)


@every_policy
@given(objects=worlds(most_pods=14, mostly_pending=True), seed=seeds)
@examples(15)
def test_a_native_gang_starts_whole_and_says_so(policy: str, objects: list[Object], seed: int) -> None:
    world = LivingWorld(nativised(objects, random.Random(seed), share=1.0), POLICIES[policy])
    cluster = world.intake.cluster
    for _ in range(3):
        outcome = world.cycle()
        assert outcome.lost is None
        status_of = {
            decision.name: decision.status
            for decision in outcome.decisions
            if isinstance(decision, NativeGroupCondition)
        }
        jobs = {
            cluster.tasks[decision.uid].job
            for decision in outcome.decisions
            if isinstance(decision, Bind) and cluster.tasks[decision.uid].job.native is not None
        }
        for job in jobs:
            best_effort = sum(task.best_effort for task in job.by_status[0])
            assert job.ready_count + best_effort >= job.minimum
        for job in cluster.jobs.values():
            if status_of.get(job.name) == "True":
                assert job.ready_count >= job.minimum
        world.come_true(outcome.decisions)


@every_evicting_policy
@example(seed=42135, nodes=1, waiting=2, linger=False)
@example(seed=110268, nodes=3, waiting=3, linger=False)
@example(seed=1595, nodes=4, waiting=1, linger=False)
@given(seed=seeds, nodes=st.integers(1, 4), waiting=st.integers(1, 3), linger=st.booleans())
@examples(20)
def test_a_group_that_goes_as_a_whole_loses_everybody_or_nobody(
    policy: str, seed: int, nodes: int, waiting: int, linger: bool
) -> None:
    chance = random.Random(seed)
    objects = nativised(contest(chance, nodes, waiting), chance, share=0.8, mode="PodGroup")
    world = Contest(objects, policy, linger, resubmit=True)
    for _ in range(3):
        outcome = world.cycle()
        gone = {
            world.cluster.tasks[decision.uid].job
            for decision in outcome.decisions
            if isinstance(decision, Evict)
        }
        for job in gone:
            if job.disrupted_as_group:
                assert not any(ALLOCATED_CLASS[task.status] for task in job.tasks.values())
        world.come_true(outcome.decisions)


def test_groups_do_go_as_a_whole() -> None:
    """Of the worlds above, that is: a property about nothing would hold too."""
    lost = 0
    for seed in range(60):
        chance = random.Random(seed)
        objects = nativised(contest(chance, 3, 3), chance, share=0.8, mode="PodGroup")
        outcome = (world := Contest(objects, "stock")).cycle()
        gone = [
            world.cluster.tasks[decision.uid].job
            for decision in outcome.decisions
            if isinstance(decision, Evict)
        ]
        lost += any(job.disrupted_as_group and gone.count(job) > 1 for job in gone)
    assert lost > 3
