"""The dashboard with the flags and the account of its manifest: it starts, asks who looks, and lacks no right."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deploy.manifests import DEPLOY, build, only
from tests.kubernetes.controlplane import DIE_WITH_PARENT, ControlPlane
from tests.ports import free_ports

NAMESPACE = "volcano-system"
WAIT = 60


@pytest.fixture
def served(plane: ControlPlane, tmp_path: Path) -> Iterator[str]:
    """The address of a dashboard as a pod of the Deployment runs it; it is fine with all it is allowed."""
    for folder in ("overlays/standalone", "dashboard"):
        plane.kubectl("apply", "--server-side", "-k", str(DEPLOY / folder))
    token = plane.token_for(NAMESPACE, "stromboli-dashboard")
    (tmp_path / "kubeconfig").write_text(json.dumps(plane.config_for(token)))
    (container,) = only(build(DEPLOY / "dashboard"), "Deployment")["spec"]["template"]["spec"]["containers"]
    (port,) = free_ports(1)
    flags = [flag.replace(":8080", f"127.0.0.1:{port}") for flag in container["args"]]
    command = [sys.executable, "-m", "stromboli", *flags, f"--kubeconfig={tmp_path / 'kubeconfig'}"]
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen((*DIE_WITH_PARENT, *command), stdout=log, stderr=log)
    address = f"http://127.0.0.1:{port}"
    try:
        plane.wait(lambda: _status(f"{address}/healthz") == 200, "the dashboard to be healthy", WAIT)
        yield address
    finally:
        process.terminate()
        process.wait(WAIT)
    assert "forbidden" not in (tmp_path / "log").read_text().lower()


def _status(url: str, token: str = "") -> int:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=30) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return 0


def test_a_viewer_shows_a_token_and_others_see_nothing(plane: ControlPlane, served: str) -> None:
    assert _status(f"{served}/jobs", plane.token) == 200
    assert _status(f"{served}/jobs", "wrong") == 401
