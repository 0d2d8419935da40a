"""What one write costs the API server: the same write asked for in several forms, in turn, on fresh objects.

`python -m bench.kubernetes.request_costs` measures processor time of kube-apiserver and etcd per request. Forms are
compared within one run, round by round, and the least of the rounds counts, as a machine's speed drifts.
"""

from __future__ import annotations

import asyncio
import json
import random
import ssl
import statistics
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from bench.kubernetes import shapes
from bench.kubernetes.bench_cluster import KINDS, BenchCluster
from bench.kubernetes.request_forms import FORMS, Form, Subject
from stromboli.kube.api_client import Client
from stromboli.kube.cluster_access import find_access
from stromboli.kube.http_connection import ConnectionPool
from stromboli.kube.request import Request

WIDTH = 4
ROUNDS, COUNT = 30, 24
SEED = 20260801


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
        self._tls: ssl.SSLContext | None = None

    async def send(self, request: Request, accept: str) -> bytes:
        if accept not in self._pools:
            self._pools[accept] = ConnectionPool(
                self._access.server, self._access.trust.server_name, (("Accept", accept),)
            )
        identity = await self._access.credentials.identity()
        if self._tls is None:
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


async def _measure(cluster: BenchCluster, forms: tuple[Form, ...]) -> dict[Form, Cost]:
    pids = [cluster.plane.pid(name) for name in ("kube-apiserver", "etcd")]
    spent: dict[Form, list[float]] = {form: [] for form in forms}
    sizes: dict[Form, tuple[int, int]] = {}
    sender, order = Sender(cluster), random.Random(SEED)
    async with Client(find_access(str(cluster.plane.kubeconfig))) as client:
        for turn in range(ROUNDS):
            requests = {}
            for number, form in enumerate(forms):
                made = await _make_subjects(client, form, turn * len(forms) + number)
                requests[form] = iter([form.make(subject) for subject in made])
            for form in order.sample(forms, len(forms)):
                before = sum(map(processor_time, pids))
                sizes[form] = await sender.send_all(requests[form], form.accept)
                spent[form].append((sum(map(processor_time, pids)) - before) / COUNT)
    return {form: Cost(min(times), statistics.median(times), *sizes[form]) for form, times in spent.items()}


async def _make_subjects(client: Client, form: Form, series: int) -> list[Subject]:
    """Fresh objects."""
    kind = "PodGroup" if form.write.startswith("PodGroup") else "Pod"

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
    forms = tuple(form for form in FORMS if not only or form.write.split()[0] in only)
    with (
        tempfile.TemporaryDirectory(prefix="stromboli-costs-") as folder,
        BenchCluster(Path(folder)) as cluster,
    ):
        cluster.create([shapes.node(17)])
        costs = asyncio.run(_measure(cluster, forms))
    print(
        f"{ROUNDS} rounds of {COUNT} requests, {WIDTH} at a time; the order in a round by lot, seed {SEED}\n"
    )
    print(f"{'write':18} {'form':32} {'least us':>8} {'median us':>9} {'bytes out':>9} {'back':>6}")
    for form, cost in costs.items():
        times = f"{cost.least * 1e6:8.0f} {cost.median * 1e6:9.0f}"
        print(f"{form.write:18} {form.title:32} {times} {cost.sent:9} {cost.received:6}")


if __name__ == "__main__":
    main()
