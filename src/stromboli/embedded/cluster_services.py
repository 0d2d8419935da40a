"""What runs beside the API server of an embedded cluster. Each knows it by its API alone.

To add one, write an async context manager that takes the `Place`, starts it, gives its task, and stops it in the end,
and put it into `SERVICES`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from stromboli.api import names
from stromboli.controllers.options import Options as ControllerOptions
from stromboli.controllers.runner import ControllerRunner
from stromboli.embedded.nodes.node_service import NodeService
from stromboli.embedded.nodes.node_types import Content
from stromboli.embedded.nodes.pod_logs import PodLogs
from stromboli.embedded.nodes.pod_stages import StageDelays
from stromboli.embedded.nodes.real.process_runtime import ProcessRuntime
from stromboli.embedded.nodes.write_queue import NODES, WriteQueue
from stromboli.engine.catalog import Catalog
from stromboli.kube.api_client import Client
from stromboli.kube.cluster_access import Access
from stromboli.policy.policy import Policy
from stromboli.policy.policy_file import PolicyFile
from stromboli.scheduler.cycle_metrics import Measuring
from stromboli.scheduler.default_queues import ensure_queues
from stromboli.scheduler.options import Options
from stromboli.scheduler.replica import Duty, in_step
from stromboli.scheduler.scheduler_metrics import Metrics

log = logging.getLogger(__name__)

OURS = (names.SCHEDULER_NAME, names.OTHER_SCHEDULER_NAME)
"""Whose pods are scheduled: there is no other scheduler here, so those that name none are ours, too."""
PARTING = 5.0
"""Seconds for what is under way when a service is to stop."""


@dataclass(slots=True)
class Place:
    """What services are given."""

    access: Access
    data: Path
    nodes: list[Content]
    """To be made if there are none yet, or if somebody asked for them."""
    catalog: Catalog
    policy: Policy | PolicyFile
    delays: StageDelays = field(default_factory=StageDelays)
    period: float = 1.0
    asked_for: bool = False
    """Whether the nodes were asked for."""
    job_plugins_dir: Path | None = None
    logs: PodLogs = field(default_factory=PodLogs)


Service = Callable[[Place], AbstractAsyncContextManager["asyncio.Task[object]"]]


@asynccontextmanager
async def nodes(place: Place) -> AsyncIterator[asyncio.Task[object]]:
    """Nodes that run pods, or pretend to."""
    async with Client(place.access) as client:

        def real(writes: WriteQueue) -> ProcessRuntime:
            return ProcessRuntime(client, writes, place.data / "work")

        ours = NodeService(client, place.delays, real)
        if place.asked_for or not await _any_nodes(client):
            await ours.register(place.nodes)
        place.logs.connect(ours)
        async with _task(ours.run(), "nodes") as task:
            await _first(ours.synced(), task)
            yield task


async def _any_nodes(client: Client) -> bool:
    body = await client.list(NODES, limit=1)
    return bool(msgspec.json.decode(body).get("items"))


@asynccontextmanager
async def scheduler(place: Place) -> AsyncIterator[asyncio.Task[object]]:
    """The scheduler, as it would run on any cluster; alone here, it needs no lease."""
    options = Options(
        leader_elect=False, scheduler_name=OURS, schedule_period=place.period, shutdown_timeout=PARTING
    )
    async with Client(place.access) as client:
        duty = Duty(
            options,
            client,
            "embedded",
            lambda: True,
            place.catalog,
            place.policy,
            Measuring(Metrics()),
        )
        async with duty:
            await ensure_queues(client, options.default_queue)
            await in_step(duty.mirror, options.resource_sync_timeout)
            task: asyncio.Task[object] = asyncio.create_task(duty.lead(), name="scheduler")
            try:
                yield task
            finally:
                duty.stop()
                await _ended(task)


@asynccontextmanager
async def controllers(place: Place) -> AsyncIterator[asyncio.Task[object]]:
    """Controllers: jobs, groups, queues and what else there is."""
    async with Client(place.access) as client:
        options = ControllerOptions(
            leader_elect=False,
            scheduler_name=OURS,
            shutdown_timeout=PARTING,
            plugins_dir=place.job_plugins_dir,
        )
        crew = ControllerRunner(client, options)
        task: asyncio.Task[object] = asyncio.create_task(crew.run(), name="controllers")
        try:
            yield task
        finally:
            crew.stop()
            await _ended(task)


SERVICES: tuple[Service, ...] = (nodes, scheduler, controllers)
"""In the order in which they start; they stop in the opposite one."""


@asynccontextmanager
async def _task(work: Coroutine[Any, Any, object], name: str) -> AsyncIterator[asyncio.Task[object]]:
    task: asyncio.Task[object] = asyncio.create_task(work, name=name)
    try:
        yield task
    finally:
        task.cancel()
        await _ended(task)


async def _ended(task: asyncio.Task[object]) -> None:
    """Until it did; what it says in the end was told where it broke."""
    done, _ = await asyncio.wait({task}, timeout=2 * PARTING)
    if not done:
        task.cancel()
    with suppress(asyncio.CancelledError, Exception):
        await task


async def _first(ready: Coroutine[Any, Any, object], task: asyncio.Task[object]) -> None:
    """Until it is ready; an error if it breaks before."""
    waiting = asyncio.create_task(ready)
    await asyncio.wait({waiting, task}, return_when=asyncio.FIRST_COMPLETED)
    if task.done():
        waiting.cancel()
        task.result()
