"""Nodes whose pods are processes: what runs a Deployment's containers where there is no kubelet.

Pods of our image run as `stromboli` with the arguments, the volumes and the account of their manifest; only ports are
other ones, as all of them share this machine. Pods of other images are said to run. It stands in for kube-scheduler and
for the controller of EndpointSlices too, in as far as webhooks need them: an API server that was started with
`--enable-aggregator-routing` calls the endpoints of a Service by their addresses.
"""

from __future__ import annotations

import base64
import json
import os
import ssl
import subprocess
import sys
import threading
import traceback
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.kubernetes.controlplane import DIE_WITH_PARENT, ControlPlane
from tests.ports import free_ports

Json = Any
SOURCE = str(Path(__file__).parents[2] / "src")
NODE = "infrastructure"
"""Where pods go that no batch scheduler places."""
MERGE = "application/merge-patch+json"
SLICES = "/apis/discovery.k8s.io/v1"
PERIOD = 0.2
COMMANDS = {"stromboli": (), "vc-webhook-manager": ("admission", "--webhook-configuration=of-volcano")}
"""Images that are run, with what stands before their arguments. Volcano's webhook server is ours with its flags."""


@dataclass
class Container:
    """The process of a pod."""

    pod: str
    process: subprocess.Popen[bytes]
    log: Path
    health: int
    metrics: int
    webhooks: int
    scheme: str = "http"
    """Of its health endpoint."""
    ready: bool = False
    stopping: bool = False

    def probe(self) -> bool:
        """Whether it says that it is ready; as a kubelet's, the probe does not look at certificates."""
        return _answer(f"{self.scheme}://127.0.0.1:{self.health}/readyz") is not None

    @property
    def leads(self) -> bool:
        return "\nstromboli_leader 1.0" in (_answer(f"http://127.0.0.1:{self.metrics}/metrics") or "")


def _answer(url: str) -> str | None:
    """The text at an address; None if there is none."""
    unchecked = ssl.create_default_context()
    unchecked.check_hostname, unchecked.verify_mode = False, ssl.CERT_NONE
    try:
        with urllib.request.urlopen(url, timeout=5, context=unchecked) as answer:
            text: str = answer.read().decode()
            return text
    except urllib.error.HTTPError as error:
        error.close()
        return None
    except OSError:
        return None


