"""Keeps the allocatable GPUs of real nodes at what works, as a device plugin does when a card fails."""

from __future__ import annotations

import asyncio
import logging

import msgspec

from stromboli.api import names
from stromboli.api.resources.quantity import QuantityError, whole
from stromboli.embedded.nodes import node_annotations
from stromboli.embedded.nodes.machine.gpu_manager import CHECK_AFTER, GpuManager
from stromboli.embedded.nodes.node_types import Content
from stromboli.embedded.nodes.write_queue import NODES, WriteQueue
from stromboli.kube.api_client import Client
from stromboli.kube.request import ApiError, NoResponse

log = logging.getLogger(__name__)


class GpuCapacity:
    """Of all real nodes. As long as cards are missing it looks for them; else it does nothing."""

    def __init__(self, client: Client, writes: WriteQueue, gpus: GpuManager) -> None:
        self._client = client
        self._writes = writes
        self._gpus = gpus
        gpus.changed = self.changed
        self._working = 0
        self._watch: asyncio.Task[None] | None = None

    def changed(self, working: int) -> None:
        """So many cards work now."""
        self._working = working
        if self._watch is None or self._watch.done():
            self._watch = asyncio.create_task(self._report())

    def close(self) -> None:
        if self._watch is not None:
            self._watch.cancel()

    async def _report(self) -> None:
        while True:
            try:
                nodes = msgspec.json.decode(await self._client.list(NODES))["items"]
            except (ApiError, NoResponse) as error:
                log.warning("nodes cannot be listed to tell of their GPUs: %s", error)
                nodes = []
            patches = allocatable_gpus(nodes, self._working)
            for name, count in patches.items():
                status = {"status": {"allocatable": {names.NVIDIA_GPU: str(count)}}}
                self._writes.patch_node(name, status, "status")
                message = f"{count} GPUs of this machine work for the node now"
                self._writes.record_node_event(name, names.WARNING, "AllocatableGpusChanged", message)
            if nodes and self._working >= sum(_gpus(node, "capacity") for node in nodes):
                return
            await asyncio.sleep(CHECK_AFTER)
            await self._gpus.look()


def allocatable_gpus(nodes: list[Content], working: int) -> dict[str, int]:
    """Of real nodes whose allocatable GPUs are wrong, what they should be: in order of names, while cards last."""
    patches = {}
    for node in sorted(nodes, key=lambda node: str(node["metadata"]["name"])):
        if (node["metadata"].get("labels") or {}).get(node_annotations.NODE) != node_annotations.REAL:
            continue
        count = min(working, _gpus(node, "capacity"))
        working -= count
        if count != _gpus(node, "allocatable"):
            patches[str(node["metadata"]["name"])] = count
    return patches


def _gpus(node: Content, field: str) -> int:
    if (node["metadata"].get("labels") or {}).get(node_annotations.NODE) != node_annotations.REAL:
        return 0
    try:
        return int(whole(((node.get("status") or {}).get(field) or {}).get(names.NVIDIA_GPU) or "0"))
    except QuantityError:
        return 0
