"""Every policy that comes along runs: some cycles by `stromboli scheduler` and by `stromboli up`, with metrics on."""

from __future__ import annotations

import asyncio
import gc
import re
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import msgspec
import pytest

from stromboli.api.types.pod import Pod
from stromboli.api.types.scheduling import PodGroup, PriorityClass, Queue
from stromboli.embedded import cluster_services
from stromboli.embedded.cluster_services import ServiceConfig, nodes
from stromboli.embedded.data_folder import DataFolder
from stromboli.embedded.embedded_cluster import EmbeddedCluster
from stromboli.embedded.nodes.node_groups import node_manifests
from stromboli.embedded.nodes.simulated.pod_stages import StageDelays
from stromboli.kube.api_client import Client
from stromboli.kube.api_resources import RESOURCES, Resource
from stromboli.kube.cluster_access import find_access
from stromboli.policy.policy_file import PolicyFile
from stromboli.scheduler import process as scheduler_process
from stromboli.scheduler.options import parse
from stromboli.scheduler.replica import Replica
from stromboli.scheduler.scheduler_metrics import SchedulerMetrics
from tests.examples.policy_discovery import example_catalog, policies
from tests.manifests import group, pod, queue
from tests.ports import free_ports

EVENTS = Resource("", "v1", "events", "Event", True)
CYCLES = 3
"""With each policy."""
PERIOD = 0.03


class Running(NamedTuple):
    """A scheduler at work."""

    client: Client
    replica: Replica
    page: Callable[[], Any]
    """Reads its metrics."""


@pytest.fixture(autouse=True)
def interpreter_as_before() -> Iterator[None]:
    """A cycle thread sets the switch interval and the garbage collector."""
    interval, thresholds = sys.getswitchinterval(), gc.get_threshold()
    yield
    sys.setswitchinterval(interval)
    gc.set_threshold(*thresholds)
    gc.unfreeze()


def test_all_kinds_of_policies_are_found() -> None:
    for name in ("preset full", "examples/queues/policy.yaml", "deploy/overlays/standalone/configmap.yaml"):
        assert name in policies()
    assert len([name for name in policies() if name.startswith("docs/")]) > 10


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DataFolder]:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    folder = DataFolder(tmp_path / "data")
    yield folder
    folder.release()


@pytest.mark.slow
def test_every_policy_runs_in_the_scheduler(folder: DataFolder) -> None:
    asyncio.run(_run_all(_scheduler(folder), folder.path.parent / "conf"))


