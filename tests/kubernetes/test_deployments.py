"""Deployments by kube-controller-manager and by our controllers: rollouts, scaling, history, progress."""

from __future__ import annotations

import urllib.error
from typing import Any

import pytest

from tests.kubernetes.workload_cluster import WorkloadCluster, controller_name, names, template

LABELS = {"app": "web"}
REVISION = "deployment.kubernetes.io/revision"
Json = Any


def deployment(cluster: WorkloadCluster, replicas: int, name: str = "web", **spec: Json) -> Json:
    base = {"replicas": replicas, "selector": {"matchLabels": LABELS}, "template": template(LABELS)}
    return cluster.create("deployments", name, {**base, **spec})


def change_image(cluster: WorkloadCluster, image: str, name: str = "web") -> None:
    containers = [{"name": "main", "image": image}]
    cluster.patch("deployments", name, {"spec": {"template": {"spec": {"containers": containers}}}})


def sizes(cluster: WorkloadCluster) -> dict[str, int]:
    """The sizes of the ReplicaSets by their image."""
    return {image_of(each): each["spec"]["replicas"] for each in cluster.list("replicasets")}


def image_of(item: Json) -> str:
    spec = item["spec"].get("template", item)["spec"]
    return str(spec["containers"][0]["image"])


def condition(item: Json, type: str) -> tuple[str, str]:
    conditions = item["status"].get("conditions") or []
    return next(((each["status"], each["reason"]) for each in conditions if each["type"] == type), ("", ""))


def make_ready(cluster: WorkloadCluster, image: str = "") -> None:
    """All pods, or those of an image, are ready."""
    unready = [pod for pod in cluster.pods() if "conditions" not in pod["status"]]
    cluster.set_ready(pod for pod in unready if image in ("", image_of(pod)))


def finish(cluster: WorkloadCluster, image: str, replicas: int, name: str = "web") -> Json:
    """Play kubelet until the rollout to an image is over."""

    def done() -> bool:
        make_ready(cluster)
        pods = [(image_of(pod), "conditions" in pod["status"]) for pod in cluster.pods()]
        return pods == [(image, True)] * replicas

    cluster.eventually(done, f"{replicas} pods of {image}")
    return cluster.wait(
        "deployments",
        name,
        lambda item: condition(item, "Progressing") == ("True", "NewReplicaSetAvailable"),
        "the rollout to be complete",
    )


