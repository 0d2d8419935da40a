"""What a scheduler does: it mirrors the cluster from the start, and decides and writes once it is its turn.

A replica that stands by is as well informed as the leader, so a hand-over takes no longer than a cycle. It
never writes.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial

from stromboli import transport
from stromboli.api.types.meta import Object
from stromboli.api.types.node_shard import NodeShard
from stromboli.api.types.scheduling import PodDisruptionBudget, PriorityClass
from stromboli.api.types.workloads import ReplicaSet, ReplicationController, StatefulSet
from stromboli.daemon.log_format import about
from stromboli.engine.catalog import Catalog
from stromboli.kube.api_client import Client
from stromboli.kube.api_resources import RESOURCES
from stromboli.kube.event_recorder import EventRecorder
from stromboli.kube.reflector import UnusableObject
from stromboli.policy.policy import Policy
from stromboli.policy.policy_file import PolicyFile
from stromboli.scheduler.cycle_metrics import Measuring
from stromboli.scheduler.cycle_thread import Loop, call
from stromboli.scheduler.decision_log import unusable
from stromboli.scheduler.mirror.cluster_mirror import Mirror
from stromboli.scheduler.mirror.kubernetes_world import KubernetesWorld
from stromboli.scheduler.mirror.node_shards import Shards
from stromboli.scheduler.options import Options
from stromboli.scheduler.partitioning import Wanted, by_hash, by_label, idle_members, parse_selectors
from stromboli.scheduler.writes.decision_writer import Writer
from stromboli.scheduler.writes.write_orders import Failure, Order
from stromboli.scheduling_loop import Scheduler
from stromboli.sources.usage_feed import ALL, UsageFeed

log = logging.getLogger(__name__)


class Duty:
    """Mirror, loop and writer, side by side."""

    def __init__(
        self,
        options: Options,
        client: Client,
        identity: str,
        may_write: Callable[[], bool],
        catalog: Catalog,
        policy: Policy | PolicyFile,
        measuring: Measuring,
    ):
        self._options = options
        self._may_write = may_write
        self._measuring = measuring
        self._watching: asyncio.Task[None] | None = None
        self._loop = asyncio.get_running_loop()
        self._crashed = False
        stop = threading.Event()
        self.mirror = Mirror(
            client,
            options.scheduler_name,
            options.default_queue,
            kinds(options),
            wanted(options),
            self._unusable,
            measuring.watched,
        )
        self.world = KubernetesWorld(
            self.mirror,
            self._submit,
            stop,
            patience=options.gang_bind_timeout,
            shards=shards(options),
        )
        self.writer = Writer(
            client,
            EventRecorder(options.component, identity, time.time),
            may_write,
            self._failed,
            measuring.written,
            scheduler=options.component,
            width=options.writes_in_flight,
        )
        scheduler = Scheduler(
            self.world,
            policy,
            catalog,
            options.schedule_period,
            usage=UsageFeed(ALL),
            services={"post": transport.post, "clock": time.monotonic},
            features=[name for name, on in options.feature_gates if on],
        )
        self.loop = Loop(self.world, scheduler, measuring, stop)

    async def __aenter__(self) -> Duty:
        """Stand by."""
        self._watching = asyncio.create_task(self.mirror.run(), name="watches")
        self._watching.add_done_callback(self._watches_ended)
        self.loop.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.loop.stop()
        if self._watching is not None:
            self._watching.cancel()
            with suppress(asyncio.CancelledError):
                await self._watching

    async def lead(self, first_words: Iterable[Order] = ()) -> int:
        """Decide and write until told to stop; the exit status."""
        self.writer.start()
        self.writer.submit(first_words)
        self.loop.lead()
        await self.loop.ended.wait()
        done = await self.writer.finish(self._options.shutdown_timeout if self._may_write() else 0.0)
        log.info("stopped", extra=about(all_written=done))
        return self.status

    @property
    def status(self) -> int:
        """With what to exit."""
        return 1 if self._crashed or self.loop.crashed else 0

    def stop(self) -> None:
        """End after the cycle that is under way."""
        self.loop.stop()

    # -- between the parts

    def _submit(self, orders: list[Order]) -> None:
        call(self._loop, partial(self.writer.submit, orders))

    def _unusable(self, trouble: UnusableObject) -> None:
        """Told in the log by everybody, in an event by who leads; whoever takes over tells them again."""
        order = unusable(trouble)
        if self.loop.leads:
            self._submit([order])

    def _failed(self, failure: Failure) -> None:
        self._measuring.failed(failure)
        self.world.failed(failure)

    def _watches_ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled():
            log.error("watching broke down", exc_info=task.exception())
            self._crashed = True
            self.stop()


def kinds(options: Options) -> list[type[Object]]:
    """What is watched, as far as flags and gates have it."""
    off: set[type[Object]] = set()
    if not options.priority_class or not options.gate("PriorityClass", True):
        off.add(PriorityClass)
    if not options.gate("PodDisruptionBudgetsSupport", True):
        off.add(PodDisruptionBudget)
    if not options.gate("WorkLoadSupport", True):
        off |= {ReplicaSet, StatefulSet, ReplicationController}
    if options.scheduler_sharding_mode == "none":
        off.add(NodeShard)
    return [kind for kind in RESOURCES if kind not in off]


def shards(options: Options) -> Shards | None:
    """The nodes of our own, if the flags speak of any."""
    mode, name = options.scheduler_sharding_mode, options.scheduler_sharding_name
    return None if mode == "none" else Shards(name, strict=mode == "hard")


def wanted(options: Options) -> Wanted:
    """Which objects are ours, by label and by hash."""
    labelled = by_label(parse_selectors(options.node_selector))
    hashed = by_hash(os.environ, options.scheduler_name)
    if options.leader_elect and (why := idle_members(os.environ, options.leader_elect_resource_name)):
        log.warning("%s", why)
    return lambda thing: labelled(thing) and hashed(thing)


async def in_step(mirror: Mirror, most: float) -> None:
    """Wait until the first lists are in; so long for the lesser kinds, for ever for those that decisions need."""
    begin = time.monotonic()
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
