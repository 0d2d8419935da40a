"""Claims of generic ephemeral volumes; what Kubernetes does too is tested with its own controllers as well."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from stromboli.controllers import reconciler
from tests.embedded.api_requests import PODS, ApiCaller, pod, running
from tests.embedded.kube_controllers.test_controller_loop import eventually, names
from tests.embedded.kube_controllers.volumes.test_persistent_volumes import CLAIMS, claim

QUOTAS = "/api/v1/namespaces/default/resourcequotas"
TEMPLATES = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates"
DEVICE_CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
REQUESTS = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}}
DEVICES, VOLUMES = "count/resourceclaims.resource.k8s.io", "persistentvolumeclaims"


def test_claims_that_a_quota_refuses_are_made_when_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of volumes and of devices: what is refused of one does not hold up the other."""
    monkeypatch.setattr(reconciler, "REFUSAL_PAUSE", 0.05)
    template = {"volumeClaimTemplate": {"spec": claim("any", "none")["spec"]}}

    async def scenario() -> None:
        async with running(tmp_path) as api:
            await api.post(TEMPLATES, {"metadata": {"name": "gpu"}, "spec": {"spec": REQUESTS}})
            for number, (refused, admitted) in enumerate(((DEVICES, CLAIMS), (VOLUMES, DEVICE_CLAIMS))):
                await api.post(QUOTAS, {"metadata": {"name": "none"}, "spec": {"hard": {refused: number}}})
                volumes = [{"name": "scratch", "ephemeral": template}]
                claims = [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]
                await api.post(PODS, pod(f"p{number}", volumes=volumes, resourceClaims=claims))
                await made(api, admitted, number + 1)
                await api.delete(f"{QUOTAS}/none")
                for path in (CLAIMS, DEVICE_CLAIMS):
                    await made(api, path, number + 1)

    asyncio.run(scenario())


def test_a_claim_that_is_deleted_is_made_again_for_its_pod(tmp_path: Path) -> None:
    template = {"volumeClaimTemplate": {"spec": claim("any", "none")["spec"]}}

    async def scenario() -> None:
        async with running(tmp_path) as api:
            await api.post(PODS, pod("p", volumes=[{"name": "scratch", "ephemeral": template}]))
            await made(api, CLAIMS, 1)
            before = (await api.get(f"{CLAIMS}/p-scratch"))["metadata"]["uid"]
            await api.delete(f"{CLAIMS}/p-scratch")

            async def is_another() -> bool:
                status, answer = await api.request("GET", f"{CLAIMS}/p-scratch")
                return status == 200 and answer["metadata"]["uid"] != before

            await eventually(is_another)

    asyncio.run(scenario())


async def made(api: ApiCaller, path: str, count: int) -> None:
    async def has_count() -> bool:
        return len(await names(api, path)) == count

    await eventually(has_count, 20)
