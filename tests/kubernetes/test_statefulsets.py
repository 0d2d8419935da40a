"""StatefulSets by kube-controller-manager and by our controller; the tests are the kubelet."""

from __future__ import annotations

import json
import urllib.error
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.kubernetes.workload_cluster import WorkloadCluster, controller_name, names, template

LABELS = {"app": "web"}
REVISION = "controller-revision-hash"
CLAIM = {
    "metadata": {"name": "data", "labels": {"tier": "fast"}},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}


def stateful_set(cluster: WorkloadCluster, replicas: int, name: str = "web", **spec: Any) -> Any:
    base = {
        "replicas": replicas,
        "serviceName": "web",
        "selector": {"matchLabels": LABELS},
        "template": template(LABELS),
    }
    return cluster.create("statefulsets", name, {**base, **spec})


def change(cluster: WorkloadCluster, **spec: Any) -> None:
    cluster.patch("statefulsets", "web", {"spec": spec})


def change_template(cluster: WorkloadCluster, image: str) -> None:
    container = {"name": "main", "image": image}
    change(cluster, template={"spec": {"containers": [container]}})


def wait_exactly(cluster: WorkloadCluster, *expected: str) -> list[Any]:
    """The pods, once they are exactly these."""
    what = f"exactly the pods {expected}"
    cluster.eventually(lambda: names(cluster.pods("web")) == list(expected), what)
    return cluster.pods("web")


def wait_ready(cluster: WorkloadCluster, *expected: str) -> None:
    """Pods appear one after the other, and each becomes ready."""
    for name in expected:
        cluster.eventually(lambda name=name: name in names(cluster.pods("web")), f"pod {name}")
        cluster.set_ready([cluster.get("pods", name)])


def wait_new(cluster: WorkloadCluster, old: Any) -> Any:
    """The pod that takes the place of one that goes."""
    meta = old["metadata"]
    return cluster.wait("pods", meta["name"], lambda pod: pod["metadata"]["uid"] != meta["uid"], "a new pod")


def images(cluster: WorkloadCluster) -> list[str]:
    return [pod["spec"]["containers"][0]["image"] for pod in cluster.pods("web")]


def revisions(cluster: WorkloadCluster) -> dict[int, str]:
    """Names of revisions by number."""
    return {item["revision"]: item["metadata"]["name"] for item in cluster.list("controllerrevisions")}


