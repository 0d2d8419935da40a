"""CustomResourceDefinitions: what they take beyond Volcano's."""

from __future__ import annotations

from typing import Any

from stromboli.embedded.kinds.offline_schemas import OfflineSchemas


def job(**template: Any) -> dict[str, Any]:
    spec = {"containers": [{"name": "main", "image": "i", "resources": {"requests": {"cpu": 0.5}}}]}
    tasks = [{"replicas": 1, "template": {"spec": spec, **template}}]
    version = "batch.volcano.sh/v1alpha1"
    return {"apiVersion": version, "kind": "Job", "metadata": {"name": "x"}, "spec": {"tasks": tasks}}


def test_amounts_of_a_template_may_be_fractions() -> None:
    assert OfflineSchemas().validate(job()) == ([], [])


def test_a_template_as_kubectl_writes_it_is_taken() -> None:
    metadata = {"creationTimestamp": None, "labels": {"app": "x"}}
    assert OfflineSchemas().validate(job(metadata=metadata)) == ([], [])
