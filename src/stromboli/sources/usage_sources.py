"""Sources of node usage: a file, Prometheus, Elasticsearch, and the custom metrics API of Kubernetes."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from pathlib import Path
from typing import Annotated, Literal, Protocol, TypeVar
from urllib.parse import quote, urlencode

import msgspec
from msgspec import Meta, Struct, field

from stromboli.api import go_scalars
from stromboli.api.errors import Unreadable
from stromboli.api.manifests.yaml_reader import documents
from stromboli.api.resources.quantity import QuantityError, exact
from stromboli.model.node_usage import NodeUsage
from stromboli.transport import LARGEST, Call, Trust, basic, send

T = TypeVar("T")
Metrics = Mapping[str, str]
"""The `metrics` section of a policy."""
WINDOW = "10m"
"""The period over which usage is averaged."""
TIMEOUT = 30.0


class BadMetrics(Exception):
    """Invalid settings of a source, or an invalid response."""


class Source(Protocol):
    """Measures the load of nodes."""

    def read(self, nodes: Collection[str], now: float) -> dict[str, NodeUsage]:
        """Usage by node; raises `BadMetrics` or `CallFailed` if it cannot be read."""


def _address(metrics: Metrics) -> str:
    """The address in the settings, without a slash at its end."""
    given = metrics.get("address", "").rstrip("/")
    if not given:
        raise BadMetrics(f"metrics: type {metrics.get('type', '')} needs an address")
    return given


# -- a file, for laptops and tests


Percent = Annotated[float, Meta(ge=0, le=100)]


class FileEntry(Struct, forbid_unknown_fields=True):
    """One node."""

    cpu: Percent
    memory: Percent
    time: Annotated[datetime, Meta(tz=True)] | None = None


class FileContent(Struct, forbid_unknown_fields=True):
    nodes: dict[str, FileEntry]


class File:
    """YAML or JSON with percentages by node, read at every poll; one mistake makes the whole file unusable.

        nodes:
          n1: {cpu: 85, memory: 40}
          n2: {cpu: 5, memory: 10, time: "2026-11-01T12:00:00Z"}

    A measurement without a time is as old as its last reading, so it is valid as long as the file exists.
    """

    def __init__(self, metrics: Metrics):
        self._path = Path(_address(metrics))

    def read(self, nodes: Collection[str], now: float) -> dict[str, NodeUsage]:
        content = self._content()
        return {
            name: NodeUsage(entry.cpu, entry.memory, entry.time.timestamp() if entry.time else now)
            for name, entry in content.nodes.items()
            if name in nodes and math.isfinite(entry.cpu) and math.isfinite(entry.memory)
        }

    def _content(self) -> FileContent:
        try:
            with self._path.open("rb") as file:
                raw = file.read(LARGEST + 1)
            if len(raw) > LARGEST:
                raise BadMetrics(f"{self._path}: larger than {LARGEST} bytes")
            contents = list(documents(raw.decode()))
            if len(contents) != 1:
                raise BadMetrics(f"{self._path}: needs one document with the key nodes, has {len(contents)}")
            return msgspec.convert(contents[0], FileContent)
        except OSError as error:
            raise BadMetrics(f"{self._path}: {error.strerror or error}") from None
        except (UnicodeDecodeError, Unreadable, msgspec.ValidationError) as error:
            raise BadMetrics(f"{self._path}: {error}"[:300]) from None


# -- servers


class _Server:
    """A server that is asked over HTTP."""

    def __init__(self, metrics: Metrics):
        self._trust = Trust(verify=go_scalars.boolean(metrics.get("tls.insecureSkipVerify", "")) is not True)

    def _ask(self, call: Call, kind: type[T], source: str) -> T:
        """The response, if it has the expected form."""
        try:
            return msgspec.json.decode(send(call), type=kind)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise BadMetrics(f"{source}: unexpected response: {error}"[:300]) from None


def _paired(
    cpu: Mapping[str, float], memory: Mapping[str, float], nodes: Collection[str], at: float
) -> dict[str, NodeUsage]:
    """Usage of the nodes for which both numbers are known: a node without a measurement must not look idle."""
    return {
        node: NodeUsage(max(cpu[node], 0.0), max(memory[node], 0.0), at)
        for node in nodes
        if all(math.isfinite(known.get(node, math.nan)) for known in (cpu, memory))
    }


class Sample(Struct):
    """One value with its labels; the value is text, after its time."""

    metric: dict[str, str]
    value: tuple[float, str]


class Vector(Struct, tag="vector", tag_field="resultType"):
    result: list[Sample]


class QueryResponse(Struct):
    status: Literal["success"]
    data: Vector


class Prometheus(_Server):
    """Two instant queries over what the node exporter measured; `instance` must be the name of the node.

    Volcano queries twice per node; the same two queries without the name of a node cover all nodes at once.
    """

    CPU = (
        'avg_over_time(clamp_min(100 - (avg by (instance) (rate(node_cpu_seconds_total{mode="idle"}[5m])) * 100), 0)'
        f"[{WINDOW}:30s])"
    )
    MEMORY = (
        f"100*avg_over_time(((1-node_memory_MemAvailable_bytes/node_memory_MemTotal_bytes))[{WINDOW}:30s])"
    )

    def __init__(self, metrics: Metrics):
        super().__init__(metrics)
        self._url = _address(metrics) + "/api/v1/query"

    def read(self, nodes: Collection[str], now: float) -> dict[str, NodeUsage]:
        usage = _paired(self._query(self.CPU), self._query(self.MEMORY), nodes, now)
        if nodes and not usage:
            raise BadMetrics(
                "prometheus: no sample is of a node of this cluster;"
                " the label instance of the node exporter must be the name of the node"
            )
        return usage

    def _query(self, query: str) -> dict[str, float]:
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        call = Call(self._url, urlencode({"query": query}).encode(), headers, TIMEOUT, self._trust)
        response = self._ask(call, QueryResponse, "prometheus")
        values: dict[str, float] = {}
        for sample in response.data.result:
            values.setdefault(sample.metric.get("instance", ""), _number(sample.value[1]))
        return values


def _number(text: str) -> float:
    """A number that is written as text; NaN if it is invalid."""
    try:
        return float(text)
    except ValueError:
        return math.nan


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


class SearchResponse(Struct):
    aggregations: Aggregations


class Elasticsearch(_Server):
    """One search over the last ten minutes of what Metricbeat wrote; fractions become percents."""

    def __init__(self, metrics: Metrics):
        super().__init__(metrics)
        index = metrics.get("elasticsearch.index") or "metricbeat-*"
        self._url = f"{_address(metrics)}/{quote(index, safe='*,')}/_search"
        self._field = metrics.get("elasticsearch.hostnameFieldName") or "host.hostname"
        self._headers = {"Content-Type": "application/json"}
        if name := metrics.get("elasticsearch.username", ""):
            self._headers["Authorization"] = basic(name, metrics.get("elasticsearch.password", ""))

    def read(self, nodes: Collection[str], now: float) -> dict[str, NodeUsage]:
        call = Call(self._url, self._search(nodes), self._headers, TIMEOUT, self._trust)
        hosts = self._ask(call, SearchResponse, "elasticsearch").aggregations.hosts.buckets
        cpu = {host.key: host.cpu.value * 100 for host in hosts if host.cpu.value is not None}
        memory = {host.key: host.memory.value * 100 for host in hosts if host.memory.value is not None}
        return _paired(cpu, memory, nodes, now)

    def _search(self, nodes: Collection[str]) -> bytes:
        recent = {"range": {"@timestamp": {"gte": f"now-{WINDOW}", "lt": "now"}}}
        ours = {"terms": {self._field: sorted(nodes)}}
        averages = {
            "cpu": {"avg": {"field": "host.cpu.usage"}},
            "memory": {"avg": {"field": "system.memory.actual.used.pct"}},
        }
        by_host = {"terms": {"field": self._field, "size": max(len(nodes), 1)}, "aggs": averages}
        return msgspec.json.encode(
            {"size": 0, "query": {"bool": {"must": [recent, ours]}}, "aggs": {"hosts": by_host}}
        )


class DescribedObject(Struct):
    name: str


class MetricValue(Struct, rename="camel"):
    described_object: DescribedObject
    value: str
    timestamp: datetime | None = None


class MetricValueList(Struct):
    items: list[MetricValue] = field(default_factory=list)


IN_CLUSTER = "https://kubernetes.default.svc"


class CustomMetrics(_Server):
    """The custom metrics API, where the Prometheus adapter serves it: two lists with a fraction for each node.

    Without an address, requests go to the API server of the cluster that this process runs in, with the token of its
    service account. With an address, such as that of `kubectl proxy`, they go there without a token.
    """

    def __init__(
        self, metrics: Metrics, account: Path = Path("/var/run/secrets/kubernetes.io/serviceaccount")
    ):
        super().__init__(metrics)
        self._url = metrics.get("address", "").rstrip("/")
        self._account = None if self._url else account

    def read(self, nodes: Collection[str], now: float) -> dict[str, NodeUsage]:
        cpu, memory = self._query("node_cpu_usage_avg", now), self._query("node_memory_usage_avg", now)
        return {
            node: NodeUsage(cpu[node][0], memory[node][0], min(cpu[node][1], memory[node][1]))
            for node in nodes
            if node in cpu and node in memory
        }

    def _query(self, metric: str, now: float) -> dict[str, tuple[float, float]]:
        """Percent and time, by node."""
        url = f"{self._url or IN_CLUSTER}/apis/custom.metrics.k8s.io/v1beta2/nodes/*/{metric}"
        trust = Trust(self._trust.verify, str(self._account / "ca.crt")) if self._account else self._trust
        call = Call(url, None, self._headers(), TIMEOUT, trust)
        usage = {}
        for item in self._ask(call, MetricValueList, "prometheus_adaptor").items:
            percent = _percent(item.value)
            if percent is not None:
                at = item.timestamp.timestamp() if item.timestamp is not None else now
                usage[item.described_object.name] = (percent, at)
        return usage

    def _headers(self) -> dict[str, str]:
        """The token is read for every call, as Kubernetes replaces it now and then."""
        if self._account is None:
            return {}
        try:
            return {"Authorization": f"Bearer {(self._account / 'token').read_text().strip()}"}
        except (OSError, UnicodeDecodeError):
            raise BadMetrics(
                "metrics: type prometheus_adaptor needs an address outside of a cluster, such as the one"
                " that kubectl proxy prints"
            ) from None


def _percent(quantity: str) -> float | None:
    try:
        return max(float(exact(quantity) * 100), 0.0)
    except (QuantityError, OverflowError):
        return None


# -- all sources, by the `type` of the `metrics` section


LOCAL: Mapping[str, Callable[[Metrics], Source]] = {"file": File}
"""Sources that need no network, and are read at once."""
ALL: Mapping[str, Callable[[Metrics], Source]] = {
    **LOCAL,
    "prometheus": Prometheus,
    "prometheus_adaptor": CustomMetrics,
    "elasticsearch": Elasticsearch,
}