@pytest.mark.smoke
def test_pods_come_in_order_with_names_and_claims_of_their_own(workloads: WorkloadCluster) -> None:
    owner = stateful_set(workloads, 2, volumeClaimTemplates=[CLAIM], ordinals={"start": 3})
    [first] = wait_exactly(workloads, "web-3")
    workloads.wait_status("statefulsets", "web", replicas=1, availableReplicas=0, observedGeneration=1)
    (revision,) = workloads.list("controllerrevisions")
    name = revision["metadata"]["name"]
    assert first["metadata"]["labels"] == {
        **LABELS,
        "apps.kubernetes.io/pod-index": "3",
        "statefulset.kubernetes.io/pod-name": "web-3",
        REVISION: name,
    }
    assert (first["spec"]["hostname"], first["spec"]["subdomain"]) == ("web-3", "web")
    claims = [volume.get("persistentVolumeClaim") for volume in first["spec"]["volumes"]]
    assert {"claimName": "data-web-3"} in claims
    assert first["metadata"]["ownerReferences"] == [
        {
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "name": "web",
            "uid": owner["metadata"]["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]
    assert revision["revision"] == 1
    assert controller_name(revision) == "web"
    hash_label = {"controller.kubernetes.io/hash": name.removeprefix("web-")}
    assert revision["metadata"]["labels"] == {**LABELS, **hash_label}
    stored = revision["data"]["spec"]["template"]
    assert stored["$patch"] == "replace"
    assert stored["spec"]["containers"][0]["image"] == "busybox"
    workloads.set_ready([first])
    wait_exactly(workloads, "web-3", "web-4")
    wait_ready(workloads, "web-4")
    status = workloads.wait_status(
        "statefulsets",
        "web",
        replicas=2,
        readyReplicas=2,
        availableReplicas=2,
        currentReplicas=2,
        updatedReplicas=2,
        currentRevision=name,
        updateRevision=name,
    )["status"]
    assert status["collisionCount"] == 0
    made = workloads.list("persistentvolumeclaims")
    assert names(made) == ["data-web-3", "data-web-4"]
    assert made[0]["metadata"]["labels"] == {**LABELS, "tier": "fast"}
    assert "ownerReferences" not in made[0]["metadata"]
    expected = {
        ("statefulset-controller", "SuccessfulCreate", text)
        for pod in ("web-3", "web-4")
        for text in (
            f"Create Claim data-{pod} Pod {pod} in StatefulSet web success",
            f"Create Pod {pod} in StatefulSet web successful",
        )
    }
    workloads.eventually(lambda: expected == workloads.event_texts("web"), "events for pods and claims")


def test_it_scales_down_from_the_end_and_waits_for_pods_that_are_not_ready(
    workloads: WorkloadCluster,
) -> None:
    stateful_set(workloads, 3)
    wait_ready(workloads, "web-0", "web-1", "web-2")
    workloads.wait_status("statefulsets", "web", readyReplicas=3)
    workloads.set_ready([workloads.get("pods", "web-0")], ready=False)
    workloads.wait_status("statefulsets", "web", readyReplicas=2)
    change(workloads, replicas=1)
    workloads.wait_status("statefulsets", "web", observedGeneration=2, replicas=3)
    wait_exactly(workloads, "web-0", "web-1", "web-2")
    wait_ready(workloads, "web-0")
    wait_exactly(workloads, "web-0")
    deleted = {
        ("statefulset-controller", "SuccessfulDelete", f"Delete Pod {pod} in StatefulSet web successful")
        for pod in ("web-1", "web-2")
    }
    workloads.eventually(lambda: deleted <= workloads.event_texts("web"), "events for deleted pods")


def test_a_pod_that_failed_is_replaced_under_its_name(workloads: WorkloadCluster) -> None:
    stateful_set(workloads, 1)
    wait_ready(workloads, "web-0")
    first = workloads.get("pods", "web-0")
    workloads.end(first, "Failed")
    second = wait_new(workloads, first)
    workloads.end(second, "Succeeded")
    wait_new(workloads, second)


def test_a_parallel_set_starts_and_stops_its_pods_at_once(workloads: WorkloadCluster) -> None:
    stateful_set(workloads, 3, podManagementPolicy="Parallel")
    wait_exactly(workloads, "web-0", "web-1", "web-2")
    change(workloads, replicas=1)
    wait_exactly(workloads, "web-0")


def test_an_update_goes_from_the_last_pod_to_the_first_and_can_be_undone(workloads: WorkloadCluster) -> None:
    stateful_set(workloads, 3)
    wait_ready(workloads, "web-0", "web-1", "web-2")
    first = workloads.wait_status("statefulsets", "web", readyReplicas=3)["status"]["currentRevision"]
    before = workloads.pods("web")
    change_template(workloads, "busybox:2")
    last = wait_new(workloads, before[2])
    assert images(workloads) == ["busybox", "busybox", "busybox:2"]
    second = last["metadata"]["labels"][REVISION]
    workloads.wait_status(
        "statefulsets",
        "web",
        currentRevision=first,
        updateRevision=second,
        currentReplicas=2,
        updatedReplicas=1,
    )
    for pod in reversed(before):
        workloads.set_ready([wait_new(workloads, pod)])
    workloads.wait_status("statefulsets", "web", currentRevision=second, updatedReplicas=3, currentReplicas=3)
    assert "partitioned roll out complete: 3 new pods" in workloads.kubectl("rollout", "status", "sts/web")
    history = workloads.kubectl("rollout", "history", "sts/web")
    assert [line.split()[0] for line in history.split("\n")[2:] if line] == ["1", "2"]
    assert "busybox:2" in workloads.kubectl("rollout", "history", "sts/web", "--revision=2")
    before = workloads.pods("web")
    workloads.kubectl("rollout", "undo", "sts/web")
    for pod in reversed(before):
        workloads.set_ready([wait_new(workloads, pod)])
    workloads.wait_status(
        "statefulsets", "web", currentRevision=first, updateRevision=first, updatedReplicas=3
    )
    assert images(workloads) == ["busybox"] * 3
    assert revisions(workloads) == {2: second, 3: first}


def test_pods_before_the_partition_keep_their_revision(workloads: WorkloadCluster) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}
    stateful_set(workloads, 2, updateStrategy=strategy)
    wait_ready(workloads, "web-0", "web-1")
    workloads.wait_status("statefulsets", "web", readyReplicas=2)
    zero, one = workloads.pods("web")
    change_template(workloads, "busybox:2")
    workloads.set_ready([wait_new(workloads, one)])
    workloads.wait_status("statefulsets", "web", updatedReplicas=1, currentReplicas=1, readyReplicas=2)
    workloads.delete("pods", "web-0")
    wait_ready(workloads, wait_new(workloads, zero)["metadata"]["name"])
    assert images(workloads) == ["busybox", "busybox:2"]
    change(workloads, updateStrategy={"rollingUpdate": {"partition": 0}})
    workloads.eventually(lambda: images(workloads) == ["busybox:2"] * 2, "the update to go on")


def test_as_many_pods_are_replaced_at_once_as_may_be_missing(workloads: WorkloadCluster) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}}
    owner = stateful_set(workloads, 3, podManagementPolicy="Parallel", updateStrategy=strategy)
    kept = owner["spec"]["updateStrategy"]["rollingUpdate"].get("maxUnavailable", 1)
    before = wait_exactly(workloads, "web-0", "web-1", "web-2")
    workloads.set_ready(before)
    workloads.wait_status("statefulsets", "web", readyReplicas=3)
    change_template(workloads, "busybox:2")
    for pod in before[3 - kept :]:
        wait_new(workloads, pod)
    workloads.wait_status("statefulsets", "web", updatedReplicas=kept, readyReplicas=3 - kept)
    assert images(workloads).count("busybox:2") == kept


