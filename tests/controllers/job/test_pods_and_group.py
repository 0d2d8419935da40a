"""What a job is made of: its pods (spec 06 2.9), its PodGroup (spec 06 2.10), its volumes (spec 06 2.11)."""

from typing import Any

import msgspec
import pytest

from stromboli.api.errors import BadObject
from stromboli.api.resources.quota_charges import as_resource_list
from stromboli.api.types.scheduling import PodGroup
from stromboli.controllers.job.job_pod_group import group_changes, group_of, minimum_charges, minimum_pods
from stromboli.controllers.job.job_pods import Member, pod_of
from stromboli.controllers.job.pod_summary import PodSummary
from tests.controllers.job.simulated_job import NOON, make_job, task


def pod(job: Any, task_index: int = 0, index: int = 0, **more: Any) -> dict[str, Any]:
    return pod_of(Member(job, job.spec.tasks[task_index], index), **more)


def test_a_pod_is_the_template_with_the_marks_of_its_job() -> None:
    template = {
        "metadata": {"labels": {"app": "x", "volcano.sh/job-name": "mine"}, "annotations": {"note": "y"}},
        "spec": {"containers": [{"name": "main"}], "nodeSelector": {"gpu": "yes"}},
    }
    job = make_job(
        {"name": "worker", "replicas": 3, "template": template, "topologyPolicy": "restricted"},
        metadata={
            "labels": {"volcano.sh/preemptable": "true", "team": "t"},
            "annotations": {
                "volcano.sh/revocable-zone": "*",
                "volcano.sh/jdb-min-available": "50%",
                "volcano.sh/jdb-max-unavailable": "1",
            },
        },
        status={"version": 2, "retryCount": 1},
    )
    job.status = msgspec.convert({"version": 2, "retryCount": 1}, type(job.status))
    made = pod(job, index=2)
    assert made["metadata"] == {
        "name": "j-worker-2",
        "namespace": "team",
        "labels": {
            "app": "x",
            "volcano.sh/task-index": "2",
            "volcano.sh/job-name": "j",
            "volcano.sh/task-spec": "worker",
            "volcano.sh/job-namespace": "team",
            "volcano.sh/queue-name": "default",
            "volcano.sh/preemptable": "true",
        },
        "annotations": {
            "note": "y",
            "volcano.sh/task-index": "2",
            "volcano.sh/task-spec": "worker",
            "scheduling.k8s.io/group-name": "j-u1",
            "volcano.sh/job-name": "j",
            "volcano.sh/queue-name": "default",
            "volcano.sh/job-version": "2",
            "volcano.sh/template-uid": "j-worker",
            "volcano.sh/job-retry-count": "1",
            "volcano.sh/numa-topology-policy": "restricted",
            "volcano.sh/revocable-zone": "*",
            "volcano.sh/jdb-min-available": "50%",
        },
        "ownerReferences": [
            {
                "apiVersion": "batch.volcano.sh/v1alpha1",
                "kind": "Job",
                "name": "j",
                "uid": "u1",
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
    }
    assert made["spec"] == {
        "containers": [{"name": "main"}],
        "nodeSelector": {"gpu": "yes"},
        "schedulerName": "volcano",
    }
    assert job.spec.tasks[0].template == template


def test_scheduler_and_priority_of_the_template_stand_and_of_the_job_fill_in() -> None:
    given = {"schedulerName": "mine", "priorityClassName": "high"}
    job = make_job(task(spec=given), task("other"), priorityClassName="low", schedulerName="volcano")
    assert (pod(job)["spec"]["schedulerName"], pod(job)["spec"]["priorityClassName"]) == ("mine", "high")
    assert pod(job, 1)["spec"]["priorityClassName"] == "low"


def test_partitions_are_labels_by_index() -> None:
    job = make_job(task(replicas=5, partitionPolicy={"totalPartitions": 3, "partitionSize": 2}))
    labels = [
        pod_of(member)["metadata"]["labels"]["volcano.sh/partition-id"]
        for member in PodSummary(job).missing_members(job, 0)
    ]
    assert labels == ["0", "0", "1", "1", "2"]


def test_a_job_that_is_handed_on_says_so_on_its_pods() -> None:
    metadata = pod(make_job(), forwarding=True)["metadata"]
    assert metadata["labels"]["volcano.sh/job-forwarding"] == "true"
    assert metadata["annotations"]["volcano.sh/job-forwarding"] == "true"


def test_a_claim_is_mounted_once_in_every_container_but_not_in_init_containers() -> None:
    volumes = [
        {"mountPath": "/a", "volumeClaimName": "one"},
        {"mountPath": "/b", "volumeClaimName": "one"},
        {"mountPath": "/c", "volumeClaimName": "two"},
    ]
    spec = {"containers": [{"name": "x"}, {"name": "y"}], "initContainers": [{"name": "z"}]}
    made = pod(make_job(task(spec=spec), volumes=volumes))["spec"]
    assert [volume["persistentVolumeClaim"]["claimName"] for volume in made["volumes"]] == ["one", "two"]
    for container in made["containers"]:
        assert [mount["mountPath"] for mount in container["volumeMounts"]] == ["/a", "/c"]
    assert "volumeMounts" not in made["initContainers"][0]


@pytest.mark.parametrize("template", [{}, {"spec": []}, {"spec": {"containers": "no"}}, {"spec": None}])
def test_a_template_that_is_none_is_a_bad_object(template: Any) -> None:
    job = make_job({"name": "t", "replicas": 1, "template": template})
    with pytest.raises(BadObject, match="template"):
        pod(job)


# -- the group


def test_the_group_says_what_must_start_together() -> None:
    partition = {
        "totalPartitions": 2,
        "partitionSize": 2,
        "minPartitions": 1,
        "networkTopology": {"mode": "soft", "highestTierAllowed": 1},
    }
    job = make_job(
        task("a", 4, partitionPolicy=partition),
        task("b", 2, minAvailable=1),
        task("c", 1),
        minAvailable=5,
        priorityClassName="high",
        networkTopology={"mode": "hard", "highestTierName": "rack", "highestTierAllowed": 2},
        metadata={"labels": {"l": "1"}, "annotations": {"n": "2"}},
    )
    group = group_of(job, {})
    assert group["metadata"]["name"] == "j-u1"
    assert (group["metadata"]["labels"], group["metadata"]["annotations"]) == ({"l": "1"}, {"n": "2"})
    assert group["metadata"]["ownerReferences"][0]["uid"] == "u1"
    spec = group["spec"]
    assert (spec["minMember"], spec["minTaskMember"]) == (5, {"a": 2, "b": 1, "c": 1})
    assert (spec["queue"], spec["priorityClassName"]) == ("default", "high")
    assert spec["networkTopology"] == {"mode": "hard", "highestTierAllowed": 2}
    assert spec["subGroupPolicy"] == [
        {
            "name": "a",
            "subGroupSize": 2,
            "minSubGroups": 1,
            "labelSelector": {"matchLabels": {"volcano.sh/task-spec": "a"}},
            "matchLabelKeys": ["volcano.sh/partition-id"],
            "networkTopology": {"mode": "soft", "highestTierAllowed": 1},
        }
    ]


def test_a_group_that_says_what_it_should_is_left_alone_and_only_differences_are_patched() -> None:
    job = make_job(task("a", 3), task("b", 2))
    group = msgspec.convert(group_of(job, {}), PodGroup)
    assert group_changes(job, group, {}) == {}
    group.spec.min_resources = {**(group.spec.min_resources or {}), "old": "1", "cpu": "5000m"}
    group.spec.min_task_member = {**group.spec.min_task_member, "b": 7, "removed": 1}
    group.spec.queue = "elsewhere"
    job.spec.priority_class_name = "high"
    changes = group_changes(job, group, {})
    assert changes.keys() == {"priorityClassName", "minResources", "minTaskMember"}
    assert changes["minTaskMember"] == {"b": 2}
    assert changes["minResources"]["old"] is None


@pytest.mark.parametrize(
    ("tasks", "least", "expected"),
    [
        # fewer than the tasks' minimums together: the most urgent tasks whole
        ([("a", 3, None), ("b", 3, None)], 4, {"a": 3, "b": 1}),
        ([("a", 3, None), ("high", 3, None)], 4, {"a": 1, "high": 3}),
        # at least the minimums: those first, then what is left
        ([("a", 3, 1), ("b", 3, 2)], 3, {"a": 1, "b": 2}),
        ([("a", 3, 1), ("b", 3, 2)], 5, {"a": 3, "b": 2}),
        ([("a", 3, 1), ("high", 3, 2)], 4, {"a": 1, "high": 3}),
        ([("a", 2, None), ("b", 3, 1)], 3, {"a": 2, "b": 1}),
        ([("a", 2, None)], 9, {"a": 2}),
        ([("a", 2, None)], 0, {"a": 0}),
    ],
)
def test_whose_pods_count_for_the_least_resources(
    tasks: list[Any], least: int, expected: dict[str, int]
) -> None:
    made = []
    for name, replicas, minimum in tasks:
        spec = {"priorityClassName": "high"} if name == "high" else {}
        more = {} if minimum is None else {"minAvailable": minimum}
        made.append(task(name, replicas, spec=spec, **more))
    job = make_job(*made, minAvailable=least)
    assert {task.name: count for task, count in minimum_pods(job, {"high": 100})} == expected


def test_the_least_resources_are_what_a_quota_would_charge() -> None:
    job = make_job(task("a", 2), minAvailable=2)
    resources = as_resource_list(minimum_charges(job, {}))
    assert resources == {"cpu": "2", "requests.cpu": "2", "pods": "2", "count/pods": "2"}
    assert minimum_charges(make_job(task("a", 0)), {}) == {}


def test_a_template_with_a_bad_quantity_is_a_bad_object() -> None:
    container = {"name": "x", "resources": {"requests": {"cpu": "lots"}}}
    with pytest.raises(BadObject, match="lots"):
        group_of(make_job(task(spec={"containers": [container]})), {})


def test_a_pod_in_place_of_a_lost_one_says_when_that_was() -> None:
    assert (
        pod(make_job(), lost_at=NOON)["metadata"]["annotations"]["stromboli.sh/lost-at"] == NOON.isoformat()
    )
