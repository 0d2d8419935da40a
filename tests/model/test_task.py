"""Who comes first among the tasks of a job when nobody has an opinion: replica number, age, uid (spec 02 D16)."""

import pytest

from stromboli.model.task import Task
from stromboli.testing import World
from tests.manifests import pod


def task_named(name: str, created: float = 0, uid: str = "") -> Task:
    (task,) = World().add(pod(name, created=created, metadata={"uid": uid})).cluster.tasks.values()
    return task


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("job-worker-2", "job-worker-10"),
        ("job-worker-9", "job-ps-10"),
        ("job-worker-7", "job-worker-x"),
        ("a-b-c-3", "a-b-c-4"),
        ("job-worker-0", "job-0"),
    ],
)
def test_the_replica_number_decides_even_against_age(earlier: str, later: str) -> None:
    assert task_named(earlier, created=9).order < task_named(later, created=0).order


@pytest.mark.parametrize("name", ["web-7", "job-worker-", "job-worker-1x", "7", "job-worker-" + "9" * 30])
def test_a_name_of_fewer_parts_or_without_number_has_no_index(name: str) -> None:
    assert task_named(name, created=1).order < task_named("x", created=2).order
    assert task_named("x", created=1).order < task_named(name, created=2).order


def test_equal_numbers_fall_by_age_and_then_by_uid() -> None:
    assert task_named("a-b-1", created=1, uid="z").order < task_named("a-c-1", created=2, uid="a").order
    assert task_named("a-b-1", uid="a").order < task_named("a-c-1", uid="b").order
