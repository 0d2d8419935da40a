"""What an earlier release stored is completed when a newer one first opens the folder."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from stromboli.embedded import time_slices
from stromboli.embedded.http.api_server import ApiServer
from stromboli.embedded.objects.former_objects import bring_up_to_date
from stromboli.embedded.store.records import Key

COUNT = 200


def test_a_folder_with_many_workloads_is_brought_up_to_date_while_others_are_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time_slices, "SLICE", 0)

    async def scenario() -> None:
        async with ApiServer(tmp_path, tls=False) as server:
            for number in range(COUNT):
                server.store.put(Key("deployments.apps", "default", f"d{number}"), deployment(f"d{number}"))
            await server.store.wait_committed()
            turns = 0

            async def others() -> None:
                nonlocal turns
                while True:
                    turns += 1
                    await asyncio.sleep(0)

            serving = asyncio.create_task(others())
            await bring_up_to_date(server.objects)
            serving.cancel()
            assert turns >= COUNT
            stored = server.store.get("deployments.apps", "default", f"d{COUNT - 1}")
            assert stored is not None
            assert stored.object()["spec"]["revisionHistoryLimit"] == 10

    asyncio.run(scenario())


def deployment(name: str) -> dict[str, object]:
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default", "generation": 1},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "main", "image": "none"}]},
            },
        },
    }
