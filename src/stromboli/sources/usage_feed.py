"""Keeps node usage up to date between cycles, without delaying them."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Collection, Mapping

from stromboli.model.cluster import Cluster
from stromboli.model.node_usage import NodeUsage, interval
from stromboli.sources.usage_sources import ALL, LOCAL, BadMetrics, Metrics, Source
from stromboli.transport import CallFailed

log = logging.getLogger(__name__)

Readings = dict[str, NodeUsage]


class UsageFeed:
    """The source that a policy names, polled once per interval; the loop calls `refresh` before each cycle.

    Files are read on the spot. Sources that need a network are polled in a thread, one poll at a time, and the first
    `refresh` after a response applies it. With `sources=LOCAL` they are not polled, and nodes have no usage.
    """

    def __init__(
        self,
        sources: Mapping[str, Callable[[Metrics], Source]] = ALL,
        warn: Callable[[str], None] = log.warning,
    ):
        self._sources = sources
        self._warn = warn
        self._metrics: Metrics = {}
        self._source: Source | None = None
        self._last_warning = ""
        self._reset()

    def _reset(self) -> None:
        self._polled: float | None = None
        self._in_flight = False
        self._responses: queue.SimpleQueue[Readings | Exception] = queue.SimpleQueue()

    def refresh(self, cluster: Cluster, metrics: Metrics, now: float) -> None:
        """Apply a response that has arrived, and poll again if it is time."""
        if metrics != self._metrics:
            self._use(metrics)
        if self._source is None:
            return
        self._apply_response(cluster, now)
        if not self._in_flight and self._due(now):
            self._polled = now
            self._poll(self._source, frozenset(cluster.nodes), now)
            self._apply_response(cluster, now)

    def _use(self, metrics: Metrics) -> None:
        """Use another `metrics` section; the response to a poll under way is dropped."""
        self._metrics, self._source = dict(metrics), None
        self._reset()
        kind = metrics.get("type", "")
        if not kind:
            return
        if kind not in ALL:
            self._warn_once(f"metrics: unknown type {kind!r}; known: {', '.join(sorted(ALL))}")
        elif kind not in self._sources:
            self._warn_once(f"metrics: {kind} is not asked in a rehearsal: nodes have no usage")
        else:
            try:
                self._source = self._sources[kind](metrics)
            except BadMetrics as error:
                self._warn_once(str(error))

    def _due(self, now: float) -> bool:
        if self._polled is None or now < self._polled:  # a clock that was set back does not stop the feed
            return True
        return now - self._polled >= interval(self._metrics)

    # -- polling

    def _poll(self, source: Source, nodes: Collection[str], now: float) -> None:
        self._in_flight = True
        if self._metrics.get("type") in LOCAL:
            _read_into(source, nodes, now, self._responses)
        else:
            arguments = (source, nodes, now, self._responses)
            threading.Thread(target=_read_into, args=arguments, name="node-usage", daemon=True).start()

    def _apply_response(self, cluster: Cluster, now: float) -> None:
        try:
            response = self._responses.get_nowait()
        except queue.Empty:
            return
        self._in_flight = False
        if isinstance(response, Exception):
            self._warn_once(f"node usage is not up to date: {response}")
            return
        self._last_warning = ""
        kept = {
            name: usage for name, usage in cluster.usage.items() if name in cluster.nodes and usage.fresh(now)
        }
        cluster.usage = {**kept, **response}

    def _warn_once(self, problem: str) -> None:
        """Warn, unless this was the last warning."""
        if problem != self._last_warning:
            self._last_warning = problem
            self._warn(problem)


def _read_into(
    source: Source, nodes: Collection[str], now: float, responses: queue.SimpleQueue[Readings | Exception]
) -> None:
    try:
        responses.put(source.read(nodes, now))
    except (BadMetrics, CallFailed) as error:
        responses.put(error)
    except Exception as error:  # whatever it is, it must not stop the polling
        log.exception("a source of node usage failed")
        responses.put(error)
