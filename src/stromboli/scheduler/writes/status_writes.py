"""Writes about PodGroups and queues: status patches that keep what others wrote (spec 05 9.2, 9.5)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec

from stromboli.engine.decisions import NativeGroupCondition, PodGroupStatus, QueueStatus
from stromboli.kube.bounded_cache import BoundedCache
from stromboli.kube.guarded_client import GuardedClient
from stromboli.kube.request import ApiError
from stromboli.kube.timestamps import timestamp
from stromboli.scheduler.writes import decision_requests
from stromboli.scheduler.writes.write_orders import WriteOrder

_MAX_DIGITS = 20
"""Digits of a resource version that is compared as a number; the API server's have 64 bits."""


class GroupStatus(NamedTuple):
    """The status of a PodGroup at one of its versions, as far as a patch of it depends on that."""

    version: str
    conditions: tuple[Mapping[str, Any], ...]
    counted: frozenset[str]
    """The counts that are not zero."""

    @property
    def age(self) -> int:
        """Grows with every version; 0 if that is unknown."""
        return int(self.version) if self.version.isdecimal() and len(self.version) < _MAX_DIGITS else 0


class _Metadata(msgspec.Struct, rename="camel"):
    uid: str = ""
    resource_version: str = ""


class _Status(msgspec.Struct):
    conditions: tuple[dict[str, Any], ...] | None = None
    running: Any = 0
    succeeded: Any = 0
    failed: Any = 0


class _Group(msgspec.Struct):
    """A PodGroup in a response, with whatever others have written to its conditions."""

    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    status: _Status = msgspec.field(default_factory=_Status)

    def known(self) -> GroupStatus:
        counted = decision_requests.counted(self.status)
        return GroupStatus(self.metadata.resource_version, self.status.conditions or (), counted)


class _Groups(msgspec.Struct):
    items: tuple[_Group, ...] = ()


class StatusWrites:
    """Executes orders about PodGroups and queues."""

    def __init__(self, client: GuardedClient, written: BoundedCache, wall: Callable[[], float]):
        """`written` holds what was last written of each object, as its next patch depends on it."""
        self._client = client
        self._written = written
        self._wall = wall

    async def write_group_status(self, order: WriteOrder, status: PodGroupStatus) -> None:
        """Patch the newest version that is known; if there is a newer one, read and patch that.

        A merge patch replaces the list of conditions. The version in it keeps the conditions that others wrote.
        """
        key = ("PodGroup", status.namespace, status.name, order.uid)
        shown = _shown(order)
        known: GroupStatus = max(self._written.get(key, shown), shown, key=lambda known: known.age)
        try:
            await self._patch_group(key, order, status, known)
        except ApiError as error:
            if error.status != 409:
                raise
            if (fresh := await self._read_group(order, status)) is not None:
                self._written.put(key, fresh)
                await self._patch_group(key, order, status, fresh)

    async def _patch_group(
        self, key: Hashable, order: WriteOrder, status: PodGroupStatus, known: GroupStatus
    ) -> None:
        conditions = decision_requests.group_conditions(known.conditions, status, self._wall())
        request = decision_requests.group_status(
            status, order.uid, known.version, known.counted, conditions.values()
        )
        response = await self._client.send(request)
        with suppress(ValueError):
            written = msgspec.json.decode(response, type=_Group).known()
            if written.version:
                self._written.put(key, written)
                return
        self._written.pop(key, None)

    async def _read_group(self, order: WriteOrder, status: PodGroupStatus) -> GroupStatus | None:
        """The PodGroup as it is now; none if it is gone. A list of one, as the scheduler may list but not get."""
        request = decision_requests.list_of_one_group(status.namespace, status.name)
        groups = msgspec.json.decode(await self._client.send(request), type=_Groups)
        known = (group.known() for group in groups.items if order.uid in ("", group.metadata.uid))
        return next(known, None)

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


def _shown(order: WriteOrder) -> GroupStatus:
    """The PodGroup of an order as the watch has shown it."""
    group = order.newest_group()
    if group is None or group.metadata.uid != order.uid:
        return GroupStatus("", (), frozenset())
    conditions = tuple(decision_requests.as_json(condition) for condition in group.status.conditions)
    return GroupStatus(group.metadata.resource_version, conditions, decision_requests.counted(group.status))
