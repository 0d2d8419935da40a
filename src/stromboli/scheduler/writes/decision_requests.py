"""Sends each decision as requests to the API server (spec 05 6.4, 7, 9)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Set
from contextlib import suppress
from typing import Any, NamedTuple
from urllib.parse import urlencode

import msgspec

from stromboli.api import names
from stromboli.api.decoding import decode_as
from stromboli.api.go_scalars import timestamp
from stromboli.api.patches import MERGE, STRATEGIC
from stromboli.api.types.meta import Condition
from stromboli.api.types.native_group import NativePodGroup, condition_type
from stromboli.api.types.node_shard import NodeShard
from stromboli.api.types.pod import Pod
from stromboli.api.types.scheduling import PodGroup, Queue
from stromboli.engine.decisions import (
    Bind,
    Event,
    Evict,
    GateRemoval,
    NativeGroupCondition,
    PodCondition,
    PodGroupStatus,
    QueueAnnotation,
    QueueStatus,
    ShardStatus,
)
from stromboli.kube.api_resources import RESOURCES
from stromboli.kube.bounded_cache import BoundedCache
from stromboli.kube.request import ApiError, GuardedClient, Request
from stromboli.scheduler.writes.write_orders import WriteOrder

COUNTS = ("running", "succeeded", "failed")
"""The counts of pods in the status of a PodGroup."""
MAX_MESSAGE = 32768
"""Characters of a condition's message; the API server refuses longer ones."""


def pod_path(namespace: str, name: str, subresource: str = "") -> str:
    return RESOURCES[Pod].path(namespace, name, subresource)


def binding(bind: Bind) -> Request:
    """With the uid, so that no other pod of that name is bound, and with the annotations that grants add."""
    metadata: dict[str, Any] = {"namespace": bind.namespace, "name": bind.name, "uid": bind.uid}
    if annotations := {key: value for grant in bind.grants for key, value in dict(grant.annotations).items()}:
        metadata["annotations"] = annotations
    body = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": metadata,
        "target": {"apiVersion": "v1", "kind": "Node", "name": bind.node},
    }
    return _request("POST", pod_path(bind.namespace, bind.name, "binding"), body)


def eviction_mark(evict: Evict, message: str, scheduler: str, now: float) -> Request:
    """Sets the conditions of a pod that is to be evicted."""
    since = timestamp(now)
    conditions = [
        _condition(names.CONDITION_READY, "False", names.EVENT_EVICT, message, since),
        _condition(
            names.CONDITION_DISRUPTION_TARGET,
            "True",
            names.PREEMPTION_BY_SCHEDULER,
            names.PREEMPTING.format(scheduler=scheduler),
            since,
        ),
    ]
    return _status_patch(evict.namespace, evict.name, evict.uid, {"conditions": conditions})


def deletion(path: str, uid: str) -> Request:
    """Deletes an object with its own grace period, and only if it has this uid."""
    body = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid}}
    return _request("DELETE", path, body)


def pod_condition(decision: PodCondition, since: float | None) -> Request:
    """Why a pod waits; `since` only if it had no such condition before."""
    condition = _condition(
        names.CONDITION_POD_SCHEDULED,
        "False",
        decision.reason,
        decision.message,
        None if since is None else timestamp(since),
    )
    status: dict[str, Any] = {"conditions": [condition]}
    if decision.nominated_node:
        status["nominatedNodeName"] = decision.nominated_node
    return _status_patch(decision.namespace, decision.name, decision.uid, status)


def extended_resource_status(bind: Bind, status: Mapping[str, Any] | None) -> Request:
    """Records on a pod which ResourceClaim was made for its extended resources, or that there is none."""
    return _status_patch(bind.namespace, bind.name, bind.uid, {"extendedResourceClaimStatus": status})


def group_status(
    decision: PodGroupStatus,
    uid: str,
    version: str,
    counted: Set[str],
    conditions: Iterable[Mapping[str, Any]],
) -> Request:
    """A patch of the status alone, as PodGroups have no status subresource; refused unless this is its version.

    Counts of zero are left out, as Go leaves them out, unless another number stands there (`counted`).
    """
    status: dict[str, Any] = {"phase": decision.phase}
    status |= {name: getattr(decision, name) for name in COUNTS if name in counted or getattr(decision, name)}
    status["conditions"] = list(conditions)
    metadata = _without_empty({"uid": uid, "resourceVersion": version})
    body = {"metadata": metadata, "status": status} if metadata else {"status": status}
    return _request("PATCH", RESOURCES[PodGroup].path(decision.namespace, decision.name), body, MERGE)


