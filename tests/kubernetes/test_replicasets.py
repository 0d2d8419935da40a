"""ReplicaSets and ReplicationControllers, by kube-controller-manager and by our controllers."""

from __future__ import annotations

import urllib.error
from typing import Any

import pytest

from tests.kubernetes.workload_cluster import WorkloadCluster, controller_name, names, template

pytestmark = pytest.mark.everywhere

LABELS = {"app": "web"}


def replica_set(cluster: WorkloadCluster, replicas: int, name: str = "web", **spec: Any) -> Any:
    base = {"replicas": replicas, "selector": {"matchLabels": LABELS}, "template": template(LABELS)}
    return cluster.create("replicasets", name, {**base, **spec})


def test_a_replica_set_makes_and_counts_its_pods(workloads: WorkloadCluster) -> None:
    owner = replica_set(workloads, 3)
    pods = workloads.wait_pods(3, "web")
    for pod in pods:
        meta = pod["metadata"]
        assert meta["generateName"] == "web-"
        assert meta["labels"] == LABELS
        assert meta["ownerReferences"] == [
            {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "name": "web",
                "uid": owner["metadata"]["uid"],
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ]
    workloads.wait_status(
        "replicasets", "web", replicas=3, fullyLabeledReplicas=3, readyReplicas=None, observedGeneration=1
    )
    workloads.set_ready(pods[:2])
    workloads.wait_status("replicasets", "web", replicas=3, readyReplicas=2, availableReplicas=2)
    created = {("replicaset-controller", "SuccessfulCreate", f"Created pod: {name}") for name in names(pods)}
    workloads.eventually(lambda: workloads.event_texts("web") == created, "an event for each pod")


def test_pods_that_end_or_go_are_replaced(workloads: WorkloadCluster) -> None:
    replica_set(workloads, 2)
    first, second = workloads.wait_pods(2, "web")
    workloads.end(first, "Failed")
    workloads.delete("pods", second["metadata"]["name"])
    workloads.eventually(
        lambda: len(set(names(workloads.pods("web"))) - {*names([first, second])}) == 2, "two new pods"
    )


def test_a_matching_orphan_is_adopted_and_one_that_stops_matching_released(
    workloads: WorkloadCluster,
) -> None:
    orphan = {**template(LABELS), "metadata": {"name": "orphan", "labels": LABELS}}
    workloads.plane.request("POST", workloads.path("pods"), orphan)
    replica_set(workloads, 2)
    workloads.wait("pods", "orphan", lambda pod: controller_name(pod) == "web", "the orphan to be adopted")
    workloads.wait_pods(2, "web")
    workloads.patch("pods", "orphan", {"metadata": {"labels": {"app": "other"}}})
    workloads.wait("pods", "orphan", lambda pod: not controller_name(pod), "the pod to be released")
    workloads.wait_pods(2, "web")


def test_a_replication_controller_selects_by_the_labels_of_its_template(workloads: WorkloadCluster) -> None:
    made = workloads.create("replicationcontrollers", "rc", {"replicas": 2, "template": template(LABELS)})
    assert made["spec"]["selector"] == LABELS
    assert made["metadata"]["labels"] == LABELS
    workloads.wait_pods(2, "rc")
    workloads.wait_status("replicationcontrollers", "rc", replicas=2, fullyLabeledReplicas=2)


@pytest.mark.parametrize(
    ("plural", "selector"),
    [
        ("replicationcontrollers", {"app": "another"}),
        ("replicasets", {"matchLabels": {"app": "another"}}),
        ("replicasets", {"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}),
    ],
)
def test_an_owner_that_would_not_know_its_pods_again_is_refused(
    workloads: WorkloadCluster, plural: str, selector: Any
) -> None:
    with pytest.raises(urllib.error.HTTPError) as refusal:
        workloads.create(plural, "lost", {"selector": selector, "template": template(LABELS)})
    assert refusal.value.code == 422
    assert "`selector` does not match template `labels`" in refusal.value.read().decode()
