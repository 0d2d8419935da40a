"""A cluster with Volcano at work, on the real API server.

There is no kubelet: `process_kubelet.py` runs the pods of our Deployments as processes, with the arguments, volumes and
rights of the manifests, and says of all other pods that they run. Deployments are rolled out by the real
kube-controller-manager. Volcano's scheduler and controllers are pods that do nothing; its webhook server is ours with
Volcano's flags and certificate.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.kubernetes.controlplane import ControlPlane
from tests.kubernetes.documented_steps import DocumentedSteps
from tests.kubernetes.process_kubelet import ProcessKubelet
from tests.kubernetes.volcano_installation import (
    BATCH,
    SYSTEM,
    TEAM,
    add_infrastructure_node,
    install_components,
    install_webhooks,
    start_work,
)

Json = Any
CONTROLLERS = (
    "deployment-controller,replicaset-controller,garbage-collector-controller,serviceaccount-controller"
)
PODS = f"/api/v1/namespaces/{TEAM}/pods"
JOBS = f"{BATCH}/namespaces/{TEAM}/jobs"


def job(name: str, **spec: Json) -> Json:
    template = {
        "spec": {"containers": [{"name": "main", "image": "a:1"}], "terminationGracePeriodSeconds": 0}
    }
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": TEAM},
        "spec": {"tasks": [{"name": "worker", "replicas": 1, "template": template}], **spec},
    }


GOOD, BAD = job("good"), job("bad", minAvailable=9)


def own_address() -> str:
    """An address of this machine that is not a loopback one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing
        except OSError:
            pytest.skip("this machine has no address but loopback, and EndpointSlices take no such one")
        address: str = probe.getsockname()[0]
    return address


class VolcanoCluster:
    """A cluster with Volcano, and what is asked of it."""

    def __init__(self, plane: ControlPlane, kubelet: ProcessKubelet, steps: DocumentedSteps) -> None:
        self.plane = plane
        self.kubelet = kubelet
        self.steps = steps

    def read(self, path: str) -> Json:
        return json.loads(self.plane.request("GET", path))

    def pods(self, job: str) -> list[Json]:
        return list(self.read(f"{PODS}?labelSelector=volcano.sh%2Fjob-name%3D{job}")["items"])

    def running(self, job: str) -> int:
        return sum(pod["status"].get("phase") == "Running" for pod in self.pods(job))

    def settled(self) -> bool:
        """Whether all pods that have a node have been started."""
        bound = [pod for pod in self.read(PODS)["items"] if pod["spec"].get("nodeName")]
        return bool(bound) and all(pod["status"]["phase"] != "Pending" for pod in bound)

    def phase(self, job: str) -> str:
        return str(self.read(f"{JOBS}/{job}").get("status", {}).get("state", {}).get("phase", ""))

    def images(self, component: str) -> set[str]:
        """What the pods of a component of ours run."""
        path = f"/api/v1/namespaces/{SYSTEM}/pods?labelSelector=app.kubernetes.io%2Fcomponent%3D{component}"
        return {pod["spec"]["containers"][0]["image"] for pod in self.read(path)["items"]}

    def ready(self, deployment: str) -> int:
        path = f"/apis/apps/v1/namespaces/{SYSTEM}/deployments/{deployment}"
        return int(self.read(path)["status"].get("readyReplicas", 0))

    def wait(self, condition: Callable[[], bool], what: str, seconds: float = 60.0) -> None:
        try:
            self.plane.wait(condition, what, seconds)
        except (TimeoutError, RuntimeError) as error:
            raise AssertionError(f"{error}\n{self.kubelet.failures}\n{self.kubelet.logs()}") from None

    def refuses_misspelt_fields(self) -> bool:
        """Whether pod templates of jobs are checked to the last field."""
        misspelt = job("misspelt")
        misspelt["spec"]["tasks"][0]["template"]["spec"]["nodeSelecter"] = {}
        return 'unknown field "spec.tasks[0].template.spec.nodeSelecter"' in self.answer_to(misspelt)

    def answer_to(self, job: Json) -> str:
        """What the API server says to a new job, which is not stored."""
        try:
            return self.plane.kubectl("create", "--dry-run=server", "-f", "-", stdin=json.dumps(job))
        except RuntimeError as error:
            return str(error)


@contextmanager
def volcano_cluster(folder: Path) -> Iterator[VolcanoCluster]:
    """A cluster with Volcano at work."""
    address = own_address()
    flags = {
        "api_server_flags": ("--enable-aggregator-routing=true",),
        "controller_flags": (f"--controllers={CONTROLLERS}",),
    }
    logs = folder / "pods"
    logs.mkdir()
    with ControlPlane(folder, **flags) as plane, ProcessKubelet(plane, logs, address) as kubelet:
        plane.start("kube-controller-manager")
        cluster = VolcanoCluster(plane, kubelet, DocumentedSteps(folder, plane))
        add_infrastructure_node(plane)
        install_components(plane)
        cluster.wait(lambda: cluster.ready("volcano-admission") == 1, "Volcano's webhook server to be ready")
        install_webhooks(plane)
        start_work(plane)
        yield cluster
