"""`-w` on an API server that restarts, with and without its history."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cli.objects.test_watching import Watching, pod
from tests.kubernetes.controlplane import ControlPlane


@pytest.mark.smoke
@pytest.mark.parametrize("forgets", [False, True])
def test_pods_that_come_after_a_restart_are_shown(fresh_plane: ControlPlane, forgets: bool) -> None:
    create(fresh_plane, pod("train-worker-0"))
    watching = Watching("pods", "-w", "-o", "name", "--kubeconfig", str(fresh_plane.kubeconfig))
    try:
        watching.line_with("pod/train-worker-0")
        if forgets:
            fresh_plane.compact()
        fresh_plane.restart("kube-apiserver")
        create(fresh_plane, pod("train-worker-1"))
        assert watching.line_with("pod/") == "pod/train-worker-1"
    finally:
        assert watching.interrupt() == 130


def create(plane: ControlPlane, manifest: dict[str, Any]) -> None:
    plane.request("POST", "/api/v1/namespaces/default/pods", manifest)
