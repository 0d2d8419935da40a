"""Nodes that become ours and cease to be ours by their label, and pods that nobody can cope with."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from stromboli.embedded.nodes.node_types import NodePod
from stromboli.embedded.nodes.simulated.simulated_nodes import SimulatedRuntime
from tests.embedded.nodes.node_services import NODES, NodeCluster, running_nodes


async def set_kind(cluster: NodeCluster, kind: str | None) -> None:
    await cluster.client.patch(NODES, "n1", {"metadata": {"labels": {"stromboli.sh/node": kind}}})


async def until_gone(process: int) -> None:
    with suppress(ProcessLookupError):
        async with asyncio.timeout(20):
            while True:
                os.kill(process, 0)
                await asyncio.sleep(0.02)


def test_a_real_node_that_is_ours_no_more_runs_nothing_any_more(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_nodes(tmp_path, "1x8cpu,real") as cluster:
            pid = tmp_path / "pid"
            await cluster.pod(
                "p", command=["sh", "-c", f"echo $$$$ > {pid}.new; mv {pid}.new {pid}; exec sleep 1000"]
            )
            await cluster.phase("p", "Running")
            async with asyncio.timeout(20):
                while not pid.exists():
                    await asyncio.sleep(0.02)
            await set_kind(cluster, None)
            await until_gone(int(pid.read_text()))

    asyncio.run(scenario())


def test_a_node_that_changes_its_kind_runs_its_pods_as_the_other_kind_does(tmp_path: Path) -> None:
    def has_ended(pod: Any) -> bool:
        return bool(pod) and pod["status"]["phase"] == "Succeeded"

    async def scenario() -> None:
        async with running_nodes(tmp_path, "1x8cpu") as cluster:
            await cluster.pod(
                "p", command=["touch", str(tmp_path / "touched")], spec={"restartPolicy": "OnFailure"}
            )
            await cluster.phase("p", "Running")  # for ever: this is no command that plainly ends
            await set_kind(cluster, "real")
            await cluster.until("p", has_ended)
            assert (tmp_path / "touched").exists()

    asyncio.run(scenario())


def test_a_pod_that_cannot_be_coped_with_stops_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    put = SimulatedRuntime.put

    def breaks(runtime: SimulatedRuntime, pod: NodePod) -> None:
        if pod.name == "bad":
            raise RecursionError("too deep")
        put(runtime, pod)

    async def scenario() -> None:
        monkeypatch.setattr(SimulatedRuntime, "put", breaks)
        async with running_nodes(tmp_path, "1x8cpu") as cluster:
            await cluster.pod("bad")
            await cluster.pod("good")
            await cluster.phase("good", "Running")

    asyncio.run(scenario())
    assert "default/bad could not be handled" in caplog.text
