"""What `stromboli status` shows: counted from what the API server has."""

from __future__ import annotations

import os
import time
from collections import Counter
from typing import Any

import msgspec
from rich.table import Table

from stromboli.api import names
from stromboli.cli.output import console
from stromboli.embedded.data_folder import FolderError, Running
from stromboli.embedded.tables.age_text import duration_text
from stromboli.embedded.tables.node_rows import state_text
from stromboli.kube.api_client import Client
from stromboli.kube.api_resources import Resource
from stromboli.kube.cluster_access import find_access
from stromboli.kube.credentials import BadConfig
from stromboli.kube.request import ApiError, NoResponse

PAGE = 500
_VOLCANO = ("scheduling.volcano.sh", "v1beta1")
RESOURCES = {
    "nodes": Resource("", "v1", "nodes", "Node", namespaced=False),
    "pods": Resource("", "v1", "pods", "Pod"),
    "queues": Resource(*_VOLCANO, "queues", "Queue", namespaced=False),
    "podgroups": Resource(*_VOLCANO, "podgroups", "PodGroup"),
    "jobs": Resource("batch.volcano.sh", "v1alpha1", "jobs", "Job"),
}
Thing = dict[str, Any]


async def gathered(running: Running) -> Thing:
    """Everything, as plain data."""
    try:
        async with Client(find_access(str(running.kubeconfig))) as client:
            things = {name: await _all(client, resource) for name, resource in RESOURCES.items()}
    except (NoResponse, BadConfig) as error:
        raise FolderError(f"{running.url} does not answer: {error}") from None
    return {
        "url": running.url,
        "data": running.data,
        "kubeconfig": str(running.kubeconfig),
        "pid": running.pid,
        "upSeconds": round(time.time() - running.since),
        "nodes": {"total": len(things["nodes"]), **Counter(map(state_text, things["nodes"]))},
        "queues": [_queue(one, things["podgroups"]) for one in things["queues"]],
        "jobs": dict(Counter(map(_job_phase, things["jobs"]))),
        "podGroups": dict(
            Counter((one.get("status") or {}).get("phase") or "Pending" for one in things["podgroups"])
        ),
        "pods": dict(Counter((one.get("status") or {}).get("phase") or "Pending" for one in things["pods"])),
    }


async def _all(client: Client, resource: Resource) -> list[Thing]:
    found: list[Thing] = []
    token = ""
    while True:
        try:
            page = msgspec.json.decode(await client.list(resource, limit=PAGE, **{"continue": token}))
        except ApiError as error:
            if error.status == 404:
                return []
            raise
        found += page.get("items") or []
        token = (page.get("metadata") or {}).get("continue") or ""
        if not token:
            return found


def _queue(queue: Thing, groups: list[Thing]) -> Thing:
    name = queue["metadata"]["name"]
    phases = Counter(
        (one.get("status") or {}).get("phase") or "Pending"
        for one in groups
        if (one.get("spec") or {}).get("queue", names.DEFAULT_QUEUE) == name
    )
    return {"name": name, "state": (queue.get("status") or {}).get("state") or "", "podGroups": dict(phases)}


def _job_phase(job: Thing) -> str:
    return ((job.get("status") or {}).get("state") or {}).get("phase") or "Pending"


def show(found: Thing) -> None:
    """The same for people."""
    out = console()
    up = duration_text(found["upSeconds"])
    out.print(f"{found['url']}, up for {up}, process {found['pid']}, data in {found['data']}", markup=False)
    out.print(f"export KUBECONFIG={found['kubeconfig']}{os.linesep}", markup=False)
    nodes = dict(found["nodes"])
    total = nodes.pop("total")
    out.print(f"Nodes  {total}: {_counted(nodes)}", markup=False)
    out.print(f"Pods   {sum(found['pods'].values())}: {_counted(found['pods'])}", markup=False)
    out.print(f"Jobs   {sum(found['jobs'].values())}: {_counted(found['jobs'])}", markup=False)
    table = Table("Queue", "State", "PodGroups", box=None, pad_edge=False, header_style="dim")
    for queue in found["queues"]:
        table.add_row(queue["name"], queue["state"], _counted(queue["podGroups"]))
    out.print("")
    out.print(table)


def _counted(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items())) or "none"
