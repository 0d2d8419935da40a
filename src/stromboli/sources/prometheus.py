"""Node usage from Prometheus, as the node exporter measured it; `instance` must be the name of the node.

Volcano queries twice per node; the same two queries without the name of a node cover all nodes at once.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal
from urllib.parse import urlencode

from msgspec import Struct

from stromboli.model.node_usage import NodeUsage
from stromboli.sources.usage_source import (
    WINDOW,
    BadMetrics,
    Metrics,
    address,
    decoded,
    number,
    paired,
    trust,
)
from stromboli.transport import Call, send

TIMEOUT = 30.0
CPU = (
    'avg_over_time(clamp_min(100 - (avg by (instance) (rate(node_cpu_seconds_total{mode="idle"}[5m])) * 100), 0)'
    f"[{WINDOW}:30s])"
)
MEMORY = f"100*avg_over_time(((1-node_memory_MemAvailable_bytes/node_memory_MemTotal_bytes))[{WINDOW}:30s])"
_FORM = {"Content-Type": "application/x-www-form-urlencoded"}


class Sample(Struct):
    """One value with its labels; the value is text, after its time."""

    metric: dict[str, str]
    value: tuple[float, str]


class Vector(Struct, tag="vector", tag_field="resultType"):
    result: list[Sample]


class Response(Struct):
    status: Literal["success"]
    data: Vector


class Prometheus:
    """Two instant queries for all nodes together."""

    def __init__(self, metrics: Metrics, timeout: float = TIMEOUT):
        self._url = address(metrics) + "/api/v1/query"
        self._trust = trust(metrics)
        self._timeout = timeout

    def read(self, nodes: Collection[str], now: float) -> dict[str, NodeUsage]:
        usage = paired(self._query(CPU), self._query(MEMORY), nodes, now)
        if nodes and not usage:
            raise BadMetrics(
                "prometheus: no sample is of a node of this cluster;"
                " the label instance of the node exporter must be the name of the node"
            )
        return usage

    def _query(self, query: str) -> dict[str, float]:
        body = urlencode({"query": query}).encode()
        response = decoded(
            send(Call(self._url, body, _FORM, self._timeout, self._trust)), Response, "prometheus"
        )
        values: dict[str, float] = {}
        for sample in response.data.result:
            values.setdefault(sample.metric.get("instance", ""), number(sample.value[1]))
        return values
