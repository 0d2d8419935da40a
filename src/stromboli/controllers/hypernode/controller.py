"""The HyperNode controller: keeps HyperNodes as label discovery and UFM say, and counts the nodes of all (spec 06 10).

There are three keys: the two sources, each of which fails alone, and the counts. What is computed over all nodes is
computed on a thread, and rests afterwards for a multiple of the time that it took.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple, TypeVar

from stromboli.api import names
from stromboli.api.errors import printable
from stromboli.api.types.config_map import ConfigMap
from stromboli.controllers import selection
from stromboli.controllers.controller import Context, Controller
from stromboli.controllers.hypernode import label_discovery, ufm_discovery
from stromboli.controllers.hypernode.discovered_hyper_nodes import DiscoveredHyperNode, DiscoveryFailed
from stromboli.controllers.hypernode.discovery_config import (
    LABEL,
    SOURCES,
    UFM,
    BadConfig,
    DiscoveryConfig,
    LabelSource,
    UfmSource,
    config_map_place,
    read_config,
)
from stromboli.controllers.hypernode.node_counts import node_counts
from stromboli.controllers.hypernode.reconcile import Write, is_of, labels_of, reconcile
from stromboli.controllers.hypernode.ufm_client import fetch_ports, on_daemon_thread, read_credentials
from stromboli.controllers.watched_kinds import HyperNode, Node
from stromboli.kube.api_resources import Resource
from stromboli.kube.reflector import WatchScope
from stromboli.kube.request import ApiError

log = logging.getLogger(__name__)

Result = TypeVar("Result")

COUNTS = "counts"
"""The key of all counts of nodes."""
BATCH_DELAY = 0.05
"""Seconds for which changes are collected before they are computed."""
RETRY = 60.0
"""Seconds until UFM is asked again after a failure, or the interval if that is shorter."""
PROBLEMS_SHOWN = 5
SECRETS = Resource("", "v1", "secrets", "Secret")


class Fetch(NamedTuple):
    """When UFM is asked next, on the clock of the event loop, and what it answered."""

    source: UfmSource
    due: float
    groups: list[set[str]] | None
    """Nodes of connected leaf switches."""


class HyperNodeController(Controller[str]):
    """The keys are `label`, `ufm` and `counts`."""

    name = selection.HYPER_NODE
    workers = 3

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.max_retries = context.options.max_requeue_num
        self.place = config_map_place(os.environ)
        """Namespace and name of the configuration."""
        self._config = DiscoveryConfig()
        self._fetch: Fetch | None = None
        self._warned: dict[str, str] = {}
        """The last warning of the configuration, of each source, and of HyperNodes of others, by topic."""
        self.config_maps = self.watch(ConfigMap, self._config_changed, WatchScope.of_one(*self.place))
        self.hyper_nodes = self.watch(HyperNode, self._hyper_node_changed)
        self.nodes = self.watch(Node, self._node_changed)

    # -- what a change enqueues

    def _config_changed(self, before: ConfigMap | None, now: ConfigMap | None) -> Iterable[str]:
        """A configuration that cannot be read changes nothing; none at all stops discovery."""
        try:
            self._config = read_config(now.data, now.namespace) if now is not None else DiscoveryConfig()
            shown, more = self._config.problems[:PROBLEMS_SHOWN], len(self._config.problems) - PROBLEMS_SHOWN
            problems = "; ".join([*shown, *([f"and {more} more"] if more > 0 else [])])
        except BadConfig as error:
            problems = f"{error}; what was configured before stays in force"
        self._warn_once(now, names.DISCOVERY_CONFIG_INVALID, problems)
        return SOURCES

    def _hyper_node_changed(self, before: HyperNode | None, now: HyperNode | None) -> Iterable[str]:
        if before is not None and now is not None and _described(before) == _described(now):
            if before.status != now.status:
                self._enqueue(COUNTS)
            return ()
        self._enqueue(COUNTS)
        for source in SOURCES:
            gone = now is None  # whose name may be what a source waits for
            if gone or any(obj is not None and is_of(obj, source) for obj in (before, now)):
                self._enqueue(source)
        return ()

    def _node_changed(self, before: Node | None, now: Node | None) -> Iterable[str]:
        old, new = (None if node is None else node.metadata.labels for node in (before, now))
        if old == new:
            return ()
        self._enqueue(COUNTS)
        source = self._config.label
        keys = {key for type_ in source.types for key in type_.tiers} if source is not None else ()
        if any((old or {}).get(key) != (new or {}).get(key) for key in keys):
            self._enqueue(LABEL)
        return ()

    def _enqueue(self, key: str) -> None:
        self.queue.add_after(key, BATCH_DELAY)

    # -- one key

    async def sync(self, key: str) -> float | None:
        label, ufm = self._config.label, self._config.ufm
        try:
            if key == COUNTS:
                await self._sync_counts()
            elif key == LABEL and label is not None:
                await self._sync_label(label)
            elif key == UFM and ufm is not None:
                return await self._sync_ufm(ufm)
        except DiscoveryFailed as error:
            self._warn_once(self.config_map, names.DISCOVERY_FAILED, f"source {key}: {error}", key)
            log.warning("source %s: %s", key, error)
            return min(RETRY, ufm.interval) if key == UFM and ufm is not None else RETRY
        return None

    async def _sync_label(self, source: LabelSource) -> None:
        discover = partial(label_discovery.discover, list(self.nodes), source.types, self._by_name())
        discovered = await self._compute(LABEL, discover)
        if self._config.label == source:  # else it is synced again
            await self._reconcile(LABEL, discovered, source.complete)

    async def _sync_ufm(self, source: UfmSource) -> float | None:
        """Ask UFM if that is due, and put right what others changed; seconds until it is due again."""
        fetch, now = self._fetch, asyncio.get_running_loop().time()
        if fetch is None or fetch.source != source or fetch.due <= now:
            last = fetch.groups if fetch is not None and fetch.source == source else None
            self._fetch = Fetch(source, now + min(RETRY, source.interval), last)  # if it fails
            fetch = self._fetch = Fetch(source, now + source.interval, await self._ask_ufm(source))
        if fetch.groups is not None:
            discovered = await self._compute(
                UFM, partial(ufm_discovery.discover, fetch.groups, self._by_name())
            )
            if self._config.ufm != source:  # it is synced again
                return None
            await self._reconcile(UFM, discovered)
        return fetch.due - now

    async def _ask_ufm(self, source: UfmSource) -> list[set[str]]:
        try:
            secret = await self.context.writer.read_at(SECRETS, source.secret_name, source.secret_namespace)
        except ApiError as error:
            remedy = "; deploy/components/ufm grants it" if error.status == 403 else ""
            raise DiscoveryFailed(f"cannot read the Secret: {error}{remedy}") from None
        credentials = read_credentials(secret, source)
        return await on_daemon_thread(lambda: ufm_discovery.leaf_groups(fetch_ports(source, *credentials)))

    # -- writing what was discovered

    async def _reconcile(
        self, source: str, discovered: list[DiscoveredHyperNode], may_delete: bool = True
    ) -> None:
        """Write what differs; what is refused for one HyperNode does not keep the others from being written."""
        writes, foreign = reconcile(source, discovered, self._by_name(), may_delete)
        self._forget_all_but(source, {f"{source}/{other.metadata.uid}" for other in foreign})
        for other in foreign:
            text = names.HYPER_NODE_NAME_TAKEN.format(source=source, label=names.TOPOLOGY_SOURCE)
            self._warn_once(other, names.NAME_TAKEN, text, f"{source}/{other.metadata.uid}")
        await _for_each(writes, partial(self._write, source))
        self._warned.pop(source, None)

    async def _write(self, source: str, write: Write) -> None:
        existing, discovered = write
        writer = self.context.writer
        if discovered is None:
            assert existing is not None
            await writer.delete(existing)
            return
        metadata: dict[str, Any] = {"labels": labels_of(discovered, source)}
        if existing is None:
            body = {"metadata": {"name": discovered.name, **metadata}, "spec": discovered.spec}
            await writer.create(HyperNode, body)
            return
        patch = {"metadata": metadata, "spec": discovered.spec}
        self.hyper_nodes.mutated(await writer.patch(existing, patch))

    # -- counts

    async def _sync_counts(self) -> None:
        hyper_nodes = self._by_name()
        if not hyper_nodes:
            return
        counts = await self._compute(COUNTS, partial(node_counts, hyper_nodes, list(self.nodes)))
        wrong = [obj for name, obj in hyper_nodes.items() if obj.status.node_count != counts[name]]
        await _for_each(wrong, partial(self._write_count, counts))

    async def _write_count(self, counts: dict[str, int], hyper_node: HyperNode) -> None:
        patch = {"status": {"nodeCount": counts[hyper_node.name]}}
        self.hyper_nodes.mutated(await self.context.writer.patch(hyper_node, patch, "status", exact=False))

    # -- helpers

    @property
    def config_map(self) -> ConfigMap | None:
        namespace, name = self.place
        return self.config_maps.get(name, namespace)

    def _by_name(self) -> dict[str, HyperNode]:
        return {hyper_node.name: hyper_node for hyper_node in self.hyper_nodes}

    async def _compute(self, key: str, function: Callable[[], Result]) -> Result:
        begin = time.perf_counter()
        try:
            return await asyncio.to_thread(function)
        finally:
            self.rest(key, time.perf_counter() - begin)

    def _warn_once(self, obj: ConfigMap | HyperNode | None, reason: str, text: str, topic: str = "") -> None:
        """Record a warning unless it was the last of its topic; an empty text is good news."""
        if self._warned.get(topic, "") != text and text and obj is not None:
            self.context.recorder.warning(obj, reason, printable(text))
        self._warned[topic] = text

    def _forget_all_but(self, source: str, topics: set[str]) -> None:
        """Of HyperNodes of others that are no longer in the way of a source."""
        for topic in [topic for topic in self._warned if topic.startswith(f"{source}/")]:
            if topic not in topics:
                del self._warned[topic]

    def gave_up(self, key: str, error: Exception) -> None:
        config_map = self.config_map
        if config_map is not None:
            self.context.recorder.warning(config_map, names.DISCOVERY_FAILED, f"{key}: {error}")


Item = TypeVar("Item")


async def _for_each(items: Iterable[Item], write: Callable[[Item], Any]) -> None:
    """Write all items; the first that the API server refused is raised in the end."""
    refused: ApiError | None = None
    for item in items:
        try:
            await write(item)
        except ApiError as error:
            if error.status == 429 or error.status >= 500:
                raise
            refused = refused or error
    if refused is not None:
        raise refused


def _described(hyper_node: HyperNode) -> tuple[object, ...]:
    """What makes a HyperNode what it is."""
    return hyper_node.metadata.uid, hyper_node.metadata.labels, hyper_node.spec
