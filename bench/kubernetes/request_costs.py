"""What one write costs the API server: the same write asked for in several ways, in turn, on fresh objects.

`python -m bench.kubernetes.request_costs` measures processor time of kube-apiserver and etcd per request. Ways are
compared within one run, round by round, and the least of the rounds counts, as a machine's speed drifts.
"""

from __future__ import annotations

import asyncio
import json
import random
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from bench.kubernetes import shapes
from bench.kubernetes.bench_cluster import KINDS, BenchCluster
from stromboli.kube.api_client import Client
from stromboli.kube.cluster_access import find_access
from stromboli.kube.http_connection import ConnectionPool
from stromboli.kube.request import JSON, JSON_PATCH, MERGE, Request
from stromboli.kube.timestamps import micro_time, timestamp

WIDTH = 4
ROUNDS, COUNT = 30, 24
APPLY = "application/apply-patch+yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
GROUPS = f"/apis/scheduling.volcano.sh/v1beta1/namespaces/{shapes.NAMESPACE}/podgroups"
PODS = f"/api/v1/namespaces/{shapes.NAMESPACE}/pods"
EVENTS = f"/api/v1/namespaces/{shapes.NAMESPACE}/events"
NEW_EVENTS = f"/apis/events.k8s.io/v1/namespaces/{shapes.NAMESPACE}/events"
NOW = 1_800_000_000.0
OWN = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup"}


class Subject(NamedTuple):
    """An object as it stands, with the round in which it is written."""

    content: dict[str, Any]
    number: int

    @property
    def name(self) -> str:
        return str(self.content["metadata"]["name"])

    @property
    def uid(self) -> str:
        return str(self.content["metadata"]["uid"])


class Way(NamedTuple):
    """One way to ask for a write."""

    write: str
    title: str
    make: Callable[[Subject], Request]
    accept: str = JSON


def status(phase: str = "Running") -> dict[str, Any]:
    scheduled = {
        "type": "Scheduled",
        "status": "True",
        "reason": "tasks in gang are ready to be scheduled",
        "message": "",
        "lastTransitionTime": timestamp(NOW),
        "transitionID": "e9a95d5b-1d29-4d94-b9ab-e2a0e3c0a1f2",
    }
    return {"phase": phase, "running": 0, "succeeded": 0, "failed": 0, "conditions": [scheduled]}


def _json(method: str, path: str, body: Any, content_type: str = JSON) -> Request:
    return Request(method, path, json.dumps(body, separators=(",", ":")).encode(), content_type)


def merge_patch(group: Subject) -> Request:
    body = {"metadata": {"uid": group.uid}, "status": status()}
    return _json("PATCH", f"{GROUPS}/{group.name}", body, MERGE)


def bare_merge_patch(group: Subject) -> Request:
    return _json("PATCH", f"{GROUPS}/{group.name}", {"status": {"phase": "Running"}}, MERGE)


def short_merge_patch(group: Subject) -> Request:
    """Without counts that are zero and an empty message, as Go leaves them out."""
    scheduled = {key: value for key, value in status()["conditions"][0].items() if value}
    body = {"metadata": {"uid": group.uid}, "status": {"phase": "Running", "conditions": [scheduled]}}
    return _json("PATCH", f"{GROUPS}/{group.name}", body, MERGE)


def uid_merge_patch(group: Subject) -> Request:
    body = {"metadata": {"uid": group.uid}, "status": {"phase": "Running"}}
    return _json("PATCH", f"{GROUPS}/{group.name}", body, MERGE)


def json_patch(group: Subject) -> Request:
    test = {"op": "test", "path": "/metadata/uid", "value": group.uid}
    body = [test, {"op": "add", "path": "/status", "value": status()}]
    return _json("PATCH", f"{GROUPS}/{group.name}", body, JSON_PATCH)


def put(group: Subject) -> Request:
    return _json("PUT", f"{GROUPS}/{group.name}", {**group.content, "status": status()})


def put_without_managed_fields(group: Subject) -> Request:
    metadata = {key: value for key, value in group.content["metadata"].items() if key != "managedFields"}
    return _json("PUT", f"{GROUPS}/{group.name}", {**group.content, "metadata": metadata, "status": status()})


def put_phase(group: Subject) -> Request:
    metadata = {key: value for key, value in group.content["metadata"].items() if key != "managedFields"}
    return _json(
        "PUT",
        f"{GROUPS}/{group.name}",
        {**group.content, "metadata": metadata, "status": {"phase": "Running"}},
    )


