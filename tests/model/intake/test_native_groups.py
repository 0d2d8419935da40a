"""Native groups become jobs, whatever comes first, with a queue and a priority that may be for their pods to say."""

from __future__ import annotations

import pytest

from stromboli.api import names
from stromboli.api.types.meta import Condition
from stromboli.model.job import JobId
from stromboli.testing import World
from tests.manifests import group, job_named, native_group, node, pod, priority_class, task_named

HIGH = priority_class("high", 100)


def test_pods_before_their_group_and_the_group_before_its_pods_make_the_same_job() -> None:
    objects = [native_group("g", 2), pod("a-0", native="g"), pod("a-1", native="g")]
    for order in (objects, objects[::-1]):
        cluster = World().add(*order).cluster
        job = job_named(cluster, "g")
        assert (job.minimum, len(job.tasks), job.visible) == (2, 2, True)
        assert [sub_job.minimum for sub_job in job.sub_jobs.values()] == [2]
        assert list(cluster.backlog) == [job]
        assert not cluster.waiting  # nobody has to let it in


def test_a_group_of_volcano_of_the_same_name_is_another_job() -> None:
    cluster = World().add(group("g", 1), native_group("g", 2), pod("a", "g"), pod("b", native="g")).cluster
    assert task_named(cluster, "a").job is cluster.jobs[JobId("PodGroup", "default", "g")]
    assert task_named(cluster, "b").job is cluster.jobs[JobId("NativePodGroup", "default", "g")]


def test_the_native_group_counts_where_a_pod_names_both() -> None:
    """As it is with a controller that makes a PodGroup for every pod without one."""
    cluster = World().add(native_group("g", 2), pod("a", "other", native="g")).cluster
    assert task_named(cluster, "a").job is job_named(cluster, "g")


def test_a_group_that_is_deleted_leaves_its_pods_waiting() -> None:
    owner = native_group("g", 1, disruptionMode="PodGroup", preemptionPolicy="Never")
    world = World().add(owner, pod("a", native="g"))
    world.remove(owner)
    job = job_named(world.cluster, "g")
    assert (job.visible, job.minimum, job.queue, job.disrupted_as_group, job.preempts) == (
        False,
        0,
        None,
        False,
        True,
    )
    world.add(owner)
    assert (job.visible, job.minimum, job.disrupted_as_group, job.preempts) == (True, 1, True, False)
    world.remove(owner)
    world.remove(pod("a", native="g"))
    assert not world.cluster.jobs


def test_pods_that_ask_for_another_scheduler_are_not_ours() -> None:
    other = pod("a", on="n1", native="g", scheduler="default-scheduler")
    cluster = World().add(node("n1"), native_group("g", 1), other).cluster
    assert task_named(cluster, "a").job is None
    assert not job_named(cluster, "g").tasks


# -- queues


def test_without_a_word_it_is_in_the_default_queue() -> None:
    assert job_named(World().add(native_group("g")).cluster, "g").queue.name == "default"


@pytest.mark.parametrize("where", ["annotations", "labels"])
def test_the_group_may_name_a_queue_and_so_may_its_pods(where: str) -> None:
    mark, other = {names.QUEUE_NAME: "research"}, {names.QUEUE_NAME: "other"}
    cluster = World().add(native_group("g"), pod("a", native="g", **{where: mark})).cluster
    assert job_named(cluster, "g").queue.name == "research"
    cluster = World().add(native_group("g", **{where: other}), pod("a", native="g", **{where: mark})).cluster
    assert job_named(cluster, "g").queue.name == "other"


def test_it_leaves_a_queue_with_the_last_pod_that_names_it() -> None:
    first = pod("a", native="g", annotations={names.QUEUE_NAME: "b"})
    second = pod("b", native="g", annotations={names.QUEUE_NAME: "a"})
    world = World().add(native_group("g"), first, second)
    assert job_named(world.cluster, "g").queue.name == "a"
    world.remove(second)
    assert job_named(world.cluster, "g").queue.name == "b"
    world.remove(first)
    assert job_named(world.cluster, "g").queue.name == "default"
    assert set(world.cluster.queues) == {"root", "default"}


# -- priority


def test_its_own_priority_counts_before_its_class_and_that_before_its_pods() -> None:
    pods = [pod("a", native="g", priority=3), pod("b", native="g", priority=5)]

    def priority(**terms: object) -> int:
        return job_named(World().add(HIGH, native_group("g", **terms), *pods).cluster, "g").priority

    assert priority(priority=0, priorityClassName="high") == 0
    assert priority(priorityClassName="high") == 100
    assert priority(priorityClassName="unknown") == 5
    assert priority() == 5


def test_its_priority_follows_its_pods_and_classes() -> None:
    world = World().add(native_group("g", priorityClassName="high"), pod("a", native="g", priority=3))
    job = job_named(world.cluster, "g")
    assert job.priority == 3
    world.add(HIGH)
    assert job.priority == 100
    world.remove(HIGH)
    world.remove(pod("a", native="g"))
    assert job.priority == 0


# -- what was said before


@pytest.mark.parametrize(("version", "type"), [("v1alpha2", "Scheduled"), ("v1beta1", "InitiallyScheduled")])
def test_what_stands_there_is_read_under_the_name_of_its_version(version: str, type: str) -> None:
    conditions = [
        Condition(f"PodGroup{type}", "True", "Scheduled", ""),
        Condition("DisruptionTarget", "True"),
    ]
    owner = {**native_group("g", 1, version=version), "status": {"conditions": conditions}}
    job = job_named(World().add(owner).cluster, "g")
    assert list(job.conditions) == ["PodGroupScheduled"]
    assert job.conditions["PodGroupScheduled"].status == "True"
