"""All our nodes in one task: watches nodes and pods, lets pods run where they are bound, tells what becomes of them."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

import msgspec

from stromboli.embedded.nodes import node_annotations
from stromboli.embedded.nodes.node_groups import node_info
from stromboli.embedded.nodes.node_lifecycle import NodeLifecycle, is_unreachable, ready_status
from stromboli.embedded.nodes.node_types import Content, NodePod, NodeView
from stromboli.embedded.nodes.pod_addresses import LOCAL, PodAddresses
from stromboli.embedded.nodes.pod_logs import LogQuery, NoLog
from stromboli.embedded.nodes.pod_stages import StageDelays
from stromboli.embedded.nodes.simulated_nodes import SimulatedRuntime
from stromboli.embedded.nodes.write_queue import NODES, PODS, WriteQueue
from stromboli.kube.api_client import Client
from stromboli.kube.reflector import Reflector, UnusableObject
from stromboli.kube.request import ApiError
from stromboli.kube.timestamps import timestamp

log = logging.getLogger(__name__)

PARTING = 2.0
"""Seconds for what is still to be written when we end."""


class PodRuntime(Protocol):
    """What lets pods run."""

    def put(self, pod: NodePod) -> None:
        """A pod is there, or is another now."""

    def drop(self, uid: str) -> None:
        """A pod is gone, or its node is: whatever runs of it ends at once, and nothing is told of it."""

    def log(self, pod: NodePod, query: LogQuery) -> AsyncIterator[bytes]:
        """What it said; `NoLog` if that is nothing."""

    async def close(self) -> None: ...


@dataclass(slots=True)
class NodeState:
    """A node, and the pods that are bound to it; `kind` is empty while we do not know it or if it is not ours."""

    kind: str = ""
    dead: bool = False
    pods: dict[str, NodePod] = field(default_factory=dict)


class NodeService:
    """Every node with our label, and the pods on them."""

    def __init__(
        self,
        client: Client,
        habits: StageDelays,
        real: Callable[[WriteQueue], PodRuntime] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._client = client
        self._clock = clock
        self._writes = WriteQueue(client, clock)
        self._addresses = PodAddresses()
        self._runtimes: dict[str, PodRuntime] = {
            node_annotations.SIMULATED: SimulatedRuntime(self._writes, self._addresses, habits, clock)
        }
        if real is not None:
            self._runtimes[node_annotations.REAL] = real(self._writes)
        self._lifecycle = NodeLifecycle(self._writes, clock)
        self._machines: dict[str, NodeState] = {}
        self._places: dict[str, str] = {}
        """The node of each pod."""
        self._uids: dict[tuple[str, str], str] = {}
        """Of pods, by namespace and name."""
        nodes, pods = _Sink(self._put_node, self._drop_node), _Sink(self._put_pod, self._drop_pod)
        self._node_watch = Reflector(client, NODES, NodeView, nodes)
        self._pod_watch = Reflector(client, PODS, NodePod, pods, _bound)

    async def register(self, manifests: list[Content]) -> None:
        """See to it that these nodes exist, and are as large as told."""
        for name, node in (await self._known()).items():
            self._addresses.adopt(name, (node.get("spec") or {}).get("podCIDR", ""))
        for begin in range(0, len(manifests), 64):
            await asyncio.gather(*(self._create(manifest) for manifest in manifests[begin : begin + 64]))

    async def _known(self) -> dict[str, Content]:
        found = msgspec.json.decode(await self._client.list(NODES))["items"]
        return {node["metadata"]["name"]: node for node in found}

    async def _create(self, node: Content) -> None:
        name = node["metadata"]["name"]
        kind = node["metadata"]["labels"][node_annotations.NODE]
        cidr = self._addresses.range(name).cidr
        full = {**node, "spec": {**node.get("spec", {}), "podCIDR": cidr, "podCIDRs": [cidr]}}
        full["status"] = {**node["status"], **self._ready(name, kind)}
        try:
            await self._client.create(NODES, full)
        except ApiError as error:
            if error.status != 409:
                raise
            await self._client.patch(NODES, name, {"metadata": {"labels": node["metadata"]["labels"]}})
            await self._client.patch(NODES, name, {"status": node["status"]}, subresource="status")

    async def run(self) -> None:
        """Until cancelled."""
        self._writes.start()
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._node_watch.run())
                await self._node_watch.synced.wait()
                group.create_task(self._pod_watch.run())
        finally:
            self._lifecycle.close()
            for runtime in self._runtimes.values():
                await runtime.close()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._writes.idle(), PARTING)
            await self._writes.stop()

    async def synced(self) -> None:
        """Until all nodes and pods were seen, and all that there is to tell of them was told."""
        await self._node_watch.synced.wait()
        await self._pod_watch.synced.wait()
        await self._writes.idle()

    # -- nodes

    def _put_node(self, node: NodeView) -> None:
        machine = self._machines.setdefault(node.name, NodeState())
        known, kind = machine.kind, node.metadata.labels.get(node_annotations.NODE, "")
        machine.kind = kind if kind in self._runtimes else ""
        if not machine.kind:
            return
        self._addresses.adopt(node.name, node.spec.pod_cidr)
        if node.metadata.annotations.get(node_annotations.FAILED, "false") != "false":
            if not machine.dead:
                self._die(node, machine)
            return
        if machine.dead or is_unreachable(node):
            self._lifecycle.recover(node)
        if ready_status(node) != "True":
            self._writes.node(node.name, {"status": self._ready(node.name, kind)}, "status")
        revived, machine.dead = machine.dead or not known, False
        for pod in machine.pods.values() if revived else ():
            self._lifecycle.spare(pod.uid)
            self._runtimes[kind].put(pod)

    def _die(self, node: NodeView, machine: NodeState) -> None:
        machine.dead = True
        for pod in machine.pods.values():
            self._runtimes[machine.kind].drop(pod.uid)
        self._lifecycle.fail(node, list(machine.pods.values()))

    def _drop_node(self, node: NodeView) -> None:
        machine = self._machines.pop(node.name, None)
        if machine is None or not machine.kind:
            return
        for pod in machine.pods.values():
            self._runtimes[machine.kind].drop(pod.uid)
            self._places.pop(pod.uid, None)
        self._lifecycle.orphans(machine.pods.values())

    def _ready(self, name: str, kind: str) -> Content:
        """The status of a node that is well."""
        stamp = timestamp(self._clock())
        host = LOCAL if kind == node_annotations.REAL else self._addresses.range(name).host
        times = {"lastHeartbeatTime": stamp, "lastTransitionTime": stamp}
        return {
            "conditions": [
                {
                    "type": "Ready",
                    "status": "True",
                    "reason": "KubeletReady",
                    "message": f"{kind} node",
                    **times,
                }
            ],
            "addresses": [
                {"type": "InternalIP", "address": host},
                {"type": "Hostname", "address": name},
            ],
            "nodeInfo": node_info(kind == node_annotations.REAL),
        }

    # -- pods

    def _put_pod(self, pod: NodePod) -> None:
        name = pod.spec.node_name
        machine = self._machines.setdefault(name, NodeState())
        machine.pods[pod.uid] = pod
        self._places[pod.uid] = name
        self._uids[pod.namespace, pod.name] = pod.uid
        if pod.status.pod_ip:
            self._addresses.of(pod)  # it has one, which is nobody else's
        if not machine.kind:
            return
        if machine.dead:
            self._lifecycle.doom(pod, name)
        else:
            self._runtimes[machine.kind].put(pod)

    def _drop_pod(self, pod: NodePod) -> None:
        uid, key = pod.metadata.uid, (pod.namespace, pod.name)
        if self._uids.get(key) == uid:
            del self._uids[key]
        name = self._places.pop(uid, None)
        machine = self._machines.get(name) if name is not None else None
        if name is None or machine is None:
            return
        machine.pods.pop(uid, None)
        self._addresses.leave(name, uid)
        self._lifecycle.spare(uid)
        if machine.kind:
            self._runtimes[machine.kind].drop(uid)

    # -- logs

    def log(self, namespace: str, pod: str, query: LogQuery) -> AsyncIterator[bytes] | None:
        """What a container of a pod said; nothing if we do not know it."""
        uid = self._uids.get((namespace, pod), "")
        machine = self._machines.get(self._places.get(uid, ""))
        if machine is None or not machine.kind:
            return None
        runtime = self._runtimes[machine.kind]
        try:
            return runtime.log(machine.pods[uid], query)
        except NoLog:
            return None


def _bound(pod: Any) -> bool:
    return bool(pod.spec.node_name)


class _Sink:
    """Hands on what a watch tells."""

    def __init__(self, put: Callable[[Any], None], drop: Callable[[Any], None]) -> None:
        self._put = put
        self._drop = drop

    def put(self, thing: Any, new: bool) -> None:
        self._put(thing)

    def drop(self, thing: Any) -> None:
        self._drop(thing)

    def unusable(self, problem: UnusableObject) -> None:
        log.warning("%s %s/%s: %s", problem.kind, problem.namespace, problem.name, problem.text)

    async def wait_for_room(self) -> None:
        await asyncio.sleep(0)
