"""The sharding controller: divides the nodes among schedulers, now and then and when nodes change (spec 06 11)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Container, Iterable
from datetime import UTC, datetime

from stromboli.api import names
from stromboli.api.errors import printable
from stromboli.api.go_scalars import rfc3339
from stromboli.api.types.config_map import ConfigMap
from stromboli.api.types.node_shard import NodeShard
from stromboli.controllers import selection
from stromboli.controllers.api_writer import decode_response
from stromboli.controllers.controller import Context, Controller
from stromboli.controllers.sharding.node_assignment import Assignment, assign, is_worth_writing
from stromboli.controllers.sharding.node_utilization import NodeUtilization, Utilization
from stromboli.controllers.sharding.shard_policies import NodeState
from stromboli.controllers.sharding.sharding_config import BadShardingConfig, ShardingConfig, config_of_yaml
from stromboli.controllers.store import Store
from stromboli.controllers.watched_kinds import Node, PlacedPod
from stromboli.kube.reflector import WatchScope
from stromboli.kube.request import ApiError

log = logging.getLogger(__name__)

ALL_NODES = ""
"""The key under which all nodes are divided; other keys are names of schedulers, whose shards are written."""
ON_NODES = WatchScope(field_selector="spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed")
"""Pods that take room."""
DATA_KEY = "sharding.yaml"
TRIGGER_DELAY = 0.2
"""Seconds between a change of nodes and the sync that it causes, so that many changes cause one."""
TRIGGER_DISTANCE = 0.5
"""How far the utilization of a node moves, since the last sync, until it causes one."""
MAX_NOTES = 10
"""Fields without effect that one event names."""


class ShardingController(Controller[str]):
    """Writes the desired nodes of NodeShards; schedulers write which nodes they use."""

    name = selection.SHARDING

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        options = context.options
        self._config: ShardingConfig = options.sharding
        self._utilization = NodeUtilization()
        self._last_utilization: dict[str, Utilization] = {}
        """Of each node, at the last sync."""
        self._assignment: Assignment = {}
        self._config_maps: Store[ConfigMap] | None = None
        self._config_map_key = f"{options.sharding_configmap_namespace}/{options.sharding_configmap}"
        self._last_text: str | None = None
        """What the ConfigMap said when it was last read."""
        self.nodes = self.watch(Node, self._node_changed)
        self.pods = self.watch(PlacedPod, self._pod_changed, ON_NODES)
        self.shards = self.watch(NodeShard, self._shard_changed)
        if options.sharding_configmap and options.sharding_configmap_namespace:
            scope = WatchScope.of_one(options.sharding_configmap_namespace, options.sharding_configmap)
            self._config_maps = self.watch(ConfigMap, self._config_map_changed, scope)

    def start(self) -> None:
        super().start()
        self.queue.add(ALL_NODES)

    # -- what a change enqueues

    def _node_changed(self, before: Node | None, now: Node | None) -> Iterable[str]:
        node = now or before
        assert node is not None
        if now is None or before is None:
            self._trigger()
        elif before.status.capacity != now.status.capacity:
            self._trigger_if_moved(node.name)
        return ()

    def _pod_changed(self, before: PlacedPod | None, now: PlacedPod | None) -> Iterable[str]:
        for node in self._utilization.pod_changed(before, now):
            self._trigger_if_moved(node)
        return ()

    def _trigger_if_moved(self, name: str) -> None:
        node, last = self.nodes.get(name), self._last_utilization.get(name)
        if node is None or last is None:
            return
        if self._utilization.of(node).is_far_from(last, TRIGGER_DISTANCE):
            self._trigger()

    def _trigger(self) -> None:
        if self._config.node_event_trigger:
            self.queue.add_after(ALL_NODES, TRIGGER_DELAY)

    def _shard_changed(self, before: NodeShard | None, now: NodeShard | None) -> Iterable[str]:
        """Not when schedulers write their status."""
        if before is not None and now is not None and before.spec == now.spec:
            return ()
        return [shard.name for shard in (now or before,) if shard is not None]

    def _config_map_changed(self, before: ConfigMap | None, now: ConfigMap | None) -> Iterable[str]:
        if now is None:
            log.warning("ConfigMap %s is gone; its last configuration stays in force", self._config_map_key)
            return ()
        return [ALL_NODES]

    # -- one key

    async def sync(self, key: str) -> float | None:
        if key == ALL_NODES:
            await self._load_config()
            await self._divide_nodes()
            return self._config.period
        if key in self._assignment:
            await self._write_shard(key, list(self._assignment[key]))
        return None

    async def _load_config(self) -> None:
        """Take over what the ConfigMap says, or say why not and stay with the last configuration."""
        config_map = self._config_maps.get(self._config_map_key) if self._config_maps is not None else None
        text = config_map.data.get(DATA_KEY, "") if config_map is not None else None
        if config_map is None or text is None or text == self._last_text:
            return
        self._last_text = text
        recorder = self.context.recorder
        try:
            if DATA_KEY not in config_map.data:
                raise BadShardingConfig("this key is missing")
            self._config = await asyncio.to_thread(config_of_yaml, text, self._config)
        except BadShardingConfig as error:
            problem = printable(f"{DATA_KEY}: {error}; the configuration before it stays in force")
            log.error("ConfigMap %s: %s", self._config_map_key, problem)
            recorder.warning(config_map, names.SHARDING_CONFIG_INVALID, problem)
            return
        log.info("ConfigMap %s: %d schedulers", self._config_map_key, len(self._config.shares))
        if self._config.notes:
            notes = printable("; ".join(self._config.notes[:MAX_NOTES]))
            recorder.warning(config_map, names.SHARDING_FIELD_IGNORED, notes)

    async def _divide_nodes(self) -> None:
        """Divide the nodes anew; if no shard changes enough to be written, all stay as they are."""
        nodes = sorted(self.nodes, key=lambda node: node.name)
        self._last_utilization = {node.name: self._utilization.of(node) for node in nodes}
        states = [
            NodeState(node.name, node.metadata.labels, self._last_utilization[node.name].cpu)
            for node in nodes
        ]
        desired = await asyncio.to_thread(assign, self._config.shares, states)
        current = {shard.name: shard.spec.nodes_desired for shard in self.shards if shard.name in desired}
        changed = is_worth_writing(current, desired)
        self._assignment = desired if changed else current
        for share in self._config.shares:
            self.queue.add(share.name)
            count = len(desired[share.name])
            if changed and count < share.min_nodes:
                log.info("%s gets %d nodes, fewer than minNodes %d", share.name, count, share.min_nodes)
        await self._delete_others(desired)

    async def _delete_others(self, schedulers: Container[str]) -> None:
        for shard in self.shards:
            if shard.name not in schedulers:
                log.info("NodeShard %s is deleted: the configuration has no such scheduler", shard.name)
                await self.context.writer.delete(shard)
                self.shards.drop(shard)

    async def _write_shard(self, name: str, desired: list[str]) -> None:
        shard = self.shards.get(name)
        if shard is None:
            answer = await self.context.writer.create(
                NodeShard, {"metadata": {"name": name}, "spec": {"nodesDesired": desired}}
            )
            written = decode_response(NodeShard, answer) if answer is not None else None
        elif set(shard.spec.nodes_desired) != set(desired):
            written = await self.context.writer.patch(shard, {"spec": {"nodesDesired": desired}}, exact=False)
            self.shards.mutated(written)
        else:
            return
        if written is not None:
            await self._write_status(written)

    async def _write_status(self, shard: NodeShard) -> None:
        """What is to come and to go, unless the scheduler was faster in writing what it uses."""
        desired, in_use = shard.spec.nodes_desired, shard.status.nodes_in_use
        status = {
            "lastUpdateTime": rfc3339(datetime.fromtimestamp(self.context.clock(), UTC)),
            "nodesToAdd": _without(desired, in_use),
            "nodesToRemove": _without(in_use, desired),
        }
        try:
            self.shards.mutated(await self.context.writer.patch(shard, {"status": status}, "status"))
        except ApiError as error:
            if error.status != 409:
                raise

    def gave_up(self, key: str, error: Exception) -> None:
        shard = self.shards.get(key)
        if shard is not None:
            message = names.SHARD_REJECTED.format(error=error)
            self.context.recorder.warning(shard, names.REJECTED, message)


def _without(nodes: Iterable[str], others: Iterable[str]) -> list[str]:
    left_out = set(others)
    return [node for node in nodes if node not in left_out]
