"""A leader that tells of cycles and a policy as a test wants it, behind an API server that has a ConfigMap."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import msgspec
from aiohttp import web

from stromboli.cli.cluster.cluster_session import ClusterSession
from stromboli.cli.dashboard.pages.page_content import PageContent, Render, ViewRequest
from stromboli.cli.dashboard.viewers.viewer import Viewer
from stromboli.kube.api_client import Client
from stromboli.kube.cluster_access import Access
from stromboli.scheduler.explain.cycle_documents import CycleEntry, CycleList
from stromboli.scheduler.explain.policy_document import PolicyDocument

Result = TypeVar("Result")
CONFIG_MAP_PATH = "/api/v1/namespaces/volcano-system/configmaps/volcano-scheduler-configmap"


@dataclass
class TellingLeader:
    """What it tells, and what it was asked."""

    entries: list[CycleEntry] = field(default_factory=list)
    since: float = 100.0
    oldest: int = 1
    identity: str = "volcano-0_1"
    policy: PolicyDocument | None = None
    kept: str | None = None
    """The text of the ConfigMap."""
    refusal: str = ""
    """Why it tells nothing."""
    delay: float = 0.0
    asked: list[str] = field(default_factory=list)

    async def respond(self, request: web.Request) -> web.Response:
        self.asked.append(request.path_qs)
        await asyncio.sleep(self.delay)
        if request.path == CONFIG_MAP_PATH and self.kept is not None:
            return web.json_response({"metadata": {}, "data": {"volcano-scheduler.conf": self.kept}})
        if self.refusal and request.path.startswith("/explain/"):
            return _status(403, self.refusal)
        if request.path == "/explain/cycles":
            return _document(self._cycles(int(request.query.get("after", "0"))))
        if request.path == "/explain/policy" and self.policy is not None:
            return _document(self.policy)
        return _status(404, f"{request.path} not found")

    def _cycles(self, after: int) -> CycleList:
        newest = max((entry.last_number for entry in self.entries), default=0)
        told = [entry for entry in self.entries if after > newest or entry.last_number > after]
        told = [entry for entry in told if entry.number >= self.oldest]
        return CycleList(self.identity, self.since, self.oldest, newest, told)

    @asynccontextmanager
    async def viewer(self, *names: str) -> AsyncIterator[list[Viewer]]:
        """Viewers of a cluster that it leads."""
        app = web.Application()
        app.router.add_get("/{path:.*}", self.respond)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        try:
            async with Client(Access(f"http://127.0.0.1:{port}")) as client:
                session = ClusterSession(client, None, "default")
                yield [Viewer(name, name, session) for name in names or ("ann",)]
        finally:
            await runner.cleanup()

    def page(self, render: Render, request: ViewRequest) -> PageContent:
        """A page for somebody whom it tells."""

        async def rendering(viewers: list[Viewer]) -> PageContent:
            return await render(replace(request, viewer=viewers[0]))

        return self.run(rendering)

    def run(self, work: Callable[[list[Viewer]], Awaitable[Result]], *names: str) -> Result:
        async def running() -> Result:
            async with self.viewer(*names) as viewers:
                return await work(viewers)

        return asyncio.run(running())


def _document(content: Any) -> web.Response:
    return web.Response(body=msgspec.json.encode(content), content_type="application/json")


def _status(code: int, message: str) -> web.Response:
    return web.json_response({"kind": "Status", "code": code, "message": message}, status=code)
