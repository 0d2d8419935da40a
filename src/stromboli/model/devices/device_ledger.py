"""The ledger of devices: which ones ResourceClaims hold, and which of these are coming free.

A claim holds what its object shows as allocated, or else what tasks were given for it and is still being written.
Everything is counted claim by claim, as a function of the claim's object and of the tasks that use it, so that it is
the same in whatever order objects and moves arrive.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

import msgspec

from stromboli.api.types.devices import (
    DeviceClaim,
    DeviceClass,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceSlice,
)
from stromboli.model.devices.allocator import Allocator, DeviceShortage, DevicesInUse, PoolId
from stromboli.model.devices.claim_use import (
    ClaimContent,
    ClaimGrant,
    ClaimUse,
    DeviceUsage,
    ExtendedResourceGrant,
    Holding,
    TaskUse,
)
from stromboli.model.devices.extended_resources import asked_resources, extended_classes
from stromboli.model.devices.pools.pool_index import PoolIndex
from stromboli.model.feed import Topic
from stromboli.model.ledgers import Fact, Grant, Ledger, Unsettled
from stromboli.model.status import ALLOCATED_CLASS, Status

if TYPE_CHECKING:
    from stromboli.api.types.devices import AllocationResult
    from stromboli.api.types.meta import Object
    from stromboli.api.types.pod import PodSpec
    from stromboli.model.devices.allocator import ClaimSearch
    from stromboli.model.job import Job
    from stromboli.model.lookup_objects import LookupObjects
    from stromboli.model.node_columns import Node
    from stromboli.model.queue import Queue
    from stromboli.model.task import Task

_encoder = msgspec.msgpack.Encoder(order="sorted")
_NOTHING = DevicesInUse()
_MANY = 2**20
"""Stands for a number without limit: several claims may share a device."""


class DeviceLedger(Ledger):
    """Claims with their users, and the devices in use."""

    kinds = (ResourceSlice, ResourceClaim, DeviceClass)

    def __init__(self, objects: LookupObjects, nodes: Mapping[str, Node]):
        self._objects = objects
        self._nodes = nodes
        self.claims: dict[str, ClaimUse] = {}
        """Claims that exist or are used, by `namespace/name`."""
        self.in_use = DevicesInUse()
        """Devices that claims hold or are promised."""
        self.staying = DevicesInUse()
        """The same without those that come free once what is leaving has left."""
        self.unused: dict[ClaimUse, None] = {}
        """Claims whose objects show an allocation while no task on a node uses them."""
        self.leaving = 0
        """How many claims hold devices that come free."""
        self.pools = PoolIndex(objects.feed)
        """The devices that drivers have published, by pool and node."""
        self.allocator = Allocator(objects.device_classes, self.pools)
        self._classes: Topic[str] = objects.feed.topic()
        self._published: Topic[str] = objects.feed.topic()
        """Classes and all pools."""
        self.extended: dict[str, str] = {}
        """The class that serves each extended resource."""
        self.changes: Topic[PoolId | str] = objects.feed.topic()
        """The pools of which devices were taken or given back."""
        self._contents: WeakValueDictionary[bytes, ClaimContent] = WeakValueDictionary()
        self._used_by: dict[Task, tuple[ClaimUse, ...]] = {}
        """The claims that a task on a node is counted as a user of."""
        self._charged: dict[Task, tuple[Queue, Status, tuple[ClaimUse, ...]]] = {}
        """The queue in which claims of a task are counted, the status by which they are, and the claims."""
        self.held: dict[Queue, DeviceUsage] = {}
        """What queues hold or are promised."""
        self.allocated: dict[Queue, DeviceUsage] = {}
        """What queues hold."""
        self._statuses: dict[str, Status] = {}
        """The statuses of these tasks by uid."""
        self._reserved: dict[str, dict[ClaimUse, None]] = {}
        """Claims by the uid of each of their consumers."""
        self._made: dict[str, dict[ClaimUse, None]] = {}
        """Claims that exist for extended resources, by the uid of their pod."""

    def concerns(self, spec: PodSpec) -> bool:
        """Pods with claims, and those with extended resources, which devices may serve."""
        return bool(spec.resource_claims) or bool(self.extended and asked_resources(spec, self.extended))

    @property
    def objects_version(self) -> int:
        """Increases with every change to classes, and to pools that many nodes may see."""
        return max(self._classes.generation, self.pools.shared.generation)

    @property
    def published(self) -> int:
        """Increases with every change to classes and to all pools."""
        return self._published.generation

    # -- objects

    def put(self, obj: Object) -> None:
        if isinstance(obj, ResourceSlice):
            before = self._objects.resource_slices.get(obj.name)
            self.pools.put(obj)
            for each in (before, obj) if before is not None else (obj,):
                self._note_slice(each)

    def drop(self, obj: Object) -> None:
        if isinstance(obj, ResourceSlice):
            self.pools.drop(obj.name)
            self._note_slice(obj)

    def changed(self, obj: Object) -> None:
        if isinstance(obj, ResourceClaim):
            self._claim_changed(obj.key)
        elif isinstance(obj, DeviceClass):
            self._class_changed()

    # -- pools

    def _note_slice(self, slice: ResourceSlice) -> None:
        """Note what a slice changes for the nodes that its pool names; the pools note what it does for others."""
        self._published.note(slice.name)
        spec, id = slice.spec, PoolId(slice.spec.driver, slice.spec.pool.name)
        if not self.pools.is_selected(id):
            for name in {spec.node_name, *self.pools.nodes_naming(id)} - {""}:
                self.changes.note(name)

    def _class_changed(self) -> None:
        """A DeviceClass was added, changed or deleted: devices may serve other extended resources."""
        self._classes.note("")
        self._published.note("")
        before, self.extended = self.extended, extended_classes(self._objects.device_classes.values())
        if before != self.extended:
            self._objects.feed.concerns.note(None)
            self._count_concerned()

    def _count_concerned(self) -> None:
        """Other pods are concerned than before: count those on nodes that are, and no others."""
        for node in self._nodes.values():
            for task in node.tasks:
                if self.concerns(task.shape.spec) is not (task in self._used_by):
                    change = self.remove if task in self._used_by else self.add
                    change(task, task.status, node)

    def search_for(self, resource: str) -> ClaimSearch:
        """The search for a device that serves an extended resource."""
        asked = ExactDeviceRequest(self.extended[resource], count=1)
        return self.allocator.prepare([ResourceClaimSpec(DeviceClaim((DeviceRequest("r", asked),)))])

    def most_served(self, node: Node, search: ClaimSearch) -> int:
        """How many devices of a node may serve an extended resource at most; none if none does."""
        if isinstance(search.answer(node, _NOTHING), DeviceShortage):
            return 0
        devices = [device for pool in self.pools.pools_of(node) if pool.is_usable for device in pool.devices]
        shared = any(device.content.device.allow_multiple_allocations for device in devices)
        return _MANY if shared else len(devices)

    def made_for(self, task: Task) -> bool:
        """Whether there is a claim for extended resources of a task already."""
        return task.uid in self._made

    def rows_seeing(self, changes: Iterable[PoolId | str], nodes: Mapping[str, Node]) -> set[int]:
        """The rows of nodes to which changed pools may matter."""
        rows: set[int] = set()
        for change in changes:
            names = (change,) if isinstance(change, str) else self.pools.nodes_seeing(change)
            rows.update(nodes[name].row for name in names if name in nodes)
        return {row for row in rows if row >= 0}

    # -- tasks

    def add(self, task: Task, status: Status, node: Node) -> None:
        given = dict(_given(task))
        uses = tuple({self._use(key): None for key in (*_named(task), *given)})
        self._used_by[task] = uses
        self._statuses[task.uid] = status
        for use in uses:
            use.users[task] = TaskUse(status, given.get(use.key))
        self._charge(task)
        self._count_all((*uses, *self._reserved.get(task.uid, ())))

    def remove(self, task: Task, status: Status, node: Node) -> None:
        self._discharge(task)
        uses = self._used_by.pop(task, ())
        self._statuses.pop(task.uid, None)
        for use in uses:
            del use.users[task]
        self._count_all((*uses, *self._reserved.get(task.uid, ())))

    # -- what queues use

    def recharge(self, job: Job, queue: Queue, sign: int) -> None:
        for task in job.tasks.values() if self._used_by else ():
            if task in self._used_by:
                (self._charge if sign > 0 else self._discharge)(task)

    def _charge(self, task: Task) -> None:
        queue, status = task.job.queue if task.job is not None else None, self._statuses[task.uid]
        if queue is not None:
            claims = self.counted_claims(task, task.grants)
            self._charged[task] = (queue, status, claims)
            for usages in self._usages(status):
                usages.setdefault(queue, DeviceUsage()).add(claims)

    def _discharge(self, task: Task) -> None:
        charged = self._charged.pop(task, None)
        if charged is None:
            return
        queue, status, claims = charged
        for usages in self._usages(status):
            usage = usages.setdefault(queue, DeviceUsage())
            usage.remove(claims)
            if not usage:
                del usages[queue]

    def counted_claims(self, task: Task, grants: Iterable[Grant]) -> tuple[ClaimUse, ...]:
        """What a task with these grants uses of the quota of its queue: its claims that exist.

        The claim of its extended resources counts as soon as it was given, though it is not created yet.
        """
        uses = [use for key in dict.fromkeys(_named(task)) if (use := self.claims.get(key)) and use.object]
        if not any(use.is_extended for use in uses):
            for grant in grants:
                if isinstance(grant, ExtendedResourceGrant):
                    content = self.content(ResourceClaimSpec(DeviceClaim(grant.requests)))
                    uses.append(ClaimUse(extended_key(task.uid), content=content))
        return tuple(uses)

    def _usages(self, status: Status) -> Iterator[dict[Queue, DeviceUsage]]:
        if ALLOCATED_CLASS[status]:
            yield self.allocated
        if ALLOCATED_CLASS[status] or status is Status.PIPELINED:
            yield self.held

    # -- claims

    def _claim_changed(self, key: str) -> None:
        """A ResourceClaim was added, changed or deleted."""
        use = self._use(key)
        for task in use.users:
            self._discharge(task)
        self._index(use, False)
        pods = {use.controller}
        use.object = self._objects.resource_claims.get(key)
        use.content = self.content(use.object.spec) if use.object is not None else None
        self._index(use, True)
        for task in use.users:
            self._charge(task)
        pods.add(use.controller)
        in_flight = (self.claims.get(extended_key(uid)) for uid in pods)
        self._count_all((use, *(other for other in in_flight if other is not None)))

    def _index(self, use: ClaimUse, present: bool) -> None:
        """Add a claim to those of its consumers, and to those made for its pod, or remove it there."""
        if use.object is None:
            return
        consumers = [(self._reserved, consumer.uid) for consumer in use.object.status.reserved_for]
        for index, uid in [*consumers, *([(self._made, use.controller)] if use.is_extended else [])]:
            claims = index.setdefault(uid, {})
            if present:
                claims[use] = None
            else:
                claims.pop(use, None)
            if not claims:
                del index[uid]

    def content(self, spec: ResourceClaimSpec) -> ClaimContent:
        """What claims of a spec share."""
        key = _encoder.encode(spec)
        content = self._contents.get(key)
        if content is None:
            content = self._contents[key] = ClaimContent(spec)
        return content

    def _use(self, key: str) -> ClaimUse:
        use = self.claims.get(key)
        if use is None:
            use = self.claims[key] = ClaimUse(key)
            if key.startswith(_EXTENDED):
                use.made_for = key.removeprefix(_EXTENDED)
        return use

    # -- the consistency check

    def facts(self, unsettled: Unsettled) -> Iterator[Fact]:
        for key, use in self.claims.items():
            if use.object is not None and unsettled.uids.isdisjoint(_consumers(use)):
                yield ("ResourceClaim", f"{key} devices"), f"holds {_devices(use)}"

    # -- counting

    def _count_all(self, uses: Iterable[ClaimUse]) -> None:
        """Count what claims hold at this moment in place of what was counted of them before."""
        for use in uses:
            before, after = use.counted, self._holding(use)
            if before != after:
                self._shift(before, -1)
                self._shift(after, 1)
                use.counted = after
            if (use.shown is not None or use.is_extended) and not use.users:
                self.unused[use] = None
            else:
                self.unused.pop(use, None)
            if use.object is None and not use.users:
                self.claims.pop(use.key, None)

    def _holding(self, use: ClaimUse) -> Holding | None:
        """What is to be counted of a claim; if its object shows it, not once more what its users were given."""
        allocation = use.allocation
        if allocation is None or (
            use.made_for and any(made.shown for made in self._made.get(use.made_for, ()))
        ):
            return None
        return Holding(allocation, not use.is_leaving(self._statuses))

    def _shift(self, holding: Holding | None, sign: int) -> None:
        if holding is None:
            return
        self.leaving += sign * (not holding.stays)
        for in_use in (self.in_use, self.staying) if holding.stays else (self.in_use,):
            (in_use.add if sign > 0 else in_use.remove)(holding.allocation)
        for result in holding.allocation.devices.results:
            self.changes.note(PoolId(result.driver, result.pool))


def _consumers(use: ClaimUse) -> set[str]:
    """The uids of all that use a claim."""
    reserved = use.object.status.reserved_for if use.object is not None else ()
    return {task.uid for task in use.users} | {consumer.uid for consumer in reserved}


def _devices(use: ClaimUse) -> list[str]:
    if use.counted is None:
        return []
    results = use.counted.allocation.devices.results
    return [f"{result.driver}/{result.pool}/{result.device}" for result in results]


def _named(task: Task) -> Iterator[str]:
    for claim in task.claims:
        if claim.claim:
            yield f"{task.namespace}/{claim.claim}"
    if task.extended_claim:
        yield f"{task.namespace}/{task.extended_claim}"


def _given(task: Task) -> Iterator[tuple[str, AllocationResult]]:
    """What a task was given besides what its claims showed, by the key of the claim."""
    for grant in task.grants:
        if isinstance(grant, ClaimGrant) and grant.allocation is not None:
            yield f"{grant.namespace}/{grant.name}", grant.allocation
        elif isinstance(grant, ExtendedResourceGrant):
            yield extended_key(task.uid), grant.allocation


_EXTENDED = "<extended-resources> "


def extended_key(uid: str) -> str:
    """Stands for the claim of a pod's extended resources until it is created; no object has such a key."""
    return _EXTENDED + uid
