"""The process: from flags to a loop that runs until somebody says stop (spec 05 1.3)."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import socket
import sys
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from functools import partial

from stromboli import transport
from stromboli.api.meta import Object
from stromboli.api.scheduling import PodDisruptionBudget, PriorityClass
from stromboli.api.workloads import ReplicaSet, ReplicationController, StatefulSet
from stromboli.daemon.endpoints import Endpoints
from stromboli.daemon.logs import about
from stromboli.daemon.stopping import UntilStopped
from stromboli.engine.catalog import Catalog
from stromboli.engine.policy import Policy
from stromboli.engine.policy_file import PolicyFile
from stromboli.kube.asking import Refused, Unanswered
from stromboli.kube.client import Client
from stromboli.kube.config import Access
from stromboli.kube.election import Election, Terms
from stromboli.kube.events import Events
from stromboli.kube.limits import Limiter
from stromboli.kube.measuring import Measuring
from stromboli.kube.metrics import Metrics
from stromboli.kube.mirror import CheckFailed, Mirror
from stromboli.kube.orders import Failure
from stromboli.kube.resources import RESOURCES, discover
from stromboli.kube.world import KubernetesWorld
from stromboli.kube.writer import Writer
from stromboli.scheduler import Scheduler
from stromboli.service.debugging import Debugging, Unavailable
from stromboli.service.dump import placements, write_dump
from stromboli.service.errands import Errands
from stromboli.service.options import Options
from stromboli.service.parting import by_hash, by_label, parse_selectors
from stromboli.service.queues import NoQueues, ensure_queues
from stromboli.service.telling import became_leader, tell, unusable
from stromboli.sources.feed import ALL, UsageFeed

log = logging.getLogger(__name__)

STUCK = 300.0
"""Seconds without the end of a cycle after which we should be restarted."""
SWITCH = 0.001
"""How long a cycle keeps Python's lock while the event loop wants it; the usual 5 ms cost every answer that much."""


