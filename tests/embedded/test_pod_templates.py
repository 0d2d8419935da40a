"""Pod templates inside Volcano's kinds: unknown fields are refused, told or dropped, as `fieldValidation` asks."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from tests.embedded.api_requests import running

JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"
CONTAINER = {"name": "main", "image": "busybox:1"}


def job(name: str, **pod: Any) -> dict[str, Any]:
    spec = {"containers": [{**CONTAINER, "resource": {"limits": {"cpu": 1}}}], **pod}
    tasks = [{"name": "worker", "replicas": 1, "template": {"spec": spec}}]
    version = "batch.volcano.sh/v1alpha1"
    return {"apiVersion": version, "kind": "Job", "metadata": {"name": name}, "spec": {"tasks": tasks}}


def test_a_misspelt_field_of_a_template_is_refused_or_dropped(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path, crds=True) as api:
            status, answer = await api.request(
                "POST", f"{JOBS}?fieldValidation=Strict", job("a", nodeSelecter={})
            )
            assert status == 400
            assert answer["message"] == (
                'Job in version "v1alpha1" cannot be handled as a Job: strict decoding error:'
                ' unknown field "spec.tasks[0].template.spec.containers[0].resource",'
                ' unknown field "spec.tasks[0].template.spec.nodeSelecter"'
            )
            for how in ("Warn", "Ignore"):
                made = await api.post(f"{JOBS}?fieldValidation={how}", job(how.lower(), nodeSelecter={}))
                assert made["spec"]["tasks"][0]["template"]["spec"] == {"containers": [CONTAINER]}
            status, answer = await api.request("POST", JOBS, job("b", nodeSelector=["gpu"]))
            assert status == 422
            assert (
                "spec.tasks[0].template.spec.nodeSelector in body must be of type object" in answer["message"]
            )

    asyncio.run(run())


def test_what_a_real_server_refuses_in_a_pod_is_refused(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as api:
            spec = {"containers": [CONTAINER], "tolerations": [{"key": "gpu", "operator": "Maybe"}]}
            body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": spec}
            status, answer = await api.request("POST", "/api/v1/namespaces/default/pods", body)
            assert status == 422
            assert 'spec.tolerations[0].operator: Unsupported value: "Maybe"' in answer["message"]

    asyncio.run(run())
