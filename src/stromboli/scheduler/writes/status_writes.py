"""Writes about PodGroups and queues: status patches that keep what others wrote (spec 05 9.2, 9.5)."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from stromboli.engine.decisions import NativeGroupCondition, PodGroupStatus, QueueStatus
from stromboli.kube.bounded_cache import BoundedCache
from stromboli.kube.guarded_client import GuardedClient
from stromboli.kube.timestamps import timestamp
from stromboli.scheduler.writes import decision_requests
from stromboli.scheduler.writes.write_orders import WriteOrder


class WrittenStatus(NamedTuple):
    """What we wrote of a PodGroup: conditions by type, and which counts are not left at zero."""

    conditions: dict[str, dict[str, str]]
    counted: frozenset[str]


class StatusWrites:
    """Executes orders about PodGroups and queues."""

    def __init__(self, client: GuardedClient, written: BoundedCache, wall: Callable[[], float]):
        """`written` holds what was last written of each object, as its next patch depends on it."""
        self._client = client
        self._written = written
        self._wall = wall

    async def write_group_status(self, order: WriteOrder, status: PodGroupStatus) -> None:
        """A merge patch replaces the list of conditions, so those on the object and those written before go along."""
        key = ("PodGroup", status.namespace, status.name, order.uid)
        current = decision_requests.group_conditions(order.conditions, status, self._wall())
        fresh = {condition.type for condition in status.conditions}
        written: WrittenStatus = self._written.get(key, WrittenStatus({}, frozenset()))
        conditions = current | {
            type: entry for type, entry in written.conditions.items() if type not in fresh
        }
        counted = written.counted.union(order.shown)
        request = decision_requests.group_status(status, order.uid, counted, conditions.values())
        await self._client.send(request)
        ours = {type: conditions[type] for type in (*written.conditions, *fresh)}
        self._written.put(key, WrittenStatus(ours, counted | decision_requests.counted(status)))

    async def write_native_condition(self, order: WriteOrder, condition: NativeGroupCondition) -> None:
        """A condition keeps its transition time as long as its status stays the same."""
        key = ("NativePodGroup", condition.namespace, condition.name, order.uid)
        transitions = {current.status: current.last_transition_time for current in order.conditions}
        status, since = self._written.get(key, ("", ""))
        if status != condition.status:
            before = transitions.get(condition.status)
            since = timestamp(before.timestamp() if before is not None else self._wall())
        request = decision_requests.native_condition(
            condition, order.uid, order.api_version, order.generation, since
        )
        await self._client.send(request)
        self._written.put(key, (condition.status, since))

    async def write_queue_status(self, order: WriteOrder, status: QueueStatus) -> None:
        key = ("Queue", status.name)
        written = {*order.shown, *self._written.get(key, ())}
        await self._client.send(decision_requests.queue_status(status, written))
        self._written.put(key, tuple(status.allocated))