class Process:
    """One scheduler, from start to end."""

    def __init__(self, options: Options, access: Access, catalog: Catalog, policy: Policy | PolicyFile):
        self.options = options
        self._access = access
        self._catalog = catalog
        self._policy = policy
        self._stop = threading.Event()
        self._stopping = asyncio.Event()
        self._crashed = False
        self._measuring = Measuring(Metrics())
        self._errands = Errands()
        self._identity = f"{socket.gethostname()}_{uuid.uuid4()}"
        by_labels = by_label(parse_selectors(options.node_selector))
        by_hashes = by_hash(os.environ, options.scheduler_name)
        self._wanted = lambda thing: by_labels(thing) and by_hashes(thing)
        self._election: Election | None = None
        self._mirror: Mirror | None = None
        self._scheduler: Scheduler | None = None
        self._client: Client | None = None
        self._writer: Writer | None = None
        self._last_cycle = time.monotonic()
        self._dumping: asyncio.Task[str] | None = None

    async def run(self) -> int:
        """Until a signal, or until the lease is lost; the exit status."""
        for note in self.options.notes:
            log.info("%s", note)
        self._listen_to_signals()
        sys.setswitchinterval(SWITCH)
        async with AsyncExitStack() as stack:
            options = self.options
            clients = [
                await stack.enter_async_context(
                    Client(self._access, Limiter(options.kube_api_qps, options.kube_api_burst))
                )
                for _ in range(2)
            ]
            self._client = clients[0]
            debugging = Debugging(self).add_to if options.enable_pprof else None
            endpoints = Endpoints(options, self, debugging)
            stack.push_async_callback(endpoints.stop)
            await endpoints.start()
            log.info("serving", extra=about(**endpoints.ports))
            try:
                async with self._until_stopped():
                    await ensure_queues(clients[0], options.default_queue)
            except NoQueues as error:
                log.error("%s", error)
                return 1
            if self._stopping.is_set():
                return 0
            return await self._elected(*clients)

    # -- leading

    async def _elected(self, client: Client, lease_client: Client) -> int:
        """Wait for our turn, lead, and step down."""
        if not self.options.leader_elect:
            return await self._lead(client)
        options = self.options
        terms = Terms(
            options.lease_namespace,
            options.leader_elect_resource_name,
            self._identity,
            options.leader_elect_lease_duration,
            options.leader_elect_renew_deadline,
            options.leader_elect_retry_period,
        )
        election = self._election = Election(lease_client, terms)
        log.info("waiting for the lease", extra=about(lease=f"{terms.namespace}/{terms.name}"))
        async with self._until_stopped():
            await election.win()
        if not election.may_write():
            return 0
        keeping = asyncio.create_task(election.keep())
        leading = asyncio.create_task(self._lead(client))
        try:
            await asyncio.wait({keeping, leading}, return_when=asyncio.FIRST_COMPLETED)
            if not leading.done():
                self._stop.set()
                log.error("the lease is lost: leaving at once")
                return 1
            return leading.result()
        finally:
            for task in (leading, keeping):
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
            await election.resign()

    async def _lead(self, client: Client) -> int:
        """Mirror the cluster, run cycles, write; until told to stop."""
        self._measuring.metrics.leader.set(1)
        options = self.options
        component = options.scheduler_name[0] if len(options.scheduler_name) == 1 else "volcano"
        loop = asyncio.get_running_loop()
        mirror = self._mirror = Mirror(
            client,
            options.scheduler_name,
            options.default_queue,
            self._kinds(),
            self._wanted,
            lambda trouble: _call(loop, partial(writer.submit, [unusable(trouble)])),
        )
        world = KubernetesWorld(
            mirror,
            lambda orders: _call(loop, partial(writer.submit, orders)),
            self._stop,
            patience=options.gang_bind_timeout,
        )
        writer = self._writer = Writer(
            client,
            Events(component, self._identity, time.time),
            self._may_write,
            partial(self._failed, world),
            self._measuring.written,
            scheduler=component,
            width=options.writes_in_flight,
        )
        watching = asyncio.create_task(mirror.run(), name="watches")
        watching.add_done_callback(self._watches_ended)
        writer.start()
        if self._election is not None:
            writer.submit([became_leader(self._election)])
        try:
            async with self._until_stopped():
                await self._in_step(mirror)
            if not self._stopping.is_set():
                await self._cycles(world)
            done = await writer.finish(options.shutdown_timeout if self._may_write() else 0.0)
            log.info("stopped", extra=about(all_written=done))
        finally:
            self._stop.set()
            watching.cancel()
        return 1 if self._crashed else 0

    def _kinds(self) -> list[type[Object]]:
        """What is watched, as far as flags and gates have it."""
        off: set[type[Object]] = set()
        if not self.options.priority_class or not self.options.gate("PriorityClass", True):
            off.add(PriorityClass)
        if not self.options.gate("PodDisruptionBudgetsSupport", True):
            off.add(PodDisruptionBudget)
        if not self.options.gate("WorkLoadSupport", True):
            off |= {ReplicaSet, StatefulSet, ReplicationController}
        return [kind for kind in RESOURCES if kind not in off]

    def _watches_ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled():
            log.error("watching broke down", exc_info=task.exception())
            self._crashed = True
            self._stop.set()

    async def _in_step(self, mirror: Mirror) -> None:
        """Wait until the first lists are in; too long for the lesser kinds, for ever for those that decisions need."""
        begin, most = time.monotonic(), self.options.resource_sync_timeout
        while most > 0:
            try:
                await asyncio.wait_for(mirror.synced(), most)
                break
            except TimeoutError:
                left = "; ".join(mirror.unsynced)
                if not mirror.blind:
                    log.warning("not everything was listed within %gs: going on without: %s", most, left)
                    break
                log.error("not scheduling before these can be listed and watched: %s", left)
        log.info("in step with the API server", extra=about(seconds=round(time.monotonic() - begin, 3)))

    async def _cycles(self, world: KubernetesWorld) -> None:
        scheduler = self._scheduler = Scheduler(
            world,
            self._policy,
            self._catalog,
            self.options.schedule_period,
            usage=UsageFeed(ALL),
            services={"post": transport.post},
        )
        loop, ended = asyncio.get_running_loop(), asyncio.Event()
        work = partial(self._loop, scheduler, lambda: _call(loop, ended.set))
        threading.Thread(target=work, name="cycles", daemon=True).start()
        await ended.wait()

    def _loop(self, scheduler: Scheduler, ended: Callable[[], None]) -> None:
        """Cycle after cycle, in a thread of its own."""
        first = True
        try:
            while not self._stop.is_set():
                outcome = scheduler.cycle()
                self._measuring.cycle(outcome)
                tell(outcome)
                self._errands.attend()
                self._last_cycle = time.monotonic()
                if first:
                    gc.collect()
                    gc.freeze()  # what is there stays for long
                    first = False
                scheduler.world.sleep(scheduler.period)
        except BaseException:
            self._crashed = True
            log.exception("the loop broke down")
        finally:
            ended()

    def _may_write(self) -> bool:
        return self._election is None or self._election.may_write()

    def _failed(self, world: KubernetesWorld, failure: Failure) -> None:
        self._measuring.failed(failure)
        world.failed(failure)

    # -- signals

    def _listen_to_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)
        if self.options.cache_dumper:
            for number in (signal.SIGUSR1, signal.SIGUSR2):
                loop.add_signal_handler(number, self._dump_soon)

    def stop(self) -> None:
        """Finish what is under way and end; a second time, end at once."""
        if self._stopping.is_set():
            log.error("told to stop twice: leaving at once")
            os._exit(1)
        log.info("stopping")
        self._stopping.set()
        self._stop.set()

    def _until_stopped(self) -> UntilStopped:
        return UntilStopped(self._stopping)

    def _dump_soon(self) -> None:
        if self._dumping is None or self._dumping.done():
            self._dumping = asyncio.create_task(self.dump())
            self._dumping.add_done_callback(_tell_dump)

    # -- what there is to be shown

    def alive(self) -> str:
        silence = time.monotonic() - self._last_cycle
        if self._scheduler is not None and silence > STUCK:
            return f"no cycle has ended for {silence:.0f} seconds"
        return ""

    def ready(self) -> str:
        if self._stopping.is_set():
            return "stopping"
        if self._election is not None and not self._election.may_write():
            return "" if self._election.leader else "the lease was not read yet"
        return "" if self._scheduler is not None else "not in step with the API server yet"

    def metrics(self) -> bytes:
        metrics, writer = self._measuring.metrics, self._writer
        metrics.leader.set(1 if self._scheduler is not None and self._may_write() else 0)
        if self._mirror is not None:
            metrics.mirror_lag.set(self._mirror.buffer.age)
        if writer is not None:
            metrics.waiting_writes.set(len(writer))
            metrics.dropped_events.set(writer.dropped + writer.events.dropped)
        return metrics.text()

    async def consistency(self) -> list[str]:
        if self._mirror is None or self._scheduler is None:
            raise Unavailable("not leading, so there is no mirror to be checked")
        try:
            return [str(one) for one in await self._mirror.check()]
        except (CheckFailed, Refused, Unanswered) as error:
            raise Unavailable(str(error)) from None

    async def dump(self) -> str:
        scheduler, client = self._scheduler, self._client
        if scheduler is None or client is None:
            raise Unavailable("not leading, so there is no state to be dumped")
        placed = await self._errands.run(lambda: placements(scheduler.world.cluster))
        path = await write_dump(
            client,
            await discover(client),
            placed,
            self.options.scheduler_name,
            scheduler.engine.policy.source,
            dict(scheduler.world.cluster.memory),
            self.options.cache_dump_dir,
            time.time(),
        )
        return str(path)


def _call(loop: asyncio.AbstractEventLoop, what: Callable[[], None]) -> None:
    """On the event loop, unless it is over."""
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(what)


def _tell_dump(task: asyncio.Task[str]) -> None:
    if task.cancelled():
        return
    error = task.exception()
    if error is not None:
        log.error("the dump failed: %s", error)
    else:
        log.info("dumped", extra=about(file=task.result()))
