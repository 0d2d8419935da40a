"""Changes of objects for `-w`: a watch that breaks is resumed, with pauses that grow while the server is away."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from stromboli.cli.cli_errors import print_note
from stromboli.cli.cluster.cluster_errors import EXPIRED, shown
from stromboli.cli.cluster.cluster_kinds import Manifest
from stromboli.cli.cluster.cluster_session import ObjectChange
from stromboli.kube.api_resources import Resource
from stromboli.kube.request import ApiError, Backoff, NoResponse, is_transient

if TYPE_CHECKING:
    from stromboli.cli.cluster.cluster_session import ClusterSession

BACKOFF = Backoff(first=0.5, longest=10.0)
TOLD_AFTER = 3
"""Failures in a row until the user hears of them."""


async def lasting_changes(
    session: ClusterSession,
    resource: Resource,
    version: str,
    namespace: str | None = None,
    labels: str = "",
    fields: str = "",
) -> AsyncIterator[ObjectChange]:
    """Changes after a version, until the API server refuses for good.

    Where the server has forgotten what changed since, the objects that did come as they are now, and those that were
    deleted do not come.
    """
    failures, expired = 0, False
    while True:
        try:
            if expired:
                listed = await session.list(resource, namespace, labels, fields)
                for item in listed.items:
                    if _is_newer(version_of(item), version):
                        yield ObjectChange("MODIFIED", item)
                version, expired = listed.version, False
            async for change in session.watch(resource, version, namespace, labels, fields):
                version, failures = version_of(change.object) or version, 0
                if change.type != "BOOKMARK":
                    yield change
        except (NoResponse, ApiError) as error:
            if isinstance(error, ApiError) and error.status == EXPIRED:
                expired = True
            else:
                _tell_or_raise(error, failures + 1)
        failures += 1  # also of a server that ends every watch at once
        await asyncio.sleep(BACKOFF.pause(failures))


def version_of(manifest: Manifest) -> str:
    return str((manifest.get("metadata") or {}).get("resourceVersion") or "")


def _is_newer(version: str, known: str) -> bool:
    """Whether an object has changed since; if that cannot be told, it may have."""
    return not (version.isdecimal() and known.isdecimal()) or int(version) > int(known)


def _tell_or_raise(error: Exception, failures: int) -> None:
    if not is_transient(error):
        raise error
    if failures == TOLD_AFTER:
        print_note(shown(f"the API server does not answer, trying again: {error}"))
