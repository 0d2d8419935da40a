"""The API server with our webhook server at its side."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from tests.deploy.manifests import DEPLOY, build
from tests.kubernetes.controlplane import DIE_WITH_PARENT, ControlPlane
from tests.ports import free_ports

SPACE = "volcano-system"


class Gate:
    """The API server, and the webhook server at its side."""

    def __init__(self, folder: Path, plane: ControlPlane):
        self.plane = plane
        self._folder = folder
        self._port, self._health = free_ports(2)
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Gate:
        self.plane.kubectl("apply", "--server-side", "-k", "deploy/crds")
        self.plane.wait_established()
        for name in ("root", "default"):
            self.plane.apply(
                {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": name}}
            )
        self.install()
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

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