def list_of_one_group(namespace: str, name: str) -> Request:
    query = urlencode({"fieldSelector": f"metadata.name={name}"})
    return Request("GET", f"{RESOURCES[PodGroup].path(namespace)}?{query}")


def counted(status: Any) -> frozenset[str]:
    """The counts in a status of a PodGroup, or in a decision about it, that are not zero."""
    return frozenset(name for name in COUNTS if getattr(status, name))


def group_conditions(
    current: Iterable[Mapping[str, Any]], decision: PodGroupStatus, now: float
) -> dict[str, Mapping[str, Any]]:
    """All conditions of a PodGroup by type: the current ones, overridden by the decision's."""
    conditions = {str(condition.get("type", "")): condition for condition in current}
    for new in decision.conditions:
        fields = _condition(new.type, new.status, new.reason, new.message, timestamp(now))
        conditions[new.type] = _without_empty({**fields, "transitionID": new.transition_id})
    return conditions


def as_json(condition: Condition) -> dict[str, str]:
    since = condition.last_transition_time
    fields = _condition(
        condition.type,
        condition.status,
        condition.reason,
        condition.message,
        timestamp(since.timestamp()) if since else None,
    )
    return _without_empty({**fields, "transitionID": condition.transition_id})


def _without_empty(fields: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in fields.items() if value}


def native_condition(
    decision: NativeGroupCondition, uid: str, api_version: str, generation: int, since: str
) -> Request:
    """Whether a native group was scheduled, with the condition type of its API version; other conditions stay."""
    condition = _condition(
        condition_type(api_version), decision.status, decision.reason, decision.message[:MAX_MESSAGE], since
    )
    body = {
        "metadata": {"uid": uid},
        "status": {"conditions": [{**condition, "observedGeneration": generation}]},
    }
    resource = RESOURCES[NativePodGroup]._replace(version=api_version.rpartition("/")[2])
    return _request("PATCH", resource.path(decision.namespace, decision.name, "status"), body, STRATEGIC)


def queue_status(decision: QueueStatus, written: Iterable[str]) -> Request:
    """What a queue has allocated; resources `written` before and no longer held are removed."""
    allocated: dict[str, str | None] = {name: None for name in written if name not in decision.allocated}
    body = {"status": {"allocated": allocated | decision.allocated}}
    return _request("PATCH", RESOURCES[Queue].path(name=decision.name, subresource="status"), body, MERGE)


def queue_annotation(decision: QueueAnnotation) -> Request:
    body = {"metadata": {"annotations": {decision.key: decision.value}}}
    return _request("PATCH", RESOURCES[Queue].path(name=decision.name), body, MERGE)


def shard_status(decision: ShardStatus) -> Request:
    status = {
        "nodesInUse": decision.in_use,
        "nodesToAdd": decision.to_add,
        "nodesToRemove": decision.to_remove,
    }
    path = RESOURCES[NodeShard].path(name=decision.name, subresource="status")
    return _request("PATCH", path, {"status": status}, MERGE)


def gate_removal(decision: GateRemoval) -> Request:
    """Removes this gate from the list and keeps the others."""
    gate = {"name": names.QUEUE_ALLOCATION_GATE, "$patch": "delete"}
    body = {"metadata": {"uid": decision.uid}, "spec": {"schedulingGates": [gate]}}
    return _request("PATCH", pod_path(decision.namespace, decision.name), body, STRATEGIC)


def _status_patch(namespace: str, name: str, uid: str, status: dict[str, Any]) -> Request:
    body = {"metadata": {"uid": uid}, "status": status}
    return _request("PATCH", pod_path(namespace, name, "status"), body, STRATEGIC)


def _condition(type: str, status: str, reason: str, message: str, since: str | None) -> dict[str, str]:
    text = message if message.isascii() else message.encode(errors="replace").decode()
    fields = {"type": type, "status": status, "reason": reason, "message": text}
    return fields if since is None else {**fields, "lastTransitionTime": since}


def _request(method: str, path: str, body: Any, content_type: str = "application/json") -> Request:
    return Request(method, path, msgspec.json.encode(body), content_type)


