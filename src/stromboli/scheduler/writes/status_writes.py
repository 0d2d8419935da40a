"""Writes about PodGroups, queues and NodeShards: status patches that keep what others wrote (spec 05 9.2, 9.5)."""

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
from stromboli.scheduler.writes.guarded_client import GuardedClient, ObjectGone
from stromboli.scheduler.writes.write_orders import WriteOrder


class StatusWrites:
    """Executes orders about PodGroups, queues and NodeShards."""

    def __init__(self, client: GuardedClient, wall: Callable[[], float]):
        self._client = client
        self._wall = wall

    async def write_group_status(self, order: WriteOrder) -> None:
        """A merge patch replaces the list of conditions, so those on the object and those written before go along."""
        decision = order.decision
        assert isinstance(decision, PodGroupStatus)
        key = ("PodGroup", decision.namespace, decision.name, order.uid)
        current = decision_requests.group_conditions(order.conditions, decision, self._wall())
        fresh = {condition.type for condition in decision.conditions}
        written: dict[str, dict[str, str]] = self._client.last_written(key, {})
        conditions = current | {type: entry for type, entry in written.items() if type not in fresh}
        with suppress(ObjectGone):
            await self._client.send_unless_gone(
                decision_requests.group_status(decision, order.uid, conditions.values())
            )
            self._client.remember(key, {type: conditions[type] for type in (*written, *fresh)})

    async def write_native_condition(self, order: WriteOrder) -> None:
        """A condition keeps its transition time as long as its status stays the same."""
        decision = order.decision
        assert isinstance(decision, NativeGroupCondition)
        key = ("NativePodGroup", decision.namespace, decision.name, order.uid)
        transitions = {condition.status: condition.last_transition_time for condition in order.conditions}
        status, since = self._client.last_written(key, ("", ""))
        if status != decision.status:
            before = transitions.get(decision.status)
            since = timestamp(before.timestamp() if before is not None else self._wall())
        request = decision_requests.native_condition(
            decision, order.uid, order.api_version, order.generation, since
        )
        with suppress(ObjectGone):
            await self._client.send_unless_gone(request)
            self._client.remember(key, (decision.status, since))

    async def write_queue_status(self, order: WriteOrder) -> None:
        decision = order.decision
        assert isinstance(decision, QueueStatus)
        key = ("Queue", decision.name)
        with suppress(ObjectGone):
            request = decision_requests.queue_status(
                decision, {*order.resources, *self._client.last_written(key, ())}
            )
            await self._client.send_unless_gone(request)
            self._client.remember(key, tuple(decision.allocated))

    async def annotate_queue(self, order: WriteOrder) -> None:
        decision = order.decision
        assert isinstance(decision, QueueAnnotation)
        with suppress(ObjectGone):
            await self._client.send_unless_gone(decision_requests.queue_annotation(decision))

    async def write_shard_status(self, order: WriteOrder) -> None:
        decision = order.decision
        assert isinstance(decision, ShardStatus)
        with suppress(ObjectGone):
            await self._client.send_unless_gone(decision_requests.shard_status(decision))
