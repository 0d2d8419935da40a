"""The services beside the API server of an embedded cluster, which they know by its API alone.

To add one, write an async context manager that takes the `ServiceConfig`, starts the service, yields its task and stops
it in the end, and add it to `SERVICES`.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from stromboli.api import names
from stromboli.api.types.config_map import ConfigMap
from stromboli.api.types.meta import Object
from stromboli.controllers.hypernode.discovery_config import config_map_place
from stromboli.controllers.options import Options as ControllerOptions
from stromboli.controllers.runner import ControllerRunner
from stromboli.controllers.volcano_controllers import CONTROLLERS
from stromboli.controllers.workloads.workload_controllers import WORKLOAD_CONTROLLERS
from stromboli.embedded.data_files import DataError
from stromboli.embedded.http.explain_responses import ClusterExplanations
from stromboli.embedded.http.metrics_responses import ClusterMetrics
from stromboli.embedded.nodes.machine.gpu_locks import locks_folder
from stromboli.embedded.nodes.machine.machine_node import machine_nodes
from stromboli.embedded.nodes.node_network import (
    CONFIG_MAPS,
    NAMESPACES,
    configure_discovery,
    create_missing,
    has_racks,
    wait_until_discovered,
)
from stromboli.embedded.nodes.node_registration import register_nodes
from stromboli.embedded.nodes.node_service import NodeService
from stromboli.embedded.nodes.node_types import Content
from stromboli.embedded.nodes.pod_logs import PodLogs
from stromboli.embedded.nodes.pod_streams import PodStreams
from stromboli.embedded.nodes.real.process_runtime import ProcessRuntime
from stromboli.embedded.nodes.real.resources.cgroups import find_cgroups
from stromboli.embedded.nodes.simulated.pod_stages import StageDelays
from stromboli.embedded.nodes.usage.cluster_usage import ClusterUsage
from stromboli.embedded.nodes.write_queue import NODES, WriteQueue
from stromboli.engine.catalog import Catalog
from stromboli.kube.api_client import Client
from stromboli.kube.cluster_access import Access
from stromboli.kube.reflector import Reflector, UnusableObject, WatchScope
from stromboli.policy.policy import Policy
from stromboli.policy.policy_file import OverridablePolicy, PolicyFile
from stromboli.scheduler.introspection import Introspection
from stromboli.scheduler.options import Options
from stromboli.scheduler.replica import Replica
from stromboli.scheduler.scheduler_metrics import SchedulerMetrics

log = logging.getLogger(__name__)

SCHEDULER_NAMES = (names.SCHEDULER_NAME, names.OTHER_SCHEDULER_NAME)
"""Also Kubernetes' default name: there is no other scheduler here."""
SCHEDULER_CONFIG = f"ConfigMap {names.VOLCANO_NAMESPACE}/{names.SCHEDULER_CONFIG_MAP}"
"""While it exists, its policy is in force."""
SHUTDOWN_TIMEOUT = 5.0
"""Seconds for work in progress when a service stops."""


@dataclass(slots=True)
class ServiceConfig:
    """What services need to know."""

    nodes: list[Content]
    """Created if there are none yet, or if they were requested."""
    catalog: Catalog
    policy: Policy | PolicyFile
    """In force while Volcano's ConfigMap for the scheduler does not exist."""
    delays: StageDelays = field(default_factory=StageDelays)
    period: float = 1.0
    on_change: bool = True
    """Whether changes start scheduling cycles, or the period alone does."""
    nodes_requested: bool = False
    racks_requested: bool = False
    lenient_policy: bool = True
    """Whether unknown keys in the policy of that ConfigMap are warnings, not errors."""
    job_plugins_dir: Path | None = None
    scheduler: Options = field(default_factory=Options)
    """Flags of the scheduler that the cluster does not set itself, such as its shard."""
    controllers: ControllerOptions = field(default_factory=ControllerOptions)
    """Flags of the controllers that the cluster does not set itself."""
    logs: PodLogs = field(default_factory=PodLogs)
    usage: ClusterUsage = field(default_factory=ClusterUsage)
    streams: PodStreams = field(default_factory=PodStreams)
    explanations: ClusterExplanations = field(default_factory=ClusterExplanations)
    metrics: ClusterMetrics = field(default_factory=ClusterMetrics)
    access: Access = field(default_factory=lambda: Access("https://127.0.0.1"))
    """With `data`, set by the cluster once its server listens."""
    data: Path = Path()


Service = Callable[[ServiceConfig], AbstractAsyncContextManager["asyncio.Task[object]"]]


@asynccontextmanager
async def nodes(config: ServiceConfig) -> AsyncIterator[asyncio.Task[object]]:
    """Nodes that run pods, or simulate that."""
    async with Client(config.access) as client:

        def real(writes: WriteQueue) -> ProcessRuntime:
            return ProcessRuntime(
                client,
                writes,
                config.data / "work",
                find_cgroups=find_cgroups,
                gpu_locks=locks_folder(),
            )

        service = NodeService(client, config.delays, real)
        limit = 0 if config.nodes_requested else 1  # 0 are all
        existing = msgspec.json.decode(await client.list(NODES, limit=limit)).get("items") or []
        if config.nodes_requested or not existing:
            await register_nodes(client, machine_nodes(config.nodes, existing), existing)
        elif config.racks_requested:
            raise DataError(f"--racks: {config.data} has nodes already; say with --nodes which are in them")
        config.logs.connect(service)
        config.usage.connect(service)
        config.streams.connect(service.find)
        async with _task(service.run(), "nodes") as task:
            await _wait_ready(service.synced(), task)
            yield task


