"""How tasks fall into sub-jobs, and when a job has enough of them (spec 01 3.5)."""

import pytest

from stromboli.model.job import Job
from stromboli.testing import World
from tests.manifests import Manifest, group, job_named, node, pod, sub_group_policy, task_named


def job_of_labels(*labels: dict[str, str], policies: list[Manifest], minimum: int = 0) -> Job:
    pods = [pod(f"p{number}", "job", labels=pod_labels) for number, pod_labels in enumerate(labels)]
    return job_named(World().add(group("job", minimum, subGroupPolicy=policies), *pods).cluster, "job")


def test_without_policies_the_whole_job_is_one_sub_job() -> None:
    job = job_of_labels({"rack": "1"}, {}, policies=[], minimum=2)
    (only,) = job.sub_jobs.values()
    assert (only.id, only.minimum, len(only.tasks)) == ("default/job", 2, 2)


def test_the_values_of_the_match_labels_name_a_sub_job() -> None:
    job = job_of_labels(
        {"rack": "7", "row": "b"},
        {"rack": "7"},
        policies=[sub_group_policy("near", "rack", "row", size=3)],
        minimum=5,
    )
    assert {sub.id: (sub.minimum, sub.match_index) for sub in job.sub_jobs.values()} == {
        "default/job/near-7-b": (3, 7),
        "default/job": (1, 0),
    }


def test_the_first_policy_that_matches_takes_the_task() -> None:
    wide, narrow = (
        sub_group_policy("wide", "rack"),
        sub_group_policy("narrow", "rack", "row", selector={"fast": "yes"}),
    )
    labels = {"rack": "1", "row": "2", "fast": "yes"}
    assert set(job_of_labels(labels, policies=[wide, narrow]).sub_jobs) == {"default/job/wide-1"}
    assert set(job_of_labels(labels, policies=[narrow, wide]).sub_jobs) == {"default/job/narrow-1-2"}
    assert set(job_of_labels({"rack": "1", "row": "2"}, policies=[narrow, wide]).sub_jobs) == {
        "default/job/wide-1"
    }


def test_a_policy_without_match_labels_matches_nothing_but_is_still_demanded() -> None:
    """# quirk: spec 01 3.5"""
    job = job_of_labels({"a": "b"}, policies=[sub_group_policy("none", least=1, selector={"a": "b"})])
    assert set(job.sub_jobs) == {"default/job"}
    assert not job.sub_groups_valid


def test_a_long_name_is_replaced_by_its_hash() -> None:
    """FNV-1a of 32 bits in decimal, each character c spelt SAFE[ord(c) % 27]; up to 128 characters stay."""
    labels = {"x": "a" * 63, "y": "b" * 63, "z": "c"}
    (id,) = job_of_labels(labels, policies=[sub_group_policy("p", "x", "y", "z")]).sub_jobs
    joined = "-".join(labels.values())
    assert len(joined) == 129
    digest = 2166136261
    for byte in joined.encode():
        digest = (digest ^ byte) * 16777619 % 2**32
    spelt = "".join("bcdfghjklmnpqrstvwxz2456789"[ord(digit) % 27] for digit in str(digest))
    assert id == f"default/job/p-{spelt}"
    (id,) = job_of_labels({**labels, "z": ""}, policies=[sub_group_policy("p", "x", "y")]).sub_jobs
    assert id == f"default/job/p-{'a' * 63}-{'b' * 63}"


@pytest.mark.parametrize(
    ("value", "index"), [("12", 12), ("-3", -3), ("x1", 0), ("--5", 0), ("1_0", 0), ("9" * 30, 0)]
)
def test_the_match_index_is_the_first_value_if_it_is_a_number(value: str, index: int) -> None:
    (sub_job,) = job_of_labels({"rack": value}, policies=[sub_group_policy("p", "rack")]).sub_jobs.values()
    assert sub_job.match_index == index


def test_the_priority_of_a_sub_job_is_its_highest_and_never_below_zero() -> None:
    cluster = World().add(group("job"), pod("a", "job", priority=-5), pod("b", "job", priority=7)).cluster
    (sub_job,) = job_named(cluster, "job").sub_jobs.values()
    assert sub_job.priority == 7
    cluster.leave(task_named(cluster, "b"))
    assert sub_job.priority == 0


def test_sub_groups_are_ready_when_enough_of_them_are() -> None:
    policy = sub_group_policy("p", "rack", size=2, least=1)
    pods = [pod(f"a{n}", "job", on="n0", labels={"rack": "1"}) for n in range(2)]
    job = job_named(World().add(node("n0"), group("job", subGroupPolicy=[policy]), *pods[:1]).cluster, "job")
    assert (job.sub_groups_valid, job.sub_groups_ready) == (True, False)
    job = job_named(World().add(node("n0"), group("job", subGroupPolicy=[policy]), *pods).cluster, "job")
    assert (job.sub_groups_ready, job.sub_groups_pipelined) == (True, True)


def test_an_update_of_the_pod_group_keeps_its_sub_groups_counted() -> None:
    owner = group("job", subGroupPolicy=[sub_group_policy("p", "rack", least=1)])
    world = World().add(owner, pod("a", "job", on="n0", labels={"rack": "1"}))
    world.add(owner)
    assert job_named(world.cluster, "job").sub_groups_ready


def test_a_sub_job_is_gone_with_its_last_task() -> None:
    lonely = pod("a", "job", labels={"rack": "1"})
    world = World().add(group("job", subGroupPolicy=[sub_group_policy("p", "rack", least=1)]), lonely)
    world.remove(lonely)
    job = job_named(world.cluster, "job")
    assert job.sub_jobs == {}
    assert not job.sub_groups_valid
