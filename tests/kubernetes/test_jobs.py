"""Jobs from kubectl to their pods: submitted, hurt, scaled, suspended, resumed, with scheduler and controllers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kubernetes.controlplane import DIE_WITH_PARENT
from tests.kubernetes.scheduler_cluster import NAMESPACE, SOURCE, SchedulerCluster

BATCH = "/apis/batch.volcano.sh/v1alpha1"
BUS = "/apis/bus.volcano.sh/v1alpha1"


class Jobs:
    """A cluster with controllers on it, and what users do with jobs."""

    def __init__(self, cluster: SchedulerCluster) -> None:
        self.cluster = cluster
        self.controllers: subprocess.Popen[bytes] | None = None
        self.log = cluster.folder / "controllers.log"
        self.kubeconfig = cluster.folder / "controllers.kubeconfig"

    def install(self) -> None:
        """The rights of the controllers, with those that the ssh plugin needs, and no others."""
        plane = self.cluster.plane
        folders = (
            "deploy/controllers/service-account.yaml",
            "deploy/controllers/rbac",
            "deploy/components/job-ssh",
        )
        for folder in folders:
            for file in sorted(Path(folder).glob("*.yaml")) if Path(folder).is_dir() else [Path(folder)]:
                if file.name != "kustomization.yaml":
                    plane.kubectl("apply", "-n", "volcano-system", "-f", str(file))
        token = plane.token_for("volcano-system", "stromboli-controllers")
        self.kubeconfig.write_text(json.dumps(plane.config_for(token)))

    def start_controllers(self) -> None:
        command = (
            *DIE_WITH_PARENT,
            sys.executable,
            "-m",
            "stromboli",
            "controllers",
            f"--kubeconfig={self.kubeconfig}",
            "--kube-api-qps=0",
            "--leader-elect=false",
            "--v=4",
        )
        with self.log.open("ab") as file:
            self.controllers = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                env={**os.environ, "PYTHONPATH": SOURCE},
            )

    def kill_controllers(self) -> None:
        if self.controllers is not None:
            self.controllers.kill()
            self.controllers.wait(20)

    def submit(self, name: str, replicas: int = 2, **spec: Any) -> None:
        self.cluster.plane.apply(job(name, replicas, **spec))

    def status(self, name: str) -> dict[str, Any]:
        status: dict[str, Any] = self.cluster.read(f"{BATCH}/namespaces/{NAMESPACE}/jobs/{name}").get(
            "status", {}
        )
        return status

    def phase(self, name: str) -> str:
        return str(self.status(name).get("state", {}).get("phase", ""))

    def pods(self, name: str) -> list[Any]:
        selector = f"volcano.sh%2Fjob-name%3D{name}"
        items = self.cluster.read(f"/api/v1/namespaces/{NAMESPACE}/pods?labelSelector={selector}")["items"]
        return sorted(items, key=lambda pod: pod["metadata"]["name"])

    def wait(self, holds: Callable[[], bool], what: str) -> None:
        try:
            self.cluster.wait(holds, what)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.log.read_text()[-4000:]}") from None

    def wait_for(self, name: str, phase: str, **counts: int) -> None:
        def there() -> bool:
            status = self.status(name)
            actual_counts = {key: status.get(key, 0) for key in counts}
            return status.get("state", {}).get("phase") == phase and actual_counts == counts

        self.wait(there, f"job {name} to be {phase} with {counts}; it is {self.status(name)}")

    def command(self, name: str, action: str) -> None:
        """As `vcctl job suspend` does it."""
        uid = self.cluster.read(f"{BATCH}/namespaces/{NAMESPACE}/jobs/{name}")["metadata"]["uid"]
        target = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": name, "uid": uid}
        body = {
            "apiVersion": "bus.volcano.sh/v1alpha1",
            "kind": "Command",
            "metadata": {"generateName": f"{name}-{action.lower()}-"},
            "action": action,
            "target": target,
        }
        self.cluster.plane.request("POST", f"{BUS}/namespaces/{NAMESPACE}/commands", body)

    def end_pod(self, name: str, phase: str, code: int = 0) -> None:
        """As a kubelet would tell that a pod has ended."""
        ended = {
            "terminated": {"exitCode": code, "finishedAt": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
        }
        runs = [
            {
                "name": "main",
                "state": ended,
                "image": "none",
                "imageID": "",
                "ready": False,
                "restartCount": 0,
            }
        ]
        path = f"/api/v1/namespaces/{NAMESPACE}/pods/{name}/status"
        patch = {"status": {"phase": phase, "containerStatuses": runs}}
        self.cluster.plane.request("PATCH", path, patch, "application/merge-patch+json")


def job(name: str, replicas: int = 2, **spec: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "1"}}}
    template = {
        "spec": {"terminationGracePeriodSeconds": 0, "restartPolicy": "Never", "containers": [container]}
    }
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "schedulerName": "volcano",
            "queue": "default",
            "minAvailable": replicas,
            "tasks": [{"name": "worker", "replicas": replicas, "template": template}],
            **spec,
        },
    }


@pytest.fixture
def jobs(cluster: SchedulerCluster) -> Iterator[Jobs]:
    cluster.add_nodes(2, cpu=4)
    cluster.add_queue("default")
    cluster.start_scheduler()
    jobs = Jobs(cluster)
    jobs.install()
    jobs.start_controllers()
    yield jobs
    jobs.cluster.plane.request("DELETE", f"{BATCH}/namespaces/{NAMESPACE}/jobs")
    jobs.kill_controllers()


def test_a_job_runs_is_hurt_and_recovers(jobs: Jobs) -> None:
    """A pod that is deleted comes back; one that fails restarts the job; at the end the pods are counted."""
    jobs.submit(
        "train", policies=[{"event": "PodFailed", "action": "RestartJob"}], plugins={"svc": [], "env": []}
    )
    jobs.wait_for("train", "Running", running=2)
    pod = jobs.pods("train")[0]
    env = {variable["name"] for variable in pod["spec"]["containers"][0]["env"]}
    assert {"VC_TASK_INDEX", "VC_WORKER_HOSTS", "VC_WORKER_NUM"} <= env
    jobs.cluster.plane.kubectl("delete", "pod", "-n", NAMESPACE, pod["metadata"]["name"])
    jobs.wait(lambda: jobs.pods("train")[0]["metadata"]["uid"] != pod["metadata"]["uid"], "a new pod")
    jobs.wait_for("train", "Running", running=2, retryCount=0)
    jobs.end_pod("train-worker-1", "Failed", 3)
    jobs.wait_for("train", "Running", running=2, retryCount=1, version=1)
    for name in ("train-worker-0", "train-worker-1"):
        jobs.end_pod(name, "Succeeded")
    jobs.wait_for("train", "Completed", succeeded=2)
    folder = f"/api/v1/namespaces/{NAMESPACE}/services"
    jobs.wait(lambda: "train" not in str(jobs.cluster.read(folder)), "the service to be gone")
    shown = jobs.cluster.plane.kubectl("get", "jobs.batch.volcano.sh", "-n", NAMESPACE)
    assert "Completed" in shown


def test_a_job_is_scaled_suspended_and_resumed(jobs: Jobs) -> None:
    jobs.submit("sweep", 3, minAvailable=1)
    jobs.wait_for("sweep", "Running", running=3)
    scale(jobs, "sweep", 5)
    jobs.wait_for("sweep", "Running", running=5)
    scale(jobs, "sweep", 2)
    jobs.wait_for("sweep", "Running", running=2, terminating=0)
    assert [pod["metadata"]["name"] for pod in jobs.pods("sweep")] == ["sweep-worker-0", "sweep-worker-1"]
    jobs.command("sweep", "AbortJob")
    jobs.wait_for("sweep", "Aborted", running=0)
    assert jobs.pods("sweep") == []
    jobs.command("sweep", "ResumeJob")
    jobs.wait_for("sweep", "Running", running=2, retryCount=0)
    assert jobs.cluster.read(f"{BUS}/namespaces/{NAMESPACE}/commands")["items"] == []


def scale(jobs: Jobs, name: str, replicas: int) -> None:
    patch = json.dumps([{"op": "replace", "path": "/spec/tasks/0/replicas", "value": replicas}])
    jobs.cluster.plane.kubectl(
        "patch", "jobs.batch.volcano.sh", name, "-n", NAMESPACE, "--type=json", "-p", patch
    )


def test_a_controller_that_is_killed_goes_on_where_it_was(jobs: Jobs) -> None:
    jobs.submit("first")
    jobs.wait_for("first", "Running", running=2)
    jobs.kill_controllers()
    jobs.submit("second")
    jobs.end_pod("first-worker-0", "Succeeded")
    jobs.end_pod("first-worker-1", "Failed")
    jobs.start_controllers()
    jobs.wait_for("first", "Failed", succeeded=1, failed=1)
    jobs.wait_for("second", "Running", running=2)


def test_what_belongs_to_a_job_is_owned_by_it(jobs: Jobs) -> None:
    """So that it goes when the job goes."""
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    jobs.submit(
        "owner",
        plugins={"svc": [], "ssh": []},
        volumes=[{"mountPath": "/data", "volumeClaim": claim}],
    )
    jobs.wait(
        lambda: jobs.phase("owner") == "Pending" and len(jobs.pods("owner")) == 2, "the pods of the job"
    )
    uid = jobs.cluster.read(f"{BATCH}/namespaces/{NAMESPACE}/jobs/owner")["metadata"]["uid"]
    core, volcano = f"/api/v1/namespaces/{NAMESPACE}", "/apis/scheduling.volcano.sh/v1beta1"
    network = f"/apis/networking.k8s.io/v1/namespaces/{NAMESPACE}/networkpolicies"
    (volume,) = jobs.cluster.read(f"{BATCH}/namespaces/{NAMESPACE}/jobs/owner")["spec"]["volumes"]
    for path in (
        f"{core}/pods/owner-worker-0",
        f"{core}/services/owner",
        f"{core}/configmaps/owner-svc",
        f"{core}/secrets/owner-ssh",
        f"{core}/persistentvolumeclaims/{volume['volumeClaimName']}",
        f"{network}/owner",
        f"{volcano}/namespaces/{NAMESPACE}/podgroups/owner-{uid}",
    ):
        (reference,) = jobs.cluster.read(path)["metadata"]["ownerReferences"]
        assert (reference["uid"], reference["controller"]) == (uid, True), path
