"""Creates, updates and deletes the attachments of job plugins.

An object of that name which somebody else owns is used as it is and never deleted. One that an earlier job of the same
name owns is about to be garbage collected, so it is waited for.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Iterable
from typing import Any

import msgspec

from stromboli.api.types.volcano_job import Job, Manifest
from stromboli.controllers.api_writer import ApiWriter
from stromboli.controllers.controller import SyncError
from stromboli.controllers.job.plugins.job_plugin import Attachment
from stromboli.controllers.owner_references import controller_reference
from stromboli.kube.api_resources import resource_of


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
        if existing is not None:
            _refuse_leftover(job, attachment, existing)
            await _update(writer, attachment, existing, job.namespace)


def _refuse_leftover(job: Job, attachment: Attachment, existing: Manifest) -> None:
    """An object of an earlier job of this name must not be taken for ours."""
    mine = controller_reference(job)
    for owner in existing.get("metadata", {}).get("ownerReferences") or ():
        same = all(owner.get(key) == mine[key] for key in ("apiVersion", "kind", "name"))
        if same and owner.get("uid") != job.metadata.uid:
            raise SyncError(
                f"{attachment.kind} {attachment.name} of an earlier job of this name is still being deleted"
            )


async def detach(writer: ApiWriter, job: Job, unwanted: Iterable[Attachment]) -> None:
    """Delete those that the job owns."""
    for attachment in unwanted:
        existing = await _read(writer, attachment, job.namespace)
        metadata = (existing or {}).get("metadata", {})
        owners = [owner.get("uid") for owner in metadata.get("ownerReferences") or ()]
        if job.metadata.uid in owners:
            resource = resource_of(attachment.manifest)
            await writer.delete_at(resource, attachment.name, job.namespace, metadata.get("uid", ""))


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
        resource = resource_of(attachment.manifest)
        await writer.patch_at(resource, attachment.name, {field: changes}, namespace)
