"""Native groups become jobs, whatever comes first, with a queue and a priority that may be for their pods to say."""

from __future__ import annotations

import pytest

from stromboli.api import names
from stromboli.api.types.meta import Condition
from stromboli.api.types.native_group import NativePodGroupStatus
from stromboli.model.job import JobId
from tests.building import (
    cluster_of,
    group,
    intake_of,
    native_group,
    native_job_of,
    node,
    pod,
    priority_class,
    queue,
    running,
    task_of,
)

HIGH = priority_class("high", 100)


def test_pods_before_their_group_and_the_group_before_its_pods_make_the_same_job() -> None:
    things = [queue(), native_group("g", 2), pod("a-0", native="g"), pod("a-1", native="g")]
    for order in (things, things[::-1]):
        cluster = cluster_of(*order)
        job = native_job_of(cluster, "g")
        assert (job.minimum, len(job.tasks), job.visible) == (2, 2, True)
        assert [one.minimum for one in job.sub_jobs.values()] == [2]
        assert list(cluster.backlog) == [job]
        assert not cluster.waiting  # nobody has to let it in


def test_a_group_of_volcano_of_the_same_name_is_another_job() -> None:
    cluster = cluster_of(queue(), group("g", 1), native_group("g", 2), pod("a", "g"), pod("b", native="g"))
    assert task_of(cluster, "a").job is cluster.jobs[JobId("PodGroup", "default", "g")]
    assert task_of(cluster, "b").job is native_job_of(cluster, "g")


def test_the_native_group_counts_where_a_pod_names_both() -> None:
    """As it is with a controller that makes a PodGroup for every pod without one."""
    cluster = cluster_of(queue(), native_group("g", 2), pod("a", "other", native="g"))
    assert task_of(cluster, "a").job is native_job_of(cluster, "g")


def test_a_group_that_is_deleted_leaves_its_pods_waiting() -> None:
    thing = native_group("g", 1, mode="PodGroup", preemption="Never")
    intake = intake_of(queue(), thing, pod("a", native="g"))
    intake.drop(thing)
    job = native_job_of(intake.cluster, "g")
    assert (job.visible, job.minimum, job.queue, job.disrupted_as_group, job.preempts) == (
        False,
        0,
        None,
        False,
        True,
    )
    intake.put(thing)
    assert (job.visible, job.minimum, job.disrupted_as_group, job.preempts) == (True, 1, True, False)
    intake.drop(thing)
    intake.drop(pod("a", native="g"))
    assert not intake.cluster.jobs


def test_pods_that_ask_for_another_scheduler_are_not_ours() -> None:
    other = running("a", "n1", native="g", scheduler="default-scheduler")
    cluster = cluster_of(queue(), node("n1"), native_group("g", 1), other)
    assert task_of(cluster, "a").job is None
    assert not native_job_of(cluster, "g").tasks


# -- queues


def test_without_a_word_it_is_in_the_default_queue() -> None:
    assert native_job_of(cluster_of(queue(), native_group("g")), "g").queue.name == "default"


@pytest.mark.parametrize("where", ["annotations", "labels"])
def test_the_group_may_name_a_queue_and_so_may_its_pods(where: str) -> None:
    mark, other = {names.QUEUE_NAME: "research"}, {names.QUEUE_NAME: "other"}
    cluster = cluster_of(native_group("g"), pod("a", native="g", **{where: mark}))
    assert native_job_of(cluster, "g").queue.name == "research"
    cluster = cluster_of(native_group("g", **{where: other}), pod("a", native="g", **{where: mark}))
    assert native_job_of(cluster, "g").queue.name == "other"


def test_it_leaves_a_queue_with_the_last_pod_that_names_it() -> None:
    one = pod("a", native="g", annotations={names.QUEUE_NAME: "b"})
    two = pod("b", native="g", annotations={names.QUEUE_NAME: "a"})
    intake = intake_of(queue(), native_group("g"), one, two)
    assert native_job_of(intake.cluster, "g").queue.name == "a"
    intake.drop(two)
    assert native_job_of(intake.cluster, "g").queue.name == "b"
    intake.drop(one)
    assert native_job_of(intake.cluster, "g").queue.name == "default"
    assert set(intake.cluster.queues) == {"default"}


# -- priority


def test_its_own_priority_counts_before_its_class_and_that_before_its_pods() -> None:
    pods = [pod("a", native="g", priority=3), pod("b", native="g", priority=5)]

    def priority(**terms: object) -> int:
        thing = native_group("g", **terms)  # type: ignore[arg-type]
        return native_job_of(cluster_of(HIGH, thing, *pods), "g").priority

    assert priority(priority=0, priority_class="high") == 0
    assert priority(priority_class="high") == 100
    assert priority(priority_class="unknown") == 5
    assert priority() == 5


def test_its_priority_follows_its_pods_and_classes() -> None:
    intake = intake_of(native_group("g", priority_class="high"), pod("a", native="g", priority=3))
    job = native_job_of(intake.cluster, "g")
    assert job.priority == 3
    intake.put(HIGH)
    assert job.priority == 100
    intake.drop(HIGH)
    intake.drop(pod("a", native="g"))
    assert job.priority == 0


# -- what was said before


@pytest.mark.parametrize(("version", "type"), [("v1alpha2", "Scheduled"), ("v1beta1", "InitiallyScheduled")])
def test_what_stands_there_is_read_under_the_name_of_its_version(version: str, type: str) -> None:
    thing = native_group("g", 1, version=version)
    told = [Condition(f"PodGroup{type}", "True", "Scheduled", ""), Condition("DisruptionTarget", "True")]
    thing.status = NativePodGroupStatus(tuple(told))
    job = native_job_of(cluster_of(thing), "g")
    assert list(job.conditions) == ["PodGroupScheduled"]
    assert job.conditions["PodGroupScheduled"].status == "True"
