"""Completion of names from the cluster: quick, bounded, and silent where there is none."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from stromboli.cli.cluster.on_cluster import DEFAULT_NAMESPACE
from stromboli.kube.api_resources import Resource

SECONDS = 2.0
"""For the cluster to answer."""
MOST_NAMES = 500


def completes(resource: Resource) -> Callable[[Any, str], list[str]]:
    """For `autocompletion=` of an argument that names objects of a kind."""

    def complete(ctx: Any, incomplete: str) -> list[str]:
        return names_in_cluster(ctx, resource, incomplete)

    return complete


def names_in_cluster(ctx: Any, resource: Resource, incomplete: str) -> list[str]:
    """The names that begin so, in the namespace of the command line; none if the cluster does not answer in time."""
    given = ctx.params
    with suppress(Exception):  # nobody reads an error while a word is completed
        names = asyncio.run(asyncio.wait_for(_names(given, resource), SECONDS))
        return [name for name in names if name.startswith(incomplete) and name.isprintable()]
    return []


async def _names(given: dict[str, Any], resource: Resource) -> list[str]:
    import msgspec

    from stromboli.cli.cluster.cluster_choice import find_api_server
    from stromboli.kube.api_client import Client

    data = Path(given["data"]) if given.get("data") else None
    access, _ = find_api_server(data, given.get("kubeconfig") or "", given.get("context") or "")
    namespace = given.get("namespace") or access.namespace or DEFAULT_NAMESPACE
    async with Client(access) as client:
        where = "" if given.get("all_namespaces") or not resource.namespaced else namespace
        page = msgspec.json.decode(await client.list(resource, where, limit=MOST_NAMES))
    return [str(item["metadata"]["name"]) for item in page.get("items") or ()]
