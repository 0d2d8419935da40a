"""The API server of an embedded cluster: starts, listens, and stops.

async with Server(folder) as server:
    server.kubeconfig(folder / "kubeconfig")
    ...  # server.url, server.ca, server.token
"""

from __future__ import annotations

import asyncio
import json
import secrets
import ssl
from contextlib import suppress
from pathlib import Path
from typing import Any

from aiohttp import web

from stromboli.admission.rules.rule_context import Settings
from stromboli.embedded.admission.admission_chain import Admission
from stromboli.embedded.admission.volcano_admission import VolcanoRules
from stromboli.embedded.auth.authorization import Access
from stromboli.embedded.auth.cluster_authority import Authority
from stromboli.embedded.auth.identity import Tokens
from stromboli.embedded.http.router import Handling
from stromboli.embedded.kinds.kind_registry import Registry
from stromboli.embedded.kube_controllers.controller_loop import Lifecycle
from stromboli.embedded.nodes.pod_logs import LogSource
from stromboli.embedded.objects.bootstrap_objects import bootstrap
from stromboli.embedded.objects.object_verbs import Objects
from stromboli.embedded.store.object_store import HISTORY, Store
from stromboli.embedded.store.watch_hub import Hub

LARGEST_BODY = 3 * 1024 * 1024
MOST_WATCHES = 2000
BOOKMARKS = 60.0
"""Seconds between bookmarks."""
GOODBYE = 1.0
"""Seconds that open requests are given when the server stops."""


class Server:
    """An API server on its data folder: running between `async with` and its end."""

    def __init__(
        self,
        data: Path,
        host: str = "127.0.0.1",
        port: int = 0,
        tls: bool = True,
        crds: bool = False,
        logs: LogSource | None = None,
        history: int = HISTORY,
        power_safe: bool = False,
        rules: Settings | None = None,
    ):
        """`port` 0 is any that is free; `crds` brings Volcano's kinds along; `power_safe` waits for the disk.

        With `rules`, Volcano's kinds are completed and checked as its webhooks would.
        """
        self.data = data
        self.logs = logs
        self._host = host
        self._port = port
        self._tls = tls
        self._crds = crds
        self._history = history
        self._power_safe = power_safe
        self._rules = rules
        self._runner: web.ServerRunner | None = None
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Server:
        self.data.mkdir(parents=True, exist_ok=True, mode=0o700)
        pki = self.data / "pki"
        self.authority = Authority(pki)
        self.token = _secret(pki / "token")
        self.store = Store(self.data / "objects.db", self._history, self._power_safe)
        registry = Registry()
        self.hub = Hub(MOST_WATCHES)
        access = Access(self.store)
        rules = VolcanoRules(self.store, self._rules) if self._rules is not None else None
        self.objects = Objects(self.store, registry, Admission(self.store, registry, access, rules))
        self.lifecycle = Lifecycle(self.objects)
        self.store.subscribe(self.lifecycle.heard)
        self.store.subscribe(self.hub.publish)
        tokens = Tokens(_secret(pki / "signing").encode(), self.token)
        self.handling = Handling(self.objects, self.hub, tokens, access, self.logs)
        try:
            await self._begin()
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def _begin(self) -> None:
        await bootstrap(self.objects, self._crds)
        self.lifecycle.learn()
        await self.lifecycle.catch_up()
        await self._listen()
        self._tasks = [
            asyncio.create_task(self._remind()),
            asyncio.create_task(self.lifecycle.run()),
        ]

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with suppress(asyncio.CancelledError):
                await task
        for watch in self.hub.all():
            watch.end()
        await self._hang_up()
        await self.objects.admission.webhooks.close()
        await self.store.close()

    async def _hang_up(self) -> None:
        """Finish what is being answered; connections that nobody uses are not waited for."""
        if self._runner is None:
            return
        open_ones = [one.transport for one in self._runner.server.connections] if self._runner.server else []
        await self._runner.cleanup()
        for transport in open_ones:
            if transport is not None:
                transport.abort()
        await asyncio.sleep(0)

    async def _listen(self) -> None:
        loop = asyncio.get_running_loop()

        def request(message: Any, payload: Any, protocol: Any, writer: Any, task: Any) -> web.BaseRequest:
            return web.BaseRequest(
                message, payload, protocol, writer, task, loop, client_max_size=LARGEST_BODY
            )

        self._runner = web.ServerRunner(
            web.Server(self.handling.handle, request_factory=request, access_log=None),
            handle_signals=False,
            shutdown_timeout=GOODBYE,
        )
        await self._runner.setup()
        context: ssl.SSLContext | None = self.authority.server((self._host,)) if self._tls else None
        site = web.TCPSite(self._runner, self._host, self._port, ssl_context=context, backlog=1024)
        await site.start()
        address = self._runner.addresses[0]
        host = "127.0.0.1" if self._host in ("0.0.0.0", "::") else self._host
        self.url = f"{'https' if self._tls else 'http'}://{f'[{host}]' if ':' in host else host}:{address[1]}"

    @property
    def ca(self) -> Path:
        return self.authority.file

    def kubeconfig(self, path: Path) -> Path:
        """Write how to reach this server as an administrator; readable by its owner alone."""
        path.unlink(missing_ok=True)
        path.touch(mode=0o600)
        path.write_text(json.dumps(self.config(), indent=2) + "\n")
        return path

    def config(self, token: str = "") -> dict[str, Any]:
        """A kubeconfig, for the administrator or for whoever has a token."""
        cluster = {"server": self.url}
        if self._tls:
            cluster["certificate-authority"] = str(self.ca.absolute())
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "stromboli",
            "contexts": [{"name": "stromboli", "context": {"cluster": "stromboli", "user": "admin"}}],
            "clusters": [{"name": "stromboli", "cluster": cluster}],
            "users": [{"name": "admin", "user": {"token": token or self.token}}],
        }

    async def _remind(self) -> None:
        while True:
            await asyncio.sleep(BOOKMARKS)
            self.hub.remind()
            self.lifecycle.expire()


def _secret(path: Path) -> str:
    """A secret that is made once."""
    if not path.exists():
        unfinished = path.with_suffix(".new")
        unfinished.unlink(missing_ok=True)
        unfinished.touch(mode=0o600)
        unfinished.write_text(secrets.token_hex(32))
        unfinished.rename(path)
    return path.read_text().strip()
