"""What the process shows of itself: health, metrics, whether the mirror is right, the whole state as a file."""

from __future__ import annotations

import asyncio
import logging
import time

from stromboli.daemon.log_format import about
from stromboli.kube.api_client import Client
from stromboli.kube.api_resources import discover
from stromboli.kube.election import Election
from stromboli.kube.reflector import Expired
from stromboli.kube.request import ApiError, NoResponse
from stromboli.scheduler.cycle_thread import STUCK
from stromboli.scheduler.debug_endpoints import Unavailable
from stromboli.scheduler.mirror.cluster_mirror import CheckFailed
from stromboli.scheduler.options import Options
from stromboli.scheduler.replica import Duty
from stromboli.scheduler.scheduler_metrics import Metrics
from stromboli.scheduler.state_dump import placements, write_dump

log = logging.getLogger(__name__)


class Showing:
    """A look inside."""

    def __init__(
        self, options: Options, client: Client, duty: Duty, election: Election | None, metrics: Metrics
    ):
        self.stopping = False
        self._options = options
        self._client = client
        self._duty = duty
        self._election = election
        self._metrics = metrics
        self._dumping: asyncio.Task[str] | None = None
        self._writing_metrics = asyncio.Lock()

    def alive(self) -> str:
        silence = self._duty.loop.silence
        return f"no cycle has ended for {silence:.0f} seconds" if silence > STUCK else ""

    def ready(self) -> str:
        """Whoever stands by is ready once it could take over."""
        if self.stopping:
            return "stopping"
        if self._duty.loop.leads:
            return ""
        if self._election is not None and not self._election.leader:
            return "the lease was not read yet"
        if waiting := ", ".join(self._duty.mirror.blind):
            return f"not in step with the API server yet: {waiting}"
        stands_by = self._election is not None and not self._election.may_write()
        return "" if stands_by else "about to lead"

    async def metrics(self) -> bytes:
        """Written beside the event loop: with thousands of jobs that takes about a second."""
        metrics, writer = self._metrics, self._duty.writer
        leads = self._duty.loop.leads and (self._election is None or self._election.may_write())
        metrics.leader.set(1 if leads else 0)
        metrics.mirror_lag.set(self._duty.mirror.lag)
        metrics.waiting_writes.set(len(writer))
        metrics.dropped_events.set(writer.dropped + writer.events.dropped)
        async with self._writing_metrics:
            return await asyncio.to_thread(metrics.text)

    async def consistency(self) -> list[str]:
        try:
            return [str(one) for one in await self._duty.mirror.check()]
        except (CheckFailed, ApiError, NoResponse) as error:
            raise Unavailable(str(error)) from None

    async def dump(self) -> str:
        """One at a time: whoever asks meanwhile gets the same."""
        return await asyncio.shield(self.dump_soon())

    def dump_soon(self) -> asyncio.Task[str]:
        """Begin, unless one is under way; the log says where it went."""
        if self._dumping is None or self._dumping.done():
            self._dumping = asyncio.create_task(self._dump())
            self._dumping.add_done_callback(_tell_dump)
        return self._dumping

    async def _dump(self) -> str:
        loop = self._duty.loop
        cluster = self._duty.world.cluster
        try:
            placed, memory = await loop.errands.run(lambda: (placements(cluster), dict(cluster.memory)))
            path = await write_dump(
                self._client,
                await discover(self._client),
                placed,
                self._options.scheduler_name,
                loop.scheduler.engine.policy.source,
                memory,
                self._options.cache_dump_dir,
                time.time(),
            )
        except TimeoutError:
            raise Unavailable("no cycle came to its end in time") from None
        except (ApiError, NoResponse, Expired, OSError) as error:
            raise Unavailable(str(error)) from None
        return str(path)


def _tell_dump(task: asyncio.Task[str]) -> None:
    if task.cancelled():
        return
    error = task.exception()
    if error is not None:
        log.error("the dump failed: %s", error)
    else:
        log.info("dumped", extra=about(file=task.result()))
