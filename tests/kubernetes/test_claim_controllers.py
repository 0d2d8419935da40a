"""Claims of volumes and devices, as kube-controller-manager and the embedded cluster look after them."""

from __future__ import annotations

import itertools
import json
import urllib.error
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.kubernetes.controlplane import ControlPlane
from tests.kubernetes.servers import REAL, chosen, control_plane
from tests.kubernetes.test_native_groups import GATES, OFFERED
from tests.kubernetes.test_native_kinds import MERGE, answer

Json = Any
BASES = {
    "Pod": "/api/v1/namespaces/default/pods",
    "Node": "/api/v1/nodes",
    "Service": "/api/v1/namespaces/default/services",
    "Endpoints": "/api/v1/namespaces/default/endpoints",
    "EndpointSlice": "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices",
    "PersistentVolume": "/api/v1/persistentvolumes",
    "PersistentVolumeClaim": "/api/v1/namespaces/default/persistentvolumeclaims",
    "StorageClass": "/apis/storage.k8s.io/v1/storageclasses",
    "ResourceClaim": "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims",
    "ResourceClaimTemplate": "/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates",
    "PodGroup": "/apis/scheduling.k8s.io/v1alpha2/namespaces/default/podgroups",
}
FINALIZER = "resource.kubernetes.io/delete-protection"
REQUESTS = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}}
RESULT = {"request": "gpu", "driver": "gpu.example.com", "pool": "p", "device": "d"}
_numbers = itertools.count()


@pytest.fixture(scope="module")
def plane(built: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    flags = {"api_server_flags": OFFERED, "controller_flags": (f"--feature-gates={GATES}",)}
    with control_plane(tmp_path_factory.mktemp("claims"), **(flags if chosen() == REAL else {})) as running:
        if chosen() == REAL:
            running.start("kube-controller-manager")
        yield running


def name_it(prefix: str = "it") -> str:
    return f"{prefix}-{next(_numbers)}"


def create(plane: ControlPlane, kind: str, content: Json, name: str = "", **meta: Json) -> Json:
    base = BASES[kind]
    version = base.split("/namespaces")[0] if "/namespaces" in base else base.rpartition("/")[0]
    body = {
        "apiVersion": version.removeprefix("/apis/").removeprefix("/api/"),
        "kind": kind,
        "metadata": {"name": name or name_it(), **meta},
        **content,
    }
    status, stored = answer(plane, "POST", base, body)
    assert status == 200, stored
    return stored


def read(plane: ControlPlane, content: Json) -> Json:
    return json.loads(plane.request("GET", path_of(content)))


def path_of(content: Json) -> str:
    return f"{BASES[content['kind']]}/{content['metadata']['name']}"


def patch(plane: ControlPlane, content: Json, change: Json, subresource: str = "") -> Json:
    status, stored = answer(plane, "PATCH", f"{path_of(content)}{subresource}", change, MERGE)
    assert status == 200, stored
    return stored


def wait(plane: ControlPlane, content: Json, condition: Callable[[Json], object], what: str) -> Json:
    """The object, once a condition holds for it."""
    last: list[Json] = [None]

    def holds() -> bool:
        last[0] = read(plane, content)
        return bool(condition(last[0]))

    plane.wait(holds, what, 60)
    return last[0]


def wait_gone(plane: ControlPlane, content: Json) -> None:
    def gone() -> bool:
        try:
            return bool(read(plane, content)["metadata"]["uid"] != content["metadata"]["uid"])
        except urllib.error.HTTPError as error:
            return error.code == 404

    plane.wait(gone, f"{content['metadata']['name']} to go", 60)


def delete(plane: ControlPlane, content: Json) -> None:
    assert answer(plane, "DELETE", f"{path_of(content)}?gracePeriodSeconds=0")[0] == 200


def volume(plane: ControlPlane, storage_class: str, size: str = "1Gi", **spec: Json) -> Json:
    base = {
        "capacity": {"storage": size},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": storage_class,
        "hostPath": {"path": "/nowhere"},
    }
    return create(plane, "PersistentVolume", {"spec": {**base, **spec}})


def claim(plane: ControlPlane, storage_class: str, size: str = "1Gi", **spec: Json) -> Json:
    base = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": storage_class,
        "resources": {"requests": {"storage": size}},
    }
    return create(plane, "PersistentVolumeClaim", {"spec": {**base, **spec}})


def phase_is(phase: str) -> Callable[[Json], bool]:
    return lambda content: (content.get("status") or {}).get("phase") == phase


def waiting_class(plane: ControlPlane, provisioner: str = "kubernetes.io/no-provisioner") -> str:
    content = {"provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer"}
    return str(create(plane, "StorageClass", content)["metadata"]["name"])


def pod(plane: ControlPlane, name: str = "", **spec: Json) -> Json:
    base = {"containers": [{"name": "main", "image": "busybox"}], "schedulerName": "nobody"}
    return create(plane, "Pod", {"spec": {**base, **spec}}, name)


