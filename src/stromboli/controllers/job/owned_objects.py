"""Objects that belong to a job or another owner: nothing that somebody else made is taken for them.

An object that has the name of one that an owner needs, and that the owner does not control, is neither changed, used
nor deleted: `NameTaken` tells the user, and the owner waits until the name is free. What an earlier job of the same
name left is about to be garbage collected, so it is waited for without a word.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Collection, Iterable
from typing import Any

import msgspec

from stromboli.api import names
from stromboli.api.types.meta import Object
from stromboli.api.types.volcano_job import Job, Manifest
from stromboli.controllers.api_writer import ApiWriter
from stromboli.controllers.job.plugins.job_plugin import Attachment
from stromboli.controllers.owner_references import controller_reference
from stromboli.controllers.reconciler import SyncError
from stromboli.kube.api_resources import resource_of


class NameTaken(SyncError):
    """An object of somebody else has the name of one that is needed."""


def refuse_foreign(owner: Object, kind: str, name: str, controllers: Collection[str]) -> None:
    """Raise `NameTaken` unless the owner's uid is among those of an object's controllers."""
    if owner.metadata.uid not in controllers:
        owner_kind = type(owner).__name__
        raise NameTaken(names.NAME_TAKEN_MESSAGE.format(kind=kind, name=name, owner=owner_kind))


# -- attachments of job plugins


async def attach(writer: ApiWriter, job: Job, wanted: Iterable[Attachment]) -> None:
    """Create or update them; those of a job that had them before are read first, to save a creation that fails."""
    had_any = any(key.startswith("plugin-") for key in job.status.controlled_resources)
    for attachment in wanted:
        existing = await _read(writer, attachment, job.namespace) if had_any else None
        if existing is None:
            manifest = await _with_secrets(attachment)
            if await writer.create(resource_of(manifest), manifest, job.namespace) is not None:
                continue
            existing = await _read(writer, attachment, job.namespace)
        if existing is None:
            raise SyncError(f"{attachment.kind} {attachment.name} was there and is gone")
        _wait_for_leftover(job, attachment, existing)
        refuse_foreign(job, attachment.kind, attachment.name, _controllers(existing))
        await _update(writer, attachment, existing, job.namespace)


async def detach(writer: ApiWriter, job: Job, unwanted: Iterable[Attachment]) -> None:
    """Delete those that the job controls."""
    for attachment in unwanted:
        existing = await _read(writer, attachment, job.namespace)
        if existing is not None and job.metadata.uid in _controllers(existing):
            resource, uid = resource_of(attachment.manifest), existing["metadata"].get("uid", "")
            await writer.delete_at(resource, attachment.name, job.namespace, uid)


def _controllers(manifest: Manifest) -> list[str]:
    """The uids of the owners that control an object."""
    return [str(owner.get("uid")) for owner in _owners(manifest) if owner.get("controller") is True]


def _owners(manifest: Manifest) -> list[Manifest]:
    return manifest.get("metadata", {}).get("ownerReferences") or []


def _wait_for_leftover(job: Job, attachment: Attachment, existing: Manifest) -> None:
    """An object of an earlier job of this name must not be taken for ours."""
    mine = controller_reference(job)
    for owner in _owners(existing):
        same = all(owner.get(key) == mine[key] for key in ("apiVersion", "kind", "name"))
        if same and owner.get("uid") != job.metadata.uid:
            raise SyncError(
                f"{attachment.kind} {attachment.name} of an earlier job of this name is still being deleted"
            )


async def _read(writer: ApiWriter, attachment: Attachment, namespace: str) -> Manifest | None:
    answer = await writer.read_at(resource_of(attachment.manifest), attachment.name, namespace)
    return None if answer is None else msgspec.json.decode(answer, type=dict[str, Any])


async def _with_secrets(attachment: Attachment) -> Manifest:
    """With the entries that are generated once; in a thread, as keys take a while."""
    if attachment.secrets is None:
        return attachment.manifest
    manifest = copy.deepcopy(attachment.manifest)
    secrets = await asyncio.to_thread(attachment.secrets)
    manifest[attachment.follows] = {**secrets, **manifest.get(attachment.follows, {})}
    return manifest


async def _update(writer: ApiWriter, attachment: Attachment, existing: Manifest, namespace: str) -> None:
    """Bring the field that follows the job up to date."""
    field = attachment.follows
    wanted = attachment.manifest.get(field) if field else None
    if not isinstance(wanted, dict):
        return
    current = existing.get(field) or {}
    changes = {key: value for key, value in wanted.items() if current.get(key) != value}
    if changes:
        patch = {field: changes, "metadata": {"uid": existing["metadata"].get("uid", "")}}
        await writer.patch_at(resource_of(attachment.manifest), attachment.name, patch, namespace)
