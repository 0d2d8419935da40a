"""One replica of the scheduler: it mirrors the cluster from the start, and decides and writes once it leads.

A standby replica is as well informed as the leader, so a hand-over takes no longer than a cycle. It never writes.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from functools import partial

import msgspec

from stromboli import transport
from stromboli.api import names
from stromboli.api.types.config_map import ConfigMap
from stromboli.api.types.scheduling import Queue
from stromboli.daemon.log_format import about
from stromboli.engine.catalog import Catalog
from stromboli.engine.decisions import Event
from stromboli.kube.api_client import Client
from stromboli.kube.api_resources import RESOURCES
from stromboli.kube.election import Election
from stromboli.kube.event_recorder import EventRecorder
from stromboli.kube.reflector import UnusableObject, WatchScope
from stromboli.kube.request import Api, ApiError, NoResponse, Request
from stromboli.plugins.deviceshare.share_arguments import ShareArguments
from stromboli.policy.policy import Policy
from stromboli.policy.policy_file import PolicyFile
from stromboli.scheduler.cycle_thread import CycleThread
from stromboli.scheduler.explain.explanations import Explanations
from stromboli.scheduler.explain.leader_log import LeaderLog
from stromboli.scheduler.explain.object_answers import ObjectAnswers
from stromboli.scheduler.mirror.cluster_mirror import ClusterMirror
from stromboli.scheduler.mirror.cluster_watches import (
    ClusterWatches,
    wait_until_synced,
    watch_cluster,
    watched_kinds,
)
from stromboli.scheduler.mirror.kubernetes_world import KubernetesWorld
from stromboli.scheduler.mirror.node_shards import NodeShards
from stromboli.scheduler.options import Options
from stromboli.scheduler.scheduler_metrics import SchedulerMetrics
from stromboli.scheduler.writes.decision_writer import DecisionWriter
from stromboli.scheduler.writes.write_orders import DecisionOrders, WriteFailure, WriteOrder
from stromboli.scheduling_loop import Scheduler
from stromboli.sources.usage_feed import UsageFeed
from stromboli.sources.usage_sources import ALL

log = logging.getLogger(__name__)


class Replica:
    """Mirror, cycle thread and writer."""

    def __init__(
        self,
        options: Options,
        client: Client,
        identity: str,
        write_time_left: Callable[[], float],
        catalog: Catalog,
        policy: Policy | PolicyFile,
        metrics: SchedulerMetrics,
        watches: ClusterWatches | None = None,
    ):
        """`watches` that were started already; without, they are started with the replica."""
        self._options = options
        self._client = client
        self._write_time_left = write_time_left
        self._metrics = metrics
        self._crashed = False
        self.watches = watches if watches is not None else watch_cluster(options, client)
        self.watches.add(watched_kinds(options), {ConfigMap: device_config_scope(policy)})
        self.seam = self.watches.seam
        self.mirror = ClusterMirror(
            self.watches,
            options.scheduler_name,
            options.default_queue,
            self._report_unusable,
            metrics.pod_arrived,
        )
        self.mirror.cluster.volumes.ignored_provisioners |= set(options.ignored_provisioners)
        self.record = LeaderLog() if options.enable_explain else None
        self.writer = DecisionWriter(
            client,
            EventRecorder(options.component, identity, time.time),
            write_time_left,
            self._write_failed,
            metrics.written,
            metrics.prebound,
            scheduler=options.component,
            workers=options.writes_in_flight,
        )
        self.seam.changes.observe = self.writer.prebinder.awaited.note
        self._orders = DecisionOrders(
            self.mirror, partial(self.seam.to_event_loop, self.writer.outbox.submit), metrics.guard
        )
        self.world = KubernetesWorld(
            self.mirror,
            self._orders.submit,
            patience=options.gang_bind_timeout,
            shards=node_shards(options),
            guard=metrics.guard,
            history=self.record.jobs if self.record is not None else None,
        )
        self.scheduler = Scheduler(
            self.world,
            policy,
            catalog,
            options.schedule_period,
            usage=UsageFeed(ALL),
            services={"post": transport.post, "clock": time.monotonic},
            features=[name for name, on in options.feature_gates if on],
            interruptible=False,  # signals reach the main thread alone
        )
        self.scheduler.announce_policy()
        self.explanations = (
            Explanations(self.seam, ObjectAnswers(self.record.jobs), self.world.is_unchanged)
            if self.record is not None
            else None
        )
        """None if the explain endpoint is off; nothing is recorded then."""
        self.thread = CycleThread(
            self.world,
            self.scheduler,
            metrics,
            self.seam,
            options.schedule_on_change,
            self.explanations,
            self.record,
        )

    async def __aenter__(self) -> Replica:
        """Follow the cluster."""
        await self.mirror.__aenter__()
        assert self.watches.running is not None
        self.watches.running.add_done_callback(self._watches_ended)
        self.thread.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.stop()
        await self.mirror.__aexit__()

    async def prepare(self) -> None:
        """Create the queues that must exist, and wait for the first lists; `NoQueues` if there are no queues."""
        await ensure_queues(self._client, self._options.default_queue)
        await wait_until_synced(self.watches, self._options.resource_sync_timeout)

    async def lead(self, election: Election | None = None) -> int:
        """Decide and write until stopped; return the exit status. An event names the winner of the election."""
        self.writer.start()
        if election is not None:
            self.writer.outbox.submit([leader_event(election)])
        self.seam.lead()
        await self.thread.ended.wait()
        done = await self.writer.finish(
            self._options.shutdown_timeout if self._write_time_left() > 0 else 0.0
        )
        log.info("stopped", extra=about(all_written=done))
        return self.status

    @property
    def status(self) -> int:
        """The exit status."""
        return 1 if self._crashed or self.thread.crashed else 0

    def stop(self) -> None:
        """End after the current cycle."""
        self.seam.stop()

    # -- in the cycle's thread

    def _report_unusable(self, problem: UnusableObject) -> None:
        """Every replica logs it, the leader also writes an event; a new leader reports it again."""
        with self._metrics.guard("events"):
            order = unusable_event(problem)
            if self.seam.leads:
                self._orders.write([order])

    # -- on the event loop

    def _write_failed(self, *failures: WriteFailure) -> None:
        for failure in failures:
            self._metrics.write_failed(failure)
        self.seam.to_cycle(self.world.failed, *failures)

    def _watches_ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled():
            log.error("the watches crashed", exc_info=task.exception())
            self._crashed = True
            self.stop()


def device_config_scope(policy: Policy | PolicyFile) -> WatchScope:
    """The one ConfigMap that is watched: the configuration of shared cards, as the policy names it at the start."""
    current = policy.current if isinstance(policy, PolicyFile) else policy
    named = [entry.arguments for entry in current.plugins if isinstance(entry.arguments, ShareArguments)]
    arguments = named[0] if named else ShareArguments()
    return WatchScope.of_one(arguments.config_namespace, arguments.config_name)


def node_shards(options: Options) -> NodeShards | None:
    """Our share of the nodes, if there is to be one."""
    mode, name = options.scheduler_sharding_mode, options.scheduler_sharding_name
    return None if mode == "none" else NodeShards(name, strict=mode == "hard")


# -- events of a replica


def unusable_event(problem: UnusableObject) -> WriteOrder:
    """An event about an object that cannot be used."""
    key = f"{problem.namespace}/{problem.name}".removeprefix("/")
    log.warning("%s %s cannot be used: %s", problem.kind, key, problem.text)
    event = Event(problem.kind, problem.namespace, problem.name, "Warning", "Invalid", problem.text)
    return WriteOrder(event, problem.uid)


def leader_event(election: Election) -> WriteOrder:
    settings, text = election.settings, f"{election.settings.identity} became leader"
    event = Event("Lease", settings.namespace, settings.name, "Normal", "LeaderElection", text)
    return WriteOrder(event, election.uid)


# -- the queues that must always exist (spec 05 10)


QUEUES = RESOURCES[Queue]
ATTEMPTS = 60
QUEUES_TIMEOUT = 10.0


class NoQueues(Exception):
    """Why the queues that must exist could not be created."""


async def ensure_queues(
    api: Api, default: str, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
) -> None:
    """Create `root` and the default queue if they are missing; `NoQueues` if that is refused for a minute."""
    for name, reclaimable in ((names.ROOT_QUEUE, False), (default, True)):
        for attempt in range(ATTEMPTS):
            try:
                if await _ensure(api, name, reclaimable):
                    log.info("made queue %s", name)
                break
            except (ApiError, NoResponse) as error:
                why = _explained(error)
                if attempt == ATTEMPTS - 1:
                    raise NoQueues(f"queue {name!r} can be neither found nor made: {why}") from None
                if attempt % 10 == 0:
                    log.warning("queue %s: %s; trying again", name, why)
                await sleep(1.0)


async def _ensure(api: Api, name: str, reclaimable: bool) -> bool:
    """Return whether the queue had to be created."""
    try:
        await api.send(Request("GET", QUEUES.path(name=name)), QUEUES_TIMEOUT)
        return False
    except ApiError as error:
        if error.status != 404:
            raise
    body = {
        "apiVersion": QUEUES.api_version,
        "kind": QUEUES.kind,
        "metadata": {"name": name},
        "spec": {"reclaimable": reclaimable, "weight": 1},
    }
    try:
        await api.send(Request("POST", QUEUES.path(), msgspec.json.encode(body)), QUEUES_TIMEOUT)
    except ApiError as error:
        if error.status != 409:
            raise
        return False
    return True


def _explained(error: Exception) -> str:
    if isinstance(error, ApiError) and error.status == 404:
        return "the API server knows no queues; install the CRDs with `kubectl apply -k deploy/crds`"
    return str(error)
