"""The objects of a live cluster, read once and never written: what a simulation begins from."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import typer

from stromboli.api.manifests.manifest_sources import MAX_FILE, Source
from stromboli.api.types.config_map import ConfigMap
from stromboli.api.types.kinds import kind_name
from stromboli.api.types.meta import Object
from stromboli.api.types.node import Node
from stromboli.api.types.node_shard import NodeShard
from stromboli.api.types.pod import Pod
from stromboli.api.types.scheduling import PodGroup, Queue
from stromboli.cli.cli_errors import Usage, print_error
from stromboli.cli.cluster.cluster_choice import find_api_server
from stromboli.cli.status.cluster_policy import PolicyInForce, policy_in_force
from stromboli.embedded.running_clusters import FolderError, RunningCluster
from stromboli.engine.catalog import Catalog
from stromboli.kube.api_client import Client
from stromboli.kube.api_resources import RESOURCES, Resource, absence, discover
from stromboli.kube.cluster_access import Access
from stromboli.kube.credentials import BadConfig
from stromboli.kube.reflector import list_pages
from stromboli.kube.request import ApiError, NoResponse
from stromboli.simulator.what_if.present_cluster import PresentCluster

REQUIRED: tuple[type[Object], ...] = (Node, Queue, PodGroup, Pod)
"""Kinds without which there is no answer."""
UNREAD: tuple[type[Object], ...] = (ConfigMap, NodeShard)
"""Kinds that belong to a scheduler's own settings."""
LARGEST_CLUSTER = MAX_FILE
"""Bytes of all objects together, as the API server sends them."""
FORBIDDEN = 403
LISTS_AT_A_TIME = 6


class LiveCluster(NamedTuple):
    """A cluster as it was a moment ago, and the policy in force in it."""

    present: PresentCluster
    policy: PolicyInForce
    objects: Sequence[Object] = ()


def read_live_cluster(data: Path | None, kubeconfig: str, context: str, catalog: Catalog) -> LiveCluster:
    """Read the cluster that the options name; one that does not answer ends the command with exit status 1."""
    try:
        access, running = find_api_server(data, kubeconfig, context)
    except (FolderError, BadConfig) as error:
        raise Usage(f"{error}; -f FILE takes a cluster from files") from None
    try:
        return asyncio.run(read_cluster(access, running, catalog))
    except (NoResponse, ApiError, BadConfig) as error:
        refused = isinstance(error, ApiError)
        print_error(f"{access.server} {'refuses' if refused else 'does not answer'}: {error}")
        raise typer.Exit(1) from None


async def read_cluster(access: Access, running: RunningCluster | None, catalog: Catalog) -> LiveCluster:
    """All that a scheduler reads of a cluster; what may not be listed is noted if it can be done without."""
    async with Client(access) as client:
        offered = await discover(client)
        lists = ObjectLists(client)
        wanted = {kind: resource for kind, resource in offered.items() if kind not in UNREAD}
        listed = await all_or_first_error([lists.read(kind, resource) for kind, resource in wanted.items()])
        policy = await policy_in_force(client, running, catalog)
    objects = [obj for objects_of_kind in listed for obj in objects_of_kind]
    notes = [absence(RESOURCES[kind]) for kind in REQUIRED if kind not in offered]
    if lists.refused:
        refused = ", ".join(sorted(lists.refused))
        notes.append(f"it is as if there were none of these, as they may not be listed: {refused}")
    present = PresentCluster(
        access.server,
        lambda _: _sources(access.server, objects, offered),
        time.time(),
        access.namespace,
        tuple(notes),
    )
    return LiveCluster(present, policy, objects)


class ObjectLists:
    """Reads lists of objects, several at a time: most are short, and the way to the server is long."""

    def __init__(self, client: Client) -> None:
        self.refused: list[str] = []
        """What may not be listed and can be done without."""
        self._client = client
        self._size = 0
        self._seats = asyncio.Semaphore(LISTS_AT_A_TIME)

    async def read(self, kind: type[Object], resource: Resource) -> list[Object]:
        """All objects of a kind."""
        objects: list[Object] = []
        try:
            async with self._seats:
                async for page in list_pages(self._client, resource, kind):
                    self._weigh(page.size)
                    objects += [decoded.object for decoded in page.objects if decoded.object is not None]
        except ApiError as error:
            if error.status != FORBIDDEN or kind in REQUIRED:
                raise
            self.refused.append(f"{resource.plural}.{resource.group}".removesuffix("."))
            return []
        return objects

    def _weigh(self, size: int) -> None:
        self._size += size
        if self._size > LARGEST_CLUSTER:
            server = self._client.access.server
            raise Usage(f"{server}: its objects are larger than {LARGEST_CLUSTER} bytes")


async def all_or_first_error(reads: Sequence[Coroutine[Any, Any, list[Object]]]) -> list[list[Object]]:
    """The results of all; if one fails, the others are given up."""
    tasks = [asyncio.create_task(read) for read in reads]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _sources(
    server: str, objects: Sequence[Object], offered: Mapping[type[Object], Resource]
) -> Iterator[Source]:
    """The objects as JSON, with the fields that a scheduler reads."""
    versions = {kind: resource.api_version for kind, resource in offered.items()}
    for place, object in enumerate(objects):
        version = {"apiVersion": versions[type(object)], "kind": kind_name(type(object))}
        raw = msgspec.json.encode({**msgspec.to_builtins(object), **version})
        yield Source(server, place, raw, of_case=True)
