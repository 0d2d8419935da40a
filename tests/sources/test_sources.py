"""The requests of each source, how it reads responses, and that it refuses invalid ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest

from stromboli.model.node_usage import NodeUsage
from stromboli.sources.usage_sources import BadMetrics, CustomMetrics, Elasticsearch, File, Prometheus
from stromboli.transport import CallFailed, basic
from tests.serving import Asked, serving

NOW = 1793534400.0
NODES = ("n1", "n2")


def vector(values: dict[str, Any]) -> bytes:
    result = [{"metric": {"instance": name}, "value": [NOW, value]} for name, value in values.items()]
    return json.dumps(
        {"status": "success", "data": {"resultType": "vector", "result": result}, "warnings": ["w"]}
    ).encode()


def prometheus(cpu: dict[str, Any], memory: dict[str, Any]) -> Callable[[Asked], bytes]:
    def answer(asked: Asked) -> bytes:
        [query] = parse_qs(asked.body.decode())["query"]
        return vector(cpu if query == Prometheus.CPU else memory)

    return answer


def test_prometheus_is_asked_twice_for_all_nodes() -> None:
    with serving(prometheus({"n1": "12.5", "n2": "80"}, {"n1": "40", "n2": "1e1", "other": "3"})) as server:
        usage = Prometheus({"type": "prometheus", "address": server.url + "/"}).read(NODES, NOW)
    assert usage == {"n1": NodeUsage(12.5, 40, NOW), "n2": NodeUsage(80, 10, NOW)}
    assert [(request.method, request.path) for request in server.asked] == [("POST", "/api/v1/query")] * 2
    queries = [parse_qs(request.body.decode())["query"][0] for request in server.asked]
    assert queries == [
        'avg_over_time(clamp_min(100 - (avg by (instance) (rate(node_cpu_seconds_total{mode="idle"}[5m])) * 100), 0)'
        "[10m:30s])",
        "100*avg_over_time(((1-node_memory_MemAvailable_bytes/node_memory_MemTotal_bytes))[10m:30s])",
    ]


def test_a_node_of_which_one_number_is_missing_does_not_look_idle() -> None:
    with serving(
        prometheus({"n1": "NaN", "n2": "-1", "n3": "+Inf"}, {"n1": "1", "n2": "2", "n3": "x"})
    ) as server:
        usage = Prometheus({"address": server.url}).read(("n1", "n2", "n3", "n4"), NOW)
    assert usage == {"n2": NodeUsage(0, 2, NOW)}


def test_samples_of_other_machines_only_are_a_mistake_that_is_explained() -> None:
    elsewhere = prometheus({"10.0.0.1:9100": "5"}, {"10.0.0.1:9100": "5"})
    with serving(elsewhere) as server, pytest.raises(BadMetrics, match=r"instance .* must be the name"):
        Prometheus({"address": server.url}).read(NODES, NOW)


RUBBISH = [
    b"",
    b"nothing",
    b"null",
    b"[]",
    b"{}",
    b'{"status": "error", "error": "no"}',
    b'{"status": "success", "data": {"resultType": "matrix", "result": []}}',
    b'{"status": "success", "data": {"resultType": "vector", "result": [{"metric": {}, "value": "5"}]}}',
    b'{"status": "success", "data": {"resultType": "vector", "result": [{"metric": {"instance": 5}}]}}',
    b'{"aggregations": {"hosts": {"buckets": {"key": 5}}}}',
    b'{"aggregations": {"hosts": {"buckets": [{"key": "n1", "cpu": {"value": "much"}, "memory": {}}]}}}',
    b'{"items": [{"describedObject": "n1", "value": "1"}]}',
    b"[" * 100_000,
    b"\xff\xfe" * 100,
]


@pytest.mark.parametrize("body", RUBBISH, ids=range(len(RUBBISH)))
def test_an_invalid_response_is_refused(body: bytes) -> None:
    with serving(lambda asked: body) as server:
        for source in (Prometheus, Elasticsearch):
            with pytest.raises(BadMetrics):
                source({"address": server.url}).read(NODES, NOW)
        if (
            body != b"{}" and b"status" not in body and b"aggr" not in body
        ):  # those have no items: nothing known
            with pytest.raises(BadMetrics):
                CustomMetrics({"address": server.url}).read(NODES, NOW)


def test_a_status_that_is_not_200_is_no_answer() -> None:
    with serving(lambda asked: (503, b"")) as server, pytest.raises(CallFailed, match="answered 503"):
        Prometheus({"address": server.url}).read(NODES, NOW)


def test_elasticsearch_is_asked_once_for_all_hosts() -> None:
    buckets = [
        {"key": "n1", "doc_count": 7, "cpu": {"value": 0.25}, "memory": {"value": 0.5}},
        {"key": "n2", "cpu": {"value": None}, "memory": {"value": 0.5}},
    ]
    body = json.dumps({"took": 3, "aggregations": {"hosts": {"buckets": buckets}}}).encode()
    metrics = {"elasticsearch.username": "me", "elasticsearch.password": "secret"}
    with serving(lambda asked: body) as server:
        usage = Elasticsearch({"address": server.url, **metrics}).read(NODES, NOW)
        Elasticsearch(
            {
                "address": server.url,
                "elasticsearch.index": "my index/x",
                "elasticsearch.hostnameFieldName": "host",
            }
        ).read(NODES, NOW)
    assert usage == {"n1": NodeUsage(25, 50, NOW)}
    first, second = server.asked
    assert first.path == "/metricbeat-*/_search"
    assert first.headers["Authorization"] == basic("me", "secret")
    search = json.loads(first.body)
    assert search["query"]["bool"]["must"] == [
        {"range": {"@timestamp": {"gte": "now-10m", "lt": "now"}}},
        {"terms": {"host.hostname": ["n1", "n2"]}},
    ]
    assert search["aggs"]["hosts"]["aggs"]["memory"] == {"avg": {"field": "system.memory.actual.used.pct"}}
    assert search["aggs"]["hosts"]["aggs"]["cpu"] == {"avg": {"field": "host.cpu.usage"}}
    assert second.path == "/my%20index%2Fx/_search"
    assert json.loads(second.body)["aggs"]["hosts"]["terms"] == {"field": "host", "size": 2}
    assert "Authorization" not in second.headers


def custom(asked: Asked) -> bytes:
    cpu = asked.path.endswith("node_cpu_usage_avg")
    values = {"n1": "350m" if cpu else "0.5", "n2": "1" if cpu else "nonsense"}
    items = [
        {
            "describedObject": {"kind": "Node", "name": name},
            "metric": {"name": "x"},
            "timestamp": f"2026-11-01T12:00:0{int(cpu)}Z",
            "value": value,
        }
        for name, value in values.items()
    ]
    return json.dumps({"kind": "MetricValueList", "items": items}).encode()


def test_the_custom_metrics_api_is_asked_where_kubectl_proxy_serves_it() -> None:
    with serving(custom) as server:
        usage = CustomMetrics({"address": server.url}).read(NODES, NOW)
    assert usage == {"n1": NodeUsage(35, 50, NOW)}, "the older of both times"
    assert [request.path for request in server.asked] == [
        "/apis/custom.metrics.k8s.io/v1beta2/nodes/*/node_cpu_usage_avg",
        "/apis/custom.metrics.k8s.io/v1beta2/nodes/*/node_memory_usage_avg",
    ]
    assert all("Authorization" not in request.headers for request in server.asked)


def test_in_a_cluster_the_service_account_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "token").write_text("abc\n")
    with serving(custom) as server:
        monkeypatch.setattr("stromboli.sources.usage_sources.IN_CLUSTER", server.url)
        assert "n1" in CustomMetrics({}, account=tmp_path).read(NODES, NOW)
    assert {request.headers["Authorization"] for request in server.asked} == {"Bearer abc"}


def test_outside_of_a_cluster_it_needs_an_address(tmp_path: Path) -> None:
    with pytest.raises(BadMetrics, match="needs an address outside of a cluster"):
        CustomMetrics({}, account=tmp_path).read(NODES, NOW)


@pytest.mark.parametrize("source", [Prometheus, Elasticsearch, File])
def test_a_source_without_an_address_is_refused(source: type) -> None:
    with pytest.raises(BadMetrics, match="needs an address"):
        source({"type": "it"})


def written(folder: Path, text: str) -> File:
    (folder / "usage.yaml").write_text(text)
    return File({"type": "file", "address": str(folder / "usage.yaml")})


def test_a_file_is_yaml_or_json(tmp_path: Path) -> None:
    yaml = (
        'nodes:\n  n1: {cpu: 85, memory: 40.5}\n  n2: {cpu: 0, memory: 100, time: "2026-11-01T12:00:01Z"}\n'
    )
    expected = {"n1": NodeUsage(85, 40.5, NOW), "n2": NodeUsage(0, 100, NOW + 1)}
    assert written(tmp_path, yaml).read(NODES, NOW) == expected
    assert written(
        tmp_path, '{"nodes": {"n1": {"cpu": 1, "memory": 2}, "gone": {"cpu": 1, "memory": 2}}}'
    ).read(NODES, NOW) == {"n1": NodeUsage(1, 2, NOW)}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "needs one document"),
        ("---\n{nodes: {}}\n---\n{nodes: {}}", "has 2"),
        ("nodes: [n1]", "Expected `object`"),
        ("nodes: {n1: {cpu: 5}}", "missing required field `memory`"),
        ("nodes: {n1: {cpu: 5, memory: 101}}", "<= 100"),
        ("nodes: {n1: {cpu: 5, memory: much}}", r"\$\.nodes"),
        ("nodes: {n1: {cpu: 5, memory: 1, mem: 1}}", "unknown field `mem`"),
        ("nodes: {n1: {cpu: 5, memory: 1, time: noon}}", "time"),
        ("nodes: {", "not YAML"),
        ("a: &a [x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nnodes: *b", "unknown field `a`"),
    ],
)
def test_a_wrong_file_is_refused_with_the_reason(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(BadMetrics, match=problem):
        written(tmp_path, text).read(NODES, NOW)


def test_a_file_that_is_missing_binary_or_huge_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadMetrics, match="No such file"):
        File({"address": str(tmp_path / "none")}).read(NODES, NOW)
    with pytest.raises(BadMetrics):
        File({"address": str(tmp_path)}).read(NODES, NOW)
    (tmp_path / "binary").write_bytes(b"\xff\x00\xfe")
    with pytest.raises(BadMetrics):
        File({"address": str(tmp_path / "binary")}).read(NODES, NOW)
    with pytest.raises(BadMetrics, match="larger than"):
        written(tmp_path, "#" * (10 * 1024 * 1024 + 1)).read(NODES, NOW)


def test_no_file_can_make_a_number_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(BadMetrics, match="no number that JSON has"):
        written(tmp_path, "nodes: {n1: {cpu: .nan, memory: 1}}").read(NODES, NOW)
