"""A real API server asks our webhook server, which runs with its own rights and no others."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.manifests import DEPLOY, build
from tests.kubernetes.controlplane import DIE_WITH_PARENT, ControlPlane, free_ports
from tests.kubernetes.servers import control_plane

SPACE = "volcano-system"
POD = {"spec": {"containers": [{"name": "main", "image": "busybox"}]}}


class Gate:
    """The API server, and the webhook server at its side."""

    def __init__(self, folder: Path, plane: ControlPlane):
        self.plane = plane
        self._folder = folder
        self._port, self._health = free_ports(2)
        self._process: subprocess.Popen[bytes] | None = None

    def install(self) -> None:
        """What `kubectl apply -k deploy/admission` does, with an address where a Service would be."""
        self.plane.kubectl("create", "namespace", SPACE)
        for manifest in build(DEPLOY / "admission"):
            for webhook in manifest.get("webhooks", ()):
                path = webhook["clientConfig"]["service"]["path"]
                webhook["clientConfig"] = {"url": f"https://localhost:{self._port}{path}"}
            if manifest["kind"] not in ("Deployment", "PodDisruptionBudget"):
                self.plane.apply(manifest)
        token = self.plane.token_for(SPACE, "stromboli-admission")
        (self._folder / "gate.kubeconfig").write_text(json.dumps(self.plane.config_for(token)))

    def start(self) -> None:
        command = (
            *DIE_WITH_PARENT,
            *(sys.executable, "-m", "stromboli", "admission"),
            f"--kubeconfig={self._folder / 'gate.kubeconfig'}",
            f"--webhook-namespace={SPACE}",
            f"--webhook-url=https://localhost:{self._port}",
            *("--listen-address=127.0.0.1", f"--port={self._port}"),
            *("--enable-healthz=true", f"--healthz-address=127.0.0.1:{self._health}"),
        )
        with (self._folder / "gate.log").open("ab") as log:
            source = str(Path(__file__).parents[2] / "src")
            self._process = subprocess.Popen(
                command, stderr=log, stdout=log, env={**os.environ, "PYTHONPATH": source}
            )
        self.plane.wait(self._has_ca_bundles, "the API server to know whom to trust")

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            assert self._process.wait(30) == 0
            self._process = None

    def _has_ca_bundles(self) -> bool:
        configuration = self.plane.kubectl(
            "get", "validatingwebhookconfigurations", "stromboli-admission", "-o", "yaml"
        )
        return all(
            webhook["clientConfig"].get("caBundle") for webhook in yaml.safe_load(configuration)["webhooks"]
        )

    def create(self, manifest: dict[str, Any]) -> str:
        """What kubectl says."""
        return self.output_of("create", "-f", "-", stdin=json.dumps(manifest))

    def output_of(self, *arguments: str, stdin: str = "") -> str:
        """What kubectl prints or complains of."""
        try:
            return self.plane.kubectl(*arguments, stdin=stdin)
        except RuntimeError as error:
            return str(error)

    def get(self, kind: str, name: str) -> dict[str, Any]:
        manifest: dict[str, Any] = json.loads(self.plane.kubectl("get", kind, name, "-o", "json"))
        return manifest


@pytest.fixture(scope="module")
def gate(built: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gate]:
    folder = tmp_path_factory.mktemp("gate")
    with control_plane(folder) as plane:
        plane.kubectl("apply", "--server-side", "-k", "deploy/crds")
        plane.kubectl("wait", "--for=condition=Established", "--timeout=60s", "crd", "--all")
        for name in ("root", "default"):
            plane.apply(
                {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": name}}
            )
        gate = Gate(folder, plane)
        gate.install()
        gate.start()
        yield gate
        gate.stop()


def job(name: str, **spec: Any) -> dict[str, Any]:
    tasks = [{"replicas": 3, "template": copy.deepcopy(POD)}]
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"tasks": tasks, **spec},
    }


def pod(name: str, scheduler: str, **annotations: str) -> dict[str, Any]:
    marks = {f"volcano.sh/{key.replace('_', '-')}": value for key, value in annotations.items()}
    spec = {**POD["spec"], "schedulerName": scheduler}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": marks},
        "spec": spec,
    }


def test_a_job_is_stored_with_what_its_user_left_out(gate: Gate) -> None:
    assert "created" in gate.create(job("plain", plugins={"pytorch": []}))
    spec = gate.get("jobs.batch.volcano.sh", "plain")["spec"]
    assert (spec["queue"], spec["schedulerName"], spec["minAvailable"]) == ("default", "volcano", 3)
    assert spec["tasks"][0]["name"] == "default0"
    assert spec["plugins"] == {"pytorch": [], "svc": []}


def test_a_job_that_cannot_run_is_refused_with_all_reasons(gate: Gate) -> None:
    message = gate.create(job("bad", queue="nowhere", minAvailable=9, plugins={"magic": []}))
    assert 'admission webhook "validatejob.volcano.sh" denied the request: ' in message
    assert (
        "job 'minAvailable' should not be greater than total replicas in tasks (spec.minAvailable: 9;"
        in message
    )
    assert "unable to find job plugin: magic" in message
    assert 'queue.scheduling.volcano.sh "nowhere" not found' in message


def test_a_queue_and_its_job_can_be_applied_in_one_go(gate: Gate) -> None:
    queue = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "fresh"}}
    gate.plane.apply(queue, job("eager", queue="fresh"))
    assert gate.get("queues.scheduling.volcano.sh", "fresh")["spec"]["reclaimable"] is True


def test_only_a_jobs_size_may_change(gate: Gate) -> None:
    gate.create(job("grow"))
    patch = [{"op": "replace", "path": "/spec/tasks/0/replicas", "value": 5}]
    gate.plane.kubectl("patch", "jobs.batch.volcano.sh", "grow", "--type=json", "-p", json.dumps(patch))
    patch = [{"op": "replace", "path": "/spec/queue", "value": "other"}]
    message = gate.output_of("patch", "jobs.batch.volcano.sh", "grow", "--type=json", "-p", json.dumps(patch))
    assert "job updates may not change fields other than" in message


def test_the_default_queue_stays(gate: Gate) -> None:
    message = gate.output_of("delete", "queues.scheduling.volcano.sh", "default")
    assert "`default` queue can not be deleted" in message


def test_budgets_of_our_pods_are_checked_and_other_pods_are_none_of_our_business(gate: Gate) -> None:
    assert "it must be a positive integer" in gate.create(pod("ours", "volcano", jdb_min_available="0"))
    assert "created" in gate.create(pod("theirs", "default-scheduler", jdb_min_available="0"))


def test_pods_start_without_us_and_jobs_wait_for_us(gate: Gate) -> None:
    gate.stop()
    try:
        assert "created" in gate.create(pod("alone", "volcano"))
        assert "failed calling webhook" in gate.create(job("alone"))
    finally:
        gate.start()
    gate.plane.wait(lambda: "created" in gate.create(job("alone")), "jobs to be taken again")
