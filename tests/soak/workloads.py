"""Honest users: pods, jobs and large ConfigMaps that come, change and go, all of it in the ledger."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import deque
from typing import Any

from tests.soak.ledger_writes import LedgerWrites, text_of
from tests.soak.limits import Load

Json = Any
NAMESPACE = "churn"
QUEUE = "team"
CORE = f"/api/v1/namespaces/{NAMESPACE}"
PODS, CONFIG_MAPS = f"{CORE}/pods", f"{CORE}/configmaps"
JOBS = f"/apis/batch.volcano.sh/v1alpha1/namespaces/{NAMESPACE}/jobs"
COLLECTIONS = (PODS, CONFIG_MAPS, JOBS)
POD_LIFE, JOB_LIFE = 6.0, 8.0
"""Seconds until it is deleted."""


def pod(name: str, queue: str = "", run_time: str = "2s") -> Json:
    annotations = {"stromboli.sh/run-time": run_time, "stromboli.sh/start-delay": "100ms"}
    if queue:
        annotations["scheduling.volcano.sh/queue-name"] = queue
    container = {
        "name": "main",
        "image": "none",
        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": annotations},
        "spec": {
            "schedulerName": "volcano",
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 1,
            "containers": [container],
        },
    }


def job(name: str, replicas: int) -> Json:
    template = pod("")
    del (
        template["apiVersion"],
        template["kind"],
        template["metadata"]["name"],
        template["spec"]["schedulerName"],
    )
    task = {"name": "worker", "replicas": replicas, "template": template}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"schedulerName": "volcano", "queue": QUEUE, "minAvailable": replicas, "tasks": [task]},
    }


def config_map(name: str, size: int) -> Json:
    data = {"text": text_of(name, size)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


class Pace:
    """So many turns a second, whatever a turn takes; time that was lost is not made up for."""

    def __init__(self, rate: float) -> None:
        self._pause = 1 / rate
        self._due = time.monotonic()

    async def turn(self) -> None:
        self._due = max(self._due + self._pause, time.monotonic())
        await asyncio.sleep(self._due - time.monotonic())


async def churn_pods(writes: LedgerWrites, load: Load) -> None:
    await _churn(writes, load.pods, PODS, POD_LIFE, lambda number: pod(f"pod-{number}", QUEUE))


async def churn_jobs(writes: LedgerWrites, load: Load) -> None:
    await _churn(writes, load.jobs, JOBS, JOB_LIFE, lambda number: job(f"job-{number}", 1 + number % 5))


async def _churn(writes: LedgerWrites, rate: float, collection: str, life: float, content: Any) -> None:
    """Create at a rate, label every third, delete after a while."""
    pace = Pace(rate)
    living: deque[tuple[float, str]] = deque()
    for number in itertools.count():
        await pace.turn()
        new = content(number)
        name = new["metadata"]["name"]
        if await writes.create(collection, new):
            living.append((time.monotonic(), name))
            if number % 3 == 0:
                await writes.label((collection, name))
        while (
            living
            and living[0][0] < time.monotonic() - life
            and await writes.delete((collection, living[0][1]))
        ):
            living.popleft()


async def churn_config_maps(writes: LedgerWrites, load: Load) -> None:
    """A few large ConfigMaps that are written anew all the time, and now and then deleted."""
    pace = Pace(load.config_maps)
    present: set[str] = set()
    for number in itertools.count():
        await pace.turn()
        name = f"large-{number % load.large_config_maps}"
        if name not in present:
            present |= (
                {name} if await writes.create(CONFIG_MAPS, config_map(name, load.config_map_bytes)) else set()
            )
        elif number % 17 == 0:
            present -= {name} if await writes.delete((CONFIG_MAPS, name)) else set()
        else:
            await writes.replace(CONFIG_MAPS, config_map(name, load.config_map_bytes))