def apply(group: Subject) -> Request:
    body = {**OWN, "metadata": {"name": group.name, "uid": group.uid}, "status": status()}
    return _json("PATCH", f"{GROUPS}/{group.name}?fieldManager=volcano&force=true", body, APPLY)


def event(pod: Subject) -> dict[str, Any]:
    """As client-go's recorders write it."""
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{pod.name}.{pod.number:016x}", "namespace": shapes.NAMESPACE},
        "involvedObject": {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": shapes.NAMESPACE,
            "name": pod.name,
            "uid": pod.uid,
        },
        "type": "Normal",
        "reason": "Scheduled",
        "message": f"Successfully assigned {shapes.NAMESPACE}/{pod.name} to node-17",
        "source": {"component": "volcano"},
        "firstTimestamp": timestamp(NOW),
        "lastTimestamp": timestamp(NOW),
        "count": 1,
    }


def series_event(pod: Subject) -> dict[str, Any]:
    """As we have written it: with the fields of both APIs."""
    return {
        **event(pod),
        "reportingComponent": "volcano",
        "reportingInstance": "volcano-scheduler-0",
        "action": "Scheduled",
        "eventTime": micro_time(NOW),
    }


def new_event(pod: Subject) -> dict[str, Any]:
    """Of events.k8s.io."""
    old = event(pod)
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": old["metadata"],
        "eventTime": micro_time(NOW),
        "reportingController": "volcano",
        "reportingInstance": "volcano-scheduler-0",
        "action": "Binding",
        "reason": "Scheduled",
        "regarding": old["involvedObject"],
        "note": old["message"],
        "type": "Normal",
    }


# -- protobuf by hand: enough for a binding and an event


def _field(number: int, value: bytes | str | int) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    data = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def _object(api_version: str, kind: str, raw: bytes) -> bytes:
    return b"k8s\x00" + _field(1, _field(1, api_version) + _field(2, kind)) + _field(2, raw)


def _time(seconds: float) -> bytes:
    return _field(1, int(seconds))


def protobuf_binding(pod: Subject) -> Request:
    metadata = _field(1, pod.name) + _field(3, shapes.NAMESPACE) + _field(5, pod.uid)
    target = _field(1, "Node") + _field(3, "node-17") + _field(5, "v1")
    raw = _field(1, metadata) + _field(2, target)
    return Request("POST", f"{PODS}/{pod.name}/binding", _object("v1", "Binding", raw), PROTOBUF)


def json_binding(pod: Subject) -> Request:
    body = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"namespace": shapes.NAMESPACE, "name": pod.name, "uid": pod.uid},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "node-17"},
    }
    return _json("POST", f"{PODS}/{pod.name}/binding", body)


def protobuf_event(pod: Subject) -> Request:
    text = event(pod)
    metadata = _field(1, text["metadata"]["name"]) + _field(3, shapes.NAMESPACE)
    about = (
        _field(1, "Pod")
        + _field(2, shapes.NAMESPACE)
        + _field(3, pod.name)
        + _field(4, pod.uid)
        + _field(5, "v1")
    )
    raw = (
        _field(1, metadata)
        + _field(2, about)
        + _field(3, "Scheduled")
        + _field(4, text["message"])
        + _field(5, _field(1, "volcano"))
        + _field(6, _time(NOW))
        + _field(7, _time(NOW))
        + _field(8, 1)
        + _field(9, "Normal")
    )
    return Request("POST", EVENTS, _object("v1", "Event", raw), PROTOBUF)


WAYS = (
    Way("PodGroup status", "merge patch, uid", merge_patch),
    Way("PodGroup status", "merge patch, metadata back", merge_patch, METADATA),
    Way("PodGroup status", "merge patch without zeros", short_merge_patch),
    Way("PodGroup status", "merge patch, uid and phase", uid_merge_patch),
    Way("PodGroup status", "merge patch, phase alone", bare_merge_patch),
    Way("PodGroup status", "JSON patch, uid tested", json_patch),
    Way("PodGroup status", "PUT", put),
    Way("PodGroup status", "PUT without managedFields", put_without_managed_fields),
    Way("PodGroup status", "PUT, metadata back", put_without_managed_fields, METADATA),
    Way("PodGroup status", "PUT of the phase", put_phase),
    Way("PodGroup status", "server-side apply", apply),
    Way("bind", "JSON", json_binding),
    Way("bind", "protobuf", protobuf_binding),
    Way("bind", "protobuf both ways", protobuf_binding, PROTOBUF),
    Way("event", "core, fields of both APIs", lambda pod: _json("POST", EVENTS, series_event(pod))),
    Way("event", "core", lambda pod: _json("POST", EVENTS, event(pod))),
    Way("event", "core, metadata back", lambda pod: _json("POST", EVENTS, event(pod)), METADATA),
    Way("event", "events.k8s.io", lambda pod: _json("POST", NEW_EVENTS, new_event(pod))),
    Way("event", "core, protobuf", protobuf_event),
    Way("event", "core, protobuf both ways", protobuf_event, PROTOBUF),
)