@dataclass
class ProcessKubelet:
    """Looks after all pods of a cluster, in a thread of its own."""

    plane: ControlPlane
    folder: Path
    address: str
    """Of this machine, and not a loopback one: EndpointSlices take no others."""
    containers: dict[str, Container] = field(default_factory=dict)
    """By the UID of their pod."""
    failures: list[str] = field(default_factory=list)
    _endpoints: set[str] = field(default_factory=set)
    _stopping: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> ProcessKubelet:
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join(30)
        for container in self.containers.values():
            container.process.kill()
            container.process.wait(20)

    def leaders(self, component: str) -> list[str]:
        """Which pods of a component say that they lead."""
        running = [container for container in self.containers.values() if component in container.pod]
        return [container.pod for container in running if container.leads]

    def logs(self) -> str:
        files = sorted(self.folder.glob("*.log"))
        return "\n".join(f"{file.name}:\n{file.read_text(errors='replace')[-3000:]}" for file in files)

    # -- pods

    def _run(self) -> None:
        while not self._stopping.wait(PERIOD):
            pods = json.loads(self.plane.request("GET", "/api/v1/pods"))["items"]
            for pod in pods:
                self._attempt(self._look_after, pod)
            self._attempt(self._write_endpoints, pods)

    def _attempt(self, step: Callable[[Any], None], about: Any) -> None:
        """Tests look at what failed; what is gone or has changed meanwhile is tried again in the next round."""
        try:
            step(about)
        except urllib.error.HTTPError as error:
            with error:
                if error.code not in (404, 409):
                    self.failures.append(f"{error.url}: {error.read().decode()}")
        except Exception:
            self.failures.append(traceback.format_exc())

    def _look_after(self, pod: Json) -> None:
        if not pod["spec"].get("nodeName"):
            if pod["spec"]["schedulerName"] == "default-scheduler":
                target = {"apiVersion": "v1", "kind": "Node", "name": NODE}
                self.plane.request(
                    "POST", f"{_path(pod)}/binding", {"metadata": _name(pod), "target": target}
                )
        elif pod["metadata"].get("deletionTimestamp"):
            self._end(pod)
        elif pod["status"]["phase"] in ("Pending", "Running"):
            self._keep_running(pod)

    def _keep_running(self, pod: Json) -> None:
        command = COMMANDS.get(_image(pod))
        if command is None:
            if pod["status"]["phase"] == "Pending":
                self._write_status(pod, ready=True)
            return
        container = self.containers.get(pod["metadata"]["uid"])
        if container is None:
            self.containers[pod["metadata"]["uid"]] = self._start(pod, command)
        elif container.process.poll() is not None:
            if container.ready:
                self._write_status(pod, ready=False)
                container.ready = False
                self.failures.append(f"{container.pod} ended with {container.process.returncode}")
        elif not container.ready and container.probe():
            container.ready = True
            self._write_status(pod, ready=True)

    def _end(self, pod: Json) -> None:
        container = self.containers.get(pod["metadata"]["uid"])
        if container is not None:
            if container.process.poll() is None:
                if not container.stopping:
                    container.process.terminate()
                container.stopping, container.ready = True, False
                return
            if container.process.returncode != 0:
                self.failures.append(
                    f"{container.pod} was stopped and ended with {container.process.returncode}"
                )
            del self.containers[pod["metadata"]["uid"]]
        self.plane.request("DELETE", f"{_path(pod)}?gracePeriodSeconds=0")

    def _write_status(self, pod: Json, ready: bool) -> None:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        status = {
            "phase": "Running",
            "startTime": now,
            "podIP": self.address,
            "podIPs": [{"ip": self.address}],
            "conditions": [
                {"type": kind, "status": str(ready), "lastTransitionTime": now}
                for kind in ("PodScheduled", "Initialized", "ContainersReady", "Ready")
            ],
        }
        self.plane.request("PATCH", f"{_path(pod)}/status", {"status": status}, MERGE)

    # -- processes

    def _start(self, pod: Json, command: tuple[str, ...]) -> Container:
        name, space = pod["metadata"]["name"], pod["metadata"]["namespace"]
        (spec,) = pod["spec"]["containers"]
        folder = self.folder / name
        health, metrics, webhooks = free_ports(3)
        arguments = [*command, *spec["args"]]
        for mount, place in self._mounts(pod, spec, folder).items():
            arguments = [argument.replace(mount, str(place)) for argument in arguments]
        arguments = [argument.replace("$(NAMESPACE)", space) for argument in arguments]
        arguments += [
            f"--kubeconfig={self._kubeconfig(pod, folder)}",
            f"--healthz-address=127.0.0.1:{health}",
        ]
        serving = (
            f"--port={webhooks}" if arguments[0] == "admission" else f"--listen-address=127.0.0.1:{metrics}"
        )
        log = self.folder / f"{name}.log"
        with log.open("wb") as file:
            process = subprocess.Popen(
                (*DIE_WITH_PARENT, sys.executable, "-m", "stromboli", *arguments, serving),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                env={**os.environ, "PYTHONPATH": SOURCE, "TMPDIR": str(folder), **_environment(pod, spec)},
            )
        scheme = "https" if any(part.startswith("--tls-cert-file") for part in arguments) else "http"
        return Container(name, process, log, health, metrics, webhooks, scheme)

    def _mounts(self, pod: Json, spec: Json, folder: Path) -> dict[str, Path]:
        """The folder of each volume by the path that the container has it at."""
        volumes = {volume["name"]: volume for volume in pod["spec"].get("volumes", ())}
        places = {}
        for mount in spec.get("volumeMounts", ()):
            place = folder / mount["name"]
            place.mkdir(parents=True, exist_ok=True)
            for file, content in self._contents(volumes[mount["name"]], pod["metadata"]["namespace"]).items():
                (place / file).write_bytes(content)
            places[mount["mountPath"]] = place
        return places

    def _contents(self, volume: Json, space: str) -> dict[str, bytes]:
        if "configMap" in volume:
            path = f"/api/v1/namespaces/{space}/configmaps/{volume['configMap']['name']}"
            data = json.loads(self.plane.request("GET", path)).get("data", {})
            return {name: text.encode() for name, text in data.items()}
        if "secret" in volume:
            path = f"/api/v1/namespaces/{space}/secrets/{volume['secret']['secretName']}"
            data = json.loads(self.plane.request("GET", path)).get("data", {})
            return {name: base64.b64decode(text) for name, text in data.items()}
        return {}

    def _kubeconfig(self, pod: Json, folder: Path) -> Path:
        token = self.plane.token_for(pod["metadata"]["namespace"], pod["spec"]["serviceAccountName"])
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "kubeconfig"
        path.write_text(json.dumps(self.plane.config_for(token)))
        return path

    # -- endpoints

    def _write_endpoints(self, pods: list[Json]) -> None:
        """One EndpointSlice for each webhook server that is ready."""
        wanted = {}
        for service in json.loads(self.plane.request("GET", "/api/v1/services"))["items"]:
            selector = service["spec"].get("selector")
            for pod in pods:
                container = self.containers.get(pod["metadata"]["uid"])
                labels = pod["metadata"].get("labels", {})
                if selector and container and container.ready and selector.items() <= labels.items():
                    endpoints = self._slice(service, pod, container)
                    wanted[f"{_path(pod).rpartition('/pods/')[0]}/{endpoints['metadata']['name']}"] = (
                        endpoints
                    )
        for path in self._endpoints - wanted.keys():
            self._endpoints.discard(path)
            space, _, name = path.removeprefix("/api/v1/namespaces/").partition("/")
            self.plane.request("DELETE", f"{SLICES}/namespaces/{space}/endpointslices/{name}")
        for path in wanted.keys() - self._endpoints:
            space = wanted[path]["metadata"]["namespace"]
            self.plane.request("POST", f"{SLICES}/namespaces/{space}/endpointslices", wanted[path])
            self._endpoints.add(path)

    def _slice(self, service: Json, pod: Json, container: Container) -> Json:
        (port,) = service["spec"]["ports"]
        name = service["metadata"]["name"]
        return {
            "metadata": {
                "name": f"{name}-{pod['metadata']['name'][-5:]}",
                "namespace": service["metadata"]["namespace"],
                "labels": {"kubernetes.io/service-name": name},
            },
            "addressType": "IPv4",
            "endpoints": [{"addresses": [self.address], "conditions": {"ready": True}}],
            "ports": [{"name": port.get("name", ""), "port": container.webhooks, "protocol": "TCP"}],
        }


def _path(pod: Json) -> str:
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"


def _name(pod: Json) -> Json:
    return {"name": pod["metadata"]["name"], "namespace": pod["metadata"]["namespace"]}


def _image(pod: Json) -> str:
    """The last part of an image's name, without its tag."""
    image: str = pod["spec"]["containers"][0]["image"]
    return image.rpartition("/")[2].partition(":")[0]


def _environment(pod: Json, spec: Json) -> dict[str, str]:
    """What the manifest sets; the only field that ours refer to is the namespace."""
    return {
        variable["name"]: variable.get("value", pod["metadata"]["namespace"])
        for variable in spec.get("env", ())
    }
