"""The API server as the oracle of our arithmetic: what a quota counts for a pod, and the QoS class of a pod."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from stromboli.api.resources.qos import qos_class
from stromboli.api.resources.quota_charges import format_charge, pod_charges
from stromboli.api.types.pod import pod_resources
from tests.kubernetes.controlplane import ControlPlane
from tests.kubernetes.servers import EMBEDDED, chosen, control_plane

HARD = {"pods": "10", "requests.cpu": "100", "requests.memory": "2Ti", "requests.example.com/gpu": "5000"}
Spec = dict[str, Any]


def container(cpu: str, memory: str = "1Gi", sidecar: bool = False, **resources: Any) -> Spec:
    return {
        "name": f"c{cpu}-{memory}".lower(),
        "image": "busybox",
        "resources": {"requests": {"cpu": cpu, "memory": memory}, **resources},
        **({"restartPolicy": "Always"} if sidecar else {}),
    }


def pod_of(*containers: Spec, **spec: Any) -> Spec:
    return {"containers": list(containers), **spec}


SPECS = [
    pod_of(container("500m"), resources={"requests": {"cpu": "3"}}),
    pod_of(container("1", limits={"cpu": "1", "memory": "1Gi"})),
    pod_of(container("1", limits={"cpu": "2", "example.com/gpu": "1024"})),
    pod_of(container("1", limits={"example.com/gpu": "1000"})),
    pod_of(container("2"), initContainers=[container("5"), container("1", sidecar=True)]),
    pod_of(container("2"), initContainers=[container("3", sidecar=True), container("4")]),
    pod_of(
        container("1", "512Mi"),
        initContainers=[container("1", sidecar=True), container("2", "1Ti", sidecar=True)],
    ),
]


@pytest.fixture(scope="module")
def counted_plane(built: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane that counts quotas."""
    with control_plane(tmp_path_factory.mktemp("quotas")) as plane:
        if chosen() != EMBEDDED:
            plane.start("kube-controller-manager")
        yield plane


def ask(plane: ControlPlane, method: str, path: str, body: Any = None) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(plane.request(method, path, body))
    return answer


@pytest.mark.parametrize("spec", SPECS)
def test_usage_and_class_of_a_pod_are_those_of_the_server(counted_plane: ControlPlane, spec: Spec) -> None:
    plane, name = counted_plane, f"quota-{SPECS.index(spec)}"
    ask(plane, "POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    quota = {"metadata": {"name": "q"}, "spec": {"hard": HARD}}
    ask(plane, "POST", f"/api/v1/namespaces/{name}/resourcequotas", quota)

    def used() -> Spec:
        status = ask(plane, "GET", f"/api/v1/namespaces/{name}/resourcequotas/q").get("status") or {}
        return dict(status.get("used") or {})

    plane.wait(lambda: used().get("pods") == "0", "the quota to be counted")
    pod = ask(plane, "POST", f"/api/v1/namespaces/{name}/pods", {"metadata": {"name": "p"}, "spec": spec})
    plane.wait(lambda: used().get("pods") == "1", "the pod to be counted")
    resources = pod_resources(pod)
    charges = pod_charges(resources)
    assert used() == {key: format_charge(key, charges[key]) if key in charges else "0" for key in HARD}
    assert pod["status"]["qosClass"] == qos_class(resources)