class Cost(NamedTuple):
    """Seconds of processor time of a request, and its bytes."""

    least: float
    median: float
    sent: int
    received: int


def processor_time(pid: int) -> float:
    """Of all threads that live, by the nanosecond; `/proc/PID/stat` counts in ticks of 10 ms."""
    total = 0
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with suppress(OSError):
            total += int((thread / "schedstat").read_text().split()[0])
    return total / 1e9


class Sender:
    """Requests with an Accept header of their own."""

    def __init__(self, cluster: BenchCluster) -> None:
        self._access = find_access(str(cluster.plane.kubeconfig))
        self._pools: dict[str, ConnectionPool] = {}

    async def send(self, request: Request, accept: str) -> bytes:
        if accept not in self._pools:
            self._pools[accept] = ConnectionPool(
                self._access.server, self._access.trust.server_name, (("Accept", accept),)
            )
        identity = await self._access.credentials.identity()
        if not hasattr(self, "_tls"):
            self._tls = self._access.trust.context(identity.certificate)
        headers = (*identity.headers, ("Content-Type", request.content_type))
        response = await self._pools[accept].send(request, headers, self._tls, 1 << 20)
        if response.status >= 300:
            raise RuntimeError(f"{request.path}: {response.status} {response.body[:300]!r}")
        return response.body

    async def send_all(self, requests: Iterator[Request], accept: str) -> tuple[int, int]:
        """Bytes out and in of the last one."""
        sizes = (0, 0)

        async def worker() -> None:
            nonlocal sizes
            for request in requests:
                body = await self.send(request, accept)
                sizes = len(request.body or b""), len(body)

        await asyncio.gather(*(worker() for _ in range(WIDTH)))
        return sizes


async def _measure(cluster: BenchCluster, ways: tuple[Way, ...]) -> dict[Way, Cost]:
    pids = [cluster.plane.pid(name) for name in ("kube-apiserver", "etcd")]
    spent: dict[Way, list[float]] = {way: [] for way in ways}
    sizes: dict[Way, tuple[int, int]] = {}
    sender = Sender(cluster)
    async with Client(find_access(str(cluster.plane.kubeconfig))) as client:
        for round in range(ROUNDS):
            requests = {}
            for number, way in enumerate(ways):
                made = await _make_subjects(client, way, round * len(ways) + number)
                requests[way] = iter([way.make(subject) for subject in made])
            for way in random.sample(ways, len(ways)):
                before = sum(map(processor_time, pids))
                sizes[way] = await sender.send_all(requests[way], way.accept)
                spent[way].append((sum(map(processor_time, pids)) - before) / COUNT)
    return {way: Cost(min(times), statistics.median(times), *sizes[way]) for way, times in spent.items()}


async def _make_subjects(client: Client, way: Way, series: int) -> list[Subject]:
    """Fresh objects."""
    kind = "PodGroup" if way.write.startswith("PodGroup") else "Pod"

    async def create(number: int) -> Subject:
        manifest = shapes.group(number, 1) if kind == "PodGroup" else shapes.pod(number, 0, shapes.OURS)
        if kind == "PodGroup":
            manifest["status"] = {"phase": "Pending"}
        return Subject(json.loads(await client.create(KINDS[kind], manifest, shapes.NAMESPACE)), series)

    made: list[Subject] = []
    for begin in range(0, COUNT, WIDTH):
        numbers = range(begin, min(begin + WIDTH, COUNT))
        made += await asyncio.gather(*(create(series * COUNT + number) for number in numbers))
    return made


def main() -> None:
    only = sys.argv[1:]
    ways = tuple(way for way in WAYS if not only or way.write.split()[0] in only)
    with (
        tempfile.TemporaryDirectory(prefix="stromboli-costs-") as folder,
        BenchCluster(Path(folder)) as cluster,
    ):
        cluster.create([shapes.node(17)])
        costs = asyncio.run(_measure(cluster, ways))
    print(f"{'write':18} {'way':32} {'least us':>8} {'median us':>9} {'bytes out':>9} {'back':>6}")
    for way, cost in costs.items():
        times = f"{cost.least * 1e6:8.0f} {cost.median * 1e6:9.0f}"
        print(f"{way.write:18} {way.title:32} {times} {cost.sent:9} {cost.received:6}")


if __name__ == "__main__":
    main()