REFUSED: list[tuple[str, Json, str]] = [
    *((plural, {"selector": {}}, "empty selector") for plural in ("deployments", "replicasets")),
    *((plural, {"selector": {}}, "empty selector") for plural in ("statefulsets", "daemonsets")),
    ("deployments", {"strategy": {"rollingUpdate": {"maxSurge": "abc"}}}, "maxSurge"),
    ("deployments", {"strategy": {"rollingUpdate": {"maxSurge": -1}}}, "maxSurge"),
    ("deployments", {"strategy": {"rollingUpdate": {"maxUnavailable": "101%"}}}, "maxUnavailable"),
    ("deployments", {"strategy": {"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 0}}}, "may not be 0"),
    ("deployments", {"strategy": {"type": "Strange"}}, "supported values"),
    ("deployments", {"progressDeadlineSeconds": 5, "minReadySeconds": 5}, "greater than minReadySeconds"),
    ("statefulsets", {"minReadySeconds": -1}, "minReadySeconds"),
    ("statefulsets", {"ordinals": {"start": -1}}, "ordinals.start"),
    ("statefulsets", {"updateStrategy": {"rollingUpdate": {"partition": -1}}}, "partition"),
    ("daemonsets", {"updateStrategy": {"rollingUpdate": {"maxUnavailable": "x%"}}}, "maxUnavailable"),
    ("daemonsets", {"revisionHistoryLimit": -1}, "revisionHistoryLimit"),
]


def test_selectors_limits_and_times_that_make_no_sense_are_refused(workloads: WorkloadCluster) -> None:
    for plural, change, problem in REFUSED:
        spec = {"selector": {"matchLabels": LABELS}, "template": template(LABELS), **change}
        with pytest.raises(urllib.error.HTTPError) as error:
            workloads.create(plural, "web", spec)
        assert (error.value.code, problem in error.value.read().decode()) == (422, True), (plural, change)


@pytest.mark.smoke
def test_a_deployment_makes_a_replica_set_that_makes_pods(workloads: WorkloadCluster) -> None:
    owner = deployment(workloads, 2)
    workloads.wait_pods(2)
    (replica_set,) = workloads.list("replicasets")
    meta = replica_set["metadata"]
    revision = meta["labels"]["pod-template-hash"]
    assert meta["name"] == f"web-{revision}"
    assert meta["labels"] == {**LABELS, "pod-template-hash": revision}
    assert replica_set["spec"]["selector"] == {"matchLabels": meta["labels"]}
    assert replica_set["spec"]["template"]["metadata"]["labels"] == meta["labels"]
    assert meta["ownerReferences"][0]["uid"] == owner["metadata"]["uid"]
    assert meta["annotations"] == {
        REVISION: "1",
        "deployment.kubernetes.io/desired-replicas": "2",
        "deployment.kubernetes.io/max-replicas": "3",
    }
    waiting = workloads.wait_status(
        "deployments", "web", replicas=2, updatedReplicas=2, unavailableReplicas=2, readyReplicas=None
    )
    assert condition(waiting, "Available") == ("False", "MinimumReplicasUnavailable")
    assert waiting["metadata"]["annotations"][REVISION] == "1"
    done = finish(workloads, "busybox", 2)
    done = workloads.wait_status(
        "deployments", "web", replicas=2, readyReplicas=2, availableReplicas=2, unavailableReplicas=None
    )
    assert condition(done, "Available") == ("True", "MinimumReplicasAvailable")
    scaled = (
        "deployment-controller",
        "ScalingReplicaSet",
        f"Scaled up replica set {meta['name']} from 0 to 2",
    )
    workloads.eventually(lambda: scaled in workloads.event_texts("web"), "the event of the scaling")


def test_a_rollout_keeps_within_surge_and_unavailability(workloads: WorkloadCluster) -> None:
    limits = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 2, "maxUnavailable": 1}}
    deployment(workloads, 4, strategy=limits)
    finish(workloads, "busybox", 4)
    change_image(workloads, "two")
    workloads.eventually(lambda: sizes(workloads) == {"busybox": 3, "two": 3}, "surge and one unavailable")
    workloads.wait_pods(6)
    waiting = workloads.wait_status("deployments", "web", updatedReplicas=3, availableReplicas=3)
    assert condition(waiting, "Available") == ("True", "MinimumReplicasAvailable")
    finish(workloads, "two", 4)
    assert sizes(workloads) == {"busybox": 0, "two": 4}


def test_recreate_waits_until_the_old_pods_are_gone(workloads: WorkloadCluster) -> None:
    placed = template(LABELS, nodeName=workloads.node("n1"))
    deployment(workloads, 2, strategy={"type": "Recreate"}, template=placed)
    finish(workloads, "busybox", 2)
    for pod in workloads.pods():
        workloads.patch("pods", pod["metadata"]["name"], {"metadata": {"finalizers": ["example.com/wait"]}})
    change_image(workloads, "two")
    workloads.eventually(lambda: sizes(workloads) == {"busybox": 0}, "the old pods to be scaled away")
    old = workloads.list("pods")
    assert len(old) == 2
    workloads.patch("pods", old[0]["metadata"]["name"], {"metadata": {"finalizers": None}})
    workloads.eventually(lambda: len(workloads.list("pods")) == 1, "one of them to be gone")
    assert sizes(workloads) == {"busybox": 0}
    workloads.patch("pods", old[1]["metadata"]["name"], {"metadata": {"finalizers": None}})
    finish(workloads, "two", 2)


def test_kubectl_rolls_out_undoes_pauses_and_restarts(workloads: WorkloadCluster) -> None:
    deployment(workloads, 1)
    finish(workloads, "busybox", 1)
    workloads.kubectl("set", "image", "deployment/web", "main=two")
    finish(workloads, "two", 1)
    assert "successfully rolled out" in workloads.kubectl("rollout", "status", "deployment/web")
    history = workloads.kubectl("rollout", "history", "deployment/web").split()
    assert [word for word in history if word.isdecimal()] == ["1", "2"]
    workloads.kubectl("rollout", "undo", "deployment/web")
    done = finish(workloads, "busybox", 1)
    assert done["metadata"]["annotations"][REVISION] == "3"
    back = next(each for each in workloads.list("replicasets") if image_of(each) == "busybox")
    assert back["metadata"]["annotations"]["deployment.kubernetes.io/revision-history"] == "1"
    workloads.kubectl("rollout", "pause", "deployment/web")
    paused = workloads.wait(
        "deployments", "web", lambda item: condition(item, "Progressing")[1] == "DeploymentPaused", "pause"
    )
    assert condition(paused, "Progressing") == ("Unknown", "DeploymentPaused")
    workloads.kubectl("set", "image", "deployment/web", "main=three")
    workloads.wait_status("deployments", "web", observedGeneration=paused["metadata"]["generation"] + 1)
    assert "three" not in sizes(workloads)
    workloads.kubectl("rollout", "resume", "deployment/web")
    finish(workloads, "three", 1)
    before = names(workloads.pods())
    workloads.kubectl("rollout", "restart", "deployment/web")
    workloads.eventually(lambda: len(workloads.list("replicasets")) == 4, "the ReplicaSet of the restart")
    finish(workloads, "three", 1)
    assert names(workloads.pods()) != before


def test_scaling_in_a_rollout_keeps_the_proportions(workloads: WorkloadCluster) -> None:
    limits = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 2, "maxUnavailable": 1}}
    deployment(workloads, 4, strategy=limits)
    finish(workloads, "busybox", 4)
    change_image(workloads, "two")
    workloads.eventually(lambda: sizes(workloads) == {"busybox": 3, "two": 3}, "the middle of a rollout")
    workloads.kubectl("scale", "deployment/web", "--replicas=10")
    workloads.eventually(lambda: sizes(workloads) == {"busybox": 6, "two": 6}, "both to grow")
    finish(workloads, "two", 10)