# -- volumes


@pytest.mark.smoke
def test_a_claim_gets_the_smallest_volume_that_serves_it(plane: ControlPlane) -> None:
    storage_class = name_it("static")
    volumes = [volume(plane, storage_class, size) for size in ("8Gi", "1Gi", "4Gi", "2Gi")]
    for each in volumes:
        wait(plane, each, phase_is("Available"), "a new volume to be available")
    bound = wait(plane, claim(plane, storage_class, "2Gi"), phase_is("Bound"), "the claim to be bound")
    chosen_volume = read(plane, volumes[3])
    assert bound["spec"]["volumeName"] == chosen_volume["metadata"]["name"]
    assert bound["status"]["capacity"] == {"storage": "2Gi"}
    assert bound["status"]["accessModes"] == ["ReadWriteOnce"]
    assert bound["metadata"]["annotations"] == {
        "pv.kubernetes.io/bind-completed": "yes",
        "pv.kubernetes.io/bound-by-controller": "yes",
    }
    assert chosen_volume["spec"]["claimRef"]["uid"] == bound["metadata"]["uid"]
    assert chosen_volume["metadata"]["annotations"] == {"pv.kubernetes.io/bound-by-controller": "yes"}
    wait(plane, volumes[3], phase_is("Bound"), "the volume to be bound")


def test_a_volume_of_a_deleted_claim_is_released_and_kept(plane: ControlPlane) -> None:
    storage_class = name_it("static")
    kept = volume(plane, storage_class)
    bound = wait(plane, claim(plane, storage_class), phase_is("Bound"), "the claim to be bound")
    delete(plane, bound)
    wait_gone(plane, bound)
    released = wait(plane, kept, phase_is("Released"), "the volume to be released")
    assert released["spec"]["claimRef"]["uid"] == bound["metadata"]["uid"]


def test_a_claim_that_loses_its_volume_is_lost(plane: ControlPlane) -> None:
    storage_class = name_it("static")
    only = volume(plane, storage_class)
    bound = wait(plane, claim(plane, storage_class), phase_is("Bound"), "the claim to be bound")
    delete(plane, only)  # which a finalizer holds back, until somebody takes it off
    patch(plane, only, {"metadata": {"finalizers": None}})
    wait(plane, bound, phase_is("Lost"), "the claim to be lost")


def test_a_delayed_claim_waits_for_its_scheduler_who_sets_a_volume_aside(plane: ControlPlane) -> None:
    storage_class = waiting_class(plane)
    chosen_volume = wait(plane, volume(plane, storage_class), phase_is("Available"), "a free volume")
    waiting = claim(plane, storage_class)
    settled = wait(plane, claim(plane, name_it("none")), phase_is("Pending"), "another claim to be looked at")
    assert read(plane, waiting)["status"]["phase"] == settled["status"]["phase"] == "Pending"
    meta = waiting["metadata"]
    reference = {"kind": "PersistentVolumeClaim", "apiVersion": "v1", "namespace": "default"}
    patch(
        plane,
        chosen_volume,
        {
            "spec": {"claimRef": {**reference, "name": meta["name"], "uid": meta["uid"]}},
            "metadata": {"annotations": {"pv.kubernetes.io/bound-by-controller": "yes"}},
        },
    )
    bound = wait(plane, waiting, phase_is("Bound"), "what the scheduler began to be completed")
    assert bound["spec"]["volumeName"] == chosen_volume["metadata"]["name"]


def test_a_claim_of_somebody_elses_class_names_who_must_make_its_volume(plane: ControlPlane) -> None:
    waiting = claim(plane, waiting_class(plane, "csi.example.com"))
    patch(plane, waiting, {"metadata": {"annotations": {"volume.kubernetes.io/selected-node": "n1"}}})
    told = wait(
        plane,
        waiting,
        lambda content: "volume.kubernetes.io/storage-provisioner" in content["metadata"]["annotations"],
        "the provisioner to be asked",
    )
    provisioner = told["metadata"]["annotations"]["volume.kubernetes.io/storage-provisioner"]
    assert provisioner == "csi.example.com"


