"""The whole state as a file that `stromboli plan -f` replays: objects, where binds under way put pods, the policy.

Of objects only fields that the scheduler reads are written: no environment variables, no secrets. The policy is
written as it stands, with a password if it has one for a source of node usage.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import AsyncIterator, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from stromboli.api import names
from stromboli.api.types.meta import Object
from stromboli.api.types.pod import Pod
from stromboli.kube.api_client import Client
from stromboli.kube.api_resources import Resource
from stromboli.kube.reflector import list_pages
from stromboli.kube.timestamps import timestamp
from stromboli.model.cluster import Cluster
from stromboli.model.status import Status


def placements(cluster: Cluster) -> dict[str, str]:
    """Nodes of pods that are being bound, by uid: what the API server does not know yet. In the cycle's thread."""
    return {
        task.uid: task.node.name
        for task in cluster.tasks.values()
        if task.status is Status.BINDING and task.node is not None
    }


async def write_dump(
    client: Client,
    kinds: Mapping[type[Object], Resource],
    placed: Mapping[str, str],
    schedulers: Collection[str],
    policy: str,
    memory: Mapping[str, Any],
    folder: Path,
    now: float,
) -> Path:
    """Read everything afresh and write it to a new file; nobody but us may read it."""
    path = folder / f"snapshot-{now:.0f}.json"
    handle, unfinished = tempfile.mkstemp(prefix=path.name, dir=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            head = {"name": path.stem, "time": timestamp(now), "config": policy, "memory": _plain(memory)}
            file.write(msgspec.json.encode(head)[:-1] + b',"objects":[')
            separator = b"\n"
            async for thing in _all(client, kinds):
                file.write(
                    separator
                    + msgspec.json.encode(_as_manifest(thing, kinds[type(thing)], placed, schedulers))
                )
                separator = b",\n"
            file.write(b"]}\n")
        os.replace(unfinished, path)
    except BaseException:
        os.unlink(unfinished)
        raise
    return path


async def _all(client: Client, kinds: Mapping[type[Object], Resource]) -> AsyncIterator[Object]:
    for kind in sorted(kinds, key=lambda one: one.__name__):
        async for page in list_pages(client, kinds[kind], kind):
            for decoded in page.objects:
                if decoded.object is not None:  # else the scheduler does without it, and so does the replay
                    yield decoded.object


def _as_manifest(
    thing: Object, resource: Resource, placed: Mapping[str, str], schedulers: Collection[str]
) -> dict[str, Any]:
    if isinstance(thing, Pod):
        thing.spec.node_name = thing.spec.node_name or placed.get(thing.metadata.uid, "")
        if thing.spec.scheduler_name in schedulers:
            thing.spec.scheduler_name = names.SCHEDULER_NAME
    content: dict[str, Any] = msgspec.to_builtins(thing)
    return {**content, "apiVersion": resource.api_version, "kind": resource.kind}


def _plain(memory: Mapping[str, Any]) -> dict[str, Any]:
    """What plugins remember, as far as it is plain data."""
    return dict(_encodable(memory))


def _encodable(memory: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for plugin, content in memory.items():
        try:
            yield plugin, msgspec.Raw(msgspec.json.encode(content))
        except (TypeError, ValueError):
            continue
