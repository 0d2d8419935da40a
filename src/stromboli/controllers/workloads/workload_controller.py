"""The base of the controllers of Kubernetes' workloads: owners, events in the controller's name, status, and rests.

A sync looks at all pods of its owner, and each of n pods changes several times: an owner rests after a sync in
proportion to what that computed, so that changes meanwhile are handled together.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar, Generic, TypeVar

import msgspec

from stromboli.api.errors import BadObject
from stromboli.api.patches import merge_patch_between
from stromboli.api.types.meta import Object, Record
from stromboli.controllers.controller import Context, Controller
from stromboli.controllers.reconciler import SyncError
from stromboli.controllers.watched_resources import WATCHED_RESOURCES
from stromboli.controllers.workloads.workload import Workload

Owner = TypeVar("Owner", bound=Workload)


def namespace_of(obj: Object) -> tuple[str, ...]:
    """Index function: the namespace."""
    return (obj.namespace,)


class WorkloadController(Controller[str], Generic[Owner]):
    """One key per owner, `namespace/name`. `name` is also the source of its events."""

    kind: ClassVar[type[Workload]]
    """Of the owners."""
    status_counts: ClassVar[tuple[str, ...]] = ("replicas",)
    """Numbers that the status has even if they are 0."""
    workers = 5

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        resource = WATCHED_RESOURCES[self.kind]
        self.owner_type = resource.api_version, resource.kind
        self.recorder = context.recorder.of_component(self.name)
        self.on_owner_gone: list[Callable[[Workload], object]] = []
        self.owners = self.watch(self.kind, self._owner_changed)
        self._by_namespace = self.owners.index(namespace_of)

    def owners_in(self, namespace: str) -> list[Workload]:
        return self._by_namespace[namespace]

    def _owner_changed(self, before: Workload | None, now: Workload | None) -> Iterable[str]:
        if now is not None:
            return [now.key]
        if before is not None:
            self._forget_owner(before)
        return []

    def _forget_owner(self, owner: Workload) -> None:
        self.rests_until.pop(owner.key, None)
        for forget in self.on_owner_gone:
            forget(owner)

    async def sync(self, key: str) -> float | None:
        owner: Any = self.owners.get(key)
        if owner is None:
            return None
        try:
            return await self.sync_owner(owner)
        except BadObject as error:
            self.recorder.warning(owner, "FailedCreate", f"Error creating: {error}")
            raise SyncError(str(error)) from None
        finally:
            now = self.owners.get(key)
            if (
                now is None or now.metadata.uid != owner.metadata.uid
            ):  # gone, and noted by this sync once more
                self._forget_owner(owner)

    @abstractmethod
    async def sync_owner(self, owner: Owner) -> float | None:
        """As `Controller.sync`, for an owner that exists."""

    @contextmanager
    def computing(self, owner: Owner) -> Iterator[None]:
        """The owner rests in proportion to the CPU time that such blocks of a sync take; they await nothing."""
        begin = time.thread_time()
        try:
            yield
        finally:
            self.rest(owner.key, time.thread_time() - begin)

    async def write_status(self, owner: Owner, status: Record) -> None:
        """Patch what differs from the owner's status."""
        before, after = _manifest(owner.status), _manifest(status)
        patch = merge_patch_between(before, after)
        if patch:
            patch |= {count: after.get(count, 0) for count in self.status_counts}
            await self.patch_status(owner, {"status": patch})

    async def patch_status(self, owner: Owner, patch: Mapping[str, Any]) -> None:
        """Also if the owner has changed since: nobody else writes what the patch says."""
        self.owners.mutated(await self.context.writer.patch(owner, patch, "status", exact=False))


def _manifest(status: Record) -> dict[str, Any]:
    manifest: dict[str, Any] = msgspec.to_builtins(status)
    return manifest
