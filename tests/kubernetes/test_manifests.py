"""A real API server takes every manifest, keeps what is right, and names the field where something is wrong."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy import schemas
from tests.deploy.manifests import (
    DEPLOY,
    STANDALONE,
    Manifest,
    accepted_samples,
    name_of,
    only,
    refused_samples,
    schema_of,
)
from tests.deploy.test_rbac import LEASES, Right, rights_of
from tests.kubernetes.controlplane import ControlPlane
from tests.kubernetes.servers import control_plane
from tests.ports import free_ports

ACCOUNT = "system:serviceaccount:volcano-system:stromboli-scheduler"
SERVER_SIDE = ("apply", "--server-side", "--validate=strict")
WITH_STATUS = {"Job", "CronJob", "Queue", "JobFlow", "JobTemplate", "HyperNode", "NodeShard"}
FORBIDDEN: set[Right] = {
    ("", "secrets", "get"),
    ("", "configmaps", "get"),
    ("", "nodes", "patch"),
    ("", "pods", "create"),
    ("", "pods", "update"),
    ("", "pods", "patch"),
    ("", "pods/exec", "create"),
    ("scheduling.volcano.sh", "queues", "delete"),
    ("scheduling.volcano.sh", "podgroups", "create"),
    ("batch.volcano.sh", "jobs", "list"),
    ("rbac.authorization.k8s.io", "clusterroles", "create"),
    ("coordination.k8s.io", "leases", "update"),
}


@pytest.fixture(scope="module")
def installed(built: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """An API server with all that we install."""
    with control_plane(tmp_path_factory.mktemp("installed")) as plane:
        plane.kubectl(*SERVER_SIDE, "-k", _path("crds"))
        plane.wait_established()
        plane.kubectl(*SERVER_SIDE, "-k", _path("overlays/standalone"))
        yield plane


def _path(part: str) -> str:
    return str(DEPLOY / part)


def test_everything_can_be_applied_again_and_nothing_changes(installed: ControlPlane) -> None:
    for folder in ("crds", "overlays/standalone", "overlays/takeover"):
        installed.kubectl(*SERVER_SIDE, "-k", _path(folder))
    kinds = "crd,deployment,queue.scheduling.volcano.sh,poddisruptionbudget"
    objects = json.loads(installed.kubectl("get", kinds, "-A", "-o", "json"))["items"]
    ours = [object for object in objects if "volcano" in json.dumps(object["metadata"])]
    assert {object["metadata"]["generation"] for object in ours} == {1}


@pytest.mark.parametrize("folder", ["controllers", "dashboard", "overlays/complete", "monitoring/dashboards"])
def test_the_controllers_and_everything_together_are_right(installed: ControlPlane, folder: str) -> None:
    installed.kubectl(*SERVER_SIDE, "--dry-run=server", "-k", _path(folder))


@pytest.mark.parametrize(
    "component",
    ["debug-endpoints", "explain", "job-ssh", "node-usage"],
)
def test_the_other_manifests_are_right_too(installed: ControlPlane, component: str) -> None:
    path = _path(f"components/{component}/rbac.yaml")
    installed.kubectl(*SERVER_SIDE, "--dry-run=server", "-f", path)


@pytest.mark.parametrize("sample", accepted_samples(), ids=name_of)
def test_what_is_right_is_kept_whole(installed: ControlPlane, sample: Manifest) -> None:
    installed.kubectl(*SERVER_SIDE, "-f", "-", stdin=yaml.safe_dump(sample))
    if sample["kind"] in WITH_STATUS and "status" in sample:
        installed.kubectl(*SERVER_SIDE, "--subresource=status", "-f", "-", stdin=yaml.safe_dump(sample))
    group = sample["apiVersion"].partition("/")[0]
    space = ["-n", sample["metadata"].get("namespace", "default")]
    kept = installed.kubectl(
        "get", f"{sample['kind']}.{group}", sample["metadata"]["name"], *space, "-o", "json"
    )
    wanted = schemas.with_defaults(schema_of(sample["kind"]), sample)
    stored = json.loads(kept)
    assert {name: stored.get(name) for name in wanted.keys() - {"metadata"}} == {
        name: part for name, part in wanted.items() if name != "metadata"
    }


@pytest.mark.parametrize(("because", "sample"), refused_samples())
def test_what_is_wrong_is_refused_by_field(installed: ControlPlane, because: str, sample: Manifest) -> None:
    with pytest.raises(RuntimeError) as refusal:
        installed.kubectl("create", "-f", "-", stdin=yaml.safe_dump(sample))
    assert f"{because}: " in str(refusal.value)


@pytest.mark.parametrize(
    ("selector", "problem"),
    [
        ({}, "Either ExactMatch or RegexMatch or LabelMatch must be specified"),
        ({"exactMatch": {"name": "a"}, "regexMatch": {"pattern": "a"}}, "Only one of ExactMatch"),
        ({"exactMatch": {"name": "a"}, "labelMatch": {}}, "Only one of ExactMatch"),
        ({"regexMatch": {"pattern": "a"}, "labelMatch": {}}, "Only one of ExactMatch"),
    ],
)
def test_a_member_of_a_hypernode_is_selected_in_one_way(
    installed: ControlPlane, selector: dict[str, Any], problem: str
) -> None:
    rack = next(sample for sample in accepted_samples() if sample["kind"] == "HyperNode")
    rack["spec"]["members"] = [{"type": "Node", "selector": selector}]
    rack["metadata"]["name"] = "bad"
    with pytest.raises(RuntimeError, match=problem):
        installed.kubectl("create", "-f", "-", stdin=yaml.safe_dump(rack))


def test_a_misspelt_field_is_told(installed: ControlPlane) -> None:
    group = {**accepted_samples()[0], "spec": {"minMembers": 3}}
    with pytest.raises(RuntimeError, match=r"\.spec\.minMembers"):
        installed.kubectl(*SERVER_SIDE, "-f", "-", stdin=yaml.safe_dump(group))


def test_the_account_may_do_what_the_scheduler_does_and_no_more(installed: ControlPlane) -> None:
    granted = set(rights_of(only(STANDALONE, "ClusterRole")))
    of_cards = {("", "configmaps", "list"), ("", "configmaps", "watch")}
    """Of one ConfigMap by its name."""
    assert of_cards <= granted
    assert _allowed(installed, granted | FORBIDDEN) == granted - of_cards
    assert _allowed(installed, of_cards, "kube-system", "volcano-vgpu-device-config") == of_cards
    assert _allowed(installed, of_cards, "kube-system", "another") == set()
    assert _allowed(installed, LEASES, "volcano-system", "volcano") == set(LEASES)
    assert _allowed(installed, LEASES, "volcano-system", "another") == {
        ("coordination.k8s.io", "leases", "create")
    }
    assert _allowed(installed, LEASES, "default", "volcano") == set()


def _allowed(plane: ControlPlane, rights: Iterable[Right], namespace: str = "", name: str = "") -> set[Right]:
    """Which of these the API server would let the scheduler's account do, everywhere unless a place is named."""
    return {right for right in rights if _may(plane, right, namespace, name)}


