"""Controllers at work on an API server, with the rights of their manifests and no others, and what users do beside."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from tests.deploy.manifests import DEPLOY, build, documents
from tests.kubernetes.controlplane import DIE_WITH_PARENT, ControlPlane
from tests.ports import free_ports

SPACE = "volcano-system"
MERGE = "application/merge-patch+json"
ROOTS = {
    "pods": "/api/v1",
    "events": "/api/v1",
    "configmaps": "/api/v1",
    "services": "/api/v1",
    "replicasets": "/apis/apps/v1",
    "statefulsets": "/apis/apps/v1",
    "jobs": "/apis/batch.volcano.sh/v1alpha1",
    "cronjobs": "/apis/batch.volcano.sh/v1alpha1",
    "jobflows": "/apis/flow.volcano.sh/v1alpha1",
    "jobtemplates": "/apis/flow.volcano.sh/v1alpha1",
    "commands": "/apis/bus.volcano.sh/v1alpha1",
    "podgroups": "/apis/scheduling.volcano.sh/v1beta1",
    "queues": "/apis/scheduling.volcano.sh/v1beta1",
    "nodes": "/api/v1",
    "hypernodes": "/apis/topology.volcano.sh/v1alpha1",
}
KINDS = {
    "configmaps": "ConfigMap",
    "replicasets": "ReplicaSet",
    "statefulsets": "StatefulSet",
    "cronjobs": "CronJob",
    "jobflows": "JobFlow",
    "jobtemplates": "JobTemplate",
    "podgroups": "PodGroup",
}


RBAC = "/apis/rbac.authorization.k8s.io/v1"
INSTALLED = {
    "ServiceAccount": "/api/v1/namespaces/{}/serviceaccounts",
    "ClusterRole": f"{RBAC}/clusterroles",
    "ClusterRoleBinding": f"{RBAC}/clusterrolebindings",
    "Role": f"{RBAC}/namespaces/{{}}/roles",
    "RoleBinding": f"{RBAC}/namespaces/{{}}/rolebindings",
}
"""Of the manifests all but the pods and what is around them."""


class Controlling:
    """One `stromboli controllers`, running."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path, health: int, metrics: int) -> None:
        self.process = process
        self.log = log
        self._health = health
        self._metrics = metrics

    def get(self, path: str, health: bool = False) -> tuple[int, str]:
        url = f"http://127.0.0.1:{self._health if health else self._metrics}{path}"
        try:
            with urllib.request.urlopen(url, timeout=20) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()
        except OSError as error:
            return 0, str(error)

    @property
    def leads(self) -> bool:
        return "\nstromboli_leader 1.0" in self.get("/metrics")[1]

    @property
    def writes(self) -> float:
        """How many writes it has carried out."""
        lines = self.get("/metrics")[1].splitlines()
        return sum(
            float(line.split()[-1]) for line in lines if line.startswith("stromboli_controller_writes_total{")
        )

    def stop(self) -> int:
        self.process.terminate()
        return self.process.wait(30)

    @property
    def output(self) -> str:
        return self.log.read_text(errors="replace")


