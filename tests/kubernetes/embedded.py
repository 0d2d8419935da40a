"""The embedded API server in the place of the real control plane, for the same tests."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from stromboli.embedded.auth.cluster_authority import ClusterAuthority
from tests.kubernetes.controlplane import DIE_WITH_PARENT, ControlPlane
from tests.ports import free_ports

SOURCE = Path(__file__).parents[2]


class EmbeddedPlane(ControlPlane):
    """One process instead of etcd and kube-apiserver, our nodes instead of KWOK, and our controllers of workloads."""

    def __init__(
        self,
        folder: Path,
        api_server_flags: tuple[str, ...] = (),
        service_accounts: bool = False,
        crds: bool = False,
    ) -> None:
        if api_server_flags:
            pytest.skip(f"only the real API server knows {' '.join(api_server_flags)}")
        self.folder = folder
        (self.port,) = free_ports(1)
        self.server = f"https://127.0.0.1:{self.port}"
        self.token = secrets.token_hex(16)
        self.kubeconfig = folder / "kubeconfig"
        self._forget_history = False
        self._crds = crds
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> ControlPlane:
        pki = self.folder / "pki"
        ClusterAuthority(pki).issue("admin", "admin", ("system:masters",))
        (pki / "token").write_text(self.token)
        self.kubeconfig.write_text(json.dumps(self.config_for(self.token)))
        try:
            self.start("kube-apiserver")
        except BaseException:
            self.__exit__()
            raise
        return self

    def start(self, name: str) -> None:
        if name == "etcd":
            return
        if name not in ("kube-apiserver", "kwok", "kube-controller-manager"):
            pytest.skip(f"only the real control plane has a {name}")
        with (self.folder / f"{name}.log").open("ab") as log:
            self._running[name] = subprocess.Popen(
                (*DIE_WITH_PARENT, sys.executable, *self._arguments(name)),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, "PYTHONPATH": f"{SOURCE / 'src'}{os.pathsep}{SOURCE}"},
            )
        if name == "kube-apiserver":
            self.wait(self.ready, f"{name} to be ready")

    def _arguments(self, name: str) -> tuple[str, ...]:
        if name == "kwok":
            return "-m", "tests.kubernetes.simulated_nodes", str(self.kubeconfig)
        if name == "kube-controller-manager":
            return "-m", "tests.kubernetes.workload_process", str(self.kubeconfig)
        flags = ("--forget",) * self._forget_history + ("--crds",) * self._crds
        self._forget_history = False
        return "-m", "stromboli.embedded", str(self.folder), f"--port={self.port}", *flags

    def _kubectl(self) -> tuple[str, ...]:
        if shutil.which("kubectl") is None:
            pytest.skip("there is no kubectl on PATH")
        return ("kubectl",)

    def compact(self) -> None:
        """The server starts without history the next time."""
        self._forget_history = True
