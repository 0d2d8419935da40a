"""One control plane for each worker, and a namespace of its own for each test.

The same tests run on two API servers: `-m kubernetes` on the real one, `-m kubernetes --server embedded` on ours.
Without `-m kubernetes` nothing here runs but the tests marked `smoke`, on the embedded server without kubectl; with it,
these run on the real server alone, so that no test runs twice on one server. `real_only`: what only the real one has.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from stromboli.kube.cluster_access import Access, find_access
from tests.kubernetes.admission_gate import Gate
from tests.kubernetes.controlplane import ControlPlane
from tests.kubernetes.embedded import EmbeddedPlane
from tests.kubernetes.faults import Between, between
from tests.kubernetes.program import CannotBuild, program
from tests.kubernetes.program import helm as program_of_helm
from tests.kubernetes.scheduler_cluster import SchedulerCluster
from tests.kubernetes.servers import EMBEDDED, REAL, choose, chosen, control_plane
from tests.kubernetes.volcano_cluster import VolcanoCluster, volcano_cluster
from tests.kubernetes.workload_cluster import WorkloadCluster

_numbers = itertools.count(1)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    ours = [item for item in items if "tests/kubernetes/" in item.path.as_posix()]
    for item in ours:
        item.add_marker(pytest.mark.kubernetes)
    asked = "kubernetes" in (config.option.markexpr or "")
    choose(config.getoption("--server") or (REAL if asked else EMBEDDED))
    left_out = {item for item in ours if not _runs(item, asked)}
    config.hook.pytest_deselected(items=[item for item in ours if item in left_out])
    items[:] = [item for item in items if item not in left_out]


def _runs(item: pytest.Item, asked: bool) -> bool:
    smoke = item.get_closest_marker("smoke") is not None
    if chosen() == EMBEDDED and asked:
        return not smoke and item.get_closest_marker("real_only") is None
    return asked or smoke


@pytest.fixture(scope="session")
def built() -> None:
    """The program, built if need be; where that is impossible, the tests are skipped with the reason.

    With STROMBOLI_NEEDS_KUBERNETES set, as in `.ci/run`, that is a failure.
    """
    if chosen() == REAL:
        _built("control plane", program)


@pytest.fixture(scope="session")
def helm() -> Path:
    """The program Helm, built if need be; where that is impossible, the tests are skipped or fail as with `built`."""
    return _built("Helm", program_of_helm)


def _built(what: str, build: Callable[[], Path]) -> Path:
    try:
        return build()
    except CannotBuild as error:
        if os.environ.get("STROMBOLI_NEEDS_KUBERNETES"):
            pytest.fail(f"no {what}: {error}", pytrace=False)
        pytest.skip(f"no {what}: {error}")


@pytest.fixture(scope="session")
def plane(built: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """etcd and kube-apiserver with Volcano's CRDs, shared by tests that leave both running."""
    with control_plane(tmp_path_factory.mktemp("plane")) as running:
        running.install_crds()
        yield running


@pytest.fixture
def fresh_plane(built: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane of its own, for a test that breaks it; without CRDs."""
    with control_plane(tmp_path_factory.mktemp("fresh")) as running:
        yield running


@pytest.fixture(scope="session")
def gate(built: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gate]:
    """An API server that asks our webhook server about Volcano's kinds."""
    folder = tmp_path_factory.mktemp("gate")
    with control_plane(folder) as plane, Gate(folder, plane) as gate:
        yield gate


@pytest.fixture(scope="session")
def admitting_plane(
    request: pytest.FixtureRequest, built: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    """An API server with Volcano's kinds and their admission: by webhooks, or built in."""
    if chosen() == EMBEDDED:
        with EmbeddedPlane(tmp_path_factory.mktemp("admitting"), crds=True) as plane:
            yield plane
    else:
        yield request.getfixturevalue("gate").plane


@pytest.fixture(scope="session")
def workload_plane(built: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """An API server with the controllers of Kubernetes' workloads, its own or ours; no nodes, so tests play kubelet."""
    with control_plane(tmp_path_factory.mktemp("workloads")) as running:
        running.start("kube-controller-manager")
        yield running


@pytest.fixture
def workloads(workload_plane: ControlPlane) -> WorkloadCluster:
    """The same, with a namespace of the test's own."""
    return WorkloadCluster(workload_plane, f"test-{next(_numbers)}")


@pytest.fixture
def access(plane: ControlPlane) -> Access:
    return find_access(str(plane.kubeconfig))


@pytest.fixture
def namespace(plane: ControlPlane) -> str:
    name = f"test-{next(_numbers)}"
    plane.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    return name


@pytest.fixture(scope="session")
def shared_cluster(built: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SchedulerCluster]:
    """A cluster of simulated nodes, for stories with whole schedulers."""
    with SchedulerCluster(tmp_path_factory.mktemp("shared_cluster")) as cluster:
        yield cluster


@pytest.fixture
def cluster(shared_cluster: SchedulerCluster) -> Iterator[SchedulerCluster]:
    """The same, empty at the start of every story."""
    yield shared_cluster
    shared_cluster.reset()


@pytest.fixture
def volcano(built: None, tmp_path: Path) -> Iterator[VolcanoCluster]:
    """A cluster with Volcano at work, of the test's own."""
    with volcano_cluster(tmp_path) as running:
        yield running


@pytest.fixture
def proxy(shared_cluster: SchedulerCluster) -> Iterator[Between]:
    """A proxy between a scheduler and the API server."""
    with between(shared_cluster.plane) as running:
        yield running
