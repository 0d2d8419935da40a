"""How the cluster feels to somebody who asks for little: how soon a pod gets a node, how soon `/readyz` answers."""

from __future__ import annotations

import asyncio
import itertools
import json
import math
import subprocess
import sys
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.soak.api_user import ApiUser, NoAnswer
from tests.soak.cluster_process import ClusterProcess
from tests.soak.limits import Load, limits_here
from tests.soak.workloads import pod

PROBES = "/api/v1/namespaces/probe/pods"
READY_PROBE = Path(__file__).with_name("ready_probe.py")


class BindProbe:
    """Pods in turn, each deleted once it has a node."""

    def __init__(self, user: ApiUser) -> None:
        self._user = user
        self._nodes: dict[str, asyncio.Future[str]] = {}
        self.seconds: list[float] = []
        self.seconds_after_kill: list[float] = []
        self.slow: list[str] = []
        """What there is to say of those beyond the limit."""

    async def run(self, load: Load) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._watch())
            group.create_task(self._probe(load))

    async def _watch(self) -> None:
        while True:
            await self._user.up.wait()
            async for event in self._user.watch(PROBES):
                self._note(event["object"])
            await asyncio.sleep(0.05)

    def _note(self, content: Any) -> None:
        waiting = self._nodes.get(content["metadata"].get("name", ""))
        node = content.get("spec", {}).get("nodeName")
        if waiting is not None and node and not waiting.done():
            waiting.set_result(node)

    async def _probe(self, load: Load) -> None:
        for number in itertools.count():
            await self._user.up.wait()
            with suppress(NoAnswer):
                await self._bind(f"probe-{number}")
                await asyncio.sleep(load.probe_pause)
                await self._user.must("DELETE", f"{PROBES}?gracePeriodSeconds=0")

    async def _bind(self, name: str) -> None:
        """Create a pod and wait until it has a node, or the cluster is killed."""
        outages = self._user.cluster.outages
        first = len(outages) > len(self.seconds_after_kill)
        limit = limits_here().bind_after_kill if first else limits_here().bind
        bound = self._nodes[name] = asyncio.get_running_loop().create_future()
        await self._user.must("POST", PROBES, pod(name, run_time="forever"))
        begin = outages[-1][0] if first else time.monotonic()
        while not bound.done() and self._user.up.is_set() and time.monotonic() < begin + 2 * limit:
            await asyncio.wait([bound], timeout=0.2)
        taken = time.monotonic() - begin
        if self._user.up.is_set():
            (self.seconds_after_kill if first else self.seconds).append(taken)
            if taken > limit:
                await self._explain(name, taken)
        del self._nodes[name]

    async def _explain(self, name: str, taken: float) -> None:
        """What the API server says of a probe that took too long."""
        _, content = await self._user.request("GET", f"{PROBES}/{name}")
        groups = PROBES.replace("/api/v1", "/apis/scheduling.volcano.sh/v1beta1").replace(
            "/pods", "/podgroups"
        )
        _, group = await self._user.request("GET", groups)
        told = [content["metadata"], content.get("status"), group.get("items")]
        self.slow.append(
            f"{name} took {taken:.1f} s, at {datetime.now(UTC):%H:%M:%S}: {json.dumps(told)[:3000]}"
        )


class ReadyProbe:
    """A process of its own, whose interpreter does nothing but ask, and writes into a file."""

    def __init__(self, cluster: ClusterProcess, lines: Path) -> None:
        self._lines = lines
        self._outages = cluster.outages
        host, port = cluster.address
        command = [sys.executable, str(READY_PROBE), host, str(port), str(cluster.authority)]
        with lines.open("wb") as output:
            self._process = subprocess.Popen(command, stdout=output)

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait()

    def seconds(self) -> list[float]:
        """Of all answers; what met an outage does not count, and what was not answered counts as for ever."""
        samples = []
        for line in self._lines.read_text().splitlines():
            begin, end, text = line.split(" ", 2)
            if not any(float(begin) <= up and down <= float(end) for down, up in self._outages):
                samples.append(float(end) - float(begin) if text == "ok" else math.inf)
        return samples