def _may(plane: ControlPlane, right: Right, namespace: str, name: str) -> bool:
    group, resource, verb = right
    plural, _, part = resource.partition("/")
    about = {"group": group, "resource": plural, "subresource": part, "verb": verb}
    spec = {"user": ACCOUNT, "resourceAttributes": {**about, "namespace": namespace, "name": name}}
    answer = plane.request("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", {"spec": spec})
    return bool(json.loads(answer)["status"]["allowed"])


@pytest.mark.real_only  # the embedded server knows no pod security
def test_pods_are_let_into_a_restricted_namespace(installed: ControlPlane) -> None:
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "restricted", "labels": labels}}
    installed.apply(space)
    pod = copy.deepcopy(only(STANDALONE, "Deployment")["spec"]["template"]["spec"])
    asked = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a", "namespace": "restricted"},
        "spec": pod,
    }
    installed.kubectl("create", "--dry-run=server", "-f", "-", stdin=yaml.safe_dump(asked))
    pod["containers"][0]["securityContext"].pop("capabilities")
    with pytest.raises(RuntimeError, match="violates PodSecurity"):
        installed.kubectl("create", "--dry-run=server", "-f", "-", stdin=yaml.safe_dump(asked))


def test_the_scheduler_needs_no_right_that_its_manifest_does_not_grant(
    installed: ControlPlane, tmp_path: Path
) -> None:
    """With the flags, the policy and the account of the manifests a gang is bound, and nothing is forbidden."""
    token = installed.token_for("volcano-system", "stromboli-scheduler")
    (tmp_path / "kubeconfig").write_text(json.dumps(installed.config_for(token)))
    ((key, policy),) = only(STANDALONE, "ConfigMap")["data"].items()
    (tmp_path / key).write_text(policy)
    _make_work(installed)
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(_command(tmp_path), stdout=log, stderr=log)
    try:
        installed.wait(lambda: _group(installed).get("phase") == "Running", "the gang to run", 30)
        used = "jsonpath={.status.allocated.cpu}"
        installed.wait(
            lambda: installed.kubectl("get", "queue", "default", "-o", used) == "3", "its queue", 30
        )
    finally:
        process.terminate()
        ended = process.wait(30)
    output = (tmp_path / "log").read_text()
    assert ended == 0, output
    assert "forbidden" not in output.lower()


def _command(folder: Path) -> list[str]:
    (container,) = only(STANDALONE, "Deployment")["spec"]["template"]["spec"]["containers"]
    mount = container["volumeMounts"][0]["mountPath"]
    flags = [
        flag.replace("$(NAMESPACE)", "volcano-system").replace(mount, str(folder))
        for flag in container["args"]
    ]
    metrics, health = free_ports(2)
    places = [f"--listen-address=127.0.0.1:{metrics}", f"--healthz-address=127.0.0.1:{health}"]
    return [sys.executable, "-m", "stromboli", *flags, *places, f"--kubeconfig={folder / 'kubeconfig'}"]


def _make_work(plane: ControlPlane) -> None:
    room = {"cpu": "8", "memory": "8Gi", "pods": "10"}
    node = {"metadata": {"name": "node-1"}, "status": {"allocatable": room, "capacity": room}}
    plane.request("POST", "/api/v1/nodes", node)
    version = "scheduling.volcano.sh/v1beta1"
    group = {"apiVersion": version, "kind": "PodGroup", "metadata": {"name": "team", "namespace": "default"}}
    asks = {"name": "main", "image": "a:1", "resources": {"requests": {"cpu": "1"}}}
    pods = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"team-{number}",
                "namespace": "default",
                "annotations": {"scheduling.k8s.io/group-name": "team"},
            },
            "spec": {"schedulerName": "volcano", "containers": [asks]},
        }
        for number in range(3)
    ]
    plane.apply({**group, "spec": {"minMember": 3}}, *pods)


def _group(plane: ControlPlane) -> dict[str, Any]:
    path = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups/team"
    status: dict[str, Any] = json.loads(plane.request("GET", path)).get("status", {})
    return status