@asynccontextmanager
async def scheduler(config: ServiceConfig) -> AsyncIterator[asyncio.Task[object]]:
    """The scheduler as on any cluster, without leader election."""
    options = replace(
        config.scheduler,
        leader_elect=False,
        scheduler_name=SCHEDULER_NAMES,
        schedule_period=config.period,
        schedule_on_change=config.on_change,
        shutdown_timeout=SHUTDOWN_TIMEOUT,
        enable_explain=True,
    )
    metrics = SchedulerMetrics()
    count = partial(metrics.request_sent, config.access.server.partition("://")[2])
    async with Client(config.access, count=count) as client:
        policy = OverridablePolicy(
            config.policy,
            SCHEDULER_CONFIG,
            config.catalog,
            config.lenient_policy,
        )
        scope = WatchScope.of_one(names.VOLCANO_NAMESPACE, names.SCHEDULER_CONFIG_MAP)
        reflector = Reflector(client, CONFIG_MAPS, ConfigMap, _PolicySink(policy), scope=scope)
        replica = Replica(options, client, "embedded", lambda: math.inf, config.catalog, policy, metrics)
        await create_missing(client, NAMESPACES, {"metadata": {"name": names.VOLCANO_NAMESPACE}})
        async with _task(reflector.run(), "policy") as following, replica:
            await _wait_ready(reflector.synced.wait(), following)
            if policy.override:
                log.warning("%s takes precedence over %s", SCHEDULER_CONFIG, policy.source_name)
            await replica.prepare()
            async with _task(replica.lead(), "scheduler", replica.stop) as task:
                if replica.explanations is not None:
                    config.explanations.connect(replica.explanations.answer, replica.record)
                config.metrics.connect(Introspection(options, client, replica, None, metrics).metrics)
                yield task


class _PolicySink:
    """Puts the policy of Volcano's ConfigMap for the scheduler in force, from the next cycle on."""

    def __init__(self, policy: OverridablePolicy) -> None:
        self._policy = policy

    def put(self, item: Object, new: bool) -> None:
        assert isinstance(item, ConfigMap)
        text = item.data.get(names.SCHEDULER_CONFIG_KEY, "")
        self._policy.override = text if text.strip() else ""
        if not text.strip():
            found = ", ".join(sorted(item.data))[:200] or "none"
            log.warning(
                "%s is ignored: it has no policy in key %s (keys: %s)",
                SCHEDULER_CONFIG,
                names.SCHEDULER_CONFIG_KEY,
                found,
            )

    def drop(self, item: Object) -> None:
        self._policy.override = ""

    def unusable(self, problem: UnusableObject) -> None:
        log.warning("%s %s/%s: %s", problem.kind, problem.namespace, problem.name, problem.text)

    async def wait_for_room(self) -> None:
        await asyncio.sleep(0)


@asynccontextmanager
async def controllers(config: ServiceConfig) -> AsyncIterator[asyncio.Task[object]]:
    """Volcano's controllers, without leader election."""
    async with Client(config.access) as client:
        options = replace(
            config.controllers,
            leader_elect=False,
            scheduler_name=SCHEDULER_NAMES,
            shutdown_timeout=SHUTDOWN_TIMEOUT,
            plugins_dir=config.job_plugins_dir,
        )
        racks, place = has_racks(config.nodes), config_map_place(os.environ)
        if racks:
            await configure_discovery(client, *place)
        runner = ControllerRunner(client, CONTROLLERS, options)
        async with _task(runner.run(), "controllers", runner.stop) as task:
            if racks:
                await _wait_ready(wait_until_discovered(client, *place), task)
            yield task


@asynccontextmanager
async def workloads(config: ServiceConfig) -> AsyncIterator[asyncio.Task[object]]:
    """The controllers of Kubernetes' workloads, which are Kubernetes' own elsewhere."""
    async with Client(config.access) as client:
        options = ControllerOptions(leader_elect=False, shutdown_timeout=SHUTDOWN_TIMEOUT)
        runner = ControllerRunner(client, WORKLOAD_CONTROLLERS, options)
        async with _task(runner.run(), "workloads", runner.stop) as task:
            yield task


SERVICES: tuple[Service, ...] = (nodes, scheduler, controllers, workloads)
"""In the order in which they start; they stop in the opposite one."""


@asynccontextmanager
async def _task(
    work: Coroutine[Any, Any, object], name: str, stop: Callable[[], object] | None = None
) -> AsyncIterator[asyncio.Task[object]]:
    """A task that ends with the context: `stop` asks it to, and it is cancelled if that takes too long."""
    task: asyncio.Task[object] = asyncio.create_task(work, name=name)
    try:
        yield task
    finally:
        if stop is not None:
            stop()
            await asyncio.wait({task}, timeout=2 * SHUTDOWN_TIMEOUT)
        task.cancel()
        with suppress(asyncio.CancelledError, Exception):  # its error was logged where it occurred
            await task


async def _wait_ready(ready: Coroutine[Any, Any, object], task: asyncio.Task[object]) -> None:
    """Wait until a service is ready; its error if it fails before."""
    waiting = asyncio.create_task(ready)
    await asyncio.wait({waiting, task}, return_when=asyncio.FIRST_COMPLETED)
    if task.done():
        waiting.cancel()
        task.result()
