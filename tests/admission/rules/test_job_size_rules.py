"""Jobs and pods that are too large are refused, with the number, the limit and the remedy; large ones are not."""

from __future__ import annotations

import time
from typing import Any

import pytest

from stromboli.admission.rules.admission_table import REVIEWS, validate
from tests.admission.reviewing import cluster, job, submitted, task, texts

CONTAINER = {"name": "main", "image": "busybox"}


def containers(count: int) -> list[dict[str, Any]]:
    return [{"name": f"c{index}", "image": "busybox"} for index in range(count)]


def tasks(count: int) -> list[dict[str, Any]]:
    return [task(f"t{index}") for index in range(count)]


def codes(count: int) -> list[dict[str, Any]]:
    return [{"action": "AbortJob", "exitCode": code} for code in range(1, count + 1)]


def claims(count: int) -> list[dict[str, Any]]:
    return [{"mountPath": f"/{index}", "volumeClaimName": f"c{index}"} for index in range(count)]


def spread(count: int) -> dict[str, Any]:
    constraint = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}
    keys = [{**constraint, "topologyKey": f"zone{index}"} for index in range(count)]
    return {**task(), "template": {"spec": {"containers": [CONTAINER], "topologySpreadConstraints": keys}}}


LARGE = {
    "constraints": job(spread(100)),
    "tasks": job(*tasks(1000)),
    "replicas": job(task("a", 60_000), task("b", 40_000)),
    "containers": job(task(containers=containers(1000))),
    "policies": job(task(policies=codes(256)), policies=codes(256)),
    "volumes": job(task(), volumes=claims(256)),
}
TOO_LARGE = [
    (job(*tasks(1001)), "the job has 1001 tasks, at most 1000 are allowed"),
    (job(task("a", 60_000), task("b", 40_001)), "the job has 100001 pods, at most 100000 are allowed"),
    (job(task(containers=containers(1001))), "the pod has 1001 containers, at most 1000 are allowed"),
    (
        job(spread(1030)),
        "the pod has 1030 topology spread constraints and terms of pod affinity, at most 100 are allowed",
    ),
    (
        job(task(policies=codes(257))),
        "the job has 257 policies in one list, at most 256 are allowed",
    ),
    (job(task(), volumes=claims(257)), "the job has 257 volumes, at most 256 are allowed"),
    (
        job({**task(), "template": {"spec": {"containers": [{**CONTAINER, "args": ["x" * 1024 * 1024]}]}}}),
        "at most 1048576 are allowed",
    ),
]


@pytest.mark.parametrize("name", LARGE)
def test_a_large_job_is_taken(name: str) -> None:
    assert not submitted("Job", LARGE[name]).report


@pytest.mark.parametrize(("sent", "expected"), TOO_LARGE, ids=[row[1] for row in TOO_LARGE])
def test_a_job_that_is_too_large_is_refused_with_the_number_and_the_way_out(
    sent: dict[str, Any], expected: str
) -> None:
    (problem,) = submitted("Job", sent).report
    assert expected in str(problem)
    assert problem.remedy


def test_the_field_is_told_that_has_too_many_entries() -> None:
    (tasks_problem,) = submitted("Job", job(*tasks(3000))).report
    assert "(spec.tasks: a list of 3000; use fewer" in tasks_problem.with_remedy
    (volumes_problem,) = submitted("Job", job(task(), volumes=claims(257))).report
    assert "(spec.volumes: a list of 257; " in volumes_problem.with_remedy


def test_a_job_that_is_much_too_large_is_refused_at_once() -> None:
    """Lists of a megabyte, which were compared pair by pair."""
    hostile = [
        job(*tasks(10_000)),
        job(task(containers=containers(20_000))),
        job(task("a"), task("b", dependsOn={"name": ["a"] * 200_000})),
        job(task(), volumes=claims(15_000), policies=codes(15_000)),
    ]
    begin = time.process_time()
    assert all(submitted("Job", sent).report for sent in hostile)
    assert time.process_time() - begin < 10


def test_a_job_does_not_grow_beyond_the_limit_but_one_that_is_beyond_may_shrink() -> None:
    def scaled(before: int, after: int) -> list[str]:
        return texts("/jobs/validate", job(task(replicas=after)), job(task(replicas=before)), "UPDATE")

    assert scaled(99_999, 100_000) == []
    assert scaled(99_999, 100_001) == ["the job has 100001 pods, at most 100000 are allowed"]
    assert scaled(200_000, 150_000) == []
    assert scaled(200_000, 200_000) == []
    assert scaled(200_000, 200_001) == ["the job has 200001 pods, at most 100000 are allowed"]


def test_pods_of_ours_and_templates_of_cron_jobs_are_bounded_too() -> None:
    pod = {"metadata": {"name": "p"}, "spec": {"schedulerName": "volcano", "containers": containers(1001)}}
    assert texts("/pods/validate", pod) == ["the pod has 1001 containers, at most 1000 are allowed"]
    pod["spec"] = {"schedulerName": "another", "containers": containers(1001)}
    assert texts("/pods/validate", pod) == []
    template = {"spec": {"schedule": "@daily", "jobTemplate": job(*tasks(1001))}, "metadata": {"name": "c"}}
    assert texts("/cronjobs/validate", template) == ["the job has 1001 tasks, at most 1000 are allowed"]


@pytest.mark.parametrize("junk", [None, 7, "x", [], {"tasks": 3, "policies": {}, "volumes": "v"}])
def test_a_spec_of_any_form_is_measured(junk: Any) -> None:
    for path in ("/jobs/validate", "/cronjobs/validate"):
        content = {"metadata": {"name": "j"}, "spec": junk}
        validate(REVIEWS[path], content, {"spec": junk}, "UPDATE", cluster())
