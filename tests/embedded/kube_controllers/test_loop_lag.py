"""Controllers share the event loop with everybody: many objects at once must not hold it up."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from tests.embedded.api_requests import PODS, ApiCaller, pod, running
from tests.embedded.kube_controllers.test_controller_loop import eventually
from tests.embedded.kube_controllers.volumes.test_persistent_volumes import (
    CLAIMS,
    CLASSES,
    VOLUMES,
    claim,
    storage_class,
)
from tests.embedded.loop_lag import LoopLag

COUNT = 200


async def phases(api: ApiCaller, path: str) -> list[str]:
    return [item["status"]["phase"] for item in (await api.get(path))["items"]]


async def post_all(api: ApiCaller, path: str, contents: list[dict[str, Any]]) -> None:
    await asyncio.gather(*(api.post(path, content) for content in contents))


def volumes(claim_name: str) -> list[dict[str, Any]]:
    return [{"name": "data", "persistentVolumeClaim": {"claimName": claim_name}}]


def test_hundreds_of_claims_are_bound_used_and_deleted_while_others_are_served(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as api, LoopLag() as lag:
            await post_all(api, CLAIMS, [claim(f"c{number}", "late") for number in range(COUNT)])
            pods = [
                pod(f"p{number}", nodeName="n1", volumes=volumes(f"c{number}")) for number in range(COUNT)
            ]
            await post_all(api, PODS, pods)
            await api.post(CLASSES, storage_class("late"))

            async def bound() -> bool:
                return await phases(api, CLAIMS) == ["Bound"] * COUNT

            await eventually(bound, 60)
            assert (await api.request("DELETE", CLAIMS))[0] == 200
            assert len(await phases(api, CLAIMS)) == COUNT  # in use
            assert (await api.request("DELETE", f"{PODS}?gracePeriodSeconds=0"))[0] == 200

            async def gone() -> bool:
                return not await phases(api, CLAIMS) and not await phases(api, VOLUMES)

            await eventually(gone, 60)
        lag.check(f"{COUNT} claims")

    asyncio.run(scenario())
