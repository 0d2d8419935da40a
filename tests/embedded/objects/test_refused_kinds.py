"""Kinds that have no controller are refused, with a remedy."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from stromboli.embedded.store.records import Key
from tests.embedded.api_requests import running

AUTOSCALERS = "/apis/autoscaling/{}/namespaces/default/horizontalpodautoscalers"
TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}


@pytest.mark.parametrize("version", ["v2", "v1", "v2beta2"])
def test_autoscalers_are_refused_in_every_version_with_a_remedy(tmp_path: Path, version: str) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as api:
            body = {
                "apiVersion": f"autoscaling/{version}",
                "kind": "HorizontalPodAutoscaler",
                "metadata": {"name": "web"},
                "spec": {"scaleTargetRef": TARGET, "maxReplicas": 3},
            }
            status, refusal = await api.request("POST", AUTOSCALERS.format(version), body)
            assert (status, refusal["reason"]) == (403, "Forbidden")
            assert "set the number of pods with `kubectl scale`" in refusal["message"]

    asyncio.run(scenario())


def test_autoscalers_of_old_data_can_be_read_and_deleted(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as api:
            content = {
                "apiVersion": "autoscaling/v2",
                "kind": "HorizontalPodAutoscaler",
                "metadata": {"name": "old", "namespace": "default", "uid": "u"},
                "spec": {"scaleTargetRef": TARGET, "maxReplicas": 3},
            }
            api.server.store.put(Key("horizontalpodautoscalers.autoscaling", "default", "old"), content)
            path = f"{AUTOSCALERS.format('v2')}/old"
            assert (await api.get(path))["spec"]["maxReplicas"] == 3
            await api.patch(path, {"metadata": {"labels": {"a": "b"}}})
            await api.delete(path)
            assert (await api.request("GET", path))[0] == 404

    asyncio.run(scenario())