def test_a_rollout_that_makes_no_progress_is_late(workloads: WorkloadCluster) -> None:
    deployment(workloads, 1, progressDeadlineSeconds=1)
    late = workloads.wait(
        "deployments", "web", lambda item: condition(item, "Progressing")[0] == "False", "the deadline"
    )
    assert condition(late, "Progressing") == ("False", "ProgressDeadlineExceeded")
    status = workloads.kubectl("rollout", "status", "deployment/web", "--timeout=5s", check=False)
    assert "successfully" not in status
    finish(workloads, "busybox", 1)


def test_only_so_many_old_replica_sets_are_kept_as_the_history_has(workloads: WorkloadCluster) -> None:
    deployment(workloads, 1, revisionHistoryLimit=1)
    for image in ("busybox", "two", "three"):
        if image != "busybox":
            change_image(workloads, image)
        finish(workloads, image, 1)
    workloads.eventually(lambda: sizes(workloads) == {"two": 0, "three": 1}, "the first to be deleted")
    revisions = {
        image_of(each): each["metadata"]["annotations"][REVISION] for each in workloads.list("replicasets")
    }
    assert revisions == {"two": "2", "three": "3"}


def test_a_taken_name_is_a_collision_and_another_hash_is_used(workloads: WorkloadCluster) -> None:
    deployment(workloads, 0, name="first")
    (made,) = wait_replica_sets(workloads, 1)
    revision = made["metadata"]["labels"]["pod-template-hash"]
    other = {"app": "other"}
    workloads.create(
        "replicasets",
        f"web-{revision}",
        {"replicas": 0, "selector": {"matchLabels": other}, "template": template(other)},
    )
    deployment(workloads, 0)
    workloads.wait_status("deployments", "web", collisionCount=1)
    workloads.eventually(
        lambda: [controller_name(each) for each in workloads.list("replicasets")].count("web") == 1,
        "a ReplicaSet with another hash",
    )


def test_a_replica_set_with_the_same_template_is_adopted(workloads: WorkloadCluster) -> None:
    labels = {**LABELS, "pod-template-hash": "mine"}
    workloads.create(
        "replicasets",
        "mine",
        {"replicas": 1, "selector": {"matchLabels": labels}, "template": template(labels)},
        labels=labels,
    )
    workloads.wait_pods(1, "mine")
    deployment(workloads, 2)
    workloads.wait("replicasets", "mine", lambda item: controller_name(item) == "web", "adoption")
    workloads.wait_pods(2, "mine")
    assert names(workloads.list("replicasets")) == ["mine"]
    workloads.delete("deployments", "web", "Foreground")
    workloads.eventually(lambda: not workloads.list("deployments"), "the Deployment to be gone")
    assert workloads.list("replicasets") == workloads.list("pods") == []


def test_a_quota_is_told_by_the_deployment(workloads: WorkloadCluster) -> None:
    path = f"/api/v1/namespaces/{workloads.namespace}/resourcequotas"
    quota = {"metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}}
    workloads.plane.request("POST", path, quota)
    workloads.eventually(
        lambda: b'"used"' in workloads.plane.request("GET", f"{path}/none"), "the quota to be counted"
    )
    deployment(workloads, 1)
    workloads.wait(
        "deployments",
        "web",
        lambda item: condition(item, "ReplicaFailure") == ("True", "FailedCreate"),
        "the failure of its ReplicaSet",
    )


def wait_replica_sets(cluster: WorkloadCluster, count: int) -> list[Json]:
    cluster.eventually(lambda: len(cluster.list("replicasets")) == count, f"{count} ReplicaSets")
    return cluster.list("replicasets")
