"""All our nodes in one task: watches nodes and pods, runs the pods that are bound to them, reports their status."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from stromboli.api.types.meta import Object
from stromboli.embedded.nodes import node_annotations
from stromboli.embedded.nodes.device_plugin import DevicePlugin
from stromboli.embedded.nodes.node_devices import SLICES
from stromboli.embedded.nodes.node_leases import NodeLeases
from stromboli.embedded.nodes.node_lifecycle import NodeLifecycle, is_unreachable
from stromboli.embedded.nodes.node_report import metadata_report, status_report
from stromboli.embedded.nodes.node_types import Content, NodePod, NodeView
from stromboli.embedded.nodes.pod_addresses import PodAddresses
from stromboli.embedded.nodes.pod_claims_check import missing_claim
from stromboli.embedded.nodes.pod_logs import LogQuery
from stromboli.embedded.nodes.pod_runtime import PodRuntime
from stromboli.embedded.nodes.simulated.pod_stages import StageDelays
from stromboli.embedded.nodes.simulated.simulated_nodes import SimulatedRuntime
from stromboli.embedded.nodes.usage.cluster_usage import ContainerUsage, Usage, total
from stromboli.embedded.nodes.usage.simulated_usage import node_level
from stromboli.embedded.nodes.write_queue import NODES, PODS, WriteQueue
from stromboli.embedded.time_slices import TimeSlices
from stromboli.kube.api_client import Client
from stromboli.kube.reflector import Reflector, UnusableObject

log = logging.getLogger(__name__)

FLUSH_TIMEOUT = 2.0
"""Seconds for pending writes when the service ends."""


@dataclass(slots=True)
class NodeState:
    """A node and the pods that are bound to it; `kind` is empty while the node is unknown or not ours."""

    kind: str = ""
    failed: bool = False
    capacity: Content = field(default_factory=dict)
    pods: dict[str, NodePod] = field(default_factory=dict)


class NodeService:
    """Runs every node with our label, and the pods on it."""

    def __init__(
        self,
        client: Client,
        delays: StageDelays,
        real: Callable[[WriteQueue], PodRuntime] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._client = client
        self._clock = clock
        self._writes = WriteQueue(client, clock)
        self._devices = DevicePlugin(self._writes)
        self._addresses = PodAddresses()
        self._runtimes: dict[str, PodRuntime] = {
            node_annotations.SIMULATED: SimulatedRuntime(
                self._writes, self._addresses, delays, clock, partial(missing_claim, client)
            )
        }
        if real is not None:
            self._runtimes[node_annotations.REAL] = real(self._writes)
        self._lifecycle = NodeLifecycle(self._writes, clock)
        self._leases = NodeLeases(self._writes, clock)
        self._nodes: dict[str, NodeState] = {}
        self._node_names: dict[str, str] = {}
        """Of pods, by uid."""
        self._uids: dict[tuple[str, str], str] = {}
        """Of pods, by namespace and name."""
        node_sink, pod_sink = _Sink(self._put_node, self._drop_node), _Sink(self._put_pod, self._drop_pod)
        self._node_reflector = Reflector(client, NODES, NodeView, node_sink)
        self._pod_reflector = Reflector(client, PODS, NodePod, pod_sink, _is_bound)
        slice_sink = _Sink(lambda _: None, lambda deleted: self._devices.restore(deleted.name))
        self._slice_reflector = Reflector(client, SLICES, Object, slice_sink)

    async def run(self) -> None:
        """Run until cancelled."""
        self._writes.queue.start()
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._slice_reflector.run())
                await self._slice_reflector.synced.wait()  # what is deleted from now on is noticed
                group.create_task(self._node_reflector.run())
                await self._node_reflector.synced.wait()
                group.create_task(self._pod_reflector.run())
                await self._pod_reflector.synced.wait()
                for runtime in self._runtimes.values():
                    await runtime.clean_up()
        finally:
            self._lifecycle.close()
            self._leases.close()
            for runtime in self._runtimes.values():
                await runtime.close()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._writes.queue.idle(), FLUSH_TIMEOUT)
            await self._writes.queue.stop()

    async def synced(self) -> None:
        """Wait until all nodes and pods were listed, and all writes that follow from them are done."""
        await self._node_reflector.synced.wait()
        await self._pod_reflector.synced.wait()
        await self._writes.queue.idle()

    # -- nodes

    def _put_node(self, node: NodeView) -> None:
        state = self._nodes.setdefault(node.name, NodeState())
        label = node.metadata.labels.get(node_annotations.NODE, "")
        kind = label if label in self._runtimes else ""
        known = state.kind == kind
        if not known and state.kind:
            self._abandon(node.name, state)
        state.kind = kind
        if not kind:
            return
        state.capacity = node.status.capacity or {}
        self._addresses.adopt(node.name, node.spec.pod_cidr)
        self._devices.publish(node)
        if node.metadata.annotations.get(node_annotations.FAILED, "false") != "false":
            if not state.failed:
                self._fail(node, state)
            return
        if state.failed or is_unreachable(node):
            self._lifecycle.recover(node)
        self._report(node, kind)
        restarted, state.failed = state.failed or not known, False
        for pod in state.pods.values() if restarted else ():
            self._lifecycle.cancel_eviction(pod.uid)
            self._runtimes[kind].put(pod)

    def _abandon(self, name: str, state: NodeState) -> None:
        """Run a node no more: whatever runs on it ends."""
        self._leases.drop(name)
        for pod in state.pods.values():
            self._runtimes[state.kind].drop(pod.uid)

    def _fail(self, node: NodeView, state: NodeState) -> None:
        state.failed = True
        self._abandon(node.name, state)
        self._lifecycle.fail(node, list(state.pods.values()))

    def _drop_node(self, node: NodeView) -> None:
        state = self._nodes.pop(node.name, None)
        self._devices.forget(node.name)
        if state is None or not state.kind:
            return
        self._abandon(node.name, state)
        for pod in state.pods.values():
            self._node_names.pop(pod.uid, None)
            self._writes.delete_pod(pod)

    def _report(self, node: NodeView, kind: str) -> None:
        """Report what a kubelet does, as far as the node lacks it."""
        if patch := metadata_report(node, self._addresses.range(node.name).cidr):
            self._writes.patch_node(node.name, patch)
        host = self._addresses.host(node.name, kind)
        if patch := status_report(node, kind, host, self._clock()):
            self._writes.patch_node(node.name, {"status": patch}, "status")
        self._leases.put(node)

    # -- pods

    def _put_pod(self, pod: NodePod) -> None:
        name = pod.spec.node_name
        state = self._nodes.setdefault(name, NodeState())
        state.pods[pod.uid] = pod
        self._node_names[pod.uid] = name
        self._uids[pod.namespace, pod.name] = pod.uid
        if pod.status.pod_ip:
            self._addresses.of(pod)  # allocated already
        if not state.kind:
            return
        self._devices.allocate_cards(pod)
        if state.failed:
            self._lifecycle.schedule_eviction(pod, name)
        else:
            self._runtimes[state.kind].put(pod)

    def _drop_pod(self, pod: NodePod) -> None:
        uid, key = pod.metadata.uid, (pod.namespace, pod.name)
        if self._uids.get(key) == uid:
            del self._uids[key]
        name = self._node_names.pop(uid, None)
        state = self._nodes.get(name) if name is not None else None
        if name is None or state is None:
            return
        state.pods.pop(uid, None)
        self._addresses.release(name, uid)
        self._lifecycle.cancel_eviction(uid)
        if state.kind:
            self._runtimes[state.kind].drop(uid)

    # -- logs and usage

    def find(self, namespace: str, name: str) -> tuple[PodRuntime, NodePod] | None:
        """A pod with the runtime that runs it."""
        uid = self._uids.get((namespace, name), "")
        state = self._nodes.get(self._node_names.get(uid, ""))
        if state is None or not state.kind or uid not in state.pods:
            return None
        return self._runtimes[state.kind], state.pods[uid]

    def log(self, namespace: str, pod: str, query: LogQuery) -> AsyncGenerator[bytes] | None:
        """A container's log; None if it has none here."""
        found = self.find(namespace, pod)
        return None if found is None else found[0].log(found[1], query)

    async def measure(self) -> None:
        """Bring what is measured up to date."""
        await asyncio.gather(*(runtime.measure() for runtime in self._runtimes.values()))

    def pod_usage(self, namespace: str, pod: str) -> list[ContainerUsage]:
        found = self.find(namespace, pod)
        return [] if found is None else found[0].usage(found[1])

    async def node_usage(self, node: str) -> Usage | None:
        """What its pods use, and on a simulated node a little for itself."""
        state = self._nodes.get(node)
        if state is None or not state.kind or state.failed:
            return None
        runtime, usages, slices = self._runtimes[state.kind], list[Usage](), TimeSlices()
        for pod in tuple(state.pods.values()):
            usages += (each.usage for each in runtime.usage(pod))
            if slices.due:
                await slices.pause()
        if state.kind == node_annotations.SIMULATED:
            usages.append(node_level(node, state.capacity).at(self._clock()).usage)
        return total(usages)


def _is_bound(pod: Any) -> bool:
    return bool(pod.spec.node_name)


class _Sink:
    """Calls the service for what a reflector observes; an object that it cannot cope with stops no others."""

    def __init__(self, put: Callable[[Any], None], drop: Callable[[Any], None]) -> None:
        self._put = put
        self._drop = drop

    def put(self, item: Any, new: bool) -> None:
        self._call(self._put, item)

    def drop(self, item: Any) -> None:
        self._call(self._drop, item)

    def _call(self, method: Callable[[Any], None], item: Any) -> None:
        try:
            method(item)
        except Exception:
            log.exception("%s could not be handled, and is left out", item.key)

    def unusable(self, problem: UnusableObject) -> None:
        log.warning("%s %s/%s: %s", problem.kind, problem.namespace, problem.name, problem.text)

    async def wait_for_room(self) -> None:
        await asyncio.sleep(0)