def test_a_pod_gets_its_identity_back(workloads: WorkloadCluster) -> None:
    stateful_set(workloads, 1)
    wait_ready(workloads, "web-0")
    workloads.wait_status("statefulsets", "web", readyReplicas=1)
    label = "statefulset.kubernetes.io/pod-name"
    workloads.patch("pods", "web-0", {"metadata": {"labels": {label: None}}})
    workloads.wait("pods", "web-0", lambda pod: label in pod["metadata"]["labels"], "the label to come back")
    text = "Update Pod web-0 in StatefulSet web successful"
    event = ("statefulset-controller", "SuccessfulUpdate", text)
    workloads.eventually(lambda: event in workloads.event_texts("web"), "an event on it")


def test_with_on_delete_a_pod_gets_its_revision_when_somebody_deletes_it(workloads: WorkloadCluster) -> None:
    stateful_set(workloads, 1, updateStrategy={"type": "OnDelete"})
    wait_ready(workloads, "web-0")
    workloads.wait_status("statefulsets", "web", readyReplicas=1)
    first = workloads.get("pods", "web-0")
    change_template(workloads, "busybox:2")
    workloads.wait_status(
        "statefulsets", "web", observedGeneration=2, updatedReplicas=None, currentReplicas=1
    )
    assert images(workloads) == ["busybox"]
    workloads.delete("pods", "web-0")
    wait_new(workloads, first)
    assert images(workloads) == ["busybox:2"]


