"""Node usage from Elasticsearch, as Metricbeat wrote it: the averages of all hosts in one search."""

from __future__ import annotations

from collections.abc import Collection
from urllib.parse import quote

import msgspec
from msgspec import Struct

from stromboli.model.node_usage import NodeUsage
from stromboli.sources.usage_source import WINDOW, Metrics, address, decoded, paired, trust
from stromboli.transport import Call, basic, send

TIMEOUT = 30.0
INDEX, HOSTNAME = "metricbeat-*", "host.hostname"
CPU, MEMORY = "host.cpu.usage", "system.memory.actual.used.pct"


class Average(Struct):
    value: float | None = None


class Bucket(Struct):
    """One host."""

    key: str
    cpu: Average
    memory: Average


class Hosts(Struct):
    buckets: list[Bucket]


class Aggregations(Struct):
    hosts: Hosts


class Response(Struct):
    aggregations: Aggregations


class Elasticsearch:
    """One search over the last ten minutes; fractions become percents."""

    def __init__(self, metrics: Metrics, timeout: float = TIMEOUT):
        index = metrics.get("elasticsearch.index") or INDEX
        self._url = f"{address(metrics)}/{quote(index, safe='*,')}/_search"
        self._field = metrics.get("elasticsearch.hostnameFieldName") or HOSTNAME
        self._headers = {"Content-Type": "application/json"}
        if name := metrics.get("elasticsearch.username", ""):
            self._headers["Authorization"] = basic(name, metrics.get("elasticsearch.password", ""))
        self._trust = trust(metrics)
        self._timeout = timeout

    def read(self, nodes: Collection[str], now: float) -> dict[str, NodeUsage]:
        call = Call(self._url, self._search(nodes), self._headers, self._timeout, self._trust)
        hosts = decoded(send(call), Response, "elasticsearch").aggregations.hosts.buckets
        cpu = {host.key: host.cpu.value * 100 for host in hosts if host.cpu.value is not None}
        memory = {host.key: host.memory.value * 100 for host in hosts if host.memory.value is not None}
        return paired(cpu, memory, nodes, now)

    def _search(self, nodes: Collection[str]) -> bytes:
        recent = {"range": {"@timestamp": {"gte": f"now-{WINDOW}", "lt": "now"}}}
        ours = {"terms": {self._field: sorted(nodes)}}
        averages = {"cpu": {"avg": {"field": CPU}}, "memory": {"avg": {"field": MEMORY}}}
        by_host = {"terms": {"field": self._field, "size": max(len(nodes), 1)}, "aggs": averages}
        return msgspec.json.encode(
            {"size": 0, "query": {"bool": {"must": [recent, ours]}}, "aggs": {"hosts": by_host}}
        )
