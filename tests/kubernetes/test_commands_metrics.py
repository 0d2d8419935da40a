"""`stromboli metrics` on an API server: what is missing is named, be it a right or the scheduler itself."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from tests.cli.metrics.metric_pages import healthy
from tests.kubernetes.commanding import CommandCluster
from tests.kubernetes.servers import REAL, chosen, control_plane
from tests.serving import serving

SYSTEM = "volcano-system"
SERVICE = {
    "metadata": {"name": "stromboli-scheduler-service"},
    "spec": {"selector": {"app": "none"}, "ports": [{"name": "metrics", "port": 8080}]},
}


@pytest.fixture(scope="module")
def cluster(built: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandCluster]:
    """An API server with nobody behind the Service of a scheduler."""
    folder = tmp_path_factory.mktemp("metrics_commands")
    with control_plane(folder) as plane:
        made = CommandCluster(folder, plane)
        try:
            made.place_of(SYSTEM)
            plane.request("POST", f"/api/v1/namespaces/{SYSTEM}/services", SERVICE)
            yield made
        finally:
            made.close()


def test_without_a_scheduler_every_way_is_named_and_the_way_out(cluster: CommandCluster) -> None:
    result = cluster.run("metrics")
    assert (result.exit_code, result.stdout) == (1, "")
    assert f"there is no Lease {SYSTEM}/volcano" in result.stderr
    assert f"Service {SYSTEM}/stromboli-scheduler-service: " in result.stderr
    assert "--url" in result.stderr


@pytest.mark.smoke
def test_a_user_without_rights_is_told_which_are_missing(cluster: CommandCluster) -> None:
    space = cluster.place_of("metrics-reader")
    result = cluster.run("metrics", kubeconfig=cluster.account(space, "ann"))
    assert (result.exit_code, result.stdout) == (1, "")
    user = f'user "system:serviceaccount:{space}:ann"'
    assert f"{user} may not get leases.coordination.k8s.io in namespace {SYSTEM}" in result.stderr
    if chosen() == REAL:  # the embedded API server has no proxy
        assert f"{user} may not get services/proxy in namespace {SYSTEM}" in result.stderr


@pytest.mark.real_only
def test_the_pod_that_leads_is_asked_through_the_proxy(cluster: CommandCluster) -> None:
    """A server of the test plays the pod: the API server forwards to its address."""
    address = _own_address()
    with serving(lambda asked: healthy().text(), host=address) as server:
        port = server.url.rpartition(":")[2]
        pods = f"/api/v1/namespaces/{SYSTEM}/pods"
        container = {
            "name": "main",
            "image": "a",
            "args": ["--enable-metrics=true", f"--listen-address=:{port}"],
        }
        spec = {"containers": [container], "nodeName": "n1"}
        cluster.plane.request("POST", pods, {"metadata": {"name": "scheduler-1"}, "spec": spec})
        status = {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}]}
        cluster.patch("pods", "scheduler-1", {"status": status}, SYSTEM, "status")
        lease = {"metadata": {"name": "volcano"}, "spec": {"holderIdentity": "scheduler-1_1"}}
        cluster.plane.request("POST", f"/apis/coordination.k8s.io/v1/namespaces/{SYSTEM}/leases", lease)
        output = cluster.output("metrics")
    assert output.startswith(f"pod {SYSTEM}/scheduler-1, which leads, by the proxy")
    assert "fine  leader       this replica leads" in output


def _own_address() -> str:
    """An address of this machine that is not loopback, to which API servers forward nothing."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))  # sends nothing
        address: str = probe.getsockname()[0]
    return address
