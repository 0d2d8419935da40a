"""The ControllerRevisions of a controller's owners: found and adopted, created, renumbered and deleted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from stromboli.controllers.reconciler import SyncError
from stromboli.controllers.workloads.controller_revisions import (
    ControllerRevision,
    NextRevision,
    new_revision,
    next_revision,
    ordered,
    template_patch,
)
from stromboli.controllers.workloads.dependents import Dependents
from stromboli.controllers.workloads.workload import Workload
from stromboli.controllers.workloads.workload_controller import WorkloadController
from stromboli.controllers.workloads.workload_kinds import SelectingWorkload

COLLISIONS = 8
"""Names that are tried for a new revision in a sync."""


class RevisionHistory(Dependents[ControllerRevision]):
    """`hash_label` is the label of a revision with the end of its name."""

    def __init__(self, controller: WorkloadController[Any], hash_label: str) -> None:
        super().__init__(controller, ControllerRevision)
        self._hash_label = hash_label

    async def past_and_present(self, owner: SelectingWorkload) -> list[ControllerRevision]:
        """The revisions of an owner by number, orphans that it selects included."""
        return ordered(await self.claim(owner))

    async def newest(
        self, owner: Workload, revisions: list[ControllerRevision], collisions: int
    ) -> tuple[ControllerRevision, NextRevision, int]:
        """The revision of the owner's template, created or renumbered if need be; how often its name was taken."""
        wanted = next_revision(owner, revisions)
        if wanted.revision is None:
            created, collisions = await self._create_revision(owner, wanted.number, collisions)
            return created, wanted, collisions
        if wanted.renumbered:
            return await self._renumber(wanted.revision, wanted.number), wanted, collisions
        return wanted.revision, wanted, collisions

    async def _create_revision(
        self, owner: Workload, number: int, collisions: int
    ) -> tuple[ControllerRevision, int]:
        for attempt in range(collisions, collisions + COLLISIONS):
            manifest = new_revision(owner, number, attempt, self._hash_label)
            created = await self.create(owner, manifest)
            if created is None:  # ours already, or that of somebody else
                name = manifest["metadata"]["name"]
                created = await self.context.writer.read(ControllerRevision, name, owner.namespace)
            if created is not None and created.data == template_patch(owner):
                return created, attempt
        raise SyncError(f"{owner.subject}: {COLLISIONS} names for a revision of its template are taken")

    async def _renumber(self, revision: ControllerRevision, number: int) -> ControllerRevision:
        changed = await self.context.writer.patch(revision, {"revision": number})
        if changed is None:
            raise SyncError(f"ControllerRevision {revision.key} is gone")
        self.store.mutated(changed)
        return changed

    async def delete_all(self, owner: Workload, revisions: Iterable[ControllerRevision]) -> None:
        for revision in revisions:
            if revision.metadata.deletion_timestamp is None:
                await self.delete(owner, revision)
