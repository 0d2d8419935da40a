"""A real Kubernetes control plane on 127.0.0.1 for tests: etcd, kube-apiserver with RBAC, and other components.

    with ControlPlane(folder) as plane:
        plane.start("kwok")
        plane.kubectl("get", "nodes")
        plane.restart("kube-apiserver")

Components are processes of their own. They end with this one, however it ends.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from tests.kubernetes.certificates import make_certificates
from tests.kubernetes.program import program
from tests.ports import free_ports

CRDS = Path(__file__).parents[2] / "deploy" / "crds"
CRDS_PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
STARTUP = 120.0
STOPPING = 5.0
"""Seconds until a component that does not end by itself is killed."""
GARBAGE = {"GOGC": "300"}
"""Let components take more memory and a quarter less processor time: they live for minutes."""
CLIENT_LIMITS = ("--kube-api-qps=100000", "--kube-api-burst=100000")
"""Practically unlimited."""
DIE_WITH_PARENT = ("setpriv", "--pdeathsig", "KILL")


class ControlPlane:
    """The processes of a control plane, and requests to them as an administrator."""

    def __init__(
        self,
        folder: Path,
        api_server_flags: tuple[str, ...] = (),
        service_accounts: bool = False,
        scheduler_flags: tuple[str, ...] = (),
        controller_flags: tuple[str, ...] = (),
    ) -> None:
        """Without `service_accounts`, pods need no account, and nodes are usable without a controller manager."""
        self.folder = folder
        self.program = program()
        self.etcd_port, self.peer_port, self.port = free_ports(3)
        self.server = f"https://127.0.0.1:{self.port}"
        self.token = secrets.token_hex(16)
        self.kubeconfig = folder / "kubeconfig"
        self.scheduler_kubeconfig = folder / "kube-scheduler.kubeconfig"
        """For kube-scheduler with its own RBAC permissions alone."""
        self._flags = api_server_flags
        self._scheduler_flags = scheduler_flags
        self._controller_flags = controller_flags
        self._service_accounts = service_accounts
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> ControlPlane:
        make_certificates(self.folder / "pki")
        scheduler = secrets.token_hex(16)
        (self.folder / "pki" / "tokens.csv").write_text(
            f'{self.token},admin,admin,"system:masters"\n{scheduler},system:kube-scheduler,kube-scheduler\n'
        )
        self.kubeconfig.write_text(json.dumps(self.config_for(self.token)))
        self.scheduler_kubeconfig.write_text(json.dumps(self.config_for(scheduler)))
        try:
            self.start("etcd")
            self.start("kube-apiserver")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for name in reversed(list(self._running)):
            self.kill(name)

    # -- processes

    def start(self, name: str) -> None:
        """Start a component, and wait until it is ready if it is the API server."""
        log = (self.folder / f"{name}.log").open("ab")
        with log:
            self._running[name] = subprocess.Popen(
                (*DIE_WITH_PARENT, str(self.program / "kubetest"), name, *self._arguments(name)),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, **GARBAGE},
            )
        if name == "kube-apiserver":
            self.wait(self.ready, f"{name} to be ready")

    def stop(self, name: str, how: signal.Signals = signal.SIGTERM) -> None:
        """End a component with a signal."""
        process = self._running.pop(name)
        process.send_signal(how)
        try:
            process.wait(STOPPING)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(STOPPING)

    def pid(self, name: str) -> int:
        return self._running[name].pid

    def kill(self, name: str) -> None:
        self.stop(name, signal.SIGKILL)

    def restart(self, name: str, how: signal.Signals = signal.SIGTERM) -> None:
        self.stop(name, how)
        self.start(name)

    def wait(self, condition: Callable[[], bool], what: str, seconds: float = STARTUP) -> None:
        """Poll until the condition holds; fail with the log of a component that ended meanwhile."""
        end = time.monotonic() + seconds
        while not condition():
            for name, process in self._running.items():
                if process.poll() is not None:
                    raise RuntimeError(f"{name} ended with {process.returncode}:\n{self.log_tail(name)}")
            if time.monotonic() > end:
                raise TimeoutError(f"waited {seconds:g} seconds for {what}")
            time.sleep(0.05)

    def log_tail(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(errors="replace")[-3000:]

    def ready(self) -> bool:
        try:
            return self.request("GET", "/readyz") == b"ok"
        except (OSError, urllib.error.URLError):
            return False

    # -- requests

    def request(
        self, method: str, path: str, body: Any = None, content_type: str = "application/json"
    ) -> bytes:
        """A request as an administrator."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": content_type}
        request = urllib.request.Request(self.server + path, data, headers, method=method)
        trust = ssl.create_default_context(cafile=str(self.folder / "pki" / "ca.crt"))
        with urllib.request.urlopen(request, timeout=30, context=trust) as response:
            content: bytes = response.read()
        return content

    def kubectl(self, *arguments: str, stdin: str = "", check: bool = True) -> str:
        """The output of kubectl; its error output is in the exception."""
        done = subprocess.run(
            (*self._kubectl(), "--kubeconfig", str(self.kubeconfig), *arguments),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        if check and done.returncode != 0:
            raise RuntimeError(f"kubectl {' '.join(arguments)}: {done.stderr.strip() or done.stdout.strip()}")
        return done.stdout

    def _kubectl(self) -> tuple[str, ...]:
        return str(self.program / "kubetest"), "kubectl"

    def apply(self, *manifests: Any) -> None:
        """Apply objects with kubectl."""
        listed = {"apiVersion": "v1", "kind": "List", "items": list(manifests)}
        self.kubectl("apply", "-f", "-", stdin=json.dumps(listed))

    def install_crds(self) -> None:
        """Create Volcano's CRDs, and wait until they are served."""
        for file in sorted(CRDS.glob("*_*.yaml")):
            self.request("POST", CRDS_PATH, yaml.load(file.read_text(), yaml.CSafeLoader))
        self.wait_established()

    def wait_established(self) -> None:
        """Wait until all CRDs are served and can be watched; `kubectl wait` fails on one that has no condition yet."""

        def established() -> bool:
            listed = json.loads(self.request("GET", CRDS_PATH))["items"]
            conditions = [definition.get("status", {}).get("conditions") or [] for definition in listed]
            return all(
                ("Established", "True") in [(one["type"], one["status"]) for one in each]
                for each in conditions
            ) and all(self._is_cached(definition["spec"]) for definition in listed)

        self.wait(established, "the CRDs to be established")

    def _is_cached(self, spec: Any) -> bool:
        """Whether the API server has filled its cache of a kind; until then it refuses watches with 429."""
        version = next(version["name"] for version in spec["versions"] if version["served"])
        path = f"/apis/{spec['group']}/{version}/{spec['names']['plural']}?resourceVersion=0&limit=1"
        try:
            self.request("GET", path)
        except urllib.error.HTTPError as error:
            with error:
                return False
        return True

    def token_for(self, namespace: str, account: str) -> str:
        """A service account's token; the account must exist."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        token: str = json.loads(self.request("POST", path, body))["status"]["token"]
        return token

    def config_for(self, token: str, server: str = "") -> dict[str, Any]:
        """A kubeconfig with this token; `server` is the address of a proxy, if there is one."""
        cluster = {
            "server": server or self.server,
            "certificate-authority": str(self.folder / "pki" / "ca.crt"),
        }
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "test",
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": "test", "user": {"token": token}}],
        }

    # -- command lines

    def _arguments(self, name: str) -> tuple[str, ...]:
        flags: dict[str, Callable[[], tuple[str, ...]]] = {
            "etcd": self._etcd,
            "kube-apiserver": self._api_server,
            "kube-controller-manager": self._controllers,
            "kube-scheduler": self._scheduler,
            "kwok": self._kwok,
        }
        return flags[name]()

    def _etcd(self) -> tuple[str, ...]:
        client, peer = f"http://127.0.0.1:{self.etcd_port}", f"http://127.0.0.1:{self.peer_port}"
        return (
            f"--data-dir={self.folder / 'etcd'}",
            "--unsafe-no-fsync",
            "--log-level=warn",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
        )

    def _api_server(self) -> tuple[str, ...]:
        pki = self.folder / "pki"
        disabled = "" if self._service_accounts else "ServiceAccount,TaintNodesByCondition"
        return (
            f"--etcd-servers=http://127.0.0.1:{self.etcd_port}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--secure-port={self.port}",
            "--endpoint-reconciler-type=none",
            f"--tls-cert-file={pki / 'server.crt'}",
            f"--tls-private-key-file={pki / 'server.key'}",
            f"--client-ca-file={pki / 'ca.crt'}",
            f"--token-auth-file={pki / 'tokens.csv'}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-signing-key-file={pki / 'sa.key'}",
            f"--service-account-key-file={pki / 'sa.key'}",
            "--authorization-mode=Node,RBAC",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--allow-privileged",
            f"--disable-admission-plugins={disabled}",
            *self._flags,
        )

    def _controllers(self) -> tuple[str, ...]:
        pki = self.folder / "pki"
        return (
            f"--kubeconfig={self.kubeconfig}",
            "--leader-elect=false",
            "--secure-port=0",
            *CLIENT_LIMITS,
            f"--service-account-private-key-file={pki / 'sa.key'}",
            f"--root-ca-file={pki / 'ca.crt'}",
            *self._controller_flags,
        )

    def _scheduler(self) -> tuple[str, ...]:
        return (
            f"--kubeconfig={self.kubeconfig}",
            "--leader-elect=false",
            "--secure-port=0",
            *CLIENT_LIMITS,
            *self._scheduler_flags,
        )

    def _kwok(self) -> tuple[str, ...]:
        return (
            f"--kubeconfig={self.kubeconfig}",
            "--manage-all-nodes=true",
            "--node-lease-duration-seconds=40",
            f"--config={self._stages()}",
        )

    def _stages(self) -> Path:
        """KWOK's stages of pods without pod-complete: pods of jobs end when a test says so."""
        stages = (self.program / "kwok-stages.yaml").read_text().split("\n---\n")
        kept = [stage for stage in stages if "name: pod-complete" not in stage]
        path = self.folder / "kwok-stages.yaml"
        path.write_text("\n---\n".join(kept))
        return path

    def compact(self) -> None:
        """Compact etcd's history, as happens every few minutes in a real cluster."""
        etcd = f"http://127.0.0.1:{self.etcd_port}/v3/kv"
        status = _call(f"{etcd}/range", {"key": "AA=="})
        _call(f"{etcd}/compaction", {"revision": status["header"]["revision"], "physical": True})


def _call(url: str, body: Any) -> Any:
    request = urllib.request.Request(url, json.dumps(body).encode(), method="POST")
    with urllib.request.urlopen(request, timeout=30) as response:
        return json.load(response)