@pytest.mark.slow
def test_every_policy_runs_on_a_cluster_of_up(folder: DataFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    asyncio.run(_run_all(_up(folder, monkeypatch), folder.path.parent / "conf"))


# -- the two ways to run a policy


def _config(tmp_path: Path) -> ServiceConfig:
    path = tmp_path / "conf"
    path.write_text(policies()["preset default"])
    policy = PolicyFile(path, example_catalog(), lenient=True)
    return ServiceConfig(node_manifests(["2x4cpu"]), example_catalog(), policy, StageDelays(), period=PERIOD)


def _watched(monkeypatch_target: Any, kind: str, made: list[Any]) -> Any:
    """A class that remembers what was made of it."""
    original = getattr(monkeypatch_target, kind)

    class Remembered(original):  # type: ignore[misc]
        def __init__(self, *arguments: Any, **more: Any) -> None:
            super().__init__(*arguments, **more)
            made.append(self)

    return Remembered


@asynccontextmanager
async def _scheduler(folder: DataFolder) -> AsyncIterator[Running]:
    """`stromboli scheduler` beside an API server, with its endpoint."""
    config, (port,) = _config(folder.path.parent), free_ports(1)
    flags = ["--enable-metrics", f"--listen-address=127.0.0.1:{port}", f"--schedule-period={PERIOD}s"]
    async with EmbeddedCluster(folder, config, services=(nodes,)) as cluster:
        access = find_access(str(cluster.kubeconfig))
        options = parse([*flags, "--leader-elect=false"])
        process = scheduler_process.Process(options, access, lambda: (example_catalog(), config.policy))
        running = asyncio.create_task(process.run())

        async def page() -> str:
            async with (
                aiohttp.ClientSession() as session,
                session.get(f"http://127.0.0.1:{port}/metrics") as answer,
            ):
                assert answer.status == 200
                return await answer.text()

        try:
            async with Client(access) as client:
                await _until(lambda: process._replica is not None and process._replica.seam.leads)
                assert process._replica is not None
                yield Running(client, process._replica, page)
        finally:
            process.stop()
            status = await running
        assert status == 0


@asynccontextmanager
async def _up(folder: DataFolder, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Running]:
    """`stromboli up`, which serves no metrics but counts them all the same."""
    replicas: list[Replica] = []
    metrics: list[SchedulerMetrics] = []
    monkeypatch.setattr(cluster_services, "Replica", _watched(cluster_services, "Replica", replicas))
    monkeypatch.setattr(
        cluster_services, "SchedulerMetrics", _watched(cluster_services, "SchedulerMetrics", metrics)
    )

    async def page() -> str:
        return metrics[0].text().decode()

    async with EmbeddedCluster(folder, _config(folder.path.parent)) as cluster:
        failing = asyncio.create_task(cluster.wait_failed())
        try:
            async with Client(find_access(str(cluster.kubeconfig))) as client:
                yield Running(client, replicas[0], page)
            assert not failing.done()
        finally:
            failing.cancel()


# -- a round with each policy


async def _run_all(starting: AbstractAsyncContextManager[Running], file: Path) -> None:
    async with starting as running:
        replica = running.replica
        await _set_up(running.client)
        for number, (name, text) in enumerate(policies().items()):
            _replace(file, text)
            await _submit(running.client, f"late-{number}", "web", 1, cpu="500m")
            await _until(lambda text=text: replica.thread.crashed or _has_run(replica, text))
            assert not replica.thread.crashed, name
            page = await _page_about_web(running)
            assert "stromboli_telemetry_failures_total{" not in page, name
            assert _value(page, "stromboli_lost_cycles_total") == 0, name
        assert "PolicyLoaded" in await _reasons(running.client), (
            "an event of every change is about the root queue"
        )


async def _page_about_web(running: Running) -> str:
    """The metrics as soon as they tell of the queue of the late pods."""
    async with asyncio.timeout(60):
        while _value(page := await running.page(), 'volcano_queue_weight{queue_name="web"}') != 1:
            await asyncio.sleep(0.01)
        return page


async def _reasons(client: Client) -> set[str]:
    root = msgspec.json.decode(await client.get(RESOURCES[Queue], "root"))["metadata"]["uid"]
    events = msgspec.json.decode(await client.list(EVENTS, "default"))["items"]
    return {event["reason"] for event in events if event["involvedObject"].get("uid") == root}


def _replace(file: Path, text: str) -> None:
    """At once, as the kubelet changes the files of a ConfigMap."""
    new = file.with_suffix(".new")
    new.write_text(text)
    new.replace(file)


def _has_run(replica: Replica, text: str) -> bool:
    engine = replica.scheduler.engine
    return engine.policy.source == text and engine._number >= CYCLES


async def _set_up(client: Client) -> None:
    """Jobs in a tree of queues: one that fits, one that does not, one that others have to give way to."""
    await client.create(RESOURCES[PriorityClass], _priority("urgent", 1000))
    for manifest in (
        queue("eng", capability={"cpu": "6"}, deserved={"cpu": "4"}),
        queue("web", parent="eng", deserved={"cpu": "3"}),
        queue("data", parent="eng", deserved={"cpu": "1"}),
        queue("sci", deserved={"cpu": "4"}),
    ):
        await client.create(RESOURCES[Queue], manifest)
    await _submit(client, "fits", "web", 2)
    await _submit(client, "too-large", "data", 3, cpu="4")
    await _submit(client, "first", "sci", 2, priorityClassName="urgent")


async def _submit(client: Client, name: str, target: str, size: int, cpu: str = "1", **spec: str) -> None:
    await client.create(
        RESOURCES[PodGroup], group(name, size, phase="Pending", queue=target, **spec), "default"
    )
    for member in range(size):
        manifest = pod(f"{name}-{member}", name, cpu=cpu, spec=spec)
        await client.create(RESOURCES[Pod], manifest, "default")


def _priority(name: str, value: int) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
    }


def _value(page: str, series: str) -> float:
    match = re.search(rf"^{re.escape(series)} (\S+)$", page, re.MULTILINE)
    return float(match[1]) if match else 0.0


async def _until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.005)