def test_a_pod_of_a_broken_revision_stays_until_somebody_deletes_it(workloads: WorkloadCluster) -> None:
    stateful_set(workloads, 1)
    wait_ready(workloads, "web-0")
    workloads.wait_status("statefulsets", "web", readyReplicas=1)
    good = workloads.get("pods", "web-0")
    change_template(workloads, "broken")
    broken = wait_new(workloads, good)
    change_template(workloads, "busybox")
    workloads.wait_status("statefulsets", "web", observedGeneration=3)
    assert workloads.get("pods", "web-0")["metadata"]["uid"] == broken["metadata"]["uid"]
    workloads.delete("pods", "web-0")
    assert wait_new(workloads, broken)["spec"]["containers"][0]["image"] == "busybox"


def test_only_so_many_past_revisions_are_kept(workloads: WorkloadCluster) -> None:
    stateful_set(workloads, 0, revisionHistoryLimit=1)
    workloads.eventually(lambda: list(revisions(workloads)) == [1], "the first revision")
    for number in (2, 3, 4):
        change_template(workloads, f"busybox:{number}")
        workloads.eventually(lambda number=number: number in revisions(workloads), f"revision {number}")
    workloads.eventually(lambda: sorted(revisions(workloads)) == [3, 4], "the oldest to go")


def test_min_ready_seconds_hold_back_the_next_pod(workloads: WorkloadCluster) -> None:
    stateful_set(workloads, 2, minReadySeconds=3600)
    wait_ready(workloads, "web-0")
    workloads.wait_status("statefulsets", "web", readyReplicas=1, availableReplicas=0)
    [pod] = wait_exactly(workloads, "web-0")
    workloads.set_ready([pod], since=datetime.now(UTC) - timedelta(hours=2))
    workloads.wait_status("statefulsets", "web", readyReplicas=1, availableReplicas=1)
    wait_exactly(workloads, "web-0", "web-1")


def test_a_set_adopts_what_another_of_its_name_left(workloads: WorkloadCluster) -> None:
    stateful_set(workloads, 1)
    wait_ready(workloads, "web-0")
    workloads.wait_status("statefulsets", "web", readyReplicas=1)
    pod, before = workloads.get("pods", "web-0"), revisions(workloads)
    workloads.delete("statefulsets", "web", "Orphan")
    workloads.eventually(lambda: workloads.get("statefulsets", "web") is None, "the set to be gone")
    assert not controller_name(workloads.get("pods", "web-0"))
    workloads.plane.request(
        "POST",
        workloads.path("pods"),
        {**template(LABELS), "metadata": {"name": "other", "labels": LABELS}},
    )
    owner = stateful_set(workloads, 1)
    adopted = workloads.wait("pods", "web-0", controller_name, "the pod to be adopted")
    assert adopted["metadata"]["uid"] == pod["metadata"]["uid"]
    assert adopted["metadata"]["ownerReferences"][0]["uid"] == owner["metadata"]["uid"]
    workloads.wait_status("statefulsets", "web", replicas=1, updatedReplicas=1, readyReplicas=1)
    assert revisions(workloads) == before
    assert not controller_name(workloads.get("pods", "other"))


def owners(cluster: WorkloadCluster, claim: str) -> list[tuple[str, str]]:
    item = cluster.get("persistentvolumeclaims", claim)
    references = item["metadata"].get("ownerReferences") or ()
    return [(reference["kind"], reference["name"]) for reference in references if reference["controller"]]


