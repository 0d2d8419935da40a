"""A whole cluster under load from honest and hostile users, killed now and then: the promises of docs/security.md hold.

For half a minute in the suite; for longer by hand, with a line of progress every ten seconds:
`STROMBOLI_SOAK_SECONDS=3600 pytest -s tests/soak`, or `make soak`. `STROMBOLI_SOAK_SEED` repeats the requests of a run.
"""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.soak.api_user import ApiUser, Outcomes
from tests.soak.cluster_process import ClusterProcess
from tests.soak.ledger import Ledger
from tests.soak.ledger_writes import LedgerWrites, settle_all
from tests.soak.limits import MIB, NODES, SECONDS, SEED, limits_here, load_here
from tests.soak.measurements import Measurements, percentile
from tests.soak.mutating_client import MutatingClient
from tests.soak.probes import BindProbe, ReadyProbe
from tests.soak.users import Tokens, grant_again, prepare
from tests.soak.watchers import GreedyClients
from tests.soak.workloads import COLLECTIONS, churn_config_maps, churn_jobs, churn_pods

PROGRESS = 10.0
"""Seconds between two lines of progress."""
END_LIMIT = 180.0
"""Seconds after which a run that should be over has failed."""
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="there is no /proc here to measure with"),
]


class Soak:
    """One run: the cluster, its users, and what was measured."""

    def __init__(self, folder: Path) -> None:
        self.load = load_here()
        self.cluster = ClusterProcess(folder / "data", "--nodes", NODES)
        self.outcomes = Outcomes()
        self.ledger = Ledger()
        self.measurements = Measurements(self.cluster)
        self._ready_lines = folder / "ready.txt"
        self._chance = random.Random(SEED)

    async def run(self) -> None:
        async with asyncio.timeout(SECONDS + END_LIMIT):
            await self._serve_probes()

    async def _serve_probes(self) -> None:
        self.up = asyncio.Event()
        self.up.set()
        self.ready = ReadyProbe(self.cluster, self._ready_lines)
        try:
            async with ApiUser(self.cluster, self.outcomes, self.up) as administrator:
                self._administrator = administrator
                await self._run()
        finally:
            self.ready.stop()

    async def _run(self) -> None:
        tokens = await prepare(self._administrator)
        async with ApiUser(self.cluster, self.outcomes, self.up, tokens.works) as worker:
            await self._load(worker, tokens)
        await self._settle()

    async def _load(self, worker: ApiUser, tokens: Tokens) -> None:
        self.binds = BindProbe(worker)
        self.greedy = GreedyClients(self.cluster, self.up, tokens.looks)
        mutating = MutatingClient(self.cluster, self.outcomes, self.up, tokens.owns, SEED)
        writes = LedgerWrites(worker, self.ledger)
        actors = [
            churn_pods(writes, self.load),
            churn_jobs(writes, self.load),
            churn_config_maps(writes, self.load),
            self.greedy.run(self.load),
            mutating.run(self.load),
            grant_again(self._administrator),
            self.binds.run(self.load),
            self.measurements.run(self.up),
            self._tell(),
        ]
        tasks = [asyncio.create_task(actor) for actor in actors]
        kills = asyncio.create_task(self._kill_now_and_then())
        done, _ = await asyncio.wait([*tasks, kills], return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for task in done:
            task.result()

    async def _kill_now_and_then(self) -> None:
        """Until the time is over, and a pod has been bound after the last kill."""
        begin = time.monotonic()
        for moment in self._kill_moments():
            await asyncio.sleep(max(0.0, begin + moment - time.monotonic()))
            self.up.clear()
            await self.cluster.kill_and_restart()
            await self._settle()
            self.up.set()
        await asyncio.sleep(max(0.0, begin + SECONDS - time.monotonic()))
        while len(self.binds.seconds_after_kill) < len(self.cluster.outages):
            await asyncio.sleep(0.1)

    def _kill_moments(self) -> Iterator[float]:
        interval = min(self.load.kill_interval, SECONDS * 0.35)
        moment = 0.0
        while (moment := moment + self._chance.uniform(0.9, 1.1) * interval) < SECONDS * 0.9:
            yield moment

    async def _settle(self) -> None:
        self.outcomes.violations += await settle_all(self._administrator, self.ledger, COLLECTIONS)

    async def _tell(self) -> None:
        while True:
            await asyncio.sleep(PROGRESS)
            print(
                f"{time.monotonic() - self.measurements.begin:.0f} s: {self.measurements.line()}; "
                f"{self.ledger.writes} writes, {len(self.cluster.outages)} kills, "
                f"{len(self.binds.seconds)} probes, the slowest {max(self.binds.seconds, default=0):.1f} s, "
                f"{len(self.outcomes.violations)} violations",
                flush=True,
            )

    def measured(self) -> dict[str, tuple[float, float]]:
        """What was measured, and its limit."""
        limits, largest, ready = limits_here(), self.measurements.largest, self.ready.seconds()
        live = self.load.large_config_maps * self.load.config_map_bytes
        return {
            "slowest bind, s": (max(self.binds.seconds, default=math.inf), limits.bind),
            "slowest bind after a kill, s": (
                max(self.binds.seconds_after_kill, default=math.inf),
                limits.bind_after_kill,
            ),
            "/readyz, 99 of 100, s": (percentile(ready, 0.99), limits.ready),
            "/readyz, slowest, s": (max(ready, default=math.inf), limits.ready_worst),
            "memory, MiB": (largest["memory"] / MIB, limits.memory / MIB),
            "disk beyond objects, MiB": ((largest["disk"] - live) / MIB, limits.disk / MIB),
            "descriptors": (largest["descriptors"], limits.descriptors),
        }

    def problems(self) -> list[str]:
        """What exceeds its limit, tracebacks in the log, and what no request or probe may meet."""
        exceeded = [
            f"{name}: {value:.3g}, limit {limit:g}"
            for name, (value, limit) in self.measured().items()
            if value > limit
        ]
        return exceeded + self.cluster.tracebacks()[:3] + self.outcomes.violations[:20]

    def report(self) -> str:
        rows = [
            f"  {name}: {value:.3g} (limit {limit:g})" for name, (value, limit) in self.measured().items()
        ]
        binds, ready = self.binds.seconds, self.ready.seconds()
        return "\n".join(
            [
                f"soak of {SECONDS:g} s, STROMBOLI_SOAK_SEED={SEED}",
                *rows,
                f"  binds: {len(binds)}, half within {percentile(binds, 0.5):.2f} s, "
                f"99 of 100 within {percentile(binds, 0.99):.2f} s",
                f"  /readyz: half within {percentile(ready, 0.5) * 1000:.0f} ms",
                f"  {self.ledger.writes} acknowledged writes, {len(self.cluster.outages)} kills",
                f"  processor: {self.measurements.largest['processor']:.0f} s, clients {time.process_time():.0f} s",
                f"  connections of greedy clients: {dict(self.greedy.opened)}",
                f"  answers: {dict(sorted(self.outcomes.statuses.items()))}",
                *self.problems(),
                *self.binds.slow,
            ]
        )


def test_the_promises_hold_under_load_from_honest_and_hostile_users_and_across_kills(tmp_path: Path) -> None:
    print(f"soak of {SECONDS:g} s, STROMBOLI_SOAK_SEED={SEED}")
    soak = Soak(tmp_path)
    with soak.cluster:
        asyncio.run(soak.run())
    print(soak.report())
    assert soak.problems() == [], soak.report()
    assert len(soak.binds.seconds) >= SECONDS / 20
    assert len(soak.cluster.outages) == len(soak.binds.seconds_after_kill) > 0
    assert soak.ledger.writes > SECONDS / 2
