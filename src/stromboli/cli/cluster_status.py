"""What `stromboli status` shows, read from the API server."""

from __future__ import annotations

import os
import time
from collections import Counter
from typing import Any

import msgspec
from rich.table import Table

from stromboli.api import names
from stromboli.api.types.node import Node
from stromboli.api.types.pod import Pod
from stromboli.api.types.scheduling import PodGroup, Queue
from stromboli.api.types.volcano_job import Job
from stromboli.cli.output import console
from stromboli.controllers.watched_resources import WATCHED_RESOURCES
from stromboli.embedded.data_folder import FolderError, RunningCluster
from stromboli.embedded.tables.age_text import duration_text
from stromboli.embedded.tables.node_rows import state_text
from stromboli.kube.api_client import Client
from stromboli.kube.api_resources import RESOURCES, Resource
from stromboli.kube.cluster_access import find_access
from stromboli.kube.credentials import BadConfig
from stromboli.kube.request import ApiError, NoResponse

PAGE = 500
_LISTED = (
    RESOURCES[Node],
    RESOURCES[Pod],
    RESOURCES[Queue],
    RESOURCES[PodGroup],
    WATCHED_RESOURCES[Job],
)
Content = dict[str, Any]


async def read_status(running: RunningCluster) -> Content:
    """The status as plain data, as JSON shows it."""
    try:
        async with Client(find_access(str(running.kubeconfig))) as client:
            objects = {resource.plural: await _all(client, resource) for resource in _LISTED}
    except (NoResponse, BadConfig) as error:
        raise FolderError(f"{running.url} does not answer: {error}") from None
    return {
        "url": running.url,
        "data": running.data,
        "kubeconfig": str(running.kubeconfig),
        "pid": running.pid,
        "upSeconds": round(time.time() - running.since),
        "nodes": {"total": len(objects["nodes"]), **Counter(map(state_text, objects["nodes"]))},
        "queues": [_queue(queue, objects["podgroups"]) for queue in objects["queues"]],
        "jobs": dict(Counter(map(_job_phase, objects["jobs"]))),
        "podGroups": dict(Counter(map(_phase, objects["podgroups"]))),
        "pods": dict(Counter(map(_phase, objects["pods"]))),
    }


async def _all(client: Client, resource: Resource) -> list[Content]:
    items: list[Content] = []
    token = ""
    while True:
        try:
            page = msgspec.json.decode(await client.list(resource, limit=PAGE, **{"continue": token}))
        except ApiError as error:
            if error.status == 404:
                return []
            raise
        items += page.get("items") or []
        token = (page.get("metadata") or {}).get("continue") or ""
        if not token:
            return items


def _queue(queue: Content, groups: list[Content]) -> Content:
    name = queue["metadata"]["name"]
    phases = Counter(
        _phase(group)
        for group in groups
        if (group.get("spec") or {}).get("queue", names.DEFAULT_QUEUE) == name
    )
    return {"name": name, "state": (queue.get("status") or {}).get("state") or "", "podGroups": dict(phases)}


def _phase(content: Content) -> str:
    return (content.get("status") or {}).get("phase") or "Pending"


def _job_phase(job: Content) -> str:
    return ((job.get("status") or {}).get("state") or {}).get("phase") or "Pending"


def print_status(status: Content) -> None:
    """The status as text."""
    out = console()
    up = duration_text(status["upSeconds"])
    out.print(
        f"{status['url']}, up for {up}, process {status['pid']}, data in {status['data']}", markup=False
    )
    out.print(f"export KUBECONFIG={status['kubeconfig']}{os.linesep}", markup=False)
    nodes = dict(status["nodes"])
    total = nodes.pop("total")
    out.print(f"Nodes  {total}: {_format_counts(nodes)}", markup=False)
    out.print(f"Pods   {sum(status['pods'].values())}: {_format_counts(status['pods'])}", markup=False)
    out.print(f"Jobs   {sum(status['jobs'].values())}: {_format_counts(status['jobs'])}", markup=False)
    table = Table("Queue", "State", "PodGroups", box=None, pad_edge=False, header_style="dim")
    for queue in status["queues"]:
        table.add_row(queue["name"], queue["state"], _format_counts(queue["podGroups"]))
    out.print("")
    out.print(table)


def _format_counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items())) or "none"
