"""ReplicaSets and ReplicationControllers, by kube-controller-manager and by our controllers."""

from __future__ import annotations

import json
import urllib.error
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.kubernetes.workload_cluster import WorkloadCluster, controller_name, names, template

LABELS = {"app": "web"}


def replica_set(cluster: WorkloadCluster, replicas: int, name: str = "web", **spec: Any) -> Any:
    base = {"replicas": replicas, "selector": {"matchLabels": LABELS}, "template": template(LABELS)}
    return cluster.create("replicasets", name, {**base, **spec})


@pytest.mark.smoke
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


def test_the_pods_that_kubernetes_ranks_first_are_deleted_first(workloads: WorkloadCluster) -> None:
    node = workloads.node("n1")
    replica_set(workloads, 5, template=template(LABELS, nodeName=node))
    pods = workloads.wait_pods(5, "web")
    costs = {pods[2]["metadata"]["name"]: "-5", pods[3]["metadata"]["name"]: "100"}
    for name, cost in costs.items():
        annotation = {"controller.kubernetes.io/pod-deletion-cost": cost}
        workloads.patch("pods", name, {"metadata": {"annotations": annotation}})
    workloads.set_ready(pods[1:])
    workloads.wait_status("replicasets", "web", readyReplicas=4)
    left = set(names(pods))
    for gone in (pods[0], pods[2]):
        left.remove(gone["metadata"]["name"])
        workloads.patch("replicasets", "web", {"spec": {"replicas": len(left)}}, "scale")
        workloads.wait_pods(len(left), "web")
        assert set(names(workloads.pods("web"))) == left
    workloads.patch("replicasets", "web", {"spec": {"replicas": 1}}, "scale")
    (last,) = workloads.wait_pods(1, "web")
    assert last["metadata"]["name"] == pods[3]["metadata"]["name"]
    deleted = ("replicaset-controller", "SuccessfulDelete", f"Deleted pod: {pods[0]['metadata']['name']}")
    workloads.eventually(lambda: deleted in workloads.event_texts("web"), "an event of the deletion")
    workloads.patch("replicasets", "web", {"spec": {"replicas": 0}}, "scale")
    workloads.wait_status("replicasets", "web", replicas=0, readyReplicas=None, availableReplicas=None)


def test_a_pod_is_available_after_min_ready_seconds(workloads: WorkloadCluster) -> None:
    replica_set(workloads, 2, minReadySeconds=3600)
    pods = workloads.wait_pods(2, "web")
    long_ago = datetime.now(UTC) - timedelta(hours=2)
    workloads.set_ready(pods[:1], since=long_ago)
    workloads.set_ready(pods[1:])
    workloads.wait_status("replicasets", "web", readyReplicas=2, availableReplicas=1)


def test_a_quota_is_told_as_a_condition_and_an_event_and_pods_follow_when_it_allows(
    workloads: WorkloadCluster,
) -> None:
    quota = {"metadata": {"name": "few"}, "spec": {"hard": {"pods": "1"}}}
    path = f"/api/v1/namespaces/{workloads.namespace}/resourcequotas"
    workloads.plane.request("POST", path, quota)

    def counted() -> bool:
        stored = json.loads(workloads.plane.request("GET", f"{path}/few"))
        return bool((stored.get("status") or {}).get("hard"))

    workloads.eventually(counted, "the quota to be counted")
    replica_set(workloads, 3)
    failed = workloads.wait(
        "replicasets", "web", lambda item: (item["status"].get("conditions") or []) != [], "a condition"
    )
    (condition,) = failed["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("ReplicaFailure", "True")
    assert condition["reason"] == "FailedCreate"
    assert "exceeded quota: few" in condition["message"]
    workloads.eventually(
        lambda: any(event["reason"] == "FailedCreate" for event in workloads.events("web")), "an event"
    )
    workloads.plane.request("DELETE", f"{path}/few")
    workloads.wait_pods(3, "web")
    workloads.wait_status("replicasets", "web", replicas=3, conditions=None)


def test_deleting_orphans_takes_along_or_waits_for_the_pods(workloads: WorkloadCluster) -> None:
    replica_set(workloads, 2)
    pods = workloads.wait_pods(2, "web")
    workloads.delete("replicasets", "web", "Orphan")
    workloads.eventually(lambda: workloads.get("replicasets", "web") is None, "the ReplicaSet to be gone")
    assert names(workloads.pods()) == names(pods)
    workloads.eventually(lambda: not any(map(controller_name, workloads.pods())), "the pods to be orphans")
    replica_set(workloads, 2)
    assert names(workloads.wait_pods(2, "web")) == names(pods)
    held = pods[0]["metadata"]["name"]
    workloads.patch("pods", held, {"metadata": {"finalizers": ["example.com/wait"]}})
    workloads.delete("replicasets", "web", "Foreground")
    workloads.eventually(lambda: names(workloads.list("pods")) == [held], "the other pod to be gone")
    assert workloads.get("replicasets", "web")["metadata"]["finalizers"] == ["foregroundDeletion"]
    workloads.patch("pods", held, {"metadata": {"finalizers": None}})
    workloads.eventually(lambda: workloads.get("replicasets", "web") is None, "the ReplicaSet to be gone")
    assert workloads.list("pods") == []


def test_a_replication_controller_does_the_same_with_labels_as_its_selector(
    workloads: WorkloadCluster,
) -> None:
    workloads.create(
        "replicationcontrollers", "web", {"replicas": 2, "selector": LABELS, "template": template(LABELS)}
    )
    pods = workloads.wait_pods(2, "web")
    workloads.set_ready(pods)
    done = workloads.wait_status(
        "replicationcontrollers", "web", replicas=2, readyReplicas=2, availableReplicas=2
    )
    assert "terminatingReplicas" not in done["status"]
    created = {("replication-controller", "SuccessfulCreate", f"Created pod: {name}") for name in names(pods)}
    workloads.eventually(lambda: workloads.event_texts("web") == created, "an event for each pod")
    workloads.kubectl("scale", "rc/web", "--replicas=1")
    workloads.wait_pods(1, "web")
