"""`stromboli plan` with volumes and devices: claims are made as controllers do, and missing classes are told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

Run = Callable[..., Any]
EXAMPLES = Path(__file__).parents[2] / "examples"


def documents(file: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((EXAMPLES / file).read_text()))


@pytest.fixture
def plan(run: Run, tmp_path: Path) -> Callable[..., dict[str, Any]]:
    def plan(*objects: dict[str, Any]) -> dict[str, Any]:
        file = tmp_path / "objects.yaml"
        file.write_text(yaml.safe_dump_all(objects))
        return yaml.safe_load(run("plan", "-f", file, "--preset", "basic", "-o", "json").stdout)  # type: ignore[no-any-return]

    return plan


def test_ephemeral_volumes_get_their_claims_and_count_against_the_storage(
    plan: Callable[..., dict[str, Any]],
) -> None:
    result = plan(*documents("volumes/cluster.yaml"), *documents("volumes/sweep.yaml"))
    assert len(result["binds"]) == 3
    assert (
        "the most free storage of class network on one node is 20Gi"
        in result["pending"]["default/sweep"]["hint"]
    )


def test_an_ephemeral_volume_without_a_class_gets_the_default_one(
    plan: Callable[..., dict[str, Any]],
) -> None:
    cluster, (job,) = documents("volumes/cluster.yaml"), documents("volumes/sweep.yaml")
    (volume,) = job["spec"]["tasks"][0]["template"]["spec"]["volumes"]
    del volume["ephemeral"]["volumeClaimTemplate"]["spec"]["storageClassName"]
    assert not plan(*cluster, job)["binds"]
    (network,) = [each for each in cluster if each["metadata"]["name"] == "network"]
    network["metadata"]["annotations"] = {"storageclass.kubernetes.io/is-default-class": "true"}
    assert len(plan(*cluster, job)["binds"]) == 3


def test_classes_and_templates_that_are_not_there_are_told(plan: Callable[..., dict[str, Any]]) -> None:
    template, job = documents("devices/pairs.yaml")
    template["spec"]["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"] = "gpux"
    job["spec"]["tasks"][0]["template"]["spec"]["resourceClaims"][0]["resourceClaimTemplateName"] = "par"
    (claim,) = [each for each in documents("volumes/shards.yaml") if each["metadata"]["name"] == "shard-0"][
        :1
    ]
    claim["spec"]["storageClassName"] = "fast"
    told = plan(*documents("devices/cluster.yaml"), template, job, claim)["warnings"]
    assert told == [
        'StorageClass "fast" of PersistentVolumeClaim default/shard-0 is not among the objects',
        'DeviceClass "gpux" of ResourceClaimTemplate default/pair is not among the objects; did you mean "gpu"?',
        'ResourceClaimTemplate "default/par" of Pod default/pairs-worker-0, Pod default/pairs-worker-1 '
        'is not among the objects; did you mean "default/pair"?',
    ]


DEFAULT = {"storageclass.kubernetes.io/is-default-class": "true"}


def storage_class(name: str, **annotations: str) -> dict[str, Any]:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name, "annotations": annotations},
        "provisioner": "disks.example.com",
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def with_claim(**volume: Any) -> dict[str, Any]:
    task = {"name": "t", "replicas": 1, "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}}
    spec = {"minAvailable": 1, "schedulerName": "volcano", "tasks": [task]}
    volumes = [{"mountPath": "/data", **volume}]
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "j"},
        "spec": {**spec, "volumes": volumes},
    }


CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


@pytest.mark.parametrize("made_by_job", [True, False])
def test_claims_without_a_class_get_the_default_one(
    plan: Callable[..., dict[str, Any]], made_by_job: bool
) -> None:
    cluster = [each for each in documents("volumes/cluster.yaml") if each["kind"] in ("Node", "CSINode")]
    job = with_claim(volumeClaim=CLAIM) if made_by_job else with_claim(volumeClaimName="data")
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}, "spec": CLAIM}
    objects = [*cluster, job] if made_by_job else [*cluster, claim, job]
    assert not plan(*objects, storage_class("disks"))["binds"]
    assert plan(*objects, storage_class("disks", **DEFAULT))["binds"]


def test_a_claim_that_wants_no_class_gets_none(plan: Callable[..., dict[str, Any]]) -> None:
    job = with_claim(volumeClaim={**CLAIM, "storageClassName": ""})
    cluster = [each for each in documents("volumes/cluster.yaml") if each["kind"] in ("Node", "CSINode")]
    assert not plan(*cluster, job, storage_class("disks", **DEFAULT))["binds"]


def older(document: dict[str, Any]) -> dict[str, Any]:
    """A manifest of resource.k8s.io/v1 as it was in v1beta1."""
    if not document["apiVersion"].startswith("resource.k8s.io/"):
        return document
    document["apiVersion"] = "resource.k8s.io/v1beta1"
    if document["kind"] == "ResourceSlice":
        devices = document["spec"]["devices"]
        document["spec"]["devices"] = [{"name": each.pop("name"), "basic": each} for each in devices]
    if document["kind"] == "ResourceClaimTemplate":
        requests = document["spec"]["spec"]["devices"]["requests"]
        requests[:] = [{"name": each["name"], **each["exactly"]} for each in requests]
    return document


def test_devices_in_the_version_before_are_read_as_what_they_are(
    plan: Callable[..., dict[str, Any]],
) -> None:
    objects = [*documents("devices/cluster.yaml"), *documents("devices/pairs.yaml")]
    binds = plan(*objects)["binds"]
    assert len(binds) == 2
    assert plan(*map(older, objects))["binds"] == binds
