"""The whole state as a file that `stromboli plan -f` replays: objects, the policy, and pods being bound on their nodes.

Of objects only fields that the scheduler reads are written: no environment variables, no secrets. The policy is
written as it stands, with a password if it has one for a source of node usage.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Collection, Mapping
from pathlib import Path
from typing import Any

import msgspec

from stromboli.api import names
from stromboli.api.types.devices import ResourceClaim
from stromboli.api.types.meta import Object
from stromboli.api.types.pod import Pod, is_placed_elsewhere
from stromboli.daemon.telemetry_guard import TelemetryGuard
from stromboli.kube.api_client import Client
from stromboli.kube.api_resources import Resource
from stromboli.kube.reflector import WatchScope, list_pages
from stromboli.kube.timestamps import timestamp
from stromboli.scheduler.dump_folder import PREFIX
from stromboli.scheduler.granted_objects import GrantedObjects

LARGEST_DUMP = 512 * 1024 * 1024
"""A dump that grows beyond is given up."""


async def write_dump(
    client: Client,
    kinds: Mapping[type[Object], tuple[Resource, WatchScope]],
    granted: GrantedObjects,
    schedulers: Collection[str],
    policy: str,
    memory: Mapping[str, msgspec.Raw],
    folder: Path,
    now: float,
    guard: TelemetryGuard,
) -> Path:
    """List everything and write it to a new file that only we may read; what cannot be encoded is left out.

    Pages are encoded in other threads, so that the event loop goes on meanwhile. `memory` is what plugins remember, as
    `encoded_memory` returns it.
    """
    path = folder / f"{PREFIX}{now:.0f}.json"
    handle, unfinished = tempfile.mkstemp(prefix=path.name, dir=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            head = {"name": path.stem, "time": timestamp(now), "config": policy, "memory": memory}
            file.write(msgspec.json.encode(head)[:-1] + b',"objects":[')
            separator = b"\n"

            def write(objects: list[Object]) -> None:
                nonlocal separator
                for object in objects:
                    with guard("dump of an object"):
                        resource = kinds[type(object)][0]
                        manifest = _as_manifest(granted.complete(object), resource, schedulers)
                        file.write(separator + msgspec.json.encode(manifest))
                        separator = b",\n"

            async for objects in _pages(client, kinds, granted):
                await asyncio.to_thread(write, objects)
                if file.tell() > LARGEST_DUMP:
                    raise OSError(f"the dump is larger than {LARGEST_DUMP} bytes, so it is not kept")
            file.write(b"]}\n")
        os.replace(unfinished, path)
    except BaseException:
        os.unlink(unfinished)
        raise
    return path


async def _pages(
    client: Client, kinds: Mapping[type[Object], tuple[Resource, WatchScope]], granted: GrantedObjects
) -> AsyncIterator[list[Object]]:
    for kind in sorted(kinds, key=lambda kind: kind.__name__):
        resource, scope = kinds[kind]
        async for page in list_pages(client, resource, kind, scope=scope):
            # a replay leaves out unusable objects too
            yield [decoded.object for decoded in page.objects if decoded.object is not None]
        if kind is ResourceClaim:
            yield list(granted.made())


def _as_manifest(object: Object, resource: Resource, schedulers: Collection[str]) -> dict[str, Any]:
    if (
        isinstance(object, Pod)
        and object.spec.scheduler_name in schedulers
        and not is_placed_elsewhere(object)
    ):
        object.spec.scheduler_name = names.SCHEDULER_NAME
    content: dict[str, Any] = msgspec.to_builtins(object)
    return {**content, "apiVersion": resource.api_version, "kind": resource.kind}


def encoded_memory(memory: Mapping[str, Any], guard: TelemetryGuard) -> dict[str, msgspec.Raw]:
    """What plugins remember, as far as it can be encoded. In the cycle's thread, as plugins change it there."""
    encoded = {}
    for plugin, content in memory.items():
        with guard("dump of a plugin's memory"):
            encoded[plugin] = msgspec.Raw(msgspec.json.encode(content))
    return encoded
