"""What goes together: a gang's surplus, or the rest of it as a whole (spec 02 7.2)."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.engine.eviction.victim_bundles import (
    Bundle,
    BundleIndex,
    Surplus,
    allowed_bundles,
    bundles_of,
    is_complete,
    only_complete_gangs,
    order_by_job,
)
from stromboli.engine.eviction.victim_candidates import VictimCandidates
from stromboli.engine.plugin import Plugin
from stromboli.engine.points import depends
from stromboli.engine.transaction import EvictionReason
from stromboli.model.amounts import dominant_share, total_of
from stromboli.model.job import Job
from stromboli.model.status import Status
from stromboli.model.task import Task
from stromboli.testing import World
from tests.manifests import group, job_named, native_group, node, pod, sub_group_policy
from tests.properties.strategies import contest, examples


def gang(minimum: int, *pods: Any, **terms: Any) -> Job:
    return job_named(World().add(node("n0", cpu=99), group("j", minimum, **terms), *pods).cluster, "j")


def member(name: str, **more: Any) -> Any:
    return pod(name, "j", on="n0", **more)


def split(job: Job) -> dict[bool, list[str]]:
    return {
        bundle.safe: [task.name for task in bundle.tasks] for bundle in bundles_of(job, job.tasks.values())
    }


def test_the_least_important_members_are_the_surplus() -> None:
    job = gang(2, member("a", priority=5), member("b", priority=1), member("c", priority=3))
    assert split(job) == {True: ["b"], False: ["c", "a"]}


def test_a_native_group_goes_pod_by_pod_or_as_a_whole() -> None:
    members = [pod(name, on="n0", native="j") for name in "abc"]

    def parts(mode: str, count: int = 3) -> list[tuple[bool, list[str]]]:
        job = job_named(
            World().add(node("n0"), native_group("j", 1, disruptionMode=mode), *members).cluster, "j"
        )
        bundles = bundles_of(job, list(job.tasks.values())[:count])
        return [(bundle.safe, [task.name for task in bundle.tasks]) for bundle in bundles]

    assert parts("Pod") == [(True, ["a"]), (True, ["b"]), (False, ["c"])]
    assert parts("PodGroup") == [(False, ["a", "b", "c"])]
    assert parts("PodGroup", 2) == []  # somebody would stay
    assert parts("PodGroup", 0) == []


def test_members_of_equal_priority_go_by_their_uid() -> None:
    assert split(gang(1, member("b"), member("a"), member("c"))) == {True: ["a", "b"], False: ["c"]}


def test_a_gang_without_surplus_is_one_whole_bundle_and_one_below_its_minimum_a_safe_one() -> None:
    assert split(gang(2, member("a"), member("b"))) == {False: ["a", "b"]}
    assert split(gang(3, member("a"), member("b"))) == {True: ["a", "b"]}
    assert split(gang(0, member("a"), member("b"))) == {True: ["a", "b"]}
    assert bundles_of(gang(2), []) == []


def test_a_role_gives_no_more_than_it_can_spare() -> None:
    roles = {"ps": 1, "worker": 1}
    pods = [member("p0", role="ps"), member("w0", role="worker"), member("w1", role="worker"), member("x")]
    assert split(gang(2, *pods, minTaskMember=roles)) == {True: ["w0", "x"], False: ["p0", "w1"]}


def test_roles_that_ask_for_more_than_the_gang_do_not_count() -> None:
    pods = [member("p0", role="ps"), member("w0", role="worker"), member("w1", role="worker")]
    assert split(gang(1, *pods, minTaskMember={"ps": 1, "worker": 2})) == {True: ["p0", "w0"], False: ["w1"]}


RACKS = sub_group_policy("rack", "rack", size=2, least=1)


def in_rack(name: str, rack: str) -> Any:
    return member(name, labels={"rack": rack})


def test_of_ready_sub_groups_only_those_above_their_number_may_be_broken() -> None:
    pods = [in_rack("a0", "1"), in_rack("a1", "1"), in_rack("b0", "2"), in_rack("b1", "2")]
    assert split(gang(2, *pods, subGroupPolicy=[RACKS])) == {True: ["a0", "a1"], False: ["b0", "b1"]}


def test_a_sub_group_that_is_broken_already_gives_first() -> None:
    pods = [in_rack("a0", "1"), in_rack("a1", "1"), in_rack("b0", "2")]
    assert split(gang(2, *pods, subGroupPolicy=[RACKS])) == {True: ["b0"], False: ["a0", "a1"]}


def test_what_is_taken_from_the_surplus_is_gone_from_it() -> None:
    job = gang(1, member("a"), member("b"), member("c"))
    surplus = Surplus(job)
    assert [surplus.take(task) for task in job.tasks.values()] == [True, True, False]


def test_a_gang_is_intact_with_members_roles_and_sub_groups() -> None:
    assert is_complete(gang(1, member("a")))
    assert not is_complete(gang(2, member("a")))
    assert not is_complete(gang(1, member("a", role="ps"), minTaskMember={"worker": 1}))
    assert not is_complete(gang(1, in_rack("a", "1"), subGroupPolicy=[RACKS]))


def test_members_outside_of_the_domain_go_along_with_the_whole_and_not_with_the_surplus() -> None:
    job = gang(3, *(member(name, cpu=1, memory=0) for name in "abcd"))
    tasks = tuple(job.tasks.values())
    safe, whole = bundles_of(job, tasks[:3], outside=tasks[3:])
    assert (safe.victims, whole.victims) == (tasks[:1], tasks[1:])
    assert whole.frees[0] == 2000, "what is free inside"
    assert allowed_bundles([whole], set(tasks[:3]), whole_too=True) == []
    assert only_complete_gangs([safe, whole]) == [safe, whole]
    assert only_complete_gangs([whole]) == []
    assert bundles_of(job, tasks[:1], outside=tasks[1:]) == [Bundle(job, tasks[:1], safe=True)]


def test_a_native_group_that_goes_as_a_whole_takes_its_members_outside_of_the_domain_along() -> None:
    members = [pod(name, on="n0", native="j") for name in "abc"]
    made = World().add(node("n0"), native_group("j", 1, disruptionMode="PodGroup"), *members)
    tasks = tuple((job := job_named(made.cluster, "j")).tasks.values())
    (whole,) = bundles_of(job, tasks[:1], outside=tasks[1:])
    assert whole.victims == tasks
    assert bundles_of(job, [], outside=tasks) == []
    assert bundles_of(job, tasks[:1], outside=tasks[1:2]) == []


# -- what plugins leave of them


def test_a_surplus_may_shrink_a_whole_bundle_may_not() -> None:
    job = gang(2, *(member(name) for name in "abcd"))
    safe, whole = bundles_of(job, job.tasks.values())
    some = {safe.tasks[0], whole.tasks[0]}
    assert allowed_bundles([safe, whole], some, whole_too=True) == [Bundle(job, safe.tasks[:1], safe=True)]
    everybody = {*safe.tasks, *whole.tasks}
    assert allowed_bundles([safe, whole], everybody, whole_too=True) == [safe, whole]
    assert allowed_bundles([safe, whole], everybody, whole_too=False) == [safe]
    assert allowed_bundles([safe, whole], set(), whole_too=True) == []


def test_efficiency_is_the_part_of_the_need_that_is_met_for_what_the_job_loses() -> None:
    job = gang(4, *(member(name, cpu=1, memory=0) for name in "abcd"))
    tasks = tuple(job.tasks.values())
    assert Bundle(job, tasks[:2], safe=False).efficiency({0: 1000}) == 0.25
    assert Bundle(job, tasks[:2], safe=False).efficiency({0: 4000}) == 0.5
    assert Bundle(job, tasks[:1], safe=True).efficiency({0: 4000}) == float("inf")


# -- kept in order


class Spread(Plugin):
    """Jobs with much running come first, beside one that all jobs depend on."""

    name = "spread"

    @depends("everything")
    def job_order(self, job: Job) -> int:
        running = sum(each.counts[Status.RUNNING] for each in self.session.cluster.jobs.values())
        return -job.counts[Status.RUNNING] * (-1 if running % 2 else 1)


class FewestFirst(Plugin):
    """Jobs with few running tasks come first."""

    name = "fewest-first"

    def job_order(self, job: Job) -> int:
        return job.counts[Status.RUNNING]


RUNNING_OF_OTHERS = VictimCandidates(
    "unified_evictable",
    (Status.RUNNING,),
    lambda task, job: job is not task.job,
    accepts=lambda task, victim: True,
)


@pytest.mark.parametrize("plugin", [Spread, FewestFirst])
@given(seed=st.integers(0, 2**32))
@examples(20)
def test_bundles_stay_in_order_while_victims_go_and_come_back(plugin: type[Plugin], seed: int) -> None:
    chance = random.Random(seed)
    world = World().add(*contest(chance, nodes=chance.randint(1, 4)))
    session = world.session(plugin)
    session.rules.plugins[0].session = session
    cluster, index = session.cluster, BundleIndex(session, RUNNING_OF_OTHERS, None)
    taker = next(iter(cluster.tasks.values()))

    def running(job: Job) -> list[Task]:
        on_nodes = (task for task in job.by_status[Status.RUNNING] if task.node is not None)
        return [task for task in on_nodes if job is not taker.job]

    def check() -> None:
        index.update(taker)
        jobs = [job for job in session.jobs() if running(job)]
        expected = [bundle for job in jobs for bundle in bundles_of(job, running(job))]
        assert list(index.in_order()) == order_by_job(session, expected)
        assert sorted(map(id, index.by_job)) == sorted(map(id, jobs))
        held = {job: total_of(task.request for task in running(job)) for job in jobs}
        assert cluster.columns.total(index.held) == total_of(held.values())
        assert index.losses(index.by_job) == {
            (job.priority, dominant_share(held[job], session.total)) for job in jobs
        }

    check()
    for _ in range(3):
        with session.statement() as trial:
            for _ in range(chance.randint(1, 3)):
                victims = [task for job in cluster.jobs.values() for task in running(job)]
                if victims:
                    trial.evict(chance.choice(victims), EvictionReason("test"))
                    check()
            if chance.random() < 0.5:
                trial.keep()
        check()


def test_bundles_are_in_order_again_after_a_plugin_failed() -> None:
    class FailsOnce(Plugin):
        name = "fails-once"
        fails = False

        def job_order(self, job: Job) -> int:
            if FailsOnce.fails:
                raise ValueError("not now")
            return 0

    world = World(nodes="n1 cpu=9").job("a", pods=2, minimum=1, cpu=1, running_on="n1 n1")
    world.job("b", pods=2, minimum=1, cpu=1, running_on="n1 n1").job("new", cpu=1)
    session = world.session(FailsOnce)
    index, task = BundleIndex(session, RUNNING_OF_OTHERS, None), world.task("new-0")

    def order() -> list[tuple[str, bool]]:
        index.update(task)
        return [(bundle.job.name, bundle.safe) for bundle in index.in_order()]

    expected = [("b", True), ("a", True), ("b", False), ("a", False)]
    assert order() == expected
    with session.statement() as trial:
        trial.evict(world.task("a-0"), EvictionReason("test"))
        FailsOnce.fails = True
        with pytest.raises(ValueError, match="not now"):
            order()
    FailsOnce.fails = False
    assert order() == expected
