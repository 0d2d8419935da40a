"""What is told of PodGroups and queues: status alone, and nothing is lost that stands there (spec 05 9.2, 9.5)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from stromboli.engine.decisions import (
    NativeGroupCondition,
    PodGroupStatus,
    QueueAnnotation,
    QueueStatus,
    ShardStatus,
)
from stromboli.kube.timestamps import timestamp
from stromboli.scheduler.writes import decision_requests
from stromboli.scheduler.writes.guarded_client import Gone, Pen
from stromboli.scheduler.writes.write_orders import Order


class StatusWrites:
    """Orders about PodGroups and queues."""

    def __init__(self, pen: Pen, wall: Callable[[], float]):
        self._pen = pen
        self._wall = wall

    async def tell_group(self, order: Order) -> None:
        """Conditions are a list that a patch replaces as a whole: what stands there and what was written goes along."""
        said = order.decision
        assert isinstance(said, PodGroupStatus)
        key = ("PodGroup", said.namespace, said.name, order.uid)
        standing = decision_requests.group_conditions(order.conditions, said, self._wall())
        fresh = {one.type for one in said.conditions}
        written: dict[str, dict[str, str]] = self._pen.last(key, {})
        conditions = {**standing, **{type: one for type, one in written.items() if type not in fresh}}
        with suppress(Gone):
            await self._pen.send_unless_gone(
                decision_requests.group_status(said, order.uid, conditions.values())
            )
            self._pen.remember(key, {type: conditions[type] for type in (*written, *fresh)})

    async def tell_native_group(self, order: Order) -> None:
        """A condition keeps the time since which its status stands."""
        said = order.decision
        assert isinstance(said, NativeGroupCondition)
        key = ("NativePodGroup", said.namespace, said.name, order.uid)
        stood = {one.status: one.last_transition_time for one in order.conditions}
        status, since = self._pen.last(key, ("", ""))
        if status != said.status:
            before = stood.get(said.status)
            since = timestamp(before.timestamp() if before is not None else self._wall())
        request = decision_requests.native_condition(
            said, order.uid, order.api_version, order.generation, since
        )
        with suppress(Gone):
            await self._pen.send_unless_gone(request)
            self._pen.remember(key, (said.status, since))

    async def tell_queue(self, order: Order) -> None:
        said = order.decision
        assert isinstance(said, QueueStatus)
        key = ("Queue", said.name)
        with suppress(Gone):
            request = decision_requests.queue_status(said, {*order.resources, *self._pen.last(key, ())})
            await self._pen.send_unless_gone(request)
            self._pen.remember(key, tuple(said.allocated))

    async def annotate_queue(self, order: Order) -> None:
        said = order.decision
        assert isinstance(said, QueueAnnotation)
        with suppress(Gone):
            await self._pen.send_unless_gone(decision_requests.queue_annotation(said))

    async def tell_shard(self, order: Order) -> None:
        said = order.decision
        assert isinstance(said, ShardStatus)
        with suppress(Gone):
            await self._pen.send_unless_gone(decision_requests.shard_status(said))
