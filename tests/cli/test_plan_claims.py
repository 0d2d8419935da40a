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
        "the most that is left of class network for one node is 20Gi"
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
