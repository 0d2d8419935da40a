"""Objects beside the pods of a job: made once, kept up where they follow the job, taken away at its end.

What has the right name and belongs to somebody else is used as it is and never deleted. What an earlier job of the
same name left behind goes by itself, so it is waited for.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Iterable
from typing import Any

import msgspec

from stromboli.api.types.volcano_job import Job, Manifest
from stromboli.controllers.api_writer import Pen
from stromboli.controllers.controller import Hindrance
from stromboli.controllers.job.job_pods import owner_of
from stromboli.controllers.job.plugins.job_plugin import Attachment
from stromboli.kube.api_resources import Resource

PLURALS = {"NetworkPolicy": "networkpolicies", "Ingress": "ingresses"}
"""That are not made by adding an s."""


def resource_of(manifest: Manifest) -> Resource:
    """Where objects of its kind live."""
    group, _, version = str(manifest["apiVersion"]).rpartition("/")
    kind = str(manifest["kind"])
    return Resource(group, version, PLURALS.get(kind, f"{kind.lower()}s"), kind)


async def attach(pen: Pen, job: Job, wanted: Iterable[Attachment]) -> None:
    """See to it that they exist. Of a job that had them before we look first, so as not to write in vain."""
    known = any(key.startswith("plugin-") for key in job.status.controlled_resources)
    for one in wanted:
        found = await _read(pen, one, job.namespace) if known else None
        if found is None:
            manifest = await _complete(one)
            if await pen.create(resource_of(manifest), manifest, job.namespace) is not None:
                continue
            found = await _read(pen, one, job.namespace)
        if found is not None:
            _refuse_remains(job, one, found)
            await _follow(pen, one, found, job.namespace)


def _refuse_remains(job: Job, one: Attachment, found: Manifest) -> None:
    """What an earlier job of this name owns is about to be collected: it must not be taken for ours."""
    mine = owner_of(job)
    for owner in found.get("metadata", {}).get("ownerReferences") or ():
        same = all(owner.get(key) == mine[key] for key in ("apiVersion", "kind", "name"))
        if same and owner.get("uid") != job.metadata.uid:
            raise Hindrance(f"{one.kind} {one.name} of an earlier job of this name is still being deleted")


async def detach(pen: Pen, job: Job, unwanted: Iterable[Attachment]) -> None:
    """Delete those that the job owns."""
    for one in unwanted:
        found = await _read(pen, one, job.namespace)
        metadata = (found or {}).get("metadata", {})
        owners = [owner.get("uid") for owner in metadata.get("ownerReferences") or ()]
        if job.metadata.uid in owners:
            resource = resource_of(one.manifest)
            await pen.delete_at(resource, one.name, job.namespace, metadata.get("uid", ""))


async def _read(pen: Pen, one: Attachment, namespace: str) -> Manifest | None:
    answer = await pen.read_at(resource_of(one.manifest), one.name, namespace)
    return None if answer is None else msgspec.json.decode(answer, type=dict[str, Any])


async def _complete(one: Attachment) -> Manifest:
    """With what is made only once; keys take a while to make, so that happens aside."""
    if one.secrets is None:
        return one.manifest
    manifest = copy.deepcopy(one.manifest)
    made = await asyncio.to_thread(one.secrets)
    manifest[one.follows] = {**made, **manifest.get(one.follows, {})}
    return manifest


async def _follow(pen: Pen, one: Attachment, found: Manifest, namespace: str) -> None:
    """Bring the part that follows the job up to date."""
    wanted = one.manifest.get(one.follows) if one.follows else None
    if not isinstance(wanted, dict):
        return
    has = found.get(one.follows) or {}
    changes = {key: value for key, value in wanted.items() if has.get(key) != value}
    if changes:
        await pen.patch_at(resource_of(one.manifest), one.name, {one.follows: changes}, namespace)
