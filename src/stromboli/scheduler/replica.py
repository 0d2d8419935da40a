"""One replica of the scheduler: it mirrors the cluster from the start, and decides and writes once it leads.

A standby replica is as well informed as the leader, so a hand-over takes no longer than a cycle. It never writes.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, Iterable
from functools import partial

from stromboli import transport
from stromboli.api.types.config_map import ConfigMap
from stromboli.api.types.devices import ResourceClaimTemplate
from stromboli.api.types.meta import Object
from stromboli.api.types.node_shard import NodeShard
from stromboli.api.types.numa_topology import Numatopology
from stromboli.api.types.scheduling import PodDisruptionBudget, PriorityClass
from stromboli.api.types.workloads import ReplicaSet, ReplicationController, StatefulSet
from stromboli.daemon.log_format import about
from stromboli.engine.catalog import Catalog
from stromboli.kube.api_client import Client
from stromboli.kube.api_resources import RESOURCES
from stromboli.kube.event_recorder import EventRecorder
from stromboli.kube.reflector import UnusableObject, WatchScope
from stromboli.plugins.deviceshare.share_arguments import ShareArguments
from stromboli.policy.policy import Policy
from stromboli.policy.policy_file import PolicyFile
from stromboli.scheduler.cycle_metrics import CycleMetrics
from stromboli.scheduler.cycle_thread import CycleThread
from stromboli.scheduler.decision_log import unusable_event
from stromboli.scheduler.mirror.cluster_mirror import ClusterMirror
from stromboli.scheduler.mirror.kubernetes_world import KubernetesWorld
from stromboli.scheduler.mirror.node_shards import NodeShards
from stromboli.scheduler.options import Options
from stromboli.scheduler.partitioning import ObjectFilter, by_hash, by_label, idle_members, parse_selectors
from stromboli.scheduler.thread_seam import ThreadSeam
from stromboli.scheduler.writes.decision_writer import DecisionWriter
from stromboli.scheduler.writes.write_orders import WriteFailure, WriteOrder
from stromboli.scheduling_loop import Scheduler
from stromboli.sources.usage_feed import ALL, UsageFeed

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
        cycle_metrics: CycleMetrics,
    ):
        self._options = options
        self._write_time_left = write_time_left
        self._cycle_metrics = cycle_metrics
        self._crashed = False
        self.seam = ThreadSeam(asyncio.get_running_loop())
        self.mirror = ClusterMirror(
            client,
            options.scheduler_name,
            options.default_queue,
            watched_kinds(options),
            object_filter(options),
            self._report_unusable,
            cycle_metrics.pod_arrived,
            self.seam,
            scopes={ConfigMap: device_config_scope(policy)},
        )
        self.mirror.cluster.volumes.ignored_provisioners |= set(options.ignored_provisioners)
        self.world = KubernetesWorld(
            self.mirror,
            self._submit,
            patience=options.gang_bind_timeout,
            shards=node_shards(options),
            guard=cycle_metrics.metrics.guard,
        )
        self.writer = DecisionWriter(
            client,
            EventRecorder(options.component, identity, time.time),
            write_time_left,
            self._write_failed,
            cycle_metrics.written,
            cycle_metrics.prebound,
            scheduler=options.component,
            workers=options.writes_in_flight,
        )
        self.seam.changes.observe = self.writer.prebinder.awaited.note
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
        self.thread = CycleThread(self.world, self.scheduler, cycle_metrics, self.seam)

    async def __aenter__(self) -> Replica:
        """Follow the cluster."""
        await self.mirror.__aenter__()
        assert self.mirror.watches is not None
        self.mirror.watches.add_done_callback(self._watches_ended)
        self.thread.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.stop()
        await self.mirror.__aexit__()

    async def lead(self, first_orders: Iterable[WriteOrder] = ()) -> int:
        """Decide and write until stopped; the exit status."""
        self.writer.start()
        self.writer.submit(first_orders)
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

    def _submit(self, orders: list[WriteOrder]) -> None:
        self.seam.to_event_loop(partial(self.writer.submit, orders))

    def _report_unusable(self, problem: UnusableObject) -> None:
        """In the log by every replica, in an event by the leader; a new leader reports them again."""
        with self._cycle_metrics.metrics.guard("events"):
            order = unusable_event(problem)
            if self.seam.leads:
                self._submit([order])

    # -- on the event loop

    def _write_failed(self, *failures: WriteFailure) -> None:
        for failure in failures:
            self._cycle_metrics.write_failed(failure)
        self.seam.to_cycle(partial(self.world.failed, *failures))

    def _watches_ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled():
            log.error("the watches crashed", exc_info=task.exception())
            self._crashed = True
            self.stop()


def watched_kinds(options: Options) -> list[type[Object]]:
    """The kinds to watch, by flags and feature gates."""
    off: set[type[Object]] = {ResourceClaimTemplate}  # claims are made of them by a controller
    if not options.priority_class or not options.gate("PriorityClass", True):
        off.add(PriorityClass)
    if not options.gate("PodDisruptionBudgetsSupport", True):
        off.add(PodDisruptionBudget)
    if not options.gate("WorkLoadSupport", True):
        off |= {ReplicaSet, StatefulSet, ReplicationController}
    if not options.gate("ResourceTopology", True):
        off.add(Numatopology)
    if options.scheduler_sharding_mode == "none":
        off.add(NodeShard)
    return [kind for kind in RESOURCES if kind not in off]


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


def object_filter(options: Options) -> ObjectFilter:
    """Which objects are ours: by label, and by hash where several schedulers divide the cluster."""
    labelled = by_label(parse_selectors(options.node_selector))
    hashed = by_hash(os.environ, options.scheduler_name)
    if options.leader_elect and (why := idle_members(os.environ, options.leader_elect_resource_name)):
        log.warning("%s", why)
    return lambda object: labelled(object) and hashed(object)


async def wait_until_synced(mirror: ClusterMirror, timeout: float) -> None:
    """Wait for the first lists: `timeout` seconds, but for ever for the kinds that decisions need."""
    begin = time.monotonic()
    while timeout > 0:
        try:
            await asyncio.wait_for(mirror.synced(), timeout)
            break
        except TimeoutError:
            left = "; ".join(mirror.unsynced)
            if not mirror.missing_essentials:
                log.warning("not everything was listed within %gs: going on without: %s", timeout, left)
                break
            log.error("not scheduling before these can be listed and watched: %s", left)
    log.info("in step with the API server", extra=about(seconds=round(time.monotonic() - begin, 3)))