# -- writes about PodGroups and queues: status patches that keep what others wrote (spec 05 9.2, 9.5)


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
        return GroupStatus(self.metadata.resource_version, self.status.conditions or (), counted(self.status))


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
        conditions = group_conditions(known.conditions, status, self._wall())
        request = group_status(status, order.uid, known.version, known.counted, conditions.values())
        response = await self._client.send(request)
        with suppress(ValueError):
            written = msgspec.json.decode(response, type=_Group).known()
            if written.version:
                self._written.put(key, written)
                return
        self._written.pop(key, None)

    async def _read_group(self, order: WriteOrder, status: PodGroupStatus) -> GroupStatus | None:
        """The PodGroup as it is now; none if it is gone. A list of one, as the scheduler may list but not get."""
        request = list_of_one_group(status.namespace, status.name)
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
        request = native_condition(condition, order.uid, order.api_version, order.generation, since)
        await self._client.send(request)
        self._written.put(key, (condition.status, since))

    async def write_queue_status(self, order: WriteOrder, status: QueueStatus) -> None:
        key = ("Queue", status.name)
        written = {*order.shown, *self._written.get(key, ())}
        await self._client.send(queue_status(status, written))
        self._written.put(key, tuple(status.allocated))


def _shown(order: WriteOrder) -> GroupStatus:
    """The PodGroup of an order as the watch has shown it."""
    group = order.newest_group()
    if group is None or group.metadata.uid != order.uid:
        return GroupStatus("", (), frozenset())
    conditions = tuple(as_json(condition) for condition in group.status.conditions)
    return GroupStatus(group.metadata.resource_version, conditions, counted(group.status))


# -- writes about pods (spec 05 6.4, 7, 9.3)


class PodNotBindable(Exception):
    """The pod of a bind is gone, or on another node."""


class PodWrites:
    """Executes orders about pods."""

    def __init__(
        self,
        client: GuardedClient,
        written: BoundedCache,
        record: Callable[[WriteOrder], None],
        scheduler: str,
        wall: Callable[[], float],
    ):
        """`written` holds the uids of pods that have a condition by us. `record` writes an event."""
        self._client = client
        self._written = written
        self._record = record
        self._scheduler = scheduler
        self._wall = wall

    async def bind(self, _: WriteOrder, bind: Bind) -> None:
        try:
            await self._client.send(binding(bind))
        except ApiError as error:
            if error.status == 404:
                raise PodNotBindable("the pod is gone") from None
            if error.status != 409 or not await self._is_bound(bind):
                raise
        self._written.pop(bind.uid, None)
        text = names.SUCCESSFULLY_ASSIGNED.format(namespace=bind.namespace, name=bind.name, node=bind.node)
        event = Event("Pod", bind.namespace, bind.name, names.NORMAL, names.EVENT_SCHEDULED, text)
        self._record(WriteOrder(event, bind.uid))

    async def _is_bound(self, bind: Bind) -> bool:
        """Whether the pod is bound as decided, as after a lost response; `PodNotBindable` if it cannot be."""
        try:
            body = await self._client.send(Request("GET", pod_path(bind.namespace, bind.name)))
        except ApiError as error:
            if error.status == 404:
                raise PodNotBindable("the pod is gone") from None
            raise
        pod = decode_as(Pod, body)
        if pod.metadata.uid != bind.uid:
            raise PodNotBindable("the pod is gone, and another one has its name")
        if pod.spec.node_name not in ("", bind.node):
            raise PodNotBindable(f"the pod is bound to {pod.spec.node_name} already")
        return pod.spec.node_name == bind.node

    async def evict(self, order: WriteOrder, evict: Evict) -> None:
        beneficiary = f" for {evict.beneficiary}" if evict.beneficiary else ""
        text = names.POD_EVICTED.format(reason=f"{evict.action or evict.reason}{beneficiary}")
        if not order.marked:
            mark = eviction_mark(evict, text, self._scheduler, self._wall())
            await self._client.send(mark)
            order.marked = True
        await self._client.send(deletion(pod_path(evict.namespace, evict.name), evict.uid))

    async def set_condition(self, _: WriteOrder, condition: PodCondition) -> None:
        """Why a pod waits; its transition time is set only by the first write."""
        since = None if condition.uid in self._written else self._wall()
        await self._client.send(pod_condition(condition, since))
        self._written.put(condition.uid, True)
