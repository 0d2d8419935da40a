"""A whole cluster on one machine, in one process: the API server, nodes, the scheduler, controllers."""

from __future__ import annotations

import asyncio
import errno
import logging
import sys
from contextlib import AsyncExitStack
from pathlib import Path

from stromboli.admission.rules.rule_context import Settings
from stromboli.controllers.job.plugins.job_plugin_catalog import load_job_plugins
from stromboli.embedded.cluster_services import SERVICES, Place, Service
from stromboli.embedded.data_folder import KUBECONFIG, Folder
from stromboli.embedded.http.api_server import Server
from stromboli.kube.cluster_access import Access, find_access

log = logging.getLogger(__name__)

SWITCH = 0.001
"""Seconds for which a cycle keeps Python's lock while a request waits."""


class Broken(Exception):
    """A part of the cluster gave up."""


class Cluster:
    """Runs between `async with` and its end; `broken` returns if a part of it gives up.

    async with Cluster(folder, place_of) as cluster:
        ...  # cluster.url, cluster.kubeconfig
    """

    def __init__(
        self,
        folder: Folder,
        place: Place,
        host: str = "127.0.0.1",
        port: int = 0,
        services: tuple[Service, ...] = SERVICES,
    ) -> None:
        self._folder = folder
        self._place = place
        self._host = host
        self._port = port
        self._services = services
        self._stack = AsyncExitStack()
        self._tasks: list[asyncio.Task[object]] = []

    async def __aenter__(self) -> Cluster:
        sys.setswitchinterval(SWITCH)
        try:
            await self._start()
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def _start(self) -> None:
        place, stack = self._place, self._stack
        server = await self._serve()
        self.url = server.url
        self.kubeconfig: Path = server.kubeconfig(self._folder.path / KUBECONFIG)
        place.access = find_access(str(self.kubeconfig))
        place.data = self._folder.path
        for service in self._services:
            self._tasks.append(await stack.enter_async_context(service(place)))
        self._folder.announce(self.url)

    async def _serve(self) -> Server:
        """On the port that was asked for; else on that of the last time, if it is still free."""
        rules = Settings(job_plugins=tuple(load_job_plugins(self._place.job_plugins_dir).known))
        for port in dict.fromkeys((self._port or self._folder.last_port, self._port)):
            server = Server(
                self._folder.path, self._host, port, crds=True, logs=self._place.logs, rules=rules
            )
            try:
                return await self._stack.enter_async_context(server)
            except OSError as error:
                if port == self._port or error.errno != errno.EADDRINUSE:
                    raise
        raise AssertionError("one of the two")

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def broken(self) -> None:
        """Wait for the first part that gives up; `Broken` says which."""
        done, _ = await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
        task = done.pop()
        error = None if task.cancelled() else task.exception()
        raise Broken(f"{task.get_name()} gave up: {error or 'see the log'}") from error


NOWHERE = Access("https://127.0.0.1")
"""Until the server listens."""
