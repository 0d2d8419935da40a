"""A control plane with simulated nodes, and schedulers to start, stop and kill.

with SchedulerCluster(folder) as cluster:
    cluster.add_nodes(3, cpu=4)
    scheduler = cluster.start_scheduler()
    cluster.submit("train", pods=4, minimum=4)
    cluster.wait_for_pods("train", "Running", 4)
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.kubernetes.controlling import ControllerCluster, Controlling
from tests.kubernetes.controlplane import DIE_WITH_PARENT, ControlPlane
from tests.kubernetes.servers import control_plane
from tests.ports import free_ports

ROOT = Path(__file__).parents[2]
NAMESPACE = "stories"
VOLCANO = "/apis/scheduling.volcano.sh/v1beta1"
PRIORITY_CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
SIMULATED_LABELS = {"type": "kwok", "stromboli.sh/node": "simulated"}
"""Labels of nodes that KWOK, or our own simulated nodes, look after."""
SOURCE = str(Path(__file__).parents[2] / "src")
POLICY = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: drf
  - name: predicates
  - name: proportion
  - name: nodeorder
"""


class Scheduler:
    """A running `stromboli scheduler` process."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path, health: int, metrics: int, token: str):
        """`token` is for its debugging endpoints."""
        self.process = process
        self._token = token
        self.log = log
        self._health = health
        self._metrics = metrics

    def get(self, path: str, health: bool = False, method: str = "GET", token: str = "") -> tuple[int, str]:
        """Status and text of one of its endpoints."""
        url = f"http://127.0.0.1:{self._health if health else self._metrics}{path}"
        headers = {"Authorization": f"Bearer {token or self._token}"}
        request = urllib.request.Request(url, method=method, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError as error:
            return 0, str(error)

    @property
    def leads(self) -> bool:
        return "\nstromboli_leader 1.0" in self.get("/metrics")[1]

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def stop(self) -> int:
        """Terminate it; returns the exit status."""
        self.process.terminate()
        return self.process.wait(60)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(20)

    @property
    def output(self) -> str:
        return self.log.read_text(errors="replace")


def install(plane: ControlPlane, namespace: str, folder: Path) -> None:
    """Volcano's CRDs, a namespace, and the scheduler's service account with its deployed RBAC permissions."""
    plane.kubectl("apply", "--server-side", "-k", str(ROOT / "deploy/crds"))
    plane.wait_established()
    for name in (namespace, "volcano-system"):
        plane.kubectl("create", "namespace", name)
    for file in ("service-account.yaml", "rbac.yaml"):
        plane.kubectl("apply", "-n", "volcano-system", "-f", str(ROOT / "deploy/scheduler" / file))
    plane.kubectl("apply", "-f", str(ROOT / "deploy/components/debug-endpoints/rbac.yaml"))
    token = plane.token_for("volcano-system", "stromboli-scheduler")
    (folder / "scheduler.kubeconfig").write_text(json.dumps(plane.config_for(token)))


class SchedulerCluster:
    """A cluster of simulated nodes, and schedulers that have the RBAC permissions of a deployment and no others."""

    def __init__(self, folder: Path, **options: object):
        """`options` are those of the control plane."""
        self.folder = folder
        self.plane = control_plane(folder, **options)
        self.policy = folder / "scheduler.conf"
        self.policy.write_text(POLICY)
        self.schedulers: list[Scheduler] = []
        self.controllers = ControllerCluster(folder, self.plane)

    def __enter__(self) -> SchedulerCluster:
        self.plane.__enter__()
        try:
            self._install()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for scheduler in self.schedulers:
            if scheduler.process.poll() is None:
                scheduler.kill()
        self.controllers.close()
        self.plane.__exit__()

    def _install(self) -> None:
        install(self.plane, NAMESPACE, self.folder)
        self.controllers.install_rights("sharding")
        self.plane.start("kwok")

    # -- schedulers

    def start_scheduler(
        self, *flags: str, wait: bool = True, server: str = "", env: Mapping[str, str] | None = None
    ) -> Scheduler:
        """Start another scheduler; `server` replaces the API server's address, for a proxy."""
        kubeconfig = self.folder / "scheduler.kubeconfig"
        if server:
            config = json.loads(kubeconfig.read_text())
            config["clusters"][0]["cluster"]["server"] = server
            kubeconfig = self.folder / f"scheduler-{len(self.schedulers)}.kubeconfig"
            kubeconfig.write_text(json.dumps(config))
        health, metrics = free_ports(2)
        log = self.folder / f"scheduler-{len(self.schedulers)}.log"
        command = (
            *DIE_WITH_PARENT,
            sys.executable,
            "-m",
            "stromboli",
            "scheduler",
            f"--kubeconfig={kubeconfig}",
            f"--scheduler-conf={self.policy}",
            "--schedule-period=200ms",
            "--enable-healthz=true",
            f"--healthz-address=127.0.0.1:{health}",
            "--enable-metrics",
            "--enable-pprof",
            f"--listen-address=127.0.0.1:{metrics}",
            f"--cache-dump-dir={self.folder}",
            "--leader-elect-lease-duration=4s",
            "--leader-elect-renew-deadline=3s",
            "--leader-elect-retry-period=500ms",
            *flags,
        )
        with log.open("wb") as file:
            process = subprocess.Popen(
                command,
                stderr=file,
                stdout=file,
                stdin=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": SOURCE, **(env or {})},
            )
        scheduler = Scheduler(process, log, health, metrics, self.plane.token)
        self.schedulers.append(scheduler)
        if wait:
            self.wait(lambda: scheduler.get("/readyz", health=True)[0] == 200, "the scheduler to be ready")
        return scheduler

    def start_controllers(self, *names: str) -> Controlling:
        """Start some controllers, by name."""
        return self.controllers.start(f"--controllers={','.join(names)}", "--leader-elect=false")

    # -- objects

    def add_nodes(
        self, count: int, cpu: int = 4, prefix: str = "node", labels: Mapping[str, str] | None = None
    ) -> None:
        size = {"cpu": str(cpu), "memory": "64Gi", "pods": "110"}
        self.plane.apply(
            *(
                {
                    "apiVersion": "v1",
                    "kind": "Node",
                    "metadata": {
                        "name": f"{prefix}-{number}",
                        "labels": {**SIMULATED_LABELS, **(labels or {})},
                    },
                    "status": {"allocatable": size, "capacity": size},
                }
                for number in range(count)
            )
        )

    def add_queue(self, name: str, **spec: Any) -> None:
        self.plane.apply(
            {
                "apiVersion": "scheduling.volcano.sh/v1beta1",
                "kind": "Queue",
                "metadata": {"name": name},
                "spec": {"weight": 1, **spec},
            }
        )

    def submit(
        self,
        name: str,
        pods: int,
        minimum: int = 0,
        cpu: int = 1,
        priority: str = "",
        queue: str = "default",
        scheduler: str = "volcano",
        gate: str = "",
        topology: Mapping[str, Any] | None = None,
    ) -> None:
        """Apply a gang; `gate` is a scheduling gate that its pods wait at until the queue has room."""
        group: dict[str, Any] = {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "PodGroup",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {"minMember": minimum or pods, "queue": queue, "priorityClassName": priority},
        }
        if topology is not None:
            group["spec"]["networkTopology"] = dict(topology)
        manifests = [self.pod(name, number, cpu, priority) for number in range(pods)]
        for pod in manifests:
            pod["spec"]["schedulerName"] = scheduler
            if gate:
                pod["metadata"]["annotations"][gate] = "true"
                pod["spec"]["schedulingGates"] = [{"name": gate}]
        self.plane.apply(group, *manifests)

    def pod(self, group: str, number: int, cpu: int = 1, priority: str = "") -> dict[str, Any]:
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"{group}-{number}",
                "namespace": NAMESPACE,
                "labels": {"job": group},
                "annotations": {"scheduling.k8s.io/group-name": group},
            },
            "spec": {
                "schedulerName": "volcano",
                "priorityClassName": priority,
                "terminationGracePeriodSeconds": 0,
                "containers": [
                    {"name": "main", "image": "none", "resources": {"requests": {"cpu": str(cpu)}}}
                ],
            },
        }

    def delete(self, *arguments: str) -> None:
        self.plane.kubectl("delete", "-n", NAMESPACE, "--ignore-not-found", "--wait=true", *arguments)

    def reset(self) -> None:
        """Remove everything that a test made."""
        for scheduler in self.schedulers:
            if scheduler.process.poll() is None:
                scheduler.kill()
        self.schedulers.clear()
        self.controllers.close()
        self.controllers.runners.clear()
        self.policy.write_text(POLICY)
        for collection in (
            f"/api/v1/namespaces/{NAMESPACE}/pods?gracePeriodSeconds=0",
            f"{VOLCANO}/namespaces/{NAMESPACE}/podgroups",
            f"{VOLCANO}/queues",
            "/api/v1/nodes",
            "/apis/shard.volcano.sh/v1alpha1/nodeshards",
            "/apis/topology.volcano.sh/v1alpha1/hypernodes",
            f"/apis/batch.volcano.sh/v1alpha1/namespaces/{NAMESPACE}/jobs",
            "/apis/coordination.k8s.io/v1/namespaces/volcano-system/leases",
            f"/api/v1/namespaces/{NAMESPACE}/events",
            "/api/v1/namespaces/volcano-system/configmaps",
        ):
            self.plane.request("DELETE", collection)
        for item in self.read(PRIORITY_CLASSES)["items"]:
            name = item["metadata"]["name"]
            if not name.startswith("system-"):
                self.plane.request("DELETE", f"{PRIORITY_CLASSES}/{name}")

    # -- observed state

    def read(self, path: str) -> Any:
        return json.loads(self.plane.request("GET", path))

    def pods(self, job: str = "") -> list[Any]:
        selector = f"?labelSelector=job%3D{job}" if job else ""
        items: list[Any] = self.read(f"/api/v1/namespaces/{NAMESPACE}/pods{selector}")["items"]
        return items

    def bound(self, job: str = "") -> list[Any]:
        return [pod for pod in self.pods(job) if pod["spec"].get("nodeName")]

    def group(self, name: str) -> Any:
        return self.read(f"{VOLCANO}/namespaces/{NAMESPACE}/podgroups/{name}")

    def phase(self, name: str) -> str:
        """Of a group; empty as long as nobody has written its status."""
        return str(self.group(name).get("status", {}).get("phase", ""))

    def events(self, name: str) -> list[tuple[str, str]]:
        """Reason and message of the events about an object."""
        path = f"/api/v1/namespaces/{NAMESPACE}/events?fieldSelector=involvedObject.name%3D{name}"
        return [(event["reason"], event["message"]) for event in self.read(path)["items"]]

    def running(self, job: str) -> int:
        return sum(pod["status"].get("phase") == "Running" for pod in self.pods(job))

    def wait(self, condition: Callable[[], bool], what: str, seconds: float = 60.0) -> None:
        try:
            self.plane.wait(condition, what, seconds)
        except (TimeoutError, RuntimeError) as error:
            processes = [*self.schedulers, *self.controllers.runners]
            logs = "\n".join(f"{process.log.name}:\n{process.output[-4000:]}" for process in processes)
            raise AssertionError(f"{error}\n{logs}") from None

    def wait_for_running(self, job: str, count: int, seconds: float = 60.0) -> None:
        self.wait(lambda: self.running(job) == count, f"{count} pods of {job} to run", seconds)

    def check_capacity(self) -> None:
        """No node is overcommitted."""
        sizes = {
            node["metadata"]["name"]: int(node["status"]["allocatable"]["cpu"])
            for node in self.read("/api/v1/nodes")["items"]
        }
        held: dict[str, int] = {}
        for pod in self.bound():
            request = sum(
                int(container["resources"]["requests"]["cpu"]) for container in pod["spec"]["containers"]
            )
            if pod["status"].get("phase") not in ("Succeeded", "Failed"):
                held[pod["spec"]["nodeName"]] = held.get(pod["spec"]["nodeName"], 0) + request
        assert all(held[node] <= sizes.get(node, held[node]) for node in held), (held, sizes)

    def holds_for(self, seconds: float, condition: Callable[[], bool]) -> bool:
        """Whether the condition holds all the time."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if not condition():
                return False
            time.sleep(0.1)
        return True