def test_claims_go_with_the_set_or_with_their_pods_if_the_policy_says_so(workloads: WorkloadCluster) -> None:
    both = {"whenDeleted": "Delete", "whenScaled": "Delete"}
    stateful_set(workloads, 2, volumeClaimTemplates=[CLAIM], persistentVolumeClaimRetentionPolicy=both)
    wait_ready(workloads, "web-0", "web-1")
    ours = [("StatefulSet", "web")]
    for claim in ("data-web-0", "data-web-1"):
        workloads.eventually(lambda claim=claim: owners(workloads, claim) == ours, "the set to own the claim")
    change(workloads, persistentVolumeClaimRetentionPolicy={"whenDeleted": "Retain"})
    for claim in ("data-web-0", "data-web-1"):
        workloads.eventually(lambda claim=claim: not owners(workloads, claim), "the claim to have no owner")
    workloads.patch("pods", "web-1", {"metadata": {"finalizers": ["example.com/hold"]}})
    change(workloads, replicas=1)
    theirs = [("Pod", "web-1")]
    workloads.eventually(lambda: owners(workloads, "data-web-1") == theirs, "the pod to own the claim")
    assert not owners(workloads, "data-web-0")
    workloads.patch("pods", "web-1", {"metadata": {"finalizers": None}})


def test_a_claim_that_is_there_is_used_and_one_that_goes_is_waited_for(workloads: WorkloadCluster) -> None:
    spec = {**CLAIM["spec"], "resources": {"requests": {"storage": "5Gi"}}}
    kept = {"finalizers": ["example.com/hold"]}
    workloads.create("persistentvolumeclaims", "data-web-0", spec, **kept)
    workloads.delete("persistentvolumeclaims", "data-web-0")
    stateful_set(workloads, 1, volumeClaimTemplates=[CLAIM])
    failure = "Create Pod web-0 in StatefulSet web failed error: pvc data-web-0 is being deleted"
    event = ("statefulset-controller", "FailedCreate", failure)
    workloads.eventually(lambda: event in workloads.event_texts("web"), "an event on the claim")
    workloads.patch("persistentvolumeclaims", "data-web-0", {"metadata": {"finalizers": None}})
    wait_exactly(workloads, "web-0")
    workloads.create("persistentvolumeclaims", "data-web-1", spec)
    change(workloads, replicas=2)
    wait_ready(workloads, "web-0", "web-1")
    used = workloads.get("persistentvolumeclaims", "data-web-1")
    assert used["spec"]["resources"]["requests"]["storage"] == "5Gi"


def test_pods_and_revisions_go_with_their_set(workloads: WorkloadCluster) -> None:
    stateful_set(workloads, 1)
    wait_exactly(workloads, "web-0")
    workloads.delete("statefulsets", "web")
    workloads.eventually(
        lambda: not workloads.list("pods") and not workloads.list("controllerrevisions"), "all to be deleted"
    )


def test_most_of_a_set_and_the_data_of_a_revision_cannot_be_changed(workloads: WorkloadCluster) -> None:
    stateful_set(workloads, 0, volumeClaimTemplates=[CLAIM])
    workloads.eventually(lambda: revisions(workloads), "the first revision")
    changeable = (
        "'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', "
        "'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds'"
    )
    text = f"spec: Forbidden: updates to statefulset spec for fields other than {changeable} are forbidden"
    for spec in ({"serviceName": "other"}, {"volumeClaimTemplates": []}):
        assert text in refusal(workloads, "statefulsets", "web", {"spec": spec})
    change(workloads, minReadySeconds=1, revisionHistoryLimit=2, ordinals={"start": 4})
    strategy = {"type": "OnDelete", "rollingUpdate": {"partition": 1}}
    text = "only allowed for updateStrategy 'RollingUpdate'"
    assert text in refusal(workloads, "statefulsets", "web", {"spec": {"updateStrategy": strategy}})
    assert "data: Invalid value" in refusal(
        workloads, "controllerrevisions", revisions(workloads)[1], {"data": {"other": 1}}
    )


def refusal(cluster: WorkloadCluster, plural: str, name: str, change: Any) -> str:
    """What the server says to a change that it refuses."""
    with pytest.raises(urllib.error.HTTPError) as error:
        cluster.patch(plural, name, change)
    assert error.value.code == 422
    return str(json.loads(error.value.read())["message"])
