"""Volumes, claims and kinds of `storage.k8s.io`: the same on the real API server and on the embedded one."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from tests.kubernetes.controlplane import ControlPlane
from tests.kubernetes.servers import REAL, chosen
from tests.kubernetes.test_device_kinds import assert_refused
from tests.kubernetes.test_native_kinds import MERGE, answer
from tests.kubernetes.test_tables_and_rights import TABLE, get

Json = Any
STORAGE, CORE = "/apis/storage.k8s.io/v1", "/api/v1"
PATHS = {
    "PersistentVolume": f"{CORE}/persistentvolumes",
    "PersistentVolumeClaim": f"{CORE}/namespaces/default/persistentvolumeclaims",
    "StorageClass": f"{STORAGE}/storageclasses",
    "CSIDriver": f"{STORAGE}/csidrivers",
    "CSINode": f"{STORAGE}/csinodes",
    "CSIStorageCapacity": f"{STORAGE}/namespaces/default/csistoragecapacities",
    "VolumeAttachment": f"{STORAGE}/volumeattachments",
}
SUBDOMAIN = "a lowercase RFC 1123 subdomain must consist of"
_numbers = itertools.count()


def create(plane: ControlPlane, kind: str, content: Json, query: str = "?dryRun=All") -> tuple[int, Json]:
    version = "v1" if kind.startswith("Persistent") else "storage.k8s.io/v1"
    meta = {"name": f"storage-{next(_numbers)}"}
    return answer(
        plane,
        "POST",
        f"{PATHS[kind]}{query}",
        {"apiVersion": version, "kind": kind, "metadata": meta, **content},
    )


def created(plane: ControlPlane, kind: str, content: Json) -> Json:
    status, stored = create(plane, kind, content, "")
    assert status == 200, stored
    return stored


def change(plane: ControlPlane, content: Json, patch: Json, subresource: str = "") -> tuple[int, Json]:
    path = f"{PATHS[content['kind']]}/{content['metadata']['name']}{subresource}"
    return answer(plane, "PATCH", path, patch, MERGE)


def volume(**spec: Json) -> Json:
    """Of a class that no claim has: the two are never bound by themselves."""
    base = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "volumes"}
    return {"spec": {**base, **spec}}


def claim(size: str = "1Gi", **spec: Json) -> Json:
    base = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": size}},
        "storageClassName": "claims",
    }
    return {"spec": {**base, **spec}}


HOST = {"hostPath": {"path": "/x"}}
REFUSED = [
    ("StorageClass", {"provisioner": "a b"}, [("provisioner", "name part must consist of")]),
    (
        "StorageClass",
        {"provisioner": "a/b", "reclaimPolicy": "Recycle", "parameters": {"": "x"}},
        [
            ("parameters", "field can not be empty."),
            ("reclaimPolicy", 'supported values: "Delete", "Retain"'),
        ],
    ),
    (
        "StorageClass",
        {
            "provisioner": "a/b",
            "allowedTopologies": 2 * [{"matchLabelExpressions": [{"key": "a", "values": ["x"]}]}],
        },
        [("allowedTopologies[1].matchLabelExpressions", "Duplicate value")],
    ),
    ("CSIDriver", {"spec": {"fsGroupPolicy": "Foo"}}, [("spec.fsGroupPolicy", "Unsupported value")]),
    (
        "CSIDriver",
        {"spec": {"tokenRequests": [{"audience": "a", "expirationSeconds": 5}, {"audience": "a"}]}},
        [
            ("spec.tokenRequests[0].expirationSeconds", "less than 10 minutes"),
            ("spec.tokenRequests[1].audience", "Duplicate value"),
        ],
    ),
    (
        "CSINode",
        {"spec": {"drivers": [{"name": "a b", "nodeID": "x", "allocatable": {"count": -1}}]}},
        [
            ("spec.drivers[0].allocatable.count", "must be greater than or equal to 0"),
            ("spec.drivers[0].name", SUBDOMAIN),
        ],
    ),
    (
        "CSIStorageCapacity",
        {"storageClassName": "x", "capacity": "-1"},
        [("capacity", "must be greater than or equal to 0")],
    ),
    (
        "VolumeAttachment",
        {"spec": {"attacher": "a.b", "nodeName": "n", "source": {}}},
        [("spec.source", "must specify exactly one of inlineVolumeSpec and persistentVolumeName")],
    ),
    (
        "PersistentVolume",
        volume(capacity={"storage": "0"}, accessModes=["ReadWriteOncePod", "ReadWriteOnce"]),
        [
            ("spec", "must specify a volume type"),
            ("spec.accessModes", "may not use ReadWriteOncePod with other access modes"),
            ("spec.capacity[storage]", "must be greater than zero"),
        ],
    ),
    (
        "PersistentVolume",
        volume(**HOST, nfs={"server": "a", "path": "/"}),
        [("spec.nfs", "may not specify more than 1 volume type")],
    ),
    (
        "PersistentVolume",
        volume(local={"path": "/x"}),
        [("spec.nodeAffinity", "Local volume requires node affinity")],
    ),
    (
        "PersistentVolume",
        volume(hostPath={"path": "/x/../y"}),
        [("spec.hostPath.path", "must not contain '..'")],
    ),
    (
        "PersistentVolumeClaim",
        {"spec": {}},
        [
            ("spec.accessModes", "at least 1 access mode is required"),
            ("spec.resources[storage]", "Required value"),
        ],
    ),
    (
        "PersistentVolumeClaim",
        claim("0", storageClassName="A B"),
        [("spec.resources[storage]", "must be greater than zero"), ("spec.storageClassName", SUBDOMAIN)],
    ),
]


@pytest.mark.parametrize(("kind", "content", "expected"), REFUSED)
def test_what_is_refused_is_told_field_by_field(
    plane: ControlPlane, kind: str, content: Json, expected: list[tuple[str, str]]
) -> None:
    assert_refused(*create(plane, kind, content), expected)


def test_a_driver_and_a_class_get_their_defaults(plane: ControlPlane) -> None:
    _, driver = create(plane, "CSIDriver", {"spec": {}})
    assert driver["spec"] == {
        "attachRequired": True,
        "fsGroupPolicy": "ReadWriteOnceWithFSType",
        "podInfoOnMount": False,
        "requiresRepublish": False,
        "seLinuxMount": False,
        "storageCapacity": False,
        "volumeLifecycleModes": ["Persistent"],
    }
    _, storage_class = create(plane, "StorageClass", {"provisioner": "a/b"})
    assert (storage_class["reclaimPolicy"], storage_class["volumeBindingMode"]) == ("Delete", "Immediate")
    assert create(plane, "CSINode", {"spec": {"drivers": []}})[0] == 200


@pytest.mark.smoke
def test_what_is_in_use_is_protected_by_finalizers(plane: ControlPlane) -> None:
    assert create(plane, "PersistentVolume", volume(**HOST))[1]["metadata"]["finalizers"] == [
        "kubernetes.io/pv-protection"
    ]
    assert create(plane, "PersistentVolumeClaim", claim())[1]["metadata"]["finalizers"] == [
        "kubernetes.io/pvc-protection"
    ]


FIXED = [
    ("StorageClass", {"provisioner": "a/b"}, {"reclaimPolicy": "Retain"}, "reclaimPolicy"),
    ("StorageClass", {"provisioner": "a/b"}, {"parameters": {"a": "b"}}, "parameters"),
    (
        "CSIDriver",
        {"spec": {"attachRequired": False}},
        {"spec": {"attachRequired": True}},
        "spec.attachedRequired",
    ),
    (
        "CSINode",
        {"spec": {"drivers": [{"name": "a.b", "nodeID": "x"}]}},
        {"spec": {"drivers": [{"name": "a.b", "nodeID": "y"}]}},
        "spec.drivers",
    ),
    ("CSIStorageCapacity", {"storageClassName": "x"}, {"storageClassName": "y"}, "storageClassName"),
    (
        "VolumeAttachment",
        {"spec": {"attacher": "a.b", "nodeName": "n", "source": {"persistentVolumeName": "x"}}},
        {"spec": {"nodeName": "m"}},
        "spec",
    ),
    (
        "PersistentVolume",
        volume(**HOST),
        {"spec": {"hostPath": {"path": "/y"}}},
        "spec.persistentvolumesource",
    ),
    ("PersistentVolumeClaim", claim(), {"spec": {"accessModes": ["ReadWriteMany"]}}, "spec"),
    ("PersistentVolumeClaim", claim(), {"spec": {"resources": {"requests": {"storage": "2Gi"}}}}, "spec"),
    ("PersistentVolumeClaim", claim(), {"spec": {"storageClassName": "other"}}, "spec"),
]


@pytest.mark.parametrize(("kind", "content", "patch", "field"), FIXED)
def test_what_may_not_change(plane: ControlPlane, kind: str, content: Json, patch: Json, field: str) -> None:
    assert_refused(*change(plane, created(plane, kind, content), patch), [(field, "immutable")])


def test_a_claim_gets_a_volume_and_grows_only_if_its_class_allows_it(plane: ControlPlane) -> None:
    content = created(plane, "PersistentVolumeClaim", claim())
    reference = {field: content["metadata"][field] for field in ("namespace", "name", "uid")}
    name = created(plane, "PersistentVolume", volume(**HOST, claimRef=reference))["metadata"]["name"]
    assert change(plane, content, {"spec": {"volumeName": name}})[0] == 200
    assert_refused(*change(plane, content, {"spec": {"volumeName": "w"}}), [("spec", "immutable")])
    same = {"resources": {"requests": {"storage": "1024Mi"}}}
    assert change(plane, content, {"spec": same})[0] == 200
    bound = {"status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}}
    assert change(plane, content, bound, "/status")[0] == 200
    larger = {"spec": {"resources": {"requests": {"storage": "2Gi"}}}}
    status, refusal = change(plane, content, larger)
    assert (status, "must support resize" in refusal["message"]) == (403, True)
    smaller = {"spec": {"resources": {"requests": {"storage": "1Mi"}}}}
    path = "spec.resources.requests.storage"
    assert_refused(*change(plane, content, smaller), [(path, "can not be less than status.capacity")])


def test_a_claim_without_a_class_gets_the_default_class(plane: ControlPlane) -> None:
    bare = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
    assert "storageClassName" not in create(plane, "PersistentVolumeClaim", bare)[1]["spec"]
    storage_class = created(plane, "StorageClass", {"provisioner": "a/b"})
    marked = {"metadata": {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}}
    assert change(plane, storage_class, marked)[0] == 200
    name = storage_class["metadata"]["name"]
    try:
        plane.wait(
            lambda: create(plane, "PersistentVolumeClaim", bare)[1]["spec"].get("storageClassName") == name,
            "the default class to be known",
        )
        none = create(plane, "PersistentVolumeClaim", claim(storageClassName=""))[1]
        assert none["spec"]["storageClassName"] == ""
    finally:
        answer(plane, "DELETE", f"{PATHS['StorageClass']}/{name}")


def test_what_is_not_in_use_can_be_deleted(plane: ControlPlane) -> None:
    if chosen() == REAL:
        pytest.skip("nobody removes finalizers without kube-controller-manager")
    for kind, content in (("PersistentVolume", volume(**HOST)), ("PersistentVolumeClaim", claim())):
        path = f"{PATHS[kind]}/{created(plane, kind, content)['metadata']['name']}"
        answer(plane, "DELETE", path)
        plane.wait(lambda path=path: answer(plane, "GET", path)[0] == 404, f"{path} to go", 30)  # type: ignore[misc]


COLUMNS = {
    "CSIDriver": (
        {"spec": {"tokenRequests": [{"audience": "a"}]}},
        [True, False, False, "a", False, "Persistent"],
    ),
    "VolumeAttachment": (
        {"spec": {"attacher": "a.b", "nodeName": "n", "source": {"persistentVolumeName": "x"}}},
        ["a.b", "x", "n", False],
    ),
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_kubectl_prints(plane: ControlPlane, kind: str) -> None:
    content, cells = COLUMNS[kind]
    name = created(plane, kind, content)["metadata"]["name"]
    printed = get(plane, f"{PATHS[kind]}/{name}", TABLE)["rows"][0]["cells"]
    assert printed[1 : 1 + len(cells)] == cells
