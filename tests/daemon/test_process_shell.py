"""The lease of a process: held while it works, and released however the work ends."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from stromboli.daemon.common_options import ElectedOptions
from stromboli.daemon.process_shell import ElectedProcess
from stromboli.kube.cluster_access import Access
from stromboli.kube.request import ApiError, Request


class LeaseApi:
    """An API server that has one lease."""

    def __init__(self) -> None:
        self.lease: dict[str, Any] | None = None

    async def send(self, request: Request, timeout: float = 0) -> bytes:
        if request.method != "GET":
            assert request.body is not None
            self.lease = msgspec.json.decode(request.body)
        if self.lease is None:
            raise ApiError(404)
        return msgspec.json.encode(self.lease)

    @property
    def holder(self) -> str:
        return str(self.lease["spec"]["holderIdentity"]) if self.lease else ""


@dataclass
class Working(ElectedProcess[ElectedOptions]):
    """Works in one way or another, and notes who held the lease meanwhile."""

    api: LeaseApi
    raises: type[BaseException] | None
    holder: str = ""

    def __post_init__(self) -> None:
        super().__init__(ElectedOptions(leader_elect_resource_name="test"), Access("http://127.0.0.1:1"))

    async def _run(self, stack: AsyncExitStack) -> int:
        self._join_election(self.api)  # type: ignore[arg-type]
        return await self._lead(self._work)

    async def _work(self) -> int:
        self.holder = self.api.holder
        if self.raises is not None:
            raise self.raises("the work failed")
        return 0


@pytest.mark.parametrize("raises", [None, RuntimeError, OSError])
def test_the_lease_is_released_however_the_work_ends(raises: type[Exception] | None) -> None:
    async def story() -> Working:
        process = Working(LeaseApi(), raises)
        if raises is None:
            assert await process._run(AsyncExitStack()) == 0
        else:
            with pytest.raises(raises, match="the work failed"):
                await process._run(AsyncExitStack())
        return process

    process = asyncio.run(story())
    assert process.holder == process._identity
    assert process.api.holder == ""