def test_an_ephemeral_volume_has_a_claim_that_its_pod_owns(plane: ControlPlane) -> None:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": name_it("none"),
        "resources": {"requests": {"storage": "1Gi"}},
    }
    template = {"metadata": {"labels": {"app": "x"}}, "spec": spec}
    user = pod(plane, volumes=[{"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}])
    made = {
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": f"{user['metadata']['name']}-scratch"},
    }
    plane.wait(lambda: answer(plane, "GET", path_of(made))[0] == 200, "the claim to be made", 60)
    content = read(plane, made)
    (owner,) = content["metadata"]["ownerReferences"]
    assert (owner["uid"], owner["controller"]) == (user["metadata"]["uid"], True)
    assert content["metadata"]["labels"] == {"app": "x"}


# -- devices


def template(plane: ControlPlane) -> str:
    meta = {"labels": {"app": "x"}, "annotations": {"note": "y"}}
    made = create(plane, "ResourceClaimTemplate", {"spec": {"metadata": meta, "spec": REQUESTS}})
    return str(made["metadata"]["name"])


def has_claims(content: Json) -> bool:
    return bool((content.get("status") or {}).get("resourceClaimStatuses"))


def claim_of(plane: ControlPlane, owner: Json) -> Json:
    (status,) = owner["status"]["resourceClaimStatuses"]
    assert status["name"] == "dev"
    return read(plane, {"kind": "ResourceClaim", "metadata": {"name": status["resourceClaimName"]}})


def allocate(plane: ControlPlane, content: Json, *users: Json) -> Json:
    """What a scheduler does."""
    finalizers = {"metadata": {"finalizers": [FINALIZER]}}
    patch(plane, content, finalizers)
    reserved = [
        {"resource": "pods", "name": user["metadata"]["name"], "uid": user["metadata"]["uid"]}
        for user in users
    ]
    status = {"allocation": {"devices": {"results": [RESULT]}}, "reservedFor": reserved}
    return patch(plane, content, {"status": status}, "/status")


def test_a_pod_gets_a_claim_from_a_template_and_its_end_frees_the_devices(plane: ControlPlane) -> None:
    user = pod(plane, resourceClaims=[{"name": "dev", "resourceClaimTemplateName": template(plane)}])
    user = wait(plane, user, has_claims, "the claim to be made")
    made = claim_of(plane, user)
    meta, name = made["metadata"], user["metadata"]["name"]
    assert meta["name"].startswith(f"{name}-dev-")
    assert meta["annotations"] == {"note": "y", "resource.kubernetes.io/pod-claim-name": "dev"}
    assert meta["labels"] == {"app": "x"}
    (owner,) = meta["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("Pod", user["metadata"]["uid"], True)
    assert made["spec"]["devices"]["requests"][0]["exactly"]["count"] == 1
    allocate(plane, made, user)
    patch(plane, user, {"status": {"phase": "Succeeded"}}, "/status")
    wait_gone(plane, made)


def test_a_shared_claim_is_free_when_its_last_pod_has_ended(plane: ControlPlane) -> None:
    shared = create(plane, "ResourceClaim", {"spec": REQUESTS})
    entry = [{"name": "dev", "resourceClaimName": shared["metadata"]["name"]}]
    first, second = pod(plane, resourceClaims=entry), pod(plane, resourceClaims=entry)
    allocate(plane, shared, first, second)
    delete(plane, first)
    left = wait(
        plane,
        shared,
        lambda content: len(content["status"].get("reservedFor") or ()) == 1,
        "the deleted pod to be removed",
    )
    assert left["status"]["reservedFor"][0]["uid"] == second["metadata"]["uid"]
    assert "allocation" in left["status"]
    patch(plane, second, {"status": {"phase": "Failed"}}, "/status")
    free = wait(
        plane, shared, lambda content: not content["metadata"].get("finalizers"), "the claim to be freed"
    )
    assert free.get("status") in (None, {})


def test_a_claim_whose_template_comes_late_is_made_then(plane: ControlPlane) -> None:
    name = name_it("late")
    user = pod(plane, resourceClaims=[{"name": "dev", "resourceClaimTemplateName": name}])
    create(plane, "ResourceClaimTemplate", {"spec": {"spec": REQUESTS}}, name)
    user = wait(plane, user, has_claims, "the claim to be made")
    assert claim_of(plane, user)["spec"]["devices"]["requests"][0]["name"] == "gpu"


def test_an_allocated_claim_that_is_deleted_goes_once_nobody_uses_it(plane: ControlPlane) -> None:
    shared = create(plane, "ResourceClaim", {"spec": REQUESTS})
    allocate(plane, shared)
    delete(plane, shared)
    wait_gone(plane, shared)


def test_pods_of_a_group_share_the_claim_of_the_group(plane: ControlPlane) -> None:
    entry = {"name": "dev", "resourceClaimTemplateName": template(plane)}
    group = create(
        plane,
        "PodGroup",
        {"spec": {"schedulingPolicy": {"gang": {"minCount": 2}}, "resourceClaims": [entry]}},
    )
    member = {"podGroupName": group["metadata"]["name"]}
    users = [pod(plane, resourceClaims=[entry], schedulingGroup=member) for _ in range(2)]
    group = wait(plane, group, has_claims, "the claim of the group to be made")
    made = claim_of(plane, group)
    (owner,) = made["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"]) == ("PodGroup", group["metadata"]["uid"])
    for user in users:
        shared = claim_of(plane, wait(plane, user, has_claims, "a pod to be told of the claim"))
        assert shared["metadata"]["uid"] == made["metadata"]["uid"]