class ControllerCluster:
    """An API server with all that is installed for controllers."""

    def __init__(self, folder: Path, plane: ControlPlane) -> None:
        self.folder = folder
        self.plane = plane
        self.runners: list[Controlling] = []

    def install(self) -> None:
        """What `kubectl apply -k deploy/controllers` does, but for the pods."""
        crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        for crd in build(DEPLOY / "crds"):
            self.plane.request("POST", crds, crd)
        self.plane.wait_established()
        self.plane.request("POST", "/api/v1/namespaces", {"metadata": {"name": SPACE}})
        self.install_rights()
        for name in ("root", "default"):
            self.make("queues", {"metadata": {"name": name}, "spec": {"weight": 1}})

    def install_rights(self, *components: str) -> None:
        """An account with the rights of the manifests, and of some components."""
        extra = [
            manifest
            for component in components
            for manifest in documents(DEPLOY / "components" / component / "rbac.yaml")
        ]
        for manifest in [*build(DEPLOY / "controllers"), *extra]:
            if manifest["kind"] in INSTALLED:
                space = manifest["metadata"].get("namespace", "")
                self.plane.request("POST", INSTALLED[manifest["kind"]].format(space), manifest)
        token = self.plane.token_for(SPACE, "stromboli-controllers")
        (self.folder / "controllers.kubeconfig").write_text(json.dumps(self.plane.config_for(token)))

    def start(self, *flags: str, wait: bool = True, server: str = "") -> Controlling:
        """One more of them; `server` where something lies between it and the API server."""
        health, metrics = free_ports(2)
        kubeconfig = self.folder / "controllers.kubeconfig"
        if server:
            config = json.loads(kubeconfig.read_text())
            config["clusters"][0]["cluster"]["server"] = server
            kubeconfig = self.folder / f"controllers-{len(self.runners)}.kubeconfig"
            kubeconfig.write_text(json.dumps(config))
        log = self.folder / f"controllers-{len(self.runners)}.log"
        command = (
            *DIE_WITH_PARENT,
            *(sys.executable, "-m", "stromboli", "controllers"),
            f"--kubeconfig={kubeconfig}",
            *("--enable-healthz", f"--healthz-address=127.0.0.1:{health}"),
            *("--enable-metrics", f"--listen-address=127.0.0.1:{metrics}"),
            *("--kube-api-qps=1000", "--kube-api-burst=1000"),
            *("--leader-elect-lease-duration=4s", "--leader-elect-renew-deadline=3s"),
            "--leader-elect-retry-period=500ms",
            *flags,
        )
        source = str(Path(__file__).parents[2] / "src")
        with log.open("wb") as file:
            process = subprocess.Popen(
                command, stderr=file, stdout=file, env={**os.environ, "PYTHONPATH": source, "TZ": "UTC"}
            )
        runner = Controlling(process, log, health, metrics)
        self.runners.append(runner)
        if wait:
            self.wait(lambda: runner.get("/readyz", health=True)[0] == 200, "the controllers to be ready")
        return runner

    def close(self) -> None:
        for runner in self.runners:
            if runner.process.poll() is None:
                runner.process.kill()
                runner.process.wait(20)

    def wait(self, condition: Any, what: str, seconds: float = 30.0) -> None:
        try:
            self.plane.wait(condition, what, seconds)
        except (TimeoutError, RuntimeError) as error:
            outputs = "\n".join(f"{runner.log.name}:\n{runner.output[-4000:]}" for runner in self.runners)
            raise AssertionError(f"{error}\n{outputs}") from None

    # -- objects

    def path(self, plural: str, name: str = "", namespace: str = "", part: str = "") -> str:
        places = [ROOTS[plural], *(("namespaces", namespace) if namespace else ()), plural, name, part]
        return "/".join(place for place in places if place)

    def make(self, plural: str, obj: dict[str, Any], namespace: str = "") -> Any:
        root = ROOTS[plural]
        kind = KINDS.get(plural, plural.capitalize().removesuffix("s"))
        whole = {"apiVersion": root.removeprefix("/apis/").removeprefix("/api/"), "kind": kind, **obj}
        return json.loads(self.plane.request("POST", self.path(plural, "", namespace), whole))

    def read(self, plural: str, name: str, namespace: str = "") -> Any:
        try:
            return json.loads(self.plane.request("GET", self.path(plural, name, namespace)))
        except urllib.error.HTTPError as error:
            with error:
                assert error.code == 404, error.read()
            return {}

    def every(self, plural: str, namespace: str = "") -> list[Any]:
        items: list[Any] = json.loads(self.plane.request("GET", self.path(plural, "", namespace)))["items"]
        return sorted(items, key=lambda item: str(item["metadata"]["name"]))

    def names(self, plural: str, namespace: str = "") -> list[str]:
        return [item["metadata"]["name"] for item in self.every(plural, namespace)]

    def patch(self, plural: str, name: str, patch: Any, namespace: str = "", part: str = "") -> Any:
        path = self.path(plural, name, namespace, part)
        return json.loads(self.plane.request("PATCH", path, patch, MERGE))

    def delete(self, plural: str, name: str, namespace: str = "") -> None:
        self.plane.request("DELETE", self.path(plural, name, namespace))

    def command(self, action: str, queue: str) -> None:
        target = {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "Queue",
            "name": queue,
            "uid": self.read("queues", queue)["metadata"]["uid"],
        }
        meta = {"generateName": f"{queue}-"}
        self.make("commands", {"metadata": meta, "action": action, "target": target}, "default")

    def state(self, queue: str) -> str:
        state: str = self.read("queues", queue).get("status", {}).get("state", "")
        return state

    def become(self, job: str, namespace: str, phase: str, **status: Any) -> None:
        """Set a job's phase, as its controller would."""
        state = {"phase": phase, "lastTransitionTime": "2026-01-01T00:00:00Z"}
        self.patch("jobs", job, {"status": {"state": state, **status}}, namespace, "status")

    def events(self, namespace: str, name: str) -> list[tuple[str, str]]:
        """Reason and message of what was said about an object."""
        return [
            (event["reason"], event["message"])
            for event in self.every("events", namespace)
            if event["involvedObject"]["name"] == name
        ]
