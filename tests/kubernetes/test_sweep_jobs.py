"""An API server takes the Job and the inputs of a sweep as they are, and what is asked of it while it runs."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from stromboli.cli.sweep.sweep_job_manifests import manifests
from stromboli.cli.sweep.sweep_job_requests import SweepJobRequests, runs_of
from stromboli.kube.api_client import Client
from stromboli.kube.cluster_access import Access
from stromboli.simulator.sweeps.cluster_job import JobSettings, job_name
from tests.kubernetes.controlplane import ControlPlane
from tests.simulator.sweeps.grids import plan_in


def test_the_job_of_a_sweep_is_created_found_and_replaced(
    plane: ControlPlane, access: Access, namespace: str, tmp_path: Path
) -> None:
    (tmp_path / "plugins" / "more").mkdir(parents=True)
    (tmp_path / "plugins" / "more" / "mine.py").write_bytes(b"\xff binary")
    plan = plan_in(tmp_path, "options: {swf: a.swf, plugins-dir: plugins}\naxes: {seed: 1..3}")
    name, settings = (
        job_name(plan),
        JobSettings(namespace, "results", "stromboli", 2, "default", {"cpu": "1"}),
    )
    created = manifests(name, plan, settings, exported=False, reachable=False)
    for manifest in created:  # no field that the server does not know
        plane.kubectl(
            *("apply", "--server-side", "--validate=strict", "--dry-run=server", "-f", "-"),
            stdin=json.dumps(manifest),
        )

    async def story() -> None:
        async with Client(access) as client:
            requests = SweepJobRequests(client, namespace, name)
            assert await requests.running_job() is None
            await requests.create(created)
            job = await requests.running_job()
            assert job is not None
            assert runs_of(job) == 3
            assert (await requests.pods(), await requests.log_end("none")) == ([], "")
            assert await requests.claim("results") is None
            assert not await requests.has_nodes({"stromboli.sh/node": "real"})
            await requests.create(created)  # in the place of the first
            again = await requests.job()
            assert again is not None
            assert again["metadata"]["uid"] != job["metadata"]["uid"]
            inputs = json.loads(plane.request("GET", f"/api/v1/namespaces/{namespace}/configmaps/{name}"))
            assert inputs["metadata"]["ownerReferences"][0]["uid"] == again["metadata"]["uid"]
            assert set(inputs["binaryData"]) == {"input-1"}

    asyncio.run(story())
