"""Workloads of files, expanded: broken ones are told, and nothing of them can break a plan."""

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

from stromboli.api.errors import BadInput, InputProblems
from stromboli.api.manifests.manifest_reader import Manifests
from stromboli.api.manifests.manifest_sources import Source
from stromboli.extensions import load_catalog
from stromboli.model.time_limits import job_time_limit
from stromboli.policy.policy import default_policy
from stromboli.simulator.cluster_loading import Loaded, load
from stromboli.simulator.cluster_notation import nodes
from stromboli.simulator.cycle_plan import make_plan
from tests.simulator.workload_manifests import Manifest, flow_objects, job, template, workload

NOW = 1_793_534_400.0
CATALOG = load_catalog()
ODD: list[Any] = [None, "", 0, -1, 2**40, 1.5, True, [], {}, [None], [{}], {"a": None}, "a" * 300, [1, 2]]
TASKS = [
    {"name": "a", "replicas": 1, "template": template()},
    {"name": "b", "replicas": 1, "template": template(), "dependsOn": {"name": ["a"]}},
]
VOLUME = {"mountPath": "/x", "volumeClaim": {"resources": {"requests": {"storage": "1Gi"}}}}
WORKLOADS = [
    job(),
    job("second", TASKS, volumes=[VOLUME], plugins={"svc": [], "ssh": [], "pytorch": []}),
    *flow_objects(),
    workload("Deployment", replicas=2),
    workload("StatefulSet", replicas=2, volumeClaimTemplates=[{"metadata": {"name": "d"}, "spec": {}}]),
    workload("DaemonSet"),
    workload("ReplicaSet"),
    workload("ReplicationController", version="v1"),
    workload("Job", version="batch/v1", completionMode="Indexed"),
    workload(
        "CronJob", version="batch/v1", schedule="* * * * *", jobTemplate={"spec": {"template": template()}}
    ),
    workload(
        "CronJob",
        version="batch.volcano.sh/v1alpha1",
        schedule="* * * * *",
        jobTemplate={"spec": job()["spec"]},
    ),
    {
        "apiVersion": "bus.volcano.sh/v1alpha1",
        "kind": "Command",
        "metadata": {"name": "stop"},
        "action": "AbortJob",
        "target": {"kind": "Job", "name": "train"},
    },
]


def loaded(objects: list[Manifest], keep_going: bool = False) -> Loaded:
    raws = [json.dumps(content).encode() for content in [*nodes("n1 cpu=4"), *objects]]
    sources = [Source("file", index, raw, of_case=False) for index, raw in enumerate(raws)]
    return load(lambda: Manifests(sources, InputProblems(keep_going)), keep_going, now=NOW)


def plan(objects: list[Manifest], keep_going: bool = False) -> Loaded:
    result = loaded(objects, keep_going)
    make_plan(result, default_policy(CATALOG), CATALOG, NOW, cycles=2)
    return result


def fields(content: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    for key, value in content.items() if isinstance(content, dict) else ():
        yield from fields(value, (*path, key))
    for index, value in enumerate(content) if isinstance(content, list) else ():
        yield from fields(value, (*path, index))


def damaged(content: Manifest, choose: random.Random) -> Manifest:
    """The manifest with a field of the wrong type or value, or without it."""
    content = copy.deepcopy(content)
    *parents, key = choose.choice(
        [path for path in fields(content) if path and path[0] not in ("kind", "apiVersion")]
    )
    inner: Any = content
    for step in parents:
        inner = inner[step]
    if isinstance(inner, dict) and choose.random() < 0.1:
        del inner[key]
    else:
        inner[key] = choose.choice(ODD)
    return content


@pytest.mark.parametrize("seed", range(40))
def test_whatever_is_wrong_with_a_workload_is_a_problem_of_that_workload(seed: int) -> None:
    choose = random.Random(seed)
    objects = [damaged(content, choose) for content in choose.sample(WORKLOADS, 3)]
    try:
        plan(objects)
    except BadInput as error:
        assert all(problem.file.startswith("file#") for problem in error.problems)
        assert plan(objects, keep_going=True).problems
    else:
        assert plan(objects, keep_going=True).problems == []


def test_the_deadlines_of_jobs_and_of_pod_templates_are_time_limits() -> None:
    of_pods = template(schedulerName="volcano", activeDeadlineSeconds=300)
    volcano = job("other")
    volcano["spec"]["tasks"][0]["template"]["spec"]["activeDeadlineSeconds"] = 200
    objects = [
        workload("Job", "a", "batch/v1", activeDeadlineSeconds=600),
        workload("Job", "b", "batch/v1", template=of_pods),
        volcano,
    ]
    cluster = plan(objects).intake.cluster
    limits = {each.name: job_time_limit(each, cluster.queues) for each in cluster.jobs.values()}
    assert limits == {"a": 600, "b": 300, "other": 200}


def test_a_refused_job_is_left_out_and_listed_if_we_keep_going() -> None:
    result = plan([job(queue="nowhere"), job("other")], keep_going=True)
    assert result.made == {"Job default/other": 3}
    [problem] = result.problems
    assert problem.subject == "Job default/train"
    assert problem.text.startswith('admission webhook "validatejob.volcano.sh" denied the request: ')


def test_a_workload_that_is_defined_twice_is_told_with_both_places() -> None:
    with pytest.raises(
        BadInput, match=r"file#2: Job default/train: metadata.name: defined twice: file#1 has it"
    ):
        plan([job(), job()])


def test_a_generated_name_is_given_an_end() -> None:
    generated = job()
    generated["metadata"] = {"generateName": "train-"}
    [made] = plan([generated]).made
    assert made.startswith("Job default/train-")
    assert len(made) == len("Job default/train-") + 5


def test_too_many_pods_are_refused() -> None:
    many = job(tasks=[{"name": "a", "replicas": 100_001, "template": template()}])
    with pytest.raises(BadInput, match="the job has 100001 pods, at most 100000 are allowed"):
        plan([many])
    with pytest.raises(BadInput, match="at most 100000 are made"):
        plan([workload("ReplicaSet", replicas=100_001)])


def test_a_job_of_a_cluster_keeps_its_place_in_line() -> None:
    live, new = job("live"), job("new")
    live["metadata"] |= {"uid": "u1", "creationTimestamp": "2026-10-01T00:00:00Z"}
    created = {job.name: job.created for job in plan([new, live]).intake.cluster.jobs.values()}
    assert created["live"] < created["new"] == pytest.approx(NOW, abs=1)


def test_pods_whose_owner_has_no_uid_share_no_group_with_those_of_another_owner() -> None:
    owners = [("x", "web"), ("y", "web"), ("y", "other")]
    result = plan([owned_pod(namespace, owner) for namespace, owner in owners])
    jobs = {
        job.key: [task.name for task in job.tasks.values()] for job in result.intake.cluster.jobs.values()
    }
    assert jobs == {"x/web": ["pod-of-web"], "y/web": ["pod-of-web"], "y/other": ["pod-of-other"]}


def owned_pod(namespace: str, owner: str) -> Manifest:
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "controller": True}
    metadata = {"name": f"pod-of-{owner}", "namespace": namespace, "ownerReferences": [reference]}
    spec = template(schedulerName="volcano")["spec"]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def test_a_new_cron_job_with_an_interval_and_a_deadline_has_a_first_job() -> None:
    spec = {"schedule": "@every 7h", "startingDeadlineSeconds": 10, "jobTemplate": {"spec": job()["spec"]}}
    cron = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "CronJob", "metadata": {"name": "c"}}
    assert list(plan([{**cron, "spec": spec}]).made.values()) == [3]
