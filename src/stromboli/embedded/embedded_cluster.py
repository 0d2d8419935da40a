"""A whole cluster on one machine, in one process: the API server, nodes, the scheduler, controllers."""

from __future__ import annotations

import asyncio
import errno
import gc
import logging
import sys
from contextlib import AsyncExitStack
from pathlib import Path

from stromboli.admission.rules.rule_context import Settings
from stromboli.api import names
from stromboli.controllers.job.plugins.job_plugin_catalog import load_job_plugins
from stromboli.daemon.connection_limits import raise_descriptor_limit
from stromboli.embedded.cluster_services import SERVICES, Service, ServiceConfig, workloads
from stromboli.embedded.data_folder import DataFolder
from stromboli.embedded.http.api_server import ApiServer
from stromboli.embedded.running_clusters import KUBECONFIG
from stromboli.kube.cluster_access import find_access
from stromboli.policy.policy_file import PolicyFile

log = logging.getLogger(__name__)

GC_THRESHOLDS = (1_000, 2, 2_500)
"""Of Python's garbage collector: small steps, since nobody is served meanwhile. It counts new objects less those that
went, so where thousands of pods change there are many more in each step than the threshold says."""
SWITCH_INTERVAL = 0.001
"""Seconds for which a scheduling cycle holds the interpreter lock while a request waits."""


class ServiceFailed(Exception):
    """A service of the cluster ended."""


class EmbeddedCluster:
    """Runs between `async with` and its end; `wait_failed` raises if a service ends.

    async with EmbeddedCluster(folder, config) as cluster:
        ...  # cluster.url, cluster.kubeconfig
    """

    def __init__(
        self,
        folder: DataFolder,
        config: ServiceConfig,
        host: str = "127.0.0.1",
        port: int = 0,
        services: tuple[Service, ...] = SERVICES,
    ) -> None:
        self._folder = folder
        self._config = config
        self._host = host
        self._port = port
        self._services = services
        self._stack = AsyncExitStack()
        self._tasks: list[asyncio.Task[object]] = []

    async def __aenter__(self) -> EmbeddedCluster:
        sys.setswitchinterval(SWITCH_INTERVAL)
        raise_descriptor_limit()
        try:
            await self._start()
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def _start(self) -> None:
        config = self._config
        server = await self._serve()
        self.url = server.url
        self.kubeconfig: Path = server.write_kubeconfig(self._folder.path / KUBECONFIG)
        config.access = find_access(str(self.kubeconfig))
        config.data = self._folder.path
        for service in self._services:
            self._tasks.append(await self._stack.enter_async_context(service(config)))
        gc.set_threshold(*GC_THRESHOLDS)  # after the scheduler has set its own
        policy = config.policy
        name = str(policy.path.absolute()) if isinstance(policy, PolicyFile) else policy.source_name
        self._folder.announce(self.url, name)

    async def _serve(self) -> ApiServer:
        """On the requested port; if none was requested, on that of the last run if it is free."""
        settings = Settings(
            job_plugins=tuple(load_job_plugins(self._config.job_plugins_dir).known),
            queue_allocated_pods_check=True,
            scheduling_gates=self._config.scheduler.gate(names.QUEUE_ADMISSION, False),
        )
        for port in dict.fromkeys((self._port or self._folder.last_port, self._port)):
            server = ApiServer(
                self._folder.path,
                self._host,
                port,
                crds=True,
                storage_class=True,
                workloads=workloads in self._services,
                logs=self._config.logs,
                usage=self._config.usage,
                streams=self._config.streams,
                explanations=self._config.explanations,
                metrics=self._config.metrics,
                volcano_settings=settings,
            )
            try:
                return await self._stack.enter_async_context(server)
            except OSError as error:
                if port == self._port or error.errno != errno.EADDRINUSE:
                    raise
        raise AssertionError("one of the two")

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def wait_failed(self) -> None:
        """Wait for the first service that ends; `ServiceFailed` names it."""
        done, _ = await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
        task = done.pop()
        error = None if task.cancelled() else task.exception()
        raise ServiceFailed(f"{task.get_name()} gave up: {error or 'see the log'}") from error
